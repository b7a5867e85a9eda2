//! States and their keys.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::limiter::{LIMITER_KINDS, Limited};
use crate::limits::MATCH_RULES;
use crate::source::NODE_KINDS;

/// `enum pf_timeout`: indices of the timeout arrays.
#[allow(missing_docs)]
pub mod timeout {
    pub const TCP_FIRST: usize = 0;
    pub const TCP_OPENING: usize = 1;
    pub const TCP_ESTABLISHED: usize = 2;
    pub const TCP_CLOSING: usize = 3;
    pub const TCP_FINWAIT: usize = 4;
    pub const TCP_CLOSED: usize = 5;
    pub const UDP_FIRST: usize = 6;
    pub const UDP_SINGLE: usize = 7;
    pub const UDP_MULTIPLE: usize = 8;
    pub const ICMP_FIRST: usize = 9;
    pub const ICMP_ERROR: usize = 10;
    pub const OTHER_FIRST: usize = 11;
    pub const OTHER_SINGLE: usize = 12;
    pub const OTHER_MULTIPLE: usize = 13;
    pub const FRAG: usize = 14;
    pub const INTERVAL: usize = 15;
    pub const ADAPTIVE_START: usize = 16;
    pub const ADAPTIVE_END: usize = 17;
    pub const SRC_TRACK: usize = 18;
    pub const TCP_TSDIFF: usize = 19;
    pub const MAX: usize = 20;
    /// Value of [`super::State::timeout`] for a state that is over and waits for the sweep.
    pub const PURGE: u8 = 0xfd;
    /// The same for one whose key a new state has taken over: nobody sees it, but it counts.
    pub const DETACHED: u8 = 0xfe;
    /// Value of [`super::State::timeout`] while a state is being removed.
    pub const UNLINKED: u8 = 0xff;
}

/// `enum pf_tcp_state`: BSD's TCP states, of which pf uses these.
#[allow(missing_docs)]
pub mod tcp_state {
    pub const CLOSED: u8 = 0;
    pub const LISTEN: u8 = 1;
    pub const SYN_SENT: u8 = 2;
    pub const SYN_RECEIVED: u8 = 3;
    pub const ESTABLISHED: u8 = 4;
    pub const CLOSE_WAIT: u8 = 5;
    pub const FIN_WAIT_1: u8 = 6;
    pub const CLOSING: u8 = 7;
    pub const LAST_ACK: u8 = 8;
    pub const FIN_WAIT_2: u8 = 9;
    pub const TIME_WAIT: u8 = 10;
    /// `synproxy`: the data plane waits for the client …
    pub const PROXY_SRC: u8 = 11;
    /// … and then for the server
    pub const PROXY_DST: u8 = 12;
}

/// `enum pf_other_state`: UDP and everything that is neither TCP nor ICMP.
pub mod other_state {
    /// nothing seen
    pub const NO_TRAFFIC: u8 = 0;
    /// seen
    pub const SINGLE: u8 = 1;
    /// seen, and answered
    pub const MULTIPLE: u8 = 2;
}

/// `enum pf_state_flags`, OpenBSD's `PFSTATE_*`.
#[allow(missing_docs)]
pub mod state_flags {
    pub const ALLOW_OPTS: u32 = 0x0001;
    pub const SLOPPY: u32 = 0x0002;
    pub const PFLOW: u32 = 0x0004;
    pub const NO_SYNC: u32 = 0x0008;
    pub const NO_DF: u32 = 0x0020;
    pub const SET_TOS: u32 = 0x0040;
    pub const RANDOM_ID: u32 = 0x0080;
    /// timestamps are checked
    pub const REASSEMBLE_TCP: u32 = 0x0100;
    pub const SET_PRIO: u32 = 0x0200;
    pub const MAX_PKT_RATE: u32 = 0x10000;
    pub const CONNECTED: u32 = 0x20000;
    /// It holds the mapping of the endpoint that made it.
    pub const MAPPED: u32 = 0x40000;
    /// It wants nothing of its packets but to judge and count them.
    pub const SIMPLE: u32 = 0x80000;
    /// Has an annex.
    pub const ANNEX: u32 = 0x100000;
    /// A connected socket of this host got its packets.
    pub const SOCKET: u32 = 0x200000;
}

/// Low bits of [`Peer::wscale`]: the shift.
pub const WSCALE_MASK: u8 = 0x0f;
/// Bit of [`Peer::wscale`]: this side's SYN offered scaling.
pub const WSCALE_FLAG: u8 = 0x80;

/// Index of [`State::key`]: as seen on the network.
pub const WIRE: usize = 0;
/// Index of [`State::key`]: as seen by the host.
pub const STACK: usize = 1;

/// `struct pf_state_key`: index 0 is the source of inbound and the destination of outbound packets.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct StateKey {
    /// Network order, IPv4 in the first four bytes.
    pub address: [[u8; 16]; 2],
    /// Network order: two bytes each. For ICMP queries one is the id, the other the type.
    pub port: [[u8; 2]; 2],
    /// Id of an if-bound state's interface, 0 for floating ones.
    pub interface: u32,
    /// Routing domain of the interface where its packets are.
    pub rdomain: u32,
    /// One of [`made`].
    pub made: u8,
    /// [`crate::INET`] or [`crate::INET6`]
    pub family: u8,
    /// IP protocol.
    pub protocol: u8,
    #[allow(missing_docs)]
    pub pad: u8,
}

/// `enum pf_made`.
#[allow(missing_docs)]
pub mod made {
    pub const PLAIN: u8 = 0;
    /// a translated state of two keys, made in this direction; or one whose key is that of a plain
    /// state made in the other
    pub const IN: u8 = 1;
    pub const OUT: u8 = 2;
    /// one whose packets cross to the other family: on the side of its maker
    pub const NEAR: u8 = 3;
    /// and on the other
    pub const FAR: u8 = 4;
}

/// Entries in a [`KeyLine`].
pub const KEY_ENTRIES: usize = 16;
/// Words of 32 bits in a [`StateKey`].
pub const KEY_WORDS: usize = 12;
/// Set in an entry that does not hold yet.
pub const KEY_CLAIMED: u32 = 0x8000_0000;
/// No place of the states map.
pub const NO_PLACE: u32 = u32::MAX;

/// `struct pf_key_line`: value of the state_keys map.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct KeyLine {
    /// From the highest bit: [`KEY_CLAIMED`], bits of the key's hash, the place of its state plus
    /// 1. 0: free.
    pub entry: [u32; KEY_ENTRIES],
    /// The place plus 1 of the state that knows packets of an entry's where they leave, as far as
    /// is known; 0: not.
    pub onward: [u32; KEY_ENTRIES],
}

/// `struct pf_key_hash`: how keys are hashed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct KeyHash {
    /// Random.
    pub secret: [u32; KEY_WORDS],
    /// Lines in the state_keys map.
    pub lines: u32,
    /// Bits of an entry that are a place.
    pub index_mask: u32,
}

/// `struct pf_state_ref`: where a state is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct StateRef {
    /// Place in the states map.
    pub index: u32,
    /// [`State::serial`] of the state meant.
    pub serial: u32,
}

/// `struct pf_peer`: one side of a state.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Peer {
    /// Highest sequence number seen.
    pub seqlo: u32,
    /// Highest the other side allows.
    pub seqhi: u32,
    /// Added to this side's sequence numbers.
    pub seqdiff: u32,
    /// Largest window, unscaled.
    pub max_win: u16,
    /// [`tcp_state`] or [`other_state`]
    pub state: u8,
    /// [`WSCALE_MASK`], [`WSCALE_FLAG`]
    pub wscale: u8,
}

/// `enum pf_log_flags`: what a state remembers of a rule's log options.
pub mod log_flags {
    /// Every packet, not only the first.
    pub const ALL: u8 = 1 << 0;
    /// With the owner of the socket.
    pub const USER: u8 = 1 << 1;
}

/// `struct pf_match_rule`: a match rule whose counters rise with those of the state.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct MatchRule {
    /// Place in rule_stats.
    pub slot: u32,
    /// [`log_flags`]
    pub log: u8,
    /// n of pflogN.
    pub log_to: u8,
    /// [`crate::verdict::action`]: an old rule counts like a match rule.
    pub action: u8,
    /// Zero.
    pub pad: u8,
}

/// `struct pf_kill`: argument of the program that removes a state.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Kill {
    /// Place in the states map.
    pub index: u32,
    /// [`State::serial`] of the state meant.
    pub serial: u32,
}

/// `struct pf_scrub`: what `reassemble tcp` knows of a side.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Scrub {
    /// Added to its timestamps.
    pub offset: u32,
    /// Its latest timestamp.
    pub value: u32,
    /// Its first.
    pub first: u32,
    /// The latest that it echoed.
    pub echo: u32,
    /// Second of the latest.
    pub last: u32,
    /// [`scrub_flags`]
    pub flags: u16,
    /// Highest of its packets, which all of them get.
    pub ttl: u8,
    /// 1 if the side is known.
    pub present: u8,
}

/// `enum pf_scrub_flags`.
pub mod scrub_flags {
    /// its SYN had a timestamp: they are modulated
    pub const TIMESTAMP: u16 = 0x01;
    /// and it echoed the other side's: they are checked
    pub const PAWS: u16 = 0x10;
    /// not any more: it was silent for too long
    pub const PAWS_IDLED: u16 = 0x20;
    /// its first data had a timestamp
    pub const DATA_TS: u16 = 0x40;
    /// or none
    pub const DATA_NO_TS: u16 = 0x80;
}

/// `struct pf_path`: how the kernel forwards packets of the state, or did not long ago.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Path {
    /// Index of the interface.
    pub came_in_by: u32,
    /// Number of the neighbour that they go to; 0: elsewhere than routes say.
    pub hop: u32,
    /// Second of the boot clock when that was; 0: there is no path.
    pub second: u32,
    /// Of rules and routes then: a number that changes with them.
    pub epoch: u32,
    /// Longest IP packet, in bytes.
    pub mtu: u16,
    /// Of the packet, which routes may be of.
    pub tos: u8,
    /// Zero.
    pub pad: u8,
}

/// `enum pf_express`: what frames can go to a device straight from the driver of another.
pub mod express {
    /// none
    pub const NOT: u8 = 0;
    /// those in one piece
    pub const SHORT: u8 = 1;
    /// all
    pub const ANY: u8 = 2;
}

/// `struct pf_state`: value of the states map.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct State {
    /// The kernel's spin lock; reads as zero.
    pub lock: u32,
    /// Rises at every reuse of this place; odd while in use.
    pub serial: u32,
    /// [`state_flags`]
    pub flags: u32,
    /// [`timeout`]
    pub timeout: u8,
    /// [`crate::verdict::direction`]
    pub direction: u8,
    /// [`log_flags`]
    pub log: u8,
    /// n of pflogN.
    pub log_to: u8,
    /// Second of the last accepted packet, from which the timeout runs.
    pub expire: u32,
    /// Slot of the rule that made it.
    pub rule_slot: u32,
    /// The state that knows its packets where they leave; serial 0: none.
    pub onward: StateRef,
    /// Of its packets on their way out.
    pub path: Path,
    /// Slot of the anchor rule that led to that rule; the default rule's for none.
    pub anchor_slot: u32,
    /// Ascending in order of creation.
    pub id: u64,
    /// The side that made the state.
    pub src: Peer,
    /// The other side.
    pub dst: Peer,
    /// With the state's direction, against it.
    pub packets: [u64; 2],
    /// With the state's direction, against it.
    pub bytes: [u64; 2],
    /// [`WIRE`], [`STACK`]
    pub key: [StateKey; 2],
    /// Priorities that its packets get, with [`state_flags::SET_PRIO`].
    pub set_prio: [u8; 2],
    /// With [`state_flags::SET_TOS`].
    pub set_tos: u8,
    /// Lowest TTL, 0 leaves it.
    pub min_ttl: u8,
    /// As [`crate::Rule::queue`].
    pub queue: [u16; 2],
    /// Second of creation.
    pub creation: u32,
    /// Highest MSS, 0 leaves it.
    pub max_mss: u16,
    /// Tag that its packets get, 0 for none.
    pub tag: u16,
    /// Where the maker's packets cross a bridge: destination and source of the first one's frame;
    /// else zero.
    pub stations: [[u8; 6]; 2],
    /// Zero.
    pub pad: [u8; 4],
}

/// `struct pf_annex`: what few states have, with [`state_flags::ANNEX`]. Zero where one has none of
/// it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Annex {
    /// Match rules whose counters rise with the state's.
    pub r#match: [MatchRule; MATCH_RULES],
    /// How many of `match` are in use.
    pub match_count: u32,
    /// Slot of the rule whose pool gave the source and counts the states of an address.
    pub nat_slot: u32,
    /// Slot of the one whose pool gave the destination.
    pub rdr_slot: u32,
    /// Id of the interface by which the next hop is; 0: as the routes say.
    pub hop_interface: u32,
    /// Who is next for the packets that are routed; zero by way of `hop_interface`: their
    /// destination.
    pub next_hop: [u8; 16],
    /// Places of its source nodes plus 1, by [`crate::source::node_kind`]; 0 for none.
    pub source_nodes: [u32; NODE_KINDS],
    /// Of `src`, of `dst`.
    pub scrub: [Scrub; 2],
    /// The next state that has its far key; serial 0 for none.
    pub next_far: StateRef,
    /// What it holds of limiters, by [`crate::limiter::limiter_kind`].
    pub limited: [Limited; LIMITER_KINDS],
    /// Of one that is reported: where its first packet came in, …
    pub ifindex_in: u32,
    /// … and where one left.
    pub ifindex_out: u32,
    /// Longest packet, 0 for no limit.
    pub max_pkt_size: u16,
    /// `synproxy state`: the MSS that both sides can have.
    pub proxy_mss: u16,
    /// As [`crate::Rule::rtable`], for packets with the state's direction.
    pub rtable: u16,
    /// Milliseconds that its packets wait before they leave.
    pub delay: u16,
    /// [`crate::pool::route_kind`]
    pub route: u8,
    /// [`crate::INET`] or [`crate::INET6`], of `next_hop`.
    pub hop_family: u8,
    /// Zero.
    pub pad: [u8; 6],
}

/// `struct pf_flush`: whose states end, key of the `flushes` map.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Flush {
    /// Of the source.
    pub address: [u8; 16],
    /// The states of this rule; [`crate::limits::IDLE_SLOT`]: of all.
    pub rule_slot: u32,
    /// [`crate::INET`] or [`crate::INET6`]
    pub family: u8,
    /// Index in a key where the source is.
    pub side: u8,
    /// Zero.
    pub pad: [u8; 2],
}

/// `struct pf_flushed`: which states of a flushed source end.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Flushed {
    /// States with lower ids.
    pub before: u64,
    /// Flushes are numbered.
    pub number: u32,
    /// Zero.
    pub pad: u32,
}

/// `struct pf_kept_state`: argument of the program that puts a state in place.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct KeptState {
    /// The state.
    pub state: State,
    /// Its annex, if its flags say that it has one.
    pub annex: Annex,
}

impl State {
    /// Whether the place holds a state.
    pub fn in_use(&self) -> bool {
        self.serial & 1 == 1
    }
}
