//! Status, counters and what tests see of a packet's way.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Reasons there are (`PF_REASON_MAX`); their order is that of [`crate::names::REASONS`].
pub const REASON_MAX: usize = 19;

/// `enum pf_state_counter`: indices of [`Counters::state`].
#[allow(missing_docs)]
pub mod state_counter {
    pub const SEARCHES: usize = 0;
    pub const INSERTS: usize = 1;
    pub const REMOVALS: usize = 2;
    pub const MAX: usize = 3;
}

/// `enum pf_source_counter`: indices of [`Counters::source`].
#[allow(missing_docs)]
pub mod source_counter {
    pub const SEARCHES: usize = 0;
    pub const INSERTS: usize = 1;
    pub const REMOVALS: usize = 2;
    pub const MAX: usize = 3;
}

/// Limit counters there are (`PF_LCOUNT_MAX`); names in [`crate::names::LIMIT_COUNTERS`].
pub const LCOUNT_MAX: usize = 10;

/// `struct pf_status`: shared by all CPUs.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Status {
    /// [`crate::VERSION`]
    pub abi_version: u32,
    /// Of rule set and configuration; its lowest bit says which of the two.
    pub generation: u32,
    /// 1 while packets are filtered.
    pub running: u32,
    /// Boot-clock second of the last enable or disable.
    pub since: u32,
    /// Current states.
    pub states: u32,
    /// TCP states whose maker is not established.
    pub half_open: u32,
    /// Id of the next state.
    pub next_state_id: u64,
    /// Places of the states map ever used.
    pub states_used: u32,
    /// Where the next sweep goes on.
    pub sweep_cursor: u32,
    /// Wall-clock second of the first enable: high half of state ids.
    pub first_enabled: u32,
    /// Places in the states map.
    pub capacity: u32,
    /// Drawn by who makes the maps; what the firewall chooses for others hangs on it.
    pub secret: [u64; 2],
    /// States with two keys, current.
    pub translated: u32,
    /// Current source nodes.
    pub sources: u32,
    /// Places of the source_nodes map ever used.
    pub sources_used: u32,
    /// Where the next sweep of them goes on.
    pub source_cursor: u32,
    /// Places in that map.
    pub source_capacity: u32,
    /// Entries in all tables of pf.conf.
    pub table_entries: u32,
    /// Wall-clock second at second 0 of the boot clock.
    pub boot_time: u32,
    /// States whose packets cross to the other family, current.
    pub crossing: u32,
    /// Sources of limiters, current.
    pub limited_sources: u32,
    /// Of these, how many are to leave a table.
    pub leaving: u32,
    /// States bound to an interface, current.
    pub bound: u32,
    /// Sweeps begun so far.
    pub sweeps: u32,
    /// Second of the boot clock, as the timer that sweeps keeps it.
    pub second: u32,
    /// Secret of the marks that judged packets have for the guard.
    pub stamp: u32,
    /// Jiffy in which `second` was noted.
    pub beat: u64,
    /// Jiffy from which `second` is too old to be believed.
    pub second_until: u64,
    /// Keys of syncookies.
    pub syncookies: Syncookies,
    /// Number of pf_ingress in the kernel.
    pub ingress_id: u32,
    /// Number of pf_egress.
    pub egress_id: u32,
    /// Where pf_egress is in the kernel's memory, once the guard has seen it; 0 before.
    pub egress_address: u64,
    /// Number of pf_guard; 0 where the kernel has no such programs.
    pub guard_id: u32,
    /// Number of times that the kernel did not start the timer that sweeps.
    pub timer_errors: u32,
    /// The latest of these, an errno.
    pub timer_error: u32,
    /// Second of the last attempt by a packet.
    pub timer_tried: u32,
    /// Entries of the `flushes` map.
    pub flushing: u32,
    /// Which kinds these are of.
    pub flush_kinds: u32,
    /// Number of the next flush.
    pub flush_number: u32,
    /// Entries of the `limited_turns` queue, or about to be.
    pub limited_turns: u32,
    /// Places in that queue.
    pub limited_capacity: u32,
    /// Zero.
    pub pad: u32,
}

/// `struct pf_syncookies`: the keys, and what was sent with them.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Syncookies {
    /// The keys.
    pub key: [[u64; 2]; 2],
    /// Of each key: cookies sent that did not come back.
    pub in_flight: [u32; 2],
    /// The lowest bit says which of the two is in use.
    pub keys_made: u32,
    /// Second of its end; 0: there is none.
    pub next_key_at: u32,
    /// [`cookies_active`]
    pub active: u32,
    /// Zero.
    pub pad: u32,
}

/// `enum pf_cookies_active`: whether SYNs are answered with cookies now.
pub mod cookies_active {
    /// no
    pub const OFF: u32 = 0;
    /// yes
    pub const ON: u32 = 1;
    /// somebody makes the first key
    pub const BEGIN: u32 = 2;
}

/// `struct pf_counters`: per CPU.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Counters {
    /// By reason.
    pub reason: [u64; REASON_MAX],
    /// [`state_counter`]
    pub state: [u64; state_counter::MAX],
    /// By limit.
    pub limit: [u64; LCOUNT_MAX],
    /// [`source_counter`]
    pub source: [u64; source_counter::MAX],
    /// Log records that found the ring full.
    pub log_lost: u64,
    /// Reports of states that found their ring full.
    pub flow_lost: u64,
    /// Packets sent on past the kernel's forwarding, by tc and by XDP (`enum pf_forwarded`).
    pub forwarded: [u64; forwarded::MAX],
    /// Packets left to the kernel's forwarding for others that want them ([`left_to`]).
    pub left_to: [u64; left_to::MAX],
    /// Packets for programs that did not come as far as skipstepd.
    pub divert_lost: u64,
}

/// `struct pf_test`: what tests drive instead of the kernel's clock and randomness.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Test {
    /// 1: the clock and the draws are those below.
    pub enabled: u32,
    /// Seconds.
    pub now: u32,
    /// What every draw with a bound returns.
    pub random: u32,
    /// User whose socket the packet is about; all ones for nobody's.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Initial sequence numbers.
    pub sequence: u32,
    /// Offsets of TCP timestamps.
    pub timestamp: u32,
    /// 1: the key of syncookies is the one below for good.
    pub keeps_cookie_key: u32,
    /// That key.
    pub cookie_key: [u64; 2],
    /// Length of the longest fragment of the datagram in hand, 0 if it came whole.
    pub longest_fragment: u32,
    /// Unused.
    pub pad: u32,
}

/// `enum pf_decision`: what decided about a packet.
pub mod decision {
    /// pf did not look: interface skipped, not IP, made by pf
    pub const NONE: u8 = 0;
    /// no rule matched, or dropped before rules were asked
    pub const DEFAULT: u8 = 1;
    /// a rule, or a state it made
    pub const RULE: u8 = 2;
    /// a state whose rule is gone since a reload
    pub const ORPHAN: u8 = 3;
}

/// `struct pf_outcome`: what became of a packet; first member of the scratch value.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Outcome {
    /// State used or made, all ones for none.
    pub state_id: u64,
    /// Number of the deciding rule, -1 for the default rule.
    pub rule: i32,
    /// Number of the anchor rule that led to it, -1 for none.
    pub anchor_rule: i32,
    /// Id of the anchor that the deciding rule is in.
    pub anchor: u32,
    /// [`crate::verdict::verdict`]
    pub verdict: u8,
    /// The reason in the log.
    pub reason: u8,
    /// [`decision`]
    pub decision: u8,
    /// Log records written.
    pub logged: u8,
    /// Packets sent besides.
    pub copies: u8,
    /// [`crate::INET`] or [`crate::INET6`]
    pub next_hop_family: u8,
    /// As [`crate::Rule::rtable`]: of the packet that passed.
    pub rtable: u16,
    /// The packet, or a copy of it, is routed: by this interface …
    pub ifindex: u32,
    /// … to this neighbour.
    pub next_hop: [u8; 16],
    /// In fragments of at most so many bytes, if it has crossed to the other family; 0: whole.
    pub fragment_length: u32,
    /// [`crate::pool::route_kind`]
    pub route: u8,
    /// [`crate::rule::divert_kind`]: it goes to a socket or a program of this host.
    pub divert: u8,
    /// Of the program, in network byte order.
    pub divert_port: [u8; 2],
    /// How often the packet counted each reason.
    pub counted: [u8; REASON_MAX],
    /// Zeros.
    pub pad: [u8; 5],
}

/// `enum pf_forwarded`: who sent packets on past the kernel's forwarding.
pub mod forwarded {
    /// the program at tcx ingress
    pub const TC: usize = 0;
    /// the program of XDP
    pub const XDP: usize = 1;
    /// How many there are.
    pub const MAX: usize = 2;
}

/// `enum pf_left_to`: for whom packets that could go past the kernel's forwarding go by it.
pub mod left_to {
    /// a device on top of the one they came in by: bridge, bond, macvlan
    pub const UPPER: usize = 0;
    /// a program of somebody else, on tcx
    pub const PROGRAM: usize = 1;
    /// policies of IPsec
    pub const IPSEC: usize = 2;
    /// rules of netfilter
    pub const NETFILTER: usize = 3;
    /// How many there are.
    pub const MAX: usize = 4;
    /// Nobody wants them.
    pub const NOBODY: usize = MAX;
}
