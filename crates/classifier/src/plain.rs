//! Decides which rules the fast path of the data plane may evaluate: `bpf/plain.h`.
//!
//! A rule is not eligible unless everything about it is known to be harmless. So each struct is
//! taken apart field by field, without `..`: a field that is new does not compile until somebody
//! decides about it here, and says why it may be ignored if it may.

use skipstep_abi as abi;
use skipstep_abi::interface::interface_match;
use skipstep_abi::rule::{address_kind, divert_kind, plain, port_op, rule_flags as flags};
use skipstep_abi::verdict::action;
use skipstep_ruleset::{Options, Syncookies};

/// Flags of tests that read headers and the interface, which the fast path has.
const TESTS_HEADERS: u32 = flags::FRAGMENT
    | flags::MATCH_TOS
    | flags::MATCH_ICMP_TYPE
    | flags::MATCH_ICMP_CODE
    | flags::INTERFACE_NOT;

/// Flags of tests that need more than headers.
const TESTS_MORE: u32 = flags::MATCH_PRIO
    | flags::PROBABILITY
    | flags::ONCE
    | flags::MAX_PKT_RATE
    | flags::RECEIVED_NOT
    | flags::TAGGED_NOT;

/// Flags of a rule that decides and does nothing else. The fast path knows the flags of states.
const DECIDES: u32 = flags::QUICK
    | flags::ALLOW_OPTS
    | flags::KEEP_STATE
    | flags::IF_BOUND
    | flags::SLOPPY
    | flags::NO_SYNC;

/// Flags of what a rule does with the packet besides, or instead, once it matches.
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

/// Returns how much of a filter rule the fast path does: [`plain`]. `states` is what the data plane
/// keeps for the rule's states.
pub fn of(rule: &abi::Rule, states: &abi::RuleStates) -> u8 {
    let mut all = 0;
    if asks_headers_alone(rule) {
        all |= plain::TEST;
    }
    if decides_and_nothing_else(rule) && leaves_packets_here(states) {
        all |= match rule.flags & flags::KEEP_STATE {
            0 => plain::VERDICT,
            _ if rule.action == action::PASS && has_no_limits(states) => plain::STATE,
            _ => 0,
        };
    }
    all
}

/// True if a packet's headers and interface are enough to test the rule.
fn asks_headers_alone(rule: &abi::Rule) -> bool {
    let abi::Rule {
        flags,
        interface_match,
        received_match,
        // an anchor's or a `match` rule's, which tests behind it may ask for
        tag,
        tagged,
        source,
        destination,
        source_port,
        destination_port,
        user,
        group,
        os,
        limiter,
        // `test_rule` in bpf/rules.h compares these with headers and the interface
        interface: _,
        direction: _,
        family: _,
        protocol: _,
        tcp_flags: _,
        tcp_mask: _,
        icmp_type: _,
        icmp_code: _,
        tos: _,
        // without their flag, or `received_match`, nobody looks at these
        received_on: _,
        prio: _,
        probability: _,
        // the walk reads these before or after the test: where it goes on, and what it counts
        skip: _,
        slot: _,
        number: _,
        anchor: _,
        call_first: _,
        call_end: _,
        set_end: _,
        segment: _,
        // these count once the rule matches: `decides_and_nothing_else`
        action: _,
        return_ttl: _,
        return_icmp_type: _,
        return_icmp_code: _,
        return_icmp6_type: _,
        return_icmp6_code: _,
        set_tos: _,
        set_prio: _,
        min_ttl: _,
        log_to: _,
        max_mss: _,
        max_pkt_size: _,
        pools: _,
        route: _,
        queue: _,
        rtable: _,
        cross_to: _,
        delay: _,
        // only for lists of old rules, which `may_ask` excludes
        leave_fragments: _,
        // the result
        plain: _,
    } = rule;
    flags & !(TESTS_HEADERS | DECIDES | ACTS) == 0
        && is_known_interface(*interface_match)
        && *received_match == interface_match::NONE
        && [source, destination].into_iter().all(is_in_headers)
        && [source_port, destination_port].into_iter().all(is_number)
        && is_anybody(user)
        && is_anybody(group)
        && *os == 0
        && *tagged == 0
        && *limiter == [0; 2]
        && *tag == 0
}

/// True if the fast path compares the packet's interface in this way.
fn is_known_interface(kind: u8) -> bool {
    use interface_match::{ANY, GROUP, NAME, NONE, RDOMAIN};
    [NONE, NAME, GROUP, ANY, RDOMAIN].contains(&kind)
}

/// True if the address in the packet's header is all that the criterion asks for.
fn is_in_headers(address: &abi::Address) -> bool {
    use address_kind::{ANY, MASK, NEVER, RANGE, TABLE};
    // what the address is compared with, and how: kinds that ask for routes are not listed
    let abi::Address { kind, negated: _, pad: _, table: _, low: _, high: _ } = address;
    [ANY, MASK, RANGE, TABLE, NEVER].contains(kind)
}

/// True if the port in the packet's header is all that the criterion asks for.
fn is_number(port: &abi::Port) -> bool {
    // what the port is compared with
    let abi::Port { op, low: _, high: _, pad: _ } = port;
    *op <= port_op::RANGE
}

/// True if the criterion asks for no owner of a socket.
fn is_anybody(owner: &abi::Owner) -> bool {
    // without an operation nobody looks at the operands
    let abi::Owner { op, low: _, high: _, pad: _ } = owner;
    *op == 0
}

/// True if the rule passes the packet as it is, or drops it without an answer, and does no more.
fn decides_and_nothing_else(rule: &abi::Rule) -> bool {
    let abi::Rule {
        flags,
        action,
        tag,
        min_ttl,
        max_mss,
        max_pkt_size,
        pools,
        route,
        queue,
        rtable,
        cross_to,
        delay,
        // criteria: `asks_headers_alone`
        interface: _,
        received_on: _,
        interface_match: _,
        received_match: _,
        direction: _,
        family: _,
        protocol: _,
        tcp_flags: _,
        tcp_mask: _,
        icmp_type: _,
        icmp_code: _,
        tos: _,
        prio: _,
        tagged: _,
        probability: _,
        source: _,
        destination: _,
        source_port: _,
        destination_port: _,
        user: _,
        group: _,
        os: _,
        limiter: _,
        // without their flag, which is one of ACTS, nobody looks at these
        return_ttl: _,
        return_icmp_type: _,
        return_icmp_code: _,
        return_icmp6_type: _,
        return_icmp6_code: _,
        set_tos: _,
        set_prio: _,
        log_to: _,
        call_first: _,
        call_end: _,
        // places in rule sets and counters: `name_rule` and `count_rule` handle both paths alike
        skip: _,
        slot: _,
        number: _,
        anchor: _,
        set_end: _,
        segment: _,
        // only for lists of old rules, which `may_ask` excludes
        leave_fragments: _,
        // the result
        plain: _,
    } = rule;
    [action::PASS, action::BLOCK].contains(action)
        // a rule with one of TESTS_MORE decides on the slow path: it has no `plain::TEST`
        && flags & !(DECIDES | TESTS_HEADERS | TESTS_MORE) == 0
        && *tag == 0
        && *min_ttl == 0
        && *max_mss == 0
        && *max_pkt_size == 0
        && *pools == 0
        && *route == 0
        && *queue == [0; 2]
        && *rtable == 0
        && *cross_to == 0
        && *delay == 0
}

/// True if no socket or program gets the packets that the rule matches.
fn leaves_packets_here(states: &abi::RuleStates) -> bool {
    let abi::RuleStates {
        divert,
        // without `divert` nobody looks at these
        divert_port: _,
        divert_address: _,
        // without TESTS_MORE nobody looks at these
        expired: _,
        pkt_rate: _,
        max_packets: _,
        max_packets_seconds: _,
        // counters, and what counts with them
        total: _,
        current: _,
        number: _,
        anchor: _,
        tables: _,
        source_nodes: _,
        // of states that the rule keeps: `has_no_limits`
        max: _,
        timeouts: _,
        source_flags: _,
        max_src_nodes: _,
        max_src_states: _,
        max_src_conn: _,
        max_src_conn_rate: _,
        max_src_conn_seconds: _,
        overload_table: _,
        pflow: _,
        flow_tos: _,
        // only for old rules, which `may_ask` excludes
        old: _,
    } = states;
    *divert == divert_kind::NO
}

/// True if the fast path may make the rule's states: nothing limits, tracks or reports them.
fn has_no_limits(states: &abi::RuleStates) -> bool {
    let abi::RuleStates {
        max,
        source_flags,
        pflow,
        // without `source_flags` nobody looks at these
        source_nodes: _,
        max_src_nodes: _,
        max_src_states: _,
        max_src_conn: _,
        max_src_conn_rate: _,
        max_src_conn_seconds: _,
        overload_table: _,
        // without `pflow` nobody looks at it
        flow_tos: _,
        // `expired` in bpf/timeout.h asks for these whichever path made the state
        timeouts: _,
        // `begin_state` and `count_rule` raise these on both paths
        total: _,
        current: _,
        tables: _,
        // names of the rule
        number: _,
        anchor: _,
        // of rules: `leaves_packets_here`
        pkt_rate: _,
        expired: _,
        max_packets: _,
        max_packets_seconds: _,
        divert: _,
        divert_port: _,
        divert_address: _,
        old: _,
    } = states;
    *max == 0 && *source_flags == 0 && *pflow == 0
}

/// True if it pays to evaluate filter rules on the fast path: nothing comes before them, and the
/// fast path can carry out one of them at least.
pub fn may_ask(options: &Options, old: &[abi::Stretch], rules: &[abi::Rule]) -> bool {
    let Options {
        syncookies,
        // parts of each rule by now
        block_policy: _,
        fail_policy: _,
        state_policy: _,
        // `expired` and `take_state` ask for these on both paths
        timeouts: _,
        limits: _,
        // both paths look at the interface's flags, and count for it, before they ask rules
        skip: _,
        loginterface: _,
        // fragments take the slow path before rules are asked
        reassemble: _,
        reassemble_no_df: _,
        // both paths walk the same rules and trees
        evaluator: _,
        ruleset_optimization: _,
        // where the fast path runs, and what it leaves to the kernel: not what rules say
        fast_forward: _,
        xdp: _,
        // for the guard, which asks no rules
        unattached: _,
        // for rules with `os`, which are not eligible
        fingerprints: _,
        // no packet is treated otherwise for these
        keep_counters: _,
        hostid: _,
        debug: _,
    } = options;
    let is_empty = |abi::Stretch { first, end }: &abi::Stretch| first == end;
    *syncookies == Syncookies::Never
        && old.iter().all(is_empty)
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

    /// A flag that is new is no flag of ours until somebody puts it into one of the four.
    #[test]
    fn every_flag_is_of_one_kind() {
        let kinds = [TESTS_HEADERS, TESTS_MORE, DECIDES, ACTS];
        let flags = kinds.iter().map(|kind| kind.count_ones()).sum::<u32>();
        assert_eq!((flags, kinds.iter().fold(0, |all, kind| all | kind)), (32, u32::MAX));
    }

    #[test]
    fn kinds_that_nobody_listed_are_not_eligible() {
        let rule = abi::Rule::default();
        let of_kind = |kind| abi::Address { kind, ..abi::Address::default() };
        let unknown = [
            abi::Rule { source: of_kind(address_kind::NO_ROUTE), ..rule },
            abi::Rule { destination: of_kind(address_kind::URPF_FAILED), ..rule },
            abi::Rule { source: of_kind(address_kind::NEVER + 1), ..rule },
            abi::Rule {
                source_port: abi::Port { op: port_op::RANGE + 1, ..abi::Port::default() },
                ..rule
            },
            abi::Rule { interface_match: interface_match::RDOMAIN + 1, ..rule },
            abi::Rule { user: abi::Owner { op: 1, ..abi::Owner::default() }, ..rule },
        ];
        for rule in unknown {
            assert_eq!(of(&rule, &abi::RuleStates::default()), plain::VERDICT, "{rule:?}");
        }
        let known = abi::Rule { source: of_kind(address_kind::NEVER), ..rule };
        let all = plain::TEST | plain::VERDICT;
        assert_eq!(of(&known, &abi::RuleStates::default()), all);
        let unknown = abi::RuleStates { divert: u8::MAX, ..abi::RuleStates::default() };
        assert_eq!(of(&rule, &unknown), plain::TEST);
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
