//! Rules in the form that the kernel walks.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::limiter::LIMITER_KINDS;
use crate::state::timeout;

/// Parameters with skip steps, in the order of `enum pf_skip`.
pub const SKIP_MAX: usize = 9;

/// `enum pf_address_kind`.
pub mod address_kind {
    /// no criterion
    pub const ANY: u8 = 0;
    /// `(packet & high) == low`
    pub const MASK: u8 = 1;
    /// `low <= packet <= high`
    pub const RANGE: u8 = 2;
    /// table slot
    pub const TABLE: u8 = 3;
    /// no route to the address
    pub const NO_ROUTE: u8 = 4;
    /// the route back leaves by another interface
    pub const URPF_FAILED: u8 = 5;
    /// matches nothing, negated or not
    pub const NEVER: u8 = 6;
}

/// `enum pf_port_op`, OpenBSD's numbers.
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

/// `enum pf_rule_flags`.
#[allow(missing_docs)]
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
    /// modulate state
    pub const MODULATE: u32 = 1 << 29;
    /// scrub (reassemble tcp)
    pub const REASSEMBLE_TCP: u32 = 1 << 30;
    /// synproxy state
    pub const SYNPROXY: u32 = 1 << 31;
}

/// `enum pf_source_flags`: how a rule tracks sources.
#[allow(missing_docs)]
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
    /// [`address_kind`]
    pub kind: u8,
    /// 1 if the criterion is negated.
    pub negated: u8,
    /// Zero.
    pub pad: [u8; 2],
    /// Table slot.
    pub table: u32,
    /// Value or lower end, network order.
    pub low: [u8; 16],
    /// Mask or upper end, network order.
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
    /// [`port_op`]
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
    /// First operand; all ones is nobody.
    pub low: u32,
    /// Second operand.
    pub high: u32,
    /// [`port_op`]
    pub op: u8,
    /// Zero.
    pub pad: [u8; 3],
}

/// `enum pf_plain`: how much of a rule those can do who have the packet's headers and nothing else.
pub mod plain {
    /// It asks for what stands in the headers, and for interfaces.
    pub const TEST: u8 = 1;
    /// It lets the packet go as it is, or drops it in silence, and counts.
    pub const VERDICT: u8 = 1 << 1;
    /// It lets the packet go as it is and makes a state, which does nothing else either.
    pub const STATE: u8 = 1 << 2;
}

/// `struct pf_rule`: one rule as the evaluators read it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Rule {
    /// Index of the next rule worth looking at; the count of rules at the end.
    pub skip: [u32; SKIP_MAX],
    /// [`rule_flags`]
    pub flags: u32,
    /// Interface id or group bit.
    pub interface: u32,
    /// The same for `received-on`.
    pub received_on: u32,
    /// [`crate::interface::interface_match`]
    pub interface_match: u8,
    /// The same for `received-on`.
    pub received_match: u8,
    /// [`crate::verdict::direction`]
    pub direction: u8,
    /// 0, [`crate::INET`] or [`crate::INET6`]
    pub family: u8,
    /// IP protocol, 0 for any.
    pub protocol: u8,
    /// Of those in `tcp_mask` these must be set.
    pub tcp_flags: u8,
    /// 0 does not look.
    pub tcp_mask: u8,
    /// With [`rule_flags::MATCH_ICMP_TYPE`].
    pub icmp_type: u8,
    /// With [`rule_flags::MATCH_ICMP_CODE`].
    pub icmp_code: u8,
    /// With [`rule_flags::MATCH_TOS`].
    pub tos: u8,
    /// With [`rule_flags::MATCH_PRIO`].
    pub prio: u8,
    /// [`crate::verdict::action`]
    pub action: u8,
    /// Tag that the packet gets, 0 for none.
    pub tag: u16,
    /// Tag that the packet must have, 0 does not look.
    pub tagged: u16,
    /// Of 2^32 - 1, with [`rule_flags::PROBABILITY`].
    pub probability: u32,
    /// `from`
    pub source: Address,
    /// `to`
    pub destination: Address,
    /// `from … port`
    pub source_port: Port,
    /// `to … port`
    pub destination_port: Port,
    /// `user`
    pub user: Owner,
    /// `group`
    pub group: Owner,
    /// TTL of the RST, 0 is the default.
    pub return_ttl: u8,
    /// ICMP type of the answer, IPv4.
    pub return_icmp_type: u8,
    /// ICMP code of the answer, IPv4.
    pub return_icmp_code: u8,
    /// ICMPv6 type of the answer.
    pub return_icmp6_type: u8,
    /// ICMPv6 code of the answer.
    pub return_icmp6_code: u8,
    /// With [`rule_flags::SET_TOS`].
    pub set_tos: u8,
    /// Ordinary packets; lowdelay and empty ACKs. With [`rule_flags::SET_PRIO`].
    pub set_prio: [u8; 2],
    /// Lowest TTL, 0 leaves it.
    pub min_ttl: u8,
    /// n of pflogN.
    pub log_to: u8,
    /// Highest MSS, 0 leaves it.
    pub max_mss: u16,
    /// Longest packet, 0 for no limit.
    pub max_pkt_size: u16,
    /// `1 << purpose` of the pools that it has ([`crate::pool::purpose`]).
    pub pools: u8,
    /// [`crate::pool::route_kind`]
    pub route: u8,
    /// Numbers of the queues for ordinary packets, and for lowdelay and empty ACKs; 0 leaves it.
    pub queue: [u16; 2],
    /// Place in rule_stats and rule_states.
    pub slot: u32,
    /// Position in its rule set, from 0.
    pub number: u32,
    /// Id of the anchor it is in, 0 for the main rule set.
    pub anchor: u32,
    /// With [`rule_flags::ANCHOR`]: index of the first rule it calls.
    pub call_first: u32,
    /// And one more than that of the last.
    pub call_end: u32,
    /// One more than the routing table's number; 0 if the rule does not say.
    pub rtable: u16,
    /// `af-to`: family that its packets get ([`crate::INET`], [`crate::INET6`]), else 0.
    pub cross_to: u8,
    /// 1 + bit of its `os` in [`crate::Fingerprint::systems`]; 0 does not look.
    pub os: u8,
    /// By [`crate::limiter::limiter_kind`]: its number, with
    /// [`crate::limiter::LIMITER_NO_MATCH`]; 0 for none.
    pub limiter: [u16; LIMITER_KINDS],
    /// One more than the index of the last rule of its rule set.
    pub set_end: u32,
    /// The first of a stretch that trees search, or any of one in which all that match are met:
    /// cell that says where the trees are, else 0.
    pub segment: u32,
    /// Milliseconds that its packets wait before they leave, 0 leaves it.
    pub delay: u16,
    /// 1 for an old `scrub` rule with `fragment no reassemble`.
    pub leave_fragments: u8,
    /// [`plain`]
    pub plain: u8,
}

/// `struct pf_rule_stats`: per CPU, indexed by slot.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct RuleStats {
    /// How often the rule was looked at.
    pub evaluations: u64,
    /// In, out.
    pub packets: [u64; 2],
    /// In, out.
    pub bytes: [u64; 2],
}

/// `struct pf_rule_states`: indexed by slot, outlives its rule until its last state is gone.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct RuleStates {
    /// States ever made.
    pub total: u64,
    /// Rate of the packets that match, as the data plane keeps it.
    pub pkt_rate: u64,
    /// States now.
    pub current: u32,
    /// `keep state (max n)`, 0 for no limit.
    pub max: u32,
    /// Number of the rule, -1 once its rule set was replaced.
    pub number: i32,
    /// Seconds (adaptive ones: states); 0 takes the global value.
    pub timeouts: [u32; timeout::MAX],
    /// Tables that the rule compares source and destination with.
    pub tables: [RuleTable; 2],
    /// Id of the anchor it is in.
    pub anchor: u32,
    /// `once`: 1 if it has matched its packet.
    pub expired: u32,
    /// `max-pkt-rate`: packets…
    pub max_packets: u32,
    /// …in so many seconds.
    pub max_packets_seconds: u32,
    /// [`source_flags`]
    pub source_flags: u32,
    /// Source nodes now, of every kind.
    pub source_nodes: u32,
    /// `max-src-nodes`; 0 for no limit, as for the next three.
    pub max_src_nodes: u32,
    /// `max-src-states`
    pub max_src_states: u32,
    /// `max-src-conn`
    pub max_src_conn: u32,
    /// `max-src-conn-rate`: connections…
    pub max_src_conn_rate: u32,
    /// …in so many seconds.
    pub max_src_conn_seconds: u32,
    /// `overload`: slot of the table.
    pub overload_table: u32,
    /// [`divert_kind`]
    pub divert: u8,
    /// 1: its states are reported when they end …
    pub pflow: u8,
    /// Port of the socket that `divert-to`, or `divert-packet`, names, in network byte order.
    pub divert_port: [u8; 2],
    /// And its address.
    pub divert_address: [u8; 16],
    /// … with the `tos` that it asks for.
    pub flow_tos: u32,
    /// [`crate::verdict::action`] of an old rule, else 0.
    pub old: u32,
}

/// `enum pf_divert_kind`.
#[allow(missing_docs)]
pub mod divert_kind {
    pub const NO: u8 = 0;
    pub const TO: u8 = 1;
    pub const REPLY: u8 = 2;
    pub const PACKET: u8 = 3;
}

/// `struct pf_rule_table`: a table whose counters rise with the rule's.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct RuleTable {
    /// Slot of the table.
    pub slot: u32,
    /// 1 if there is one.
    pub used: u8,
    /// 1 if the rule says `!`.
    pub negated: u8,
    /// Zero.
    pub pad: [u8; 2],
}
