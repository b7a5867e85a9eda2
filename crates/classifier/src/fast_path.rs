//! Decides which rules the fast path of the data plane may evaluate: `bpf/plain.h`.
//!
//! A rule is eligible only if each of its properties is known to be harmless. So the functions
//! below destructure each struct without `..`. A new field does not compile until it is
//! classified here; the comment above a group of ignored fields gives the reason.

use skipstep_abi as abi;
use skipstep_abi::interface::interface_match;
use skipstep_abi::rule::{address_kind, divert_kind, fast_path, port_op, rule_flags as flags};
use skipstep_abi::verdict::action;
use skipstep_ruleset::{Options, Syncookies};

/// Flags of criteria on headers and the interface, which the fast path can read.
const TESTS_HEADERS: u32 = flags::FRAGMENT
    | flags::MATCH_TOS
    | flags::MATCH_ICMP_TYPE
    | flags::MATCH_ICMP_CODE
    | flags::INTERFACE_NOT;

/// Flags of criteria that need more than headers.
const TESTS_MORE: u32 = flags::MATCH_PRIO
    | flags::PROBABILITY
    | flags::ONCE
    | flags::MAX_PKT_RATE
    | flags::RECEIVED_NOT
    | flags::TAGGED_NOT;

/// Flags of a rule that only decides. The fast path implements the flags of states.
const DECIDES: u32 = flags::QUICK
    | flags::ALLOW_OPTS
    | flags::KEEP_STATE
    | flags::IF_BOUND
    | flags::SLOPPY
    | flags::NO_SYNC;

/// Flags of side effects of a matching rule, and of decisions that the fast path cannot make.
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

/// Returns the parts of a filter rule that the fast path can do, as flags of [`fast_path`].
/// `states` are the rule's state settings.
pub fn fast_path_parts(rule: &abi::Rule, states: &abi::RuleStates) -> u8 {
    let mut all = 0;
    if reads_headers_only(rule) {
        all |= fast_path::TEST;
    }
    if decides_and_nothing_else(rule) && leaves_packets_here(states) {
        all |= match rule.flags & flags::KEEP_STATE {
            0 => fast_path::VERDICT,
            _ if rule.action == action::PASS && has_no_limits(states) => fast_path::STATE,
            _ => 0,
        };
    }
    all
}

/// True if a packet's headers and interface are enough to test the rule.
fn reads_headers_only(rule: &abi::Rule) -> bool {
    let abi::Rule {
        flags,
        interface_match,
        received_match,
        // Set by an anchor or a `match` rule, and read by rules behind it.
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
        // Unused without their flag, or without `received_match`.
        received_on: _,
        prio: _,
        probability: _,
        // Read before or after the rule's evaluation: the next rule, and the counters.
        skip: _,
        slot: _,
        number: _,
        anchor: _,
        call_first: _,
        call_end: _,
        set_end: _,
        superblock: _,
        // Relevant once the rule matches: see `decides_and_nothing_else`.
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
        // Only in lists of legacy rules, which `may_evaluate` excludes.
        leave_fragments: _,
        // The result of this function.
        fast_path: _,
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

/// True if the fast path implements this kind of interface criterion.
fn is_known_interface(kind: u8) -> bool {
    use interface_match::{ANY, GROUP, NAME, NONE, RDOMAIN};
    [NONE, NAME, GROUP, ANY, RDOMAIN].contains(&kind)
}

/// True if the criterion depends only on the address in the packet's header.
fn is_in_headers(address: &abi::Address) -> bool {
    use address_kind::{ANY, MASK, NEVER, RANGE, TABLE};
    // Operands of the comparison. Kinds that need a route lookup are not in the list below.
    let abi::Address { kind, negated: _, pad: _, table: _, low: _, high: _ } = address;
    [ANY, MASK, RANGE, TABLE, NEVER].contains(kind)
}

/// True if the criterion depends only on the port in the packet's header.
fn is_number(port: &abi::Port) -> bool {
    // Operands of the comparison.
    let abi::Port { op, low: _, high: _, pad: _ } = port;
    *op <= port_op::RANGE
}

/// True if there is no criterion on the owner of a socket.
fn is_anybody(owner: &abi::Owner) -> bool {
    // The operands are unused without an operation.
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
        // Criteria: see `reads_headers_only`.
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
        // Unused without their flag, which is one of ACTS.
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
        // Positions and counters: `name_rule` and `count_rule` treat both paths alike.
        skip: _,
        slot: _,
        number: _,
        anchor: _,
        set_end: _,
        superblock: _,
        // Only in lists of legacy rules, which `may_evaluate` excludes.
        leave_fragments: _,
        // The result of `fast_path_parts`.
        fast_path: _,
    } = rule;
    [action::PASS, action::BLOCK].contains(action)
        // A rule with one of TESTS_MORE decides on the slow path, because it has no
        // `fast_path::TEST`.
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
        // Unused without `divert`.
        divert_port: _,
        divert_address: _,
        // Unused without TESTS_MORE.
        expired: _,
        pkt_rate: _,
        max_packets: _,
        max_packets_seconds: _,
        // Counters, and values used to count.
        total: _,
        current: _,
        number: _,
        anchor: _,
        tables: _,
        source_nodes: _,
        // Settings of states: see `has_no_limits`.
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
        // Only for legacy rules, which `may_evaluate` excludes.
        old: _,
        // Only a trial and its end read these.
        trial: _,
        trial_generation: _,
        trial_number: _,
        trial_overload: _,
    } = states;
    *divert == divert_kind::NO
}

/// True if the fast path may create the rule's states: nothing limits, tracks or reports them.
fn has_no_limits(states: &abi::RuleStates) -> bool {
    let abi::RuleStates {
        max,
        source_flags,
        pflow,
        // Unused without `source_flags`.
        source_nodes: _,
        max_src_nodes: _,
        max_src_states: _,
        max_src_conn: _,
        max_src_conn_rate: _,
        max_src_conn_seconds: _,
        overload_table: _,
        // Unused without `pflow`.
        flow_tos: _,
        // `expired` in bpf/timeout.h reads these for states of both paths.
        timeouts: _,
        // `begin_state` and `count_rule` increment these on both paths.
        total: _,
        current: _,
        tables: _,
        // Identity of the rule.
        number: _,
        anchor: _,
        // Settings of rules: see `leaves_packets_here`.
        pkt_rate: _,
        expired: _,
        max_packets: _,
        max_packets_seconds: _,
        divert: _,
        divert_port: _,
        divert_address: _,
        old: _,
        trial: _,
        trial_generation: _,
        trial_number: _,
        trial_overload: _,
    } = states;
    *max == 0 && *source_flags == 0 && *pflow == 0
}

/// True if the fast path should evaluate filter rules. There must be no legacy rules and no SYN
/// cookies, and the fast path must be able to carry out one rule at least.
pub fn may_evaluate(options: &Options, old: &[abi::RuleRange], rules: &[abi::Rule]) -> bool {
    let Options {
        syncookies,
        // Compiled into each rule.
        block_policy: _,
        fail_policy: _,
        state_policy: _,
        // `expired` and `take_state` read these on both paths.
        timeouts: _,
        limits: _,
        // Both paths read the interface's flags, and count for it, before they evaluate rules.
        skip: _,
        loginterface: _,
        // Fragments take the slow path before any rule is evaluated.
        reassemble: _,
        reassemble_no_df: _,
        // Both paths evaluate the same rules and trees.
        evaluator: _,
        ruleset_optimization: _,
        // Settings of the fast path's hooks, independent of rules.
        fast_forward: _,
        xdp: _,
        // For the guard, which evaluates no rules.
        unattached: _,
        // For rules with `os`, which are not eligible.
        fingerprints: _,
        // No effect on packets.
        keep_counters: _,
        hostid: _,
        debug: _,
    } = options;
    let is_empty = |abi::RuleRange { first, end }: &abi::RuleRange| first == end;
    *syncookies == Syncookies::Never
        && old.iter().all(is_empty)
        && (rules.is_empty()
            || rules
                .iter()
                .any(|rule| rule.fast_path & (fast_path::VERDICT | fast_path::STATE) != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_flags(flags: u32) -> u8 {
        fast_path_parts(&abi::Rule { flags, ..abi::Rule::default() }, &abi::RuleStates::default())
    }

    #[test]
    fn rules_with_side_effects_are_not_eligible() {
        assert_eq!(of_flags(0), fast_path::TEST | fast_path::VERDICT);
        assert_eq!(
            of_flags(flags::QUICK | flags::ALLOW_OPTS),
            fast_path::TEST | fast_path::VERDICT
        );
        assert_eq!(of_flags(flags::KEEP_STATE), fast_path::TEST | fast_path::STATE);
        assert_eq!(of_flags(flags::KEEP_STATE | flags::SLOPPY), fast_path::TEST | fast_path::STATE);
        assert_eq!(of_flags(flags::KEEP_STATE | flags::MODULATE), fast_path::TEST);
        let keeps = abi::Rule { flags: flags::KEEP_STATE, ..abi::Rule::default() };
        let limited = abi::RuleStates { max: 1, ..abi::RuleStates::default() };
        assert_eq!(fast_path_parts(&keeps, &limited), fast_path::TEST);
        let reported = abi::RuleStates { pflow: 1, ..abi::RuleStates::default() };
        assert_eq!(fast_path_parts(&keeps, &reported), fast_path::TEST);
        assert_eq!(of_flags(flags::LOG), fast_path::TEST);
        assert_eq!(of_flags(flags::PROBABILITY), fast_path::VERDICT);
        let tagged = abi::Rule { tagged: 1, ..abi::Rule::default() };
        assert_eq!(fast_path_parts(&tagged, &abi::RuleStates::default()), fast_path::VERDICT);
        let diverts = abi::RuleStates { divert: divert_kind::PACKET, ..abi::RuleStates::default() };
        assert_eq!(fast_path_parts(&abi::Rule::default(), &diverts), fast_path::TEST);
        let matches = abi::Rule { action: action::MATCH, ..abi::Rule::default() };
        assert_eq!(fast_path_parts(&matches, &abi::RuleStates::default()), fast_path::TEST);
    }

    /// A new flag fails this test until it is added to one of the four groups.
    #[test]
    fn every_flag_is_in_one_group() {
        let kinds = [TESTS_HEADERS, TESTS_MORE, DECIDES, ACTS];
        let flags = kinds.iter().map(|kind| kind.count_ones()).sum::<u32>();
        assert_eq!((flags, kinds.iter().fold(0, |all, kind| all | kind)), (32, u32::MAX));
    }

    #[test]
    fn unlisted_kinds_are_not_eligible() {
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
            assert_eq!(
                fast_path_parts(&rule, &abi::RuleStates::default()),
                fast_path::VERDICT,
                "{rule:?}"
            );
        }
        let known = abi::Rule { source: of_kind(address_kind::NEVER), ..rule };
        let all = fast_path::TEST | fast_path::VERDICT;
        assert_eq!(fast_path_parts(&known, &abi::RuleStates::default()), all);
        let unknown = abi::RuleStates { divert: u8::MAX, ..abi::RuleStates::default() };
        assert_eq!(fast_path_parts(&rule, &unknown), fast_path::TEST);
    }

    #[test]
    fn without_eligible_rules_the_fast_path_evaluates_none() {
        let logs = [abi::Rule { fast_path: fast_path::TEST, ..abi::Rule::default() }];
        let keeps =
            [abi::Rule { fast_path: fast_path::TEST | fast_path::STATE, ..abi::Rule::default() }];
        let blocks =
            [abi::Rule { fast_path: fast_path::TEST | fast_path::VERDICT, ..abi::Rule::default() }];
        let options = Options::default();
        assert!(!may_evaluate(&options, &[], &logs));
        assert!(may_evaluate(&options, &[], &keeps));
        assert!(may_evaluate(&options, &[], &blocks));
        assert!(may_evaluate(&options, &[], &[]));
        assert!(!may_evaluate(&options, &[abi::RuleRange { first: 1, end: 2 }], &blocks));
        let cookies = Options { syncookies: Syncookies::Always, ..options };
        assert!(!may_evaluate(&cookies, &[], &blocks));
    }
}
