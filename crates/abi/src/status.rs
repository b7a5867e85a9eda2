//! Status, counters and the results that tests read.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::limits::DROP_READERS;

/// Number of reasons (`PF_REASON_MAX`), in the order of [`crate::names::REASONS`].
pub const REASON_MAX: usize = 19;

/// `enum pf_state_counter`: indexes of [`Counters::state`].
#[allow(missing_docs, reason = "the values are those of bpf/abi")]
pub mod state_counter {
    pub const SEARCHES: usize = 0;
    pub const INSERTS: usize = 1;
    pub const REMOVALS: usize = 2;
    pub const MAX: usize = 3;
}

/// `enum pf_source_counter`: indexes of [`Counters::source`].
#[allow(missing_docs, reason = "the values are those of bpf/abi")]
pub mod source_counter {
    pub const SEARCHES: usize = 0;
    pub const INSERTS: usize = 1;
    pub const REMOVALS: usize = 2;
    pub const MAX: usize = 3;
}

/// Number of limit counters (`PF_LCOUNT_MAX`); [`crate::names::LIMIT_COUNTERS`] has their names.
pub const LCOUNT_MAX: usize = 10;

/// `struct pf_status`: value of the status map, shared by all CPUs.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Status {
    /// [`crate::VERSION`] of the process that created the maps.
    pub abi_version: u32,
    /// Generation of rules and settings in force; its lowest bit selects one of the two copies.
    pub generation: u32,
    /// 1 while packets are filtered.
    pub running: u32,
    /// Boot-clock second of the last enable or disable.
    pub since: u32,
    /// Number of states now.
    pub states: u32,
    /// Number of TCP states whose maker is not established.
    pub half_open: u32,
    /// Id of the next state.
    pub next_state_id: u64,
    /// Number of indexes of the states map that were ever used.
    pub states_used: u32,
    /// Index where the next sweep continues.
    pub sweep_cursor: u32,
    /// Wall-clock second of the first enable, the upper half of state ids.
    pub first_enabled: u32,
    /// Number of entries of the states map.
    pub capacity: u32,
    /// Random secret of the instance, drawn with the maps; ports and sequence numbers derive from
    /// it.
    pub secret: [u64; 2],
    /// Number of states with two keys now.
    pub translated: u32,
    /// Number of source nodes now.
    pub sources: u32,
    /// Number of indexes of the source_nodes map that were ever used.
    pub sources_used: u32,
    /// Index where the next sweep of source nodes continues.
    pub source_cursor: u32,
    /// Number of entries of the source_nodes map.
    pub source_capacity: u32,
    /// Number of entries in all tables of pf.conf.
    pub table_entries: u32,
    /// Wall-clock second at second 0 of the boot clock.
    pub boot_time: u32,
    /// Number of states that cross to the other family now.
    pub crossing: u32,
    /// Number of limiters' sources now.
    pub limited_sources: u32,
    /// Number of limiters' sources that must leave a table.
    pub leaving: u32,
    /// Number of if-bound states now.
    pub bound: u32,
    /// Number of sweeps begun.
    pub sweeps: u32,
    /// Boot-clock second, as the sweep's timer keeps it.
    pub second: u32,
    /// Secret of the stamps that judged packets carry for the guard.
    pub stamp: u32,
    /// Jiffy in which `second` was noted.
    pub beat: u64,
    /// Jiffy from which `second` is too old to use.
    pub second_until: u64,
    /// Keys and counters of syncookies.
    pub syncookies: Syncookies,
    /// Kernel id of the program pf_ingress.
    pub ingress_id: u32,
    /// Kernel id of the program pf_egress.
    pub egress_id: u32,
    /// Kernel address of pf_egress, 0 until the guard has seen it.
    pub egress_address: u64,
    /// Kernel id of pf_guard; 0 if the kernel lacks such programs.
    pub guard_id: u32,
    /// Number of failed starts of the sweep's timer.
    pub timer_errors: u32,
    /// errno of the last failed start.
    pub timer_error: u32,
    /// Boot-clock second of the last attempt by a packet to start the timer.
    pub timer_tried: u32,
    /// Number of entries of the `flushes` map.
    pub flushing: u32,
    /// Bits of the kinds of these entries (`bpf/flush.h`).
    pub flush_kinds: u32,
    /// Number of the next flush.
    pub flush_number: u32,
    /// Number of entries of the `limited_turns` queue, and of those about to be added.
    pub limited_turns: u32,
    /// Maximum number of entries of that queue.
    pub limited_capacity: u32,
    /// The rules in force are on trial until this second of the boot clock; 0: they are not.
    pub confirm_by: u32,
    /// Generation that is in force after a trial that failed.
    pub back: u32,
    /// Value of `running` after a trial that failed.
    pub back_running: u32,
    /// 1: a trial has failed, and states of its rules may be left.
    pub ending: u32,
    /// 1: states of rules that only the load on trial has end if the trial fails.
    pub ends_states: u32,
    /// Bit mask of programs that read dropped packets.
    pub drop_readers: u32,
    /// Those of them that have read since the timer last looked at this word.
    pub drop_readers_alive: u32,
}

/// `struct pf_syncookies`: the keys of syncookies, and their counters.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Syncookies {
    /// Two keys of 128 bits.
    pub key: [[u64; 2]; 2],
    /// Number of cookies sent with each key that did not come back.
    pub in_flight: [u32; 2],
    /// Number of keys made; its lowest bit is the index of the key in use.
    pub keys_made: u32,
    /// Boot-clock second at which the key ends; 0: there is no key.
    pub next_key_at: u32,
    /// One of [`cookies_active`].
    pub active: u32,
    /// Zero.
    pub pad: u32,
}

/// `enum pf_cookies_active`: the phases of syncookies.
pub mod cookies_active {
    /// Syncookies are not sent.
    pub const OFF: u32 = 0;
    /// Syncookies are sent.
    pub const ON: u32 = 1;
    /// A CPU is making the first key.
    pub const BEGIN: u32 = 2;
}

/// `struct pf_counters`: counters of one CPU.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Counters {
    /// Dropped and logged packets, by reason.
    pub reason: [u64; REASON_MAX],
    /// Operations on states, by [`state_counter`].
    pub state: [u64; state_counter::MAX],
    /// Limits hit, in the order of [`crate::names::LIMIT_COUNTERS`].
    pub limit: [u64; LCOUNT_MAX],
    /// Operations on source nodes, by [`source_counter`].
    pub source: [u64; source_counter::MAX],
    /// Log records lost because the ring was full.
    pub log_lost: u64,
    /// Reports of states lost because the ring was full.
    pub flow_lost: u64,
    /// Packets forwarded on the fast path, by [`forwarded`].
    pub forwarded: [u64; forwarded::MAX],
    /// Packets that bypassed the fast path, by [`left_to`].
    pub left_to: [u64; left_to::MAX],
    /// Diverted packets that did not reach skipstepd.
    pub divert_lost: u64,
    /// Records of dropped packets lost because the ring of a reader was full, by reader.
    pub drops_lost: [u64; DROP_READERS as usize],
    /// Dropped packets without a record, because there were too many in a second.
    pub drops_unreported: u64,
}

/// `struct pf_test`: clock and random numbers of a test, in place of the kernel's.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Test {
    /// 1: the fields below are used.
    pub enabled: u32,
    /// Boot-clock second.
    pub now: u32,
    /// Result of each bounded random number.
    pub random: u32,
    /// Owner of the packet's socket; all ones without a socket.
    pub uid: u32,
    /// Group of the packet's socket; all ones without a socket.
    pub gid: u32,
    /// Initial sequence number for each draw.
    pub sequence: u32,
    /// Offset of TCP timestamps for each draw.
    pub timestamp: u32,
    /// 1: `cookie_key` is the key of syncookies and never changes.
    pub keeps_cookie_key: u32,
    /// Key of syncookies, with `keeps_cookie_key`.
    pub cookie_key: [u64; 2],
    /// Bytes of the longest fragment of the datagram under test, 0 for an unfragmented one.
    pub longest_fragment: u32,
    /// Zero.
    pub pad: u32,
}

/// `enum pf_decision`: the sources of a decision.
pub mod decision {
    /// The packet was not judged: skipped interface, not IP, or made by pf.
    pub const NONE: u8 = 0;
    /// No rule matched, or the packet was dropped before rule evaluation.
    pub const DEFAULT: u8 = 1;
    /// A rule, or a state that a rule created.
    pub const RULE: u8 = 2;
    /// A state whose rule a reload has removed.
    pub const ORPHAN: u8 = 3;
}

/// `struct pf_outcome`: the result for a packet; first member of the scratch value.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Outcome {
    /// Id of the state that was found or created, all ones for none.
    pub state_id: u64,
    /// Number of the deciding rule, -1 for the default rule.
    pub rule: i32,
    /// Number of the anchor rule that called it, -1 for none.
    pub anchor_rule: i32,
    /// Id of the deciding rule's anchor.
    pub anchor: u32,
    /// One of [`crate::verdict::verdict`].
    pub verdict: u8,
    /// Index into [`crate::names::REASONS`] of the logged reason.
    pub reason: u8,
    /// One of [`decision`].
    pub decision: u8,
    /// Number of log records written.
    pub logged: u8,
    /// Number of additional packets sent.
    pub copies: u8,
    /// Family of `next_hop`, [`crate::INET`] or [`crate::INET6`].
    pub next_hop_family: u8,
    /// Routing table of a packet that passed, as [`crate::Rule::rtable`].
    pub rtable: u16,
    /// Index of the interface where the packet, or its copy, is routed.
    pub ifindex: u32,
    /// Next hop of the packet, or of its copy, in network byte order.
    pub next_hop: [u8; 16],
    /// Maximum fragment length in bytes after a change of family; 0: the packet is not fragmented.
    pub fragment_length: u32,
    /// One of [`crate::pool::route_kind`].
    pub route: u8,
    /// One of [`crate::rule::divert_kind`]: the packet goes to a socket or a program of this host.
    pub divert: u8,
    /// Port of the program, in network byte order.
    pub divert_port: [u8; 2],
    /// Increments of each reason's counter by this packet.
    pub counted: [u8; REASON_MAX],
    /// Zero.
    pub pad: [u8; 5],
}

/// `enum pf_forwarded`: the hooks of the fast path, indexes of [`Counters::forwarded`].
pub mod forwarded {
    /// The program on tcx ingress.
    pub const TC: usize = 0;
    /// The XDP program.
    pub const XDP: usize = 1;
    /// Number of hooks.
    pub const MAX: usize = 2;
}

/// `enum pf_left_to`: fast-path bypass reasons, indexes of [`Counters::left_to`].
pub mod left_to {
    /// A device on top of the ingress device: bridge, bond or macvlan.
    pub const UPPER: usize = 0;
    /// A program on tcx that is not part of the filter.
    pub const PROGRAM: usize = 1;
    /// Policies of IPsec.
    pub const IPSEC: usize = 2;
    /// Rules of netfilter.
    pub const NETFILTER: usize = 3;
    /// Number of reasons.
    pub const MAX: usize = 4;
    /// No bypass reason.
    pub const NOBODY: usize = MAX;
}
