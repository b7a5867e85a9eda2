//! The failsafe list: the rules of `/etc/pf.failsafe`, which come before the rules of every main
//! rule set. A load reads the list as the contents of its anchor, before it reads the pf.conf.
//!
//! The list passes packets and does nothing else. Its rules depend on no other file and on no
//! command: the list has no settings, tables and host names, and no macros of `-D`.

use std::net::IpAddr;

use skipstep_ruleset::failsafe::{ANCHOR, FILE};
use skipstep_ruleset::{Action, Address, Optimization, Rule, StateOptions};

use crate::ast::StatementKind;
use crate::context::{Context, Dialect};
use crate::diagnostics::{Diagnostic, Severity};
use crate::expand::Refused;
use crate::parser::Parser;
use crate::{Loaded, Rejected, load, table};

/// Reads the failsafe list of the context. `None` if there is no list.
///
/// # Errors
/// Fails if the list cannot be read, or if it contains anything but `pass` rules and macros.
// Differs from OpenBSD: linux.md, "The failsafe list"
pub fn read(context: &Context) -> Option<Result<Loaded, Rejected>> {
    let text = match (context.failsafe)() {
        Ok(text) => text?,
        Err(error) => {
            let diagnostics = vec![about_file(&table::plain(&error))];
            return Some(Err(Rejected { diagnostics, echo: String::new() }));
        }
    };
    // at boot, name servers are out of reach, and interfaces have no addresses
    let resolve = |_: &str| Vec::<IpAddr>::new();
    let mut host = context.host.clone();
    host.interfaces.iter_mut().for_each(|interface| interface.addresses.clear());
    let list = Context {
        file_name: FILE,
        anchor: ANCHOR,
        is_failsafe_list: true,
        queues: &|| Vec::new(),
        dialect: Dialect::Any,
        macros: &[],
        resolve: &resolve,
        host: &host,
        optimization: Some(Optimization::None),
        automatic_tables: context.automatic_tables.clone(),
        ..*context
    };
    let mut result = load(&text, &list);
    match &mut result {
        Ok(loaded) if loaded.ruleset.rules.is_empty() => loaded.warnings.push(Diagnostic {
            kind: Severity::Warning,
            ..about_file("warning: the failsafe list has no rules")
        }),
        Ok(_) => {}
        Err(rejected) => {
            let is_unknown = |found: &Diagnostic| found.message.starts_with("no IP address found");
            if rejected.diagnostics.iter().any(is_unknown) {
                rejected.diagnostics.push(about_file(
                    "the failsafe list is also loaded before the network is up: write addresses in \
                     place of host names, and interfaces in parentheses, as in `to (eth0)`",
                ));
            }
        }
    }
    Some(result)
}

/// Returns an error about the whole file.
fn about_file(message: &str) -> Diagnostic {
    Diagnostic { message: format!("{FILE}: {message}"), bare: true, ..Diagnostic::default() }
}

/// Refuses a statement that the list cannot contain.
///
/// # Errors
/// Fails if the statement is no macro and no rule.
pub(crate) fn check_statement(
    statement: &StatementKind,
    parser: &mut Parser,
) -> Result<(), Refused> {
    match statement {
        // its opening brace has been refused
        StatementKind::Anchor(anchor) if anchor.braces => Err(Refused),
        statement => match refusal_of_statement(statement) {
            Some(message) => {
                parser.report_statement(Severity::Error, message);
                Err(Refused)
            }
            None => Ok(()),
        },
    }
}

fn refusal_of_statement(statement: &StatementKind) -> Option<&'static str> {
    use StatementKind::*;
    Some(match statement {
        Macro { .. } | Rule(_) | Include => return None,
        Set(_) => "the failsafe list has no settings: write this line into pf.conf",
        Table(_) => NO_TABLES,
        Antispoof(_) => {
            "antispoof blocks packets, and the failsafe list has pass rules only: write this line \
             into pf.conf"
        }
        BeginAnchor { .. } | Anchor(_) | LoadAnchor { .. } => {
            "the failsafe list has no anchors, because `pfctl -a` can change them: write their \
             pass rules here"
        }
        Queues(_) | Limiter(_) => {
            "the failsafe list has no queues and limiters: write this line into pf.conf"
        }
        Legacy(_) => {
            "the failsafe list does not translate or normalize packets: write this line into \
             pf.conf"
        }
    })
}

const NO_TABLES: &str = "the failsafe list has no tables, because a command can empty them: write \
                         the addresses, as in `pass in from { 192.0.2.0/24, 2001:db8::/32 }`";

/// Returns the message for an `include` statement in the list.
pub(crate) const NO_INCLUDE: &str = "the failsafe list is one file: write the pass rules here";

/// Returns the message for a rule that the list cannot contain.
pub(crate) fn refusal_of_rule(rule: &Rule) -> Option<&'static str> {
    let names_table = |address: &Address| matches!(address, Address::Table(_)).then_some(NO_TABLES);
    let ends = [&rule.source, &rule.destination];
    refused_action(rule)
        .or_else(|| ends.into_iter().find_map(|end| names_table(&end.host.address)))
        .or_else(|| refused_limit(rule))
        .or_else(|| refused_option(rule))
}

fn refused_action(rule: &Rule) -> Option<&'static str> {
    match rule.action {
        Action::Pass => None,
        Action::Block => {
            Some("the failsafe list has pass rules only: write block rules into pf.conf")
        }
        Action::Match => {
            Some("the failsafe list has pass rules only: write match rules into pf.conf")
        }
    }
}

/// Refuses limits, because a packet above a limit is blocked.
fn refused_limit(rule: &Rule) -> Option<&'static str> {
    if rule.state.as_deref().is_some_and(limits_states)
        || rule.state_limiter.is_some()
        || rule.source_limiter.is_some()
    {
        return Some(
            "a rule of the failsafe list has no limit of states, because packets above a limit \
             are blocked: leave the limit out, or write `no state`",
        );
    }
    if rule.max_pkt_rate.is_some() || rule.max_pkt_size.is_some() {
        return Some(
            "a rule of the failsafe list has no max-pkt-rate and max-pkt-size, because packets \
             above a limit are blocked: leave the limit out",
        );
    }
    if rule.probability.is_some() || rule.once {
        return Some(
            "a rule of the failsafe list matches every time: leave `probability` and `once` out",
        );
    }
    None
}

fn limits_states(options: &StateOptions) -> bool {
    let limits = [
        options.max,
        options.max_src_states,
        options.max_src_conn,
        options.max_src_nodes,
        options.max_src_conn_rate.map(|(connections, _)| connections),
    ];
    limits.iter().any(Option::is_some)
        || options.source_track.is_some()
        || options.overload.is_some()
}

/// Refuses options that send packets elsewhere, or that depend on pf.conf or skipstepd.
fn refused_option(rule: &Rule) -> Option<&'static str> {
    if rule.nat.is_some() || rule.rdr.is_some() || rule.af_to.is_some() {
        return Some(
            "the failsafe list does not translate packets: write rules with nat-to, rdr-to, \
             binat-to and af-to into pf.conf",
        );
    }
    if rule.route.is_some() || rule.rtable.is_some() || rule.divert.is_some() {
        return Some(
            "the failsafe list does not redirect packets: write rules with route-to, reply-to, \
             dup-to, rtable and divert into pf.conf",
        );
    }
    if rule.set_queue.is_some() || rule.set_delay.is_some() {
        return Some(
            "the failsafe list does not queue or delay packets: write rules with `set queue` and \
             `set delay` into pf.conf",
        );
    }
    if rule.os.is_some() || rule.tagged.is_some() {
        return Some(
            "a rule of the failsafe list depends on no other file, and tags and fingerprints \
             come from others: leave `os` and `tagged` out",
        );
    }
    None
}
