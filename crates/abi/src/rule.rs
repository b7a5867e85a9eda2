//! Rules in the form that the kernel evaluates.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::limiter::LIMITER_KINDS;
use crate::state::timeout;

/// Parameters with skip steps, in the order of `enum pf_skip`.
pub const SKIP_MAX: usize = 9;

/// `enum pf_address_kind`: the address criteria.
pub mod address_kind {
    /// no criterion
    pub const ANY: u8 = 0;
    /// `(packet & high) == low`
    pub const MASK: u8 = 1;
    /// `low <= packet <= high`
    pub const RANGE: u8 = 2;
    /// Contents of a table; `table` is its slot.
    pub const TABLE: u8 = 3;
    /// Addresses without a route.
    pub const NO_ROUTE: u8 = 4;
    /// Addresses whose route leaves by another interface.
    pub const URPF_FAILED: u8 = 5;
    /// Matches no address, negated or not.
    pub const NEVER: u8 = 6;
}

/// `enum pf_port_op`: comparisons, with OpenBSD's numbers.
pub mod port_op {
    /// no criterion
    pub const ANY: u8 = 0;
    /// `><`, exclusive
    pub const INSIDE: u8 = 1;
    /// `=`
    pub const EQ: u8 = 2;
    /// `!=`
    pub const NE: u8 = 3;
    /// `<`
    pub const LT: u8 = 4;
    /// `<=`
    pub const LE: u8 = 5;
    /// `>`
    pub const GT: u8 = 6;
    /// `>=`
    pub const GE: u8 = 7;
    /// `<>`
    pub const OUTSIDE: u8 = 8;
    /// `:`, inclusive
    pub const RANGE: u8 = 9;
}

/// `enum pf_rule_flags`: bits of [`Rule::flags`].
#[allow(missing_docs, reason = "the values are those of bpf/abi")]
pub mod rule_flags {
    pub const QUICK: u32 = 1 << 0;
    pub const LOG: u32 = 1 << 1;
    pub const LOG_ALL: u32 = 1 << 2;
    pub const LOG_MATCHES: u32 = 1 << 3;
    pub const FRAGMENT: u32 = 1 << 4;
    pub const ALLOW_OPTS: u32 = 1 << 5;
    pub const KEEP_STATE: u32 = 1 << 6;
    pub const IF_BOUND: u32 = 1 << 7;
    pub const SLOPPY: u32 = 1 << 8;
    pub const NO_SYNC: u32 = 1 << 9;
    pub const RETURN: u32 = 1 << 10;
    pub const RETURN_RST: u32 = 1 << 11;
    pub const RETURN_ICMP: u32 = 1 << 12;
    pub const NO_DF: u32 = 1 << 13;
    pub const SET_TOS: u32 = 1 << 14;
    pub const SET_PRIO: u32 = 1 << 15;
    pub const MATCH_TOS: u32 = 1 << 16;
    pub const MATCH_PRIO: u32 = 1 << 17;
    pub const MATCH_ICMP_TYPE: u32 = 1 << 18;
    pub const MATCH_ICMP_CODE: u32 = 1 << 19;
    pub const PROBABILITY: u32 = 1 << 20;
    pub const INTERFACE_NOT: u32 = 1 << 21;
    pub const RECEIVED_NOT: u32 = 1 << 22;
    pub const TAGGED_NOT: u32 = 1 << 23;
    pub const LOG_USER: u32 = 1 << 24;
    pub const RANDOM_ID: u32 = 1 << 25;
    pub const ANCHOR: u32 = 1 << 26;
    pub const ONCE: u32 = 1 << 27;
    pub const MAX_PKT_RATE: u32 = 1 << 28;
    /// `modulate state`
    pub const MODULATE: u32 = 1 << 29;
    /// `scrub (reassemble tcp)`
    pub const REASSEMBLE_TCP: u32 = 1 << 30;
    /// `synproxy state`
    pub const SYNPROXY: u32 = 1 << 31;
}

/// `enum pf_source_flags`: bits of [`RuleStates::source_flags`].
#[allow(missing_docs, reason = "the values are those of bpf/abi")]
pub mod source_flags {
    pub const TRACK: u32 = 1 << 0;
    pub const OVERLOAD: u32 = 1 << 1;
    pub const FLUSH: u32 = 1 << 2;
    pub const FLUSH_GLOBAL: u32 = 1 << 3;
}

/// `struct pf_address`: an address criterion.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Address {
    /// One of [`address_kind`].
    pub kind: u8,
    /// 1 if the criterion is negated.
    pub negated: u8,
    /// Zero.
    pub pad: [u8; 2],
    /// Slot of the table, with [`address_kind::TABLE`].
    pub table: u32,
    /// Value or lowest address, in network byte order.
    pub low: [u8; 16],
    /// Mask or highest address, in network byte order.
    pub high: [u8; 16],
}

/// `struct pf_port`: a port criterion, ports in host order.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Port {
    /// First operand.
    pub low: u16,
    /// Second operand.
    pub high: u16,
    /// One of [`port_op`].
    pub op: u8,
    /// Zero.
    pub pad: [u8; 3],
}

/// `struct pf_owner`: a criterion for the owner of a socket.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Owner {
    /// First operand; all ones is a packet without a socket.
    pub low: u32,
    /// Second operand.
    pub high: u32,
    /// One of [`port_op`].
    pub op: u8,
    /// Zero.
    pub pad: [u8; 3],
}

/// `enum pf_fast_path`: the parts of a rule that the fast path can evaluate, from header fields
/// only.
pub mod fast_path {
    /// The criteria are header fields and interfaces.
    pub const TEST: u8 = 1;
    /// The rule passes the packet unchanged or drops it without an answer, and counts it.
    pub const VERDICT: u8 = 1 << 1;
    /// The rule passes the packet unchanged and creates a state without side effects.
    pub const STATE: u8 = 1 << 2;
}

/// `struct pf_rule`: one rule as the evaluators read it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Rule {
    /// Per parameter, the index of the next rule that differs; the number of rules at the end.
    pub skip: [u32; SKIP_MAX],
    /// Bits of [`rule_flags`].
    pub flags: u32,
    /// Interface id, or group bit, of `on`.
    pub interface: u32,
    /// Interface id, or group bit, of `received-on`.
    pub received_on: u32,
    /// Comparison with `interface`, one of [`crate::interface::interface_match`].
    pub interface_match: u8,
    /// Comparison with `received_on`, one of [`crate::interface::interface_match`].
    pub received_match: u8,
    /// [`crate::verdict::direction`]
    pub direction: u8,
    /// [`crate::INET`], [`crate::INET6`], or 0 for both.
    pub family: u8,
    /// IP protocol, 0 for any.
    pub protocol: u8,
    /// TCP flags that must be set, of those in `tcp_mask`.
    pub tcp_flags: u8,
    /// TCP flags that are compared; 0: no criterion.
    pub tcp_mask: u8,
    /// ICMP type, with [`rule_flags::MATCH_ICMP_TYPE`].
    pub icmp_type: u8,
    /// ICMP code, with [`rule_flags::MATCH_ICMP_CODE`].
    pub icmp_code: u8,
    /// TOS, with [`rule_flags::MATCH_TOS`].
    pub tos: u8,
    /// Priority, with [`rule_flags::MATCH_PRIO`].
    pub prio: u8,
    /// [`crate::verdict::action`]
    pub action: u8,
    /// Tag that the packet gets, 0 for none.
    pub tag: u16,
    /// Tag that the packet must have; 0: no criterion.
    pub tagged: u16,
    /// Probability in units of 1 / (2^32 - 1), with [`rule_flags::PROBABILITY`].
    pub probability: u32,
    /// `from`: source address.
    pub source: Address,
    /// `to`: destination address.
    pub destination: Address,
    /// `from … port`: source port.
    pub source_port: Port,
    /// `to … port`: destination port.
    pub destination_port: Port,
    /// `user`: owner of the socket.
    pub user: Owner,
    /// `group`: group of the socket.
    pub group: Owner,
    /// TTL of the RST, 0 for the default.
    pub return_ttl: u8,
    /// ICMP type of the answer, IPv4.
    pub return_icmp_type: u8,
    /// ICMP code of the answer, IPv4.
    pub return_icmp_code: u8,
    /// ICMPv6 type of the answer.
    pub return_icmp6_type: u8,
    /// ICMPv6 code of the answer.
    pub return_icmp6_code: u8,
    /// New TOS, with [`rule_flags::SET_TOS`].
    pub set_tos: u8,
    /// New priorities for ordinary packets, and for lowdelay and empty ACKs, with
    /// [`rule_flags::SET_PRIO`].
    pub set_prio: [u8; 2],
    /// Minimum TTL, 0 for no change.
    pub min_ttl: u8,
    /// Number N of pflogN.
    pub log_to: u8,
    /// Maximum MSS in bytes, 0 for no change.
    pub max_mss: u16,
    /// Maximum packet length in bytes, 0 for no limit.
    pub max_pkt_size: u16,
    /// Bits `1 << purpose` of the rule's pools ([`crate::pool::purpose`]).
    pub pools: u8,
    /// One of [`crate::pool::route_kind`].
    pub route: u8,
    /// Queue numbers for ordinary packets, and for lowdelay and empty ACKs; 0 for no change.
    pub queue: [u16; 2],
    /// Index in rule_stats and rule_states.
    pub slot: u32,
    /// Position in its rule set, from 0.
    pub number: u32,
    /// Id of the rule's anchor, 0 for the main rule set.
    pub anchor: u32,
    /// With [`rule_flags::ANCHOR`]: index of the first called rule.
    pub call_first: u32,
    /// With [`rule_flags::ANCHOR`]: index of the last called rule plus 1.
    pub call_end: u32,
    /// Number of the routing table plus 1; 0 for no change.
    pub rtable: u16,
    /// `af-to`: new family of the packet ([`crate::INET`], [`crate::INET6`]), else 0.
    pub cross_to: u8,
    /// Bit of the rule's `os` in [`crate::Fingerprint::systems`] plus 1; 0: no criterion.
    pub os: u8,
    /// Numbers of limiters by [`crate::limiter::limiter_kind`], with
    /// [`crate::limiter::LIMITER_NO_MATCH`]; 0 for none.
    pub limiter: [u16; LIMITER_KINDS],
    /// Index of the last rule of its rule set plus 1.
    pub set_end: u32,
    /// Cell of the superblock's trees. Set in the first rule of a superblock, or in all its rules
    /// if each matching rule takes effect; else 0.
    pub superblock: u32,
    /// Milliseconds that packets wait before they leave, 0 for no change.
    pub delay: u16,
    /// 1 for a legacy `scrub` rule with `fragment no reassemble`.
    pub leave_fragments: u8,
    /// Bits of [`fast_path`].
    pub fast_path: u8,
}

/// `struct pf_rule_stats`: counters of one CPU, indexed by slot.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct RuleStats {
    /// Number of evaluations of the rule.
    pub evaluations: u64,
    /// Packets in and out.
    pub packets: [u64; 2],
    /// Bytes in and out.
    pub bytes: [u64; 2],
}

/// `struct pf_rule_states`: indexed by slot; outlives the rule until its last state ends.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct RuleStates {
    /// Number of states ever created.
    pub total: u64,
    /// Rate of the matching packets, in the format of `bpf/rate.h`.
    pub pkt_rate: u64,
    /// Number of states now.
    pub current: u32,
    /// `keep state (max n)`: maximum number of states, 0 for no limit.
    pub max: u32,
    /// Number of the rule, -1 since a later load replaced its rule set.
    pub number: i32,
    /// Timeouts in seconds (adaptive ones: states), by [`timeout`]; 0 for the global value.
    pub timeouts: [u32; timeout::MAX],
    /// Tables that the rule compares source and destination with.
    pub tables: [RuleTable; 2],
    /// Id of the rule's anchor.
    pub anchor: u32,
    /// `once`: 1 if the rule has matched its packet.
    pub expired: u32,
    /// `max-pkt-rate`: maximum number of packets in `max_packets_seconds`.
    pub max_packets: u32,
    /// `max-pkt-rate`: length of the interval in seconds.
    pub max_packets_seconds: u32,
    /// Bits of [`source_flags`].
    pub source_flags: u32,
    /// Number of source nodes now, of all kinds.
    pub source_nodes: u32,
    /// `max-src-nodes`; 0 for no limit, as in the next three fields.
    pub max_src_nodes: u32,
    /// `max-src-states`: maximum number of states of one source.
    pub max_src_states: u32,
    /// `max-src-conn`: maximum number of established connections of one source.
    pub max_src_conn: u32,
    /// `max-src-conn-rate`: maximum number of connections in `max_src_conn_seconds`.
    pub max_src_conn_rate: u32,
    /// `max-src-conn-rate`: length of the interval in seconds.
    pub max_src_conn_seconds: u32,
    /// `overload`: slot of the table.
    pub overload_table: u32,
    /// One of [`divert_kind`].
    pub divert: u8,
    /// 1: `pflow`, states are reported when they end.
    pub pflow: u8,
    /// Port of `divert-to` or `divert-packet`, in network byte order.
    pub divert_port: [u8; 2],
    /// Address of `divert-to`, in network byte order.
    pub divert_address: [u8; 16],
    /// TOS criterion of the rule, for the report of a state.
    pub flow_tos: u32,
    /// [`crate::verdict::action`] of a legacy rule, else 0.
    pub old: u32,
    /// 1: only the load on trial has the rule.
    pub trial: u32,
    /// Of a rule that a trial keeps: the generation on trial. The other `trial_` fields, also those
    /// of `tables`, are for this generation.
    pub trial_generation: u32,
    /// Number of the rule in the rule set on trial, -1 if it does not have the rule.
    pub trial_number: i32,
    /// `overload`: slot of the table in the rule set on trial.
    pub trial_overload: u32,
}

/// `enum pf_divert_kind`: the rule's divert option.
#[allow(missing_docs, reason = "the values are those of bpf/abi")]
pub mod divert_kind {
    pub const NO: u8 = 0;
    pub const TO: u8 = 1;
    pub const REPLY: u8 = 2;
    pub const PACKET: u8 = 3;
}

/// `struct pf_rule_table`: a table that a rule uses; its counters rise with the rule's.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct RuleTable {
    /// Slot of the table.
    pub slot: u32,
    /// 1 if the rule uses a table.
    pub used: u8,
    /// 1 if the rule has `!` before the table.
    pub negated: u8,
    /// Zero.
    pub pad: [u8; 2],
    /// Slot of the table in the rule set on trial.
    pub trial_slot: u32,
}
