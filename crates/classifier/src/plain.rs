//! Which rules those can ask who have a packet's headers and nothing else: `bpf/plain.h`.

use skipstep_abi as abi;
use skipstep_abi::interface::interface_match;
use skipstep_abi::rule::{address_kind, divert_kind, plain, rule_flags as flags};
use skipstep_abi::verdict::action;
use skipstep_ruleset::{Options, Syncookies};

/// Flags of what a rule asks besides.
const ASKS: u32 = flags::MATCH_PRIO
    | flags::PROBABILITY
    | flags::ONCE
    | flags::MAX_PKT_RATE
    | flags::RECEIVED_NOT;

/// Flags of what it does with the packet besides, or instead.
const ACTS: u32 = flags::LOG
    | flags::LOG_ALL
    | flags::LOG_MATCHES
    | flags::LOG_USER
    | flags::MODULATE
    | flags::SYNPROXY
    | flags::RETURN
    | flags::RETURN_RST
    | flags::RETURN_ICMP
    | flags::NO_DF
    | flags::RANDOM_ID
    | flags::REASSEMBLE_TCP
    | flags::SET_TOS
    | flags::SET_PRIO
    | flags::ANCHOR;

/// How much of a filter rule that is: [`plain`]. `states` is what is kept for its states.
pub fn of(rule: &abi::Rule, states: &abi::RuleStates) -> u8 {
    let mut all = 0;
    if asks_headers_alone(rule) {
        all |= plain::TEST;
    }
    if decides_and_nothing_else(rule, states) {
        all |= match rule.flags & flags::KEEP_STATE {
            0 => plain::VERDICT,
            _ if rule.action == action::PASS && has_no_limits(states) => plain::STATE,
            _ => 0,
        };
    }
    all
}

fn asks_headers_alone(rule: &abi::Rule) -> bool {
    let of_route = |address: &abi::Address| {
        [address_kind::NO_ROUTE, address_kind::URPF_FAILED].contains(&address.kind)
    };
    rule.flags & ASKS == 0
        && rule.received_match == interface_match::NONE
        && !of_route(&rule.source)
        && !of_route(&rule.destination)
        && rule.user.op == 0
        && rule.group.op == 0
        && rule.os == 0
        && rule.tagged == 0
        && rule.limiter == [0; 2]
        // an anchor's or a `match` rule's
        && rule.tag == 0
}

fn decides_and_nothing_else(rule: &abi::Rule, states: &abi::RuleStates) -> bool {
    [action::PASS, action::BLOCK].contains(&rule.action)
        && rule.flags & ACTS == 0
        && rule.tag == 0
        && rule.min_ttl == 0
        && rule.max_mss == 0
        && rule.max_pkt_size == 0
        && rule.pools == 0
        && rule.route == 0
        && rule.queue == [0; 2]
        && rule.rtable == 0
        && rule.cross_to == 0
        && rule.delay == 0
        && states.divert == divert_kind::NO
}

/// Whether nothing of its states is looked at but what they know of their connections.
fn has_no_limits(states: &abi::RuleStates) -> bool {
    states.max == 0 && states.source_flags == 0 && states.pflow == 0
}

/// Whether it is of use to ask filter rules that way: nothing comes before them, and not each of
/// them wants more.
pub fn may_ask(options: &Options, old: &[abi::Stretch], rules: &[abi::Rule]) -> bool {
    options.syncookies == Syncookies::Never
        && old.iter().all(|list| list.first == list.end)
        && (rules.is_empty()
            || rules.iter().any(|rule| rule.plain & (plain::VERDICT | plain::STATE) != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_flags(flags: u32) -> u8 {
        of(&abi::Rule { flags, ..abi::Rule::default() }, &abi::RuleStates::default())
    }

    #[test]
    fn what_wants_more_is_not_plain() {
        assert_eq!(of_flags(0), plain::TEST | plain::VERDICT);
        assert_eq!(of_flags(flags::QUICK | flags::ALLOW_OPTS), plain::TEST | plain::VERDICT);
        assert_eq!(of_flags(flags::KEEP_STATE), plain::TEST | plain::STATE);
        assert_eq!(of_flags(flags::KEEP_STATE | flags::SLOPPY), plain::TEST | plain::STATE);
        assert_eq!(of_flags(flags::KEEP_STATE | flags::MODULATE), plain::TEST);
        let keeps = abi::Rule { flags: flags::KEEP_STATE, ..abi::Rule::default() };
        let limited = abi::RuleStates { max: 1, ..abi::RuleStates::default() };
        assert_eq!(of(&keeps, &limited), plain::TEST);
        let reported = abi::RuleStates { pflow: 1, ..abi::RuleStates::default() };
        assert_eq!(of(&keeps, &reported), plain::TEST);
        assert_eq!(of_flags(flags::LOG), plain::TEST);
        assert_eq!(of_flags(flags::PROBABILITY), plain::VERDICT);
        let tagged = abi::Rule { tagged: 1, ..abi::Rule::default() };
        assert_eq!(of(&tagged, &abi::RuleStates::default()), plain::VERDICT);
        let diverts = abi::RuleStates { divert: divert_kind::PACKET, ..abi::RuleStates::default() };
        assert_eq!(of(&abi::Rule::default(), &diverts), plain::TEST);
        let matches = abi::Rule { action: action::MATCH, ..abi::Rule::default() };
        assert_eq!(of(&matches, &abi::RuleStates::default()), plain::TEST);
    }

    #[test]
    fn rules_that_all_want_more_are_not_asked() {
        let logs = [abi::Rule { plain: plain::TEST, ..abi::Rule::default() }];
        let keeps = [abi::Rule { plain: plain::TEST | plain::STATE, ..abi::Rule::default() }];
        let blocks = [abi::Rule { plain: plain::TEST | plain::VERDICT, ..abi::Rule::default() }];
        let options = Options::default();
        assert!(!may_ask(&options, &[], &logs));
        assert!(may_ask(&options, &[], &keeps));
        assert!(may_ask(&options, &[], &blocks));
        assert!(may_ask(&options, &[], &[]));
        assert!(!may_ask(&options, &[abi::Stretch { first: 1, end: 2 }], &blocks));
        let cookies = Options { syncookies: Syncookies::Always, ..options };
        assert!(!may_ask(&cookies, &[], &blocks));
    }
}
