//! Semantic checks of expanded rules, with OpenBSD's messages.

use skipstep_ruleset::{Action, BlockReturn, Direction, Family, KeepKind, LegacyKind, Rule};

use crate::ast::Translation;
use crate::context::Dialect;
use crate::packet_names::{ICMP, ICMP6};

const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;

/// Returns a warning about an expanded rule that is odd and valid.
pub fn warning(rule: &Rule) -> Option<&'static str> {
    let synproxy = rule.state.as_ref().is_some_and(|state| state.kind == KeepKind::Synproxy);
    (synproxy && rule.direction != Some(Direction::In))
        .then_some("warning: synproxy used for inbound rules only, ignored for outbound")
}

/// Returns the error messages about an expanded rule; empty if the rule is valid. `kind` is the
/// kind of a legacy rule.
pub fn rule(
    rule: &Rule,
    translation: &Translation,
    kind: Option<LegacyKind>,
    dialect: Dialect,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |is_wrong: bool, text: &str| {
        if is_wrong {
            wrong.push(text.to_string());
        }
    };
    let is = |protocol| rule.protocol == Some(protocol);
    let ports = rule.source.ports.is_some() || rule.destination.ports.is_some();
    // FreeBSD needs no protocol here, because the rule matches no packets of other protocols
    let any = rule.protocol.is_none();
    let implied = any && dialect == Dialect::Any;
    check(rule.os.is_some() && !is(TCP) && !implied, "os only applies to tcp");
    // FreeBSD reads the ports of SCTP, too
    let has_ports = is(TCP) || is(UDP) || is(SCTP) || (any && kind == Some(LegacyKind::Nat));
    check(ports && !has_ports, "port only applies to tcp/udp");
    let has_owner = is(TCP) || is(UDP) || implied;
    check(rule.user.is_some() && !has_owner, "user only applies to tcp/udp");
    check(rule.group.is_some() && !has_owner, "group only applies to tcp/udp");
    let icmp = rule.icmp.is_some();
    check(icmp && !is(ICMP) && !is(ICMP6), "icmp-type/code only applies to icmp");
    check(icmp && rule.family.is_none(), "must indicate address family with icmp-type/code");
    let state = rule.state.as_ref();
    check(
        state.is_some_and(|state| {
            state.overload.is_some()
                && state.max_src_conn.is_none()
                && state.max_src_conn_rate.is_none()
        }),
        "'overload' requires 'max-src-conn' or 'max-src-conn-rate'",
    );
    check(
        translation.af_to.is_some() && translation.af_to == rule.family,
        "must indicate different address family with af-to",
    );
    check(
        is(ICMP) && rule.family == Some(Family::Inet6),
        "proto icmp doesn't match address family inet6",
    );
    check(
        is(ICMP6) && rule.family == Some(Family::Inet),
        "proto icmp6 doesn't match address family inet",
    );
    // FreeBSD's match rules allow options for the pass rules behind them
    let allows =
        rule.action == Action::Pass || rule.action == Action::Match && dialect == Dialect::Any;
    check(rule.allow_opts && !allows, "allow-opts can only be specified for pass rules");
    let beyond_ip = ports || icmp || rule.tcp_flags.is_some_and(|flags| flags.mask != 0);
    check(rule.fragment && beyond_ip, "fragments can be filtered only on IP header fields");
    let resets =
        matches!(rule.block_return, BlockReturn::Rst { .. }) && rule.action == Action::Block;
    check(resets && !is(TCP), "return-rst can only be applied to TCP rules");
    check(
        rule.state.is_some() && rule.action != Action::Pass,
        "keep state is great, but only for pass rules",
    );
    let routes = translation.route.is_some();
    let routes_of_today =
        translation.route.as_ref().is_some_and(|(_, pool)| pool.through.is_empty());
    check(
        routes_of_today && rule.state.is_none(),
        "route-to, reply-to and dup-to require keep state",
    );
    let translates = translation.nat.is_some() || translation.rdr.is_some();
    check(
        translates && rule.action != Action::Match && rule.state.is_none(),
        "nat-to and rdr-to require keep state",
    );
    check(translates && rule.direction.is_none(), "nat-to and rdr-to require a direction");
    check(
        state.is_some_and(|state| state.sloppy && state.kind != KeepKind::Keep),
        "sloppy state matching cannot be used with synproxy state or modulate state",
    );
    let inet_only = rule.scrub.no_df || rule.scrub.random_id;
    check(
        rule.family == Some(Family::Inet6) && inet_only && kind != Some(LegacyKind::Scrub),
        "address family inet6 does not support scrub options no-df, random-id",
    );
    match rule.action {
        Action::Match => {
            check(translation.divert.is_some(), "divert is not supported on match rules");
            check(routes, "route-to, reply-to and dup-to are not supported on match rules");
            check(translation.af_to.is_some(), "af-to is not supported on match rules");
        }
        Action::Block => {
            check(routes, "route-to, reply-to and dup-to are not supported on block rules");
        }
        Action::Pass => {}
    }
    wrong
}
