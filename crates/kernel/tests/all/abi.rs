//! Tests that `skipstep_abi` mirrors `bpf/abi.h`. Structs and fields are compared with the BTF of
//! the compiled object, numbers and names with the text of the header. An item missing on either
//! side fails the test. Needs no root.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;

use libbpf_rs::HasSize;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{MemberAttr, Struct};
use skipstep_abi as abi;
use skipstep_kernel::object::OBJECT;

const HEADER: &str = concat!(
    include_str!("../../../../bpf/abi/rule.h"),
    include_str!("../../../../bpf/abi/tree_set.h"),
    include_str!("../../../../bpf/abi/limiter.h"),
    include_str!("../../../../bpf/abi/table.h"),
    include_str!("../../../../bpf/abi/table_index.h"),
    include_str!("../../../../bpf/abi/state.h"),
    include_str!("../../../../bpf/abi/status.h"),
    include_str!("../../../../bpf/abi/record.h"),
    include_str!("../../../../bpf/abi/bridge.h"),
    include_str!("../../../../bpf/abi.h"),
);

/// An object that mentions every struct of the header; the data plane's BTF lacks some.
const ALL_STRUCTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/abi.bpf.o"));

/// Size and field offsets of a struct, in bytes.
#[derive(Debug, PartialEq, Eq)]
struct Layout {
    size: usize,
    fields: Vec<(String, usize)>,
}

/// Builds layouts from `pf_name => Rust type { fields in order }`.
macro_rules! layouts {
    ($($c:ident => $rust:ty { $($field:ident),* $(,)? })*) => {
        BTreeMap::from([$((stringify!($c), Layout {
            size: size_of::<$rust>(),
            fields: vec![$((
                stringify!($field).trim_start_matches("r#").to_owned(),
                offset_of!($rust, $field),
            )),*],
        })),*])
    };
}

fn rust_layouts() -> BTreeMap<&'static str, Layout> {
    layouts! {
        pf_interface => abi::Interface { id, flags, groups, name, rdomain, pad, link_address }
        pf_near_interface => abi::NearInterface { known, pad, one }
        pf_interface_stats => abi::InterfaceStats { packets, bytes }
        pf_address => abi::Address { kind, negated, pad, table, low, high }
        pf_port => abi::Port { low, high, op, pad }
        pf_owner => abi::Owner { low, high, op, pad }
        pf_rule => abi::Rule {
            skip, flags, interface, received_on, interface_match, received_match, direction,
            family, protocol, tcp_flags, tcp_mask, icmp_type, icmp_code, tos, prio, action, tag,
            tagged, probability, source, destination, source_port, destination_port, user, group,
            return_ttl,
            return_icmp_type, return_icmp_code, return_icmp6_type, return_icmp6_code, set_tos,
            set_prio, min_ttl, log_to, max_mss, max_pkt_size, pools, route, queue, slot, number,
            anchor,
            call_first, call_end, rtable, cross_to, os, limiter, set_end, superblock, delay,
            leave_fragments, fast_path,
        }
        pf_node => abi::Node { word }
        pf_fingerprint => abi::Fingerprint {
            systems, options, window, size, mss, scale, ttl, option_count, flags, window_kind,
            size_kind, mss_kind, scale_kind, pad,
        }
        pf_limiter => abi::Limiter {
            token, bucket, limit, entries, table, above, below, inet_mask, inet6_mask, pad,
        }
        pf_limiter_use => abi::LimiterUse {
            saved_since, admitted, hard_limited, rate_limited, sources_made, sources_limited,
            sources_lost, serial, states, sources, last_source,
        }
        pf_limited_key => abi::LimitedKey { serial, id, family, pad, rdomain, address }
        pf_limited_source => abi::LimitedSource {
            lock, states, saved_since, admitted, hard_limited, rate_limited, stays_until, in_table,
            gone, pad, serial, pad2,
        }
        pf_limited_turn => abi::LimitedTurn { key, source }
        pf_leaving => abi::Leaving { key, table, prefix, below }
        pf_limited => abi::Limited { serial, id, prefix, pad, source }
        pf_rule_stats => abi::RuleStats { evaluations, packets, bytes }
        pf_rule_table => abi::RuleTable { slot, used, negated, pad, trial_slot }
        pf_rule_states => abi::RuleStates {
            total, pkt_rate, current, max, number, timeouts, tables, anchor, expired, max_packets,
            max_packets_seconds, source_flags, source_nodes, max_src_nodes, max_src_states,
            max_src_conn, max_src_conn_rate, max_src_conn_seconds, overload_table, divert, pflow,
            divert_port, divert_address, flow_tos, old, trial, trial_generation, trial_number,
            trial_overload,
        }
        pf_table_key => abi::TableKey { prefixlen, version, family, address }
        pf_table_entry => abi::TableEntry { cleared, interface, weight, prefix, negated }
        pf_index_cell => abi::IndexCell { word }
        pf_index_head => abi::IndexHead {
            secret, lines, first_line, networks, first_node, first_value, entries, pad,
        }
        pf_index_line => abi::IndexLine { first, flags, key }
        pf_index_node => abi::IndexNode { starts, first, otherwise, before, depth, pad, common }
        pf_index_entry => abi::IndexEntry { entry, family, address }
        pf_table => abi::Table { version, counters, stats, list, total, weighted, gcd, heaviest }
        pf_entry_stats => abi::EntryStats { packets, bytes, prefix, pad }
        pf_pool_key => abi::PoolKey { slot, purpose }
        pf_pool => abi::Pool {
            kind, listed, single, sticky, table, low, high, first, prefix, old, address, mask, key,
            port_set, set_offset, set_length, members, binat, endpoint_independent, interface,
            prefer_ipv6, family, pad, trial, trial_table, counter, index, turn, member, turned,
        }
        pf_pool_block_key => abi::PoolBlockKey { list, family, part, index }
        pf_pool_block => abi::PoolBlock { base, mask, weight, parts, low, high }
        pf_pool_load_key => abi::PoolLoadKey { table, family, address }
        pf_endpoint => abi::Endpoint { rdomain, family, outside, port, address }
        pf_mapping => abi::Mapping { other, uses }
        pf_pool_member_key => abi::PoolMemberKey { slot, purpose, index }
        pf_pool_member => abi::PoolMember {
            listed, family, pad, table, interface, address, mask, trial, trial_table,
        }
        pf_table_stats => abi::TableStats { r#match, nomatch, packets, bytes }
        pf_config => abi::Config {
            rules, steps, evaluator, limit_states, reassemble, loginterface, hostid,
            limit_src_nodes, limit_table_entries,
            syncookies, syncookies_start, syncookies_end, default_rule, old, timeouts, fingerprints,
            sctp_ports, fast_forward, fast_path, superblock, unattached, longest_walk,
            unknown_systems,
        }
        pf_rule_range => abi::RuleRange { first, end }
        pf_state_key => abi::StateKey {
            address, port, interface, rdomain, made, family, protocol, pad,
        }
        pf_key_line => abi::KeyLine { entry, peer }
        pf_key_hash => abi::KeyHash { secret, lines, index_mask }
        pf_state_ref => abi::StateRef { index, serial }
        pf_peer => abi::Peer { seqlo, seqhi, seqdiff, max_win, state, wscale }
        pf_match_rule => abi::MatchRule { slot, log, log_to, action, pad }
        pf_state => abi::State {
            lock, serial, flags, timeout, direction, log, log_to, expire, rule_slot, peer, path,
            anchor_slot, id, src, dst, packets, bytes, key, set_prio, set_tos, min_ttl, queue,
            creation, max_mss, tag, stations, pad,
        }
        pf_extension => abi::Extension {
            r#match, match_count, nat_slot, rdr_slot, hop_interface, next_hop, source_nodes, scrub,
            next_far, limited, ifindex_in, ifindex_out, max_pkt_size, proxy_mss, rtable, delay,
            route, hop_family, pad,
        }
        pf_kept_state => abi::KeptState { state, extension }
        pf_flush => abi::Flush { address, rule_slot, family, side, pad }
        pf_flushed => abi::Flushed { before, number, pad }
        pf_path => abi::Path {
            came_in_by, hop, second, epoch, mtu, tos, pad,
        }
        pf_scrub => abi::Scrub { offset, value, first, echo, last, flags, ttl, present }
        pf_status => abi::Status {
            abi_version, generation, running, since, states, half_open, next_state_id,
            states_used, sweep_cursor, first_enabled, capacity, secret, translated, sources,
            sources_used, source_cursor, source_capacity, table_entries, boot_time, crossing,
            limited_sources, leaving, bound, sweeps, second, stamp, beat, second_until,
            syncookies, ingress_id, egress_id, egress_address, guard_id, timer_errors,
            timer_error, timer_tried, flushing, flush_kinds, flush_number, limited_turns,
            limited_capacity, confirm_by, back, back_running, ending, ends_states,
            drop_readers, drop_readers_alive,
        }
        pf_syncookies => abi::Syncookies { key, in_flight, keys_made, next_key_at, active, pad }
        pf_counters => abi::Counters {
            reason, state, limit, source, log_lost, flow_lost, forwarded, left_to, divert_lost,
            drops_lost, drops_unreported,
        }
        pf_source_key => abi::SourceKey { rule_slot, kind, family, pad, address }
        pf_source_node => abi::SourceNode {
            lock, r#use, key, rate, packets, bytes, states, connections, creation, expire, chosen,
            interface, chosen_family, pad, swept, pad_end, oldest,
        }
        pf_source_ref => abi::SourceRef { index, pad, key }
        pf_test => abi::Test {
            enabled, now, random, uid, gid, sequence, timestamp, keeps_cookie_key, cookie_key,
            longest_fragment, pad,
        }
        pf_outcome => abi::Outcome {
            state_id, rule, anchor_rule, anchor, verdict, reason, decision, logged, copies,
            next_hop_family, rtable, ifindex, next_hop, fragment_length, route, divert,
            divert_port, counted, pad,
        }
        pf_kill => abi::Kill { index, serial }
        pf_reassembler => abi::Reassembler {
            ifindex, pieces, nonce, searches, inserts, removals, lost, foreign,
        }
        pf_diverter => abi::Diverter {
            ifindex, pad, nonce, delivered, returned, no_program, full, malformed, foreign,
        }
        pf_delayer => abi::Delayer { ifindex, waiting, nonce, sent, refused, full, foreign }
        pf_delayed => abi::Delayed {
            nonce, due, ifindex, mark, priority, vlan_protocol, vlan_tag, order, link_header, pad,
        }
        pf_diverted => abi::Diverted {
            nonce, ifindex, mark, port, direction, link_header, vlan_protocol, vlan_tag,
        }
        pf_flow_record => abi::FlowRecord {
            address, translated_address, port, translated_port, ifindex_in, ifindex_out, packets,
            bytes,
            creation, last, family, protocol, tos, translated, pad,
        }
        pf_bridge_port => abi::BridgePort { ifindex, bridge, flags, timeout, rules }
        pf_bridge_key => abi::BridgeKey { address, vlan, bridge }
        pf_bridge_address => abi::BridgeAddress { port, seen }
        pf_bridge_rule_key => abi::BridgeRuleKey { ifindex, direction, number }
        pf_bridge_rule => abi::BridgeRule { action, r#match, r#type, source, destination }
        pf_bridge_stats => abi::BridgeStats { packets, bytes, flooded, unlearned, dropped }
        pf_handoff => abi::Handoff {
            nonce, ifindex, received, mark, priority, longest, order, direction, reason,
            link_header, delay, rdomain, balance, pad,
        }
        pf_log_record => abi::LogRecord {
            time, ifname, source, destination, source_port, destination_port, rule, anchor_rule,
            anchor, uid,
            family, action, reason, direction, log_to, rewritten, caplen, wirelen, data,
        }
    }
}

fn c_layout(btf: &Btf<'_>, name: &str) -> Option<Layout> {
    let found: Struct<'_> = btf.type_by_name(name)?;
    let fields = found.iter().map(|member| {
        let MemberAttr::Normal { offset } = member.attr else {
            panic!("struct {name} has a bit field");
        };
        let field = member.name.unwrap_or_default().to_string_lossy().into_owned();
        (field, offset as usize / 8)
    });
    Some(Layout { fields: fields.collect(), size: found.size() })
}

#[test]
fn every_struct_has_the_layout_of_the_compiled_object() {
    let header = Btf::from_raw("abi", ALL_STRUCTS).unwrap().expect("the object has BTF");
    let data_plane = Btf::from_raw("tc", OBJECT).unwrap().expect("the object has BTF");
    let mut seen = 0;
    for (name, rust) in rust_layouts() {
        let c = c_layout(&header, name).unwrap_or_else(|| panic!("BTF has no struct {name}"));
        assert_eq!(rust, c, "struct {name}: left Rust, right C");
        if let Some(loaded) = c_layout(&data_plane, name) {
            assert_eq!(rust, loaded, "struct {name}: left Rust, right the data plane");
            seen += 1;
        }
    }
    assert!(seen >= 12, "only {seen} structs in the data plane's BTF: its maps have that many");
}

#[test]
fn every_struct_of_the_header_has_a_mirror() {
    let declared: BTreeSet<&str> = HEADER
        .lines()
        .filter_map(|line| line.strip_prefix("struct ")?.split_whitespace().next())
        .collect();
    let mirrored: BTreeSet<&str> = rust_layouts().into_keys().collect();
    assert_eq!(mirrored, declared, "left crates/abi, right bpf/abi.h");
}

/// Returns the enumerators and numeric macros of the header with their values.
fn header_numbers() -> BTreeMap<String, i64> {
    let text = without_comments(HEADER);
    let mut numbers = BTreeMap::new();
    let mut next = 0;
    for line in text.lines().map(str::trim) {
        if line.starts_with("enum ") {
            next = 0;
        } else if let Some(rest) = line.strip_prefix("#define PF_") {
            let (name, value) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            if let Some(value) = evaluate(value, &numbers) {
                numbers.insert(format!("PF_{name}"), value);
            }
        } else if line.starts_with("PF_") {
            for item in line.split(',').map(str::trim).filter(|item| item.starts_with("PF_")) {
                let (name, value) = item.split_once('=').unwrap_or((item, ""));
                next = evaluate(value, &numbers).unwrap_or(next);
                numbers.insert(name.trim().to_owned(), next);
                next += 1;
            }
        }
    }
    numbers
}

fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        kept.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    kept + rest
}

/// Evaluates a number, `a << b`, or a name that was defined before.
fn evaluate(text: &str, known: &BTreeMap<String, i64>) -> Option<i64> {
    let text = text.trim();
    if let Some((value, shift)) = text.split_once("<<") {
        return Some(evaluate(value, known)? << evaluate(shift, known)?);
    }
    let digits = text.trim_end_matches('u');
    match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok().or_else(|| known.get(text).copied()),
    }
}

/// Builds numbers from `"PREFIX" module { CONSTANTS }`: each constant is `PF_PREFIX_CONSTANT` in
/// the header.
macro_rules! numbers {
    ($($prefix:literal $module:path { $($name:ident),* $(,)? })*) => {{
        let mut numbers: BTreeMap<String, i64> = BTreeMap::new();
        $({
            use $module as module;
            $(numbers.insert(format!("PF_{}{}", $prefix, stringify!($name)), module::$name as i64);)*
        })*
        numbers
    }};
}

fn rust_numbers() -> BTreeMap<String, i64> {
    let mut numbers = numbers! {
        "" abi::limits {
            IFNAMSIZ, MAX_RULES, RULE_SLOTS, TABLE_SLOTS, MAX_INTERFACES, NEAR_INTERFACES,
            MATCH_RULES, MAX_DEPTH,
            MAX_STEPS, SNAPLEN, LOG_WHOLE, LOGS, DROP_READERS,
            IDLE_SLOT, SELF_TABLE, LIMITERS, FINGERPRINTS, SYSTEMS, COPIES,
        }
        "VERDICT_" abi::verdict::verdict { PASS, DROP, REPLY, CONSUMED, HELD, REFRAGMENT, ROUTED, CROSSED }
        "" abi::delayed { MAX_DELAY }
        "DELAYED_" abi::delayed::delayed_order { HOLD, SEND, REFUSED }
        "" abi::bridge { BRIDGE_PORTS, BRIDGE_ADDRESSES, BRIDGE_TIMEOUT, BRIDGE_TIMEOUT_MAX, BRIDGE_RULES, BRIDGE_ALL_RULES }
        "BRIDGE_" abi::bridge::bridge_port_flags { BLOCK_NON_IP, HEARS }
        "BRIDGE_MATCH_" abi::bridge::bridge_match { SOURCE, DESTINATION, TYPE }
        "BRIDGE_DROP_" abi::bridge::bridge_drop { RULE, NON_IP, TOO_BIG, SOURCE, MAX }
        "" abi::handoff { HANDOFF_NO_REASON }
        "HANDOFF_" abi::handoff::handoff_order { FRAGMENT, WHOLE, REFUSED, REFRAGMENT, SEND }
        "" abi::verdict::direction { INOUT, IN, OUT }
        "ACTION_" abi::verdict::action {
            PASS, BLOCK, SCRUB, NAT, NO_NAT, BINAT, NO_BINAT, RDR, NO_RDR, MATCH,
        }
        "OLD_" abi::config::old_list { NAT, RDR, BINAT_OUT, BINAT_IN, SCRUB, LISTS }
        "" abi::tree_set {
            NODE_WORDS, NODE_CUTS, NODE_RULES, RULE_WORDS, CHUNK_BITS, CHUNKS, AXIS_LEAF,
            ORDER_LAST, ORDER_SHIFT,
            ORDER_ASKS_MORE, CLASS_OTHER, TREE_SETS, SUPERBLOCK_MEETS_ALL, SUPERBLOCK_FIRST,
            SUPERBLOCK_METADATA,
            METADATA_UNKNOWN, TREE_SET_NONE, TREE_SET_WALK,
        }
        "TREE_SET_OF_" abi::tree_set::tree_set_of { TCP, TCP_FOLLOWS, UDP, OTHER, ICMP_FOLLOWS, INET6 }
        "SUPERBLOCK_METADATA_" abi::tree_set::superblock_metadata { NOTHING, TAG, USER, GROUP }
        "UNATTACHED_" abi::config::unattached { BLOCK, PASS }
        "FAST_FORWARD_" abi::config::fast_forward { NO, AUTO, YES }
        "FAST_PATH_" abi::rule::fast_path { TEST, VERDICT, STATE }
        "EXPRESS_" abi::state::xdp_fast_path { NOT, SHORT, ANY }
        "FORWARDED_" abi::status::forwarded { TC, XDP, MAX }
        "LEFT_TO_" abi::status::left_to { UPPER, PROGRAM, IPSEC, NETFILTER, MAX, NOBODY }
        "SYNCOOKIES_" abi::config::syncookies { NEVER, ALWAYS, ADAPTIVE }
        "COOKIES_" abi::status::cookies_active { OFF, ON, BEGIN }
        "EVALUATOR_" abi::verdict::evaluator { LINEAR, SKIP_STEPS, COMPILED }
        "COUNT_" abi::status::state_counter { SEARCHES, INSERTS, REMOVALS, MAX }
        "SCRUB_" abi::state::scrub_flags { TIMESTAMP, PAWS, PAWS_IDLED, DATA_TS, DATA_NO_TS }
        "TIMEOUT_" abi::state::timeout {
            TCP_FIRST, TCP_OPENING, TCP_ESTABLISHED, TCP_CLOSING, TCP_FINWAIT, TCP_CLOSED,
            UDP_FIRST, UDP_SINGLE, UDP_MULTIPLE, ICMP_FIRST, ICMP_ERROR, OTHER_FIRST,
            OTHER_SINGLE, OTHER_MULTIPLE, FRAG, INTERVAL, ADAPTIVE_START, ADAPTIVE_END,
            SRC_TRACK, TCP_TSDIFF, MAX, PURGE, DETACHED, UNLINKED,
        }
        "TCPS_" abi::state::tcp_state {
            CLOSED, LISTEN, SYN_SENT, SYN_RECEIVED, ESTABLISHED, CLOSE_WAIT, FIN_WAIT_1, CLOSING,
            LAST_ACK, FIN_WAIT_2, TIME_WAIT, PROXY_SRC, PROXY_DST,
        }
        "OTHERS_" abi::state::other_state { NO_TRAFFIC, SINGLE, MULTIPLE }
        "MADE_" abi::state::made { PLAIN, IN, OUT, NEAR, FAR }
        "STATE_" abi::state::state_flags {
            ALLOW_OPTS, SLOPPY, PFLOW, NO_SYNC, NO_DF, SET_TOS, RANDOM_ID, REASSEMBLE_TCP, SET_PRIO,
            MAX_PKT_RATE,
            CONNECTED,
            MAPPED, SIMPLE, EXTENSION, SOCKET,
        }
        "MEASURE_" abi::fingerprint::measure { ANY, EXACTLY, MULTIPLE, SEGMENTS, PACKETS }
        "SYN_" abi::fingerprint::syn_flags { DF, ZERO_TIMESTAMP }
        "LIMITER_" abi::limiter::limiter_kind { STATE, SOURCE }
        "" abi::limiter { LIMITER_KINDS, LIMITER_NO_MATCH }
        "NODE_" abi::source::node_kind { TRACK, NAT, RDR, ROUTE }
        "NODE_" abi::source::node_use { FREE, USED, DROPPED }
        "" abi::source { NODE_KINDS }
        "SOURCE_" abi::rule::source_flags { TRACK, OVERLOAD, FLUSH, FLUSH_GLOBAL }
        "SOURCE_COUNT_" abi::status::source_counter { SEARCHES, INSERTS, REMOVALS, MAX }
        "" abi::state {
            WSCALE_MASK, WSCALE_FLAG, WIRE, STACK, KEY_WORDS, KEY_ENTRIES, KEY_CLAIMED, NO_PLACE,
        }
        "IFMATCH_" abi::interface::interface_match { NONE, NAME, GROUP, ANY, RDOMAIN }
        "INTERFACE_" abi::interface::interface_flags { LOOPBACK, NO_LINK, PORT, SKIP }
        "ADDRESS_" abi::rule::address_kind {
            ANY, MASK, RANGE, TABLE, NO_ROUTE, URPF_FAILED, NEVER,
        }
        "PORT_" abi::rule::port_op { ANY, INSIDE, EQ, NE, LT, LE, GT, GE, OUTSIDE, RANGE }
        "RULE_" abi::rule::rule_flags {
            QUICK, LOG, LOG_ALL, LOG_MATCHES, FRAGMENT, ALLOW_OPTS, KEEP_STATE, IF_BOUND, SLOPPY,
            NO_SYNC, RETURN, RETURN_RST, RETURN_ICMP, NO_DF, SET_TOS, SET_PRIO, MATCH_TOS,
            MATCH_PRIO, MATCH_ICMP_TYPE, MATCH_ICMP_CODE, PROBABILITY, INTERFACE_NOT,
            RECEIVED_NOT, TAGGED_NOT, LOG_USER, RANDOM_ID, ANCHOR, ONCE, MAX_PKT_RATE,
            MODULATE, REASSEMBLE_TCP, SYNPROXY,
        }
        "POOL_" abi::pool::purpose { NAT, RDR, ROUTE }
        "DIVERT_" abi::rule::divert_kind { NO, TO, REPLY, PACKET }
        "HOP_" abi::pool::route_kind { NO, ROUTE_TO, DUP_TO, REPLY_TO }
        "POOL_" abi::pool::pool_kind {
            NONE, BITMASK, RANDOM, SOURCE_HASH, ROUND_ROBIN, LEAST_STATES,
        }
        "" abi::table { TABLE_INDEXED }
        "" abi::table_index { INDEX_NODE, INDEX_NEGATED, LINE_KEYS, LINE_GOES_ON, INDEX_WORDS }
        "TABLE_" abi::table::table_op { BLOCK, MATCH, PASS, XPASS }
        "TABLE_OP_" abi::table::table_op { MAX }
        "QUEUE_" abi::queue { MAJOR, MAX }
        "LOG_" abi::log::rewritten { UNCHANGED, TRANSLATED, CROSSES }
        "LOG_" abi::state::log_flags { ALL, USER }
        "REASSEMBLE_" abi::config::reassemble { YES, NO_DF, BY_RULE }
        "DECISION_" abi::status::decision { NONE, DEFAULT, RULE, ORPHAN }
        "" abi::status { REASON_MAX, LCOUNT_MAX }
        "MARK_" abi::mark {
            MASK, GENERATED, REASSEMBLED, PRIO_SHIFT, PRIO_MASK, TAG_SHIFT, TAG_MASK,
            DIVERTED, DIVERTED_MASK,
        }
        "" abi::mark { DEFAULT_PRIO, MAX_TAG, DIVERT_TABLE }
        "ABI_" abi { VERSION }
        "" abi::rule { SKIP_MAX }
    };
    for (number, name) in (0..).zip(abi::names::REASONS) {
        let name = name.replace('-', "_").to_uppercase();
        numbers.insert(format!("PF_REASON_{name}"), number);
    }
    for skip in skipstep_ruleset::skip::Skip::ALL {
        numbers.insert(format!("PF_SKIP_{}", skip_name(skip)), skip as i64);
    }
    numbers
}

fn skip_name(skip: skipstep_ruleset::skip::Skip) -> &'static str {
    use skipstep_ruleset::skip::Skip;
    match skip {
        Skip::Interface => "INTERFACE",
        Skip::Direction => "DIRECTION",
        Skip::Rdomain => "RDOMAIN",
        Skip::Family => "FAMILY",
        Skip::Protocol => "PROTOCOL",
        Skip::SourceAddress => "SRC_ADDRESS",
        Skip::DestinationAddress => "DST_ADDRESS",
        Skip::SourcePort => "SRC_PORT",
        Skip::DestinationPort => "DST_PORT",
    }
}

#[test]
fn every_number_of_the_header_has_its_value() {
    let mut header = header_numbers();
    // crates/abi has the limit counters as a table of names, so compare its length
    let limit_counters = header.iter().filter(|(name, _)| name.starts_with("PF_LCOUNT_")).count();
    assert_eq!(limit_counters - 1, abi::names::LIMIT_COUNTERS.len());
    header.retain(|name, _| !name.starts_with("PF_LCOUNT_") || name == "PF_LCOUNT_MAX");
    let rust = rust_numbers();
    let names: BTreeSet<&String> = rust.keys().chain(header.keys()).collect();
    for name in names {
        assert_eq!(rust.get(name), header.get(name), "{name}: left crates/abi, right bpf/abi.h");
    }
}

#[test]
fn reasons_and_timeouts_have_the_same_names_everywhere() {
    let start = HEADER.find("#define PF_REASON_NAMES").unwrap();
    let table = &HEADER[start..start + HEADER[start..].find('}').unwrap()];
    let names: Vec<&str> = table.split('"').skip(1).step_by(2).collect();
    assert_eq!(names, abi::names::REASONS);
    assert_eq!(names, skipstep_ruleset::Reason::ALL.map(|reason| reason.name()));
    for timeout in skipstep_ruleset::Timeout::ALL {
        let name = format!("PF_TIMEOUT_{}", timeout.name().replace('.', "_").to_uppercase());
        assert_eq!(header_numbers().get(&name), Some(&(timeout as i64)), "{name}");
    }
}

#[test]
fn the_object_has_every_map_that_the_header_lists() {
    let listed: BTreeSet<&str> = HEADER[HEADER.find("names of the maps").unwrap()..]
        .lines()
        .filter_map(|line| line.strip_prefix(" * ")?.split_whitespace().next())
        .collect();
    let ours = [
        abi::names::map::RULESETS,
        abi::names::map::TREE_SETS,
        abi::names::map::CONFIGS,
        abi::names::map::STATUS,
        abi::names::map::COUNTERS,
        abi::names::map::RULE_STATS,
        abi::names::map::RULE_STATES,
        abi::names::map::TABLES,
        abi::names::map::TABLE_ENTRIES,
        abi::names::map::TABLE_INDEXES,
        abi::names::map::TABLE_STATS,
        abi::names::map::ENTRY_STATS,
        abi::names::map::POOLS,
        abi::names::map::POOL_BLOCKS,
        abi::names::map::POOL_LOADS,
        abi::names::map::MAPPINGS,
        abi::names::map::POOL_MEMBERS,
        abi::names::map::INTERFACES,
        abi::names::map::NEAR_INTERFACES,
        abi::names::map::INTERFACE_INDEXES,
        abi::names::map::INTERFACE_STATS,
        abi::names::map::BRIDGE_NUMBERS,
        abi::names::map::BRIDGE_PORTS,
        abi::names::map::BRIDGE_ADDRESSES,
        abi::names::map::BRIDGE_RULES,
        abi::names::map::BRIDGE_STATS,
        abi::names::map::FINGERPRINTS,
        abi::names::map::LIMITERS,
        abi::names::map::LIMITER_USES,
        abi::names::map::LIMITED_SOURCES,
        abi::names::map::LIMITED_TURNS,
        abi::names::map::LEAVING,
        abi::names::map::FLUSHES,
        abi::names::map::KEY_HASH,
        abi::names::map::STATE_KEYS,
        abi::names::map::STATES,
        abi::names::map::EXTENSIONS,
        abi::names::map::FREE_STATES,
        abi::names::map::SOURCE_KEYS,
        abi::names::map::SOURCE_NODES,
        abi::names::map::FREE_SOURCES,
        abi::names::map::LOG_RING,
        abi::names::map::LOG_READERS,
        abi::names::map::FLOW_RING,
        abi::names::map::SWEEPER,
        abi::names::map::SCRATCH,
        abi::names::map::REASSEMBLER,
        abi::names::map::DIVERTER,
        abi::names::map::DELAYER,
        abi::names::map::TEST,
    ];
    assert_eq!(BTreeSet::from(ours), listed, "left crates/abi, right bpf/abi.h");
}
