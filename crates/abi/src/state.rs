//! States and their keys.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::limiter::{LIMITER_KINDS, Limited};
use crate::limits::MATCH_RULES;
use crate::source::NODE_KINDS;

/// `enum pf_timeout`: indexes of the timeout arrays.
#[allow(missing_docs, reason = "the values are those of bpf/abi")]
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
    /// Value of [`super::State::timeout`] for a closed state that waits for the sweep.
    pub const PURGE: u8 = 0xfd;
    /// The same for a state whose key a new state has taken: no lookup finds it, but it counts.
    pub const DETACHED: u8 = 0xfe;
    /// Value of [`super::State::timeout`] while a state is being removed.
    pub const UNLINKED: u8 = 0xff;
}

/// `enum pf_tcp_state`: BSD's TCP states, as far as pf uses them.
#[allow(missing_docs, reason = "the values are those of bpf/abi")]
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
    /// `synproxy`: waits for the client's handshake.
    pub const PROXY_SRC: u8 = 11;
    /// `synproxy`: waits for the server's handshake.
    pub const PROXY_DST: u8 = 12;
}

/// `enum pf_other_state`: states of protocols other than TCP and ICMP.
pub mod other_state {
    /// The side has sent nothing.
    pub const NO_TRAFFIC: u8 = 0;
    /// The side has sent a packet.
    pub const SINGLE: u8 = 1;
    /// The side has sent a packet, and the other side has answered.
    pub const MULTIPLE: u8 = 2;
}

/// `enum pf_state_flags`: bits of [`State::flags`], the low ones OpenBSD's `PFSTATE_*`.
#[allow(missing_docs, reason = "the values are those of bpf/abi")]
pub mod state_flags {
    pub const ALLOW_OPTS: u32 = 0x0001;
    pub const SLOPPY: u32 = 0x0002;
    pub const PFLOW: u32 = 0x0004;
    pub const NO_SYNC: u32 = 0x0008;
    pub const NO_DF: u32 = 0x0020;
    pub const SET_TOS: u32 = 0x0040;
    pub const RANDOM_ID: u32 = 0x0080;
    /// TCP timestamps are checked.
    pub const REASSEMBLE_TCP: u32 = 0x0100;
    pub const SET_PRIO: u32 = 0x0200;
    pub const MAX_PKT_RATE: u32 = 0x10000;
    pub const CONNECTED: u32 = 0x20000;
    /// The state has a reference to the endpoint mapping of its maker.
    pub const MAPPED: u32 = 0x40000;
    /// Fast-path eligible: packets are only judged, counted and translated.
    pub const SIMPLE: u32 = 0x80000;
    /// The state has a state extension.
    pub const EXTENSION: u32 = 0x100000;
    /// A connected socket of this host has received the state's packets.
    pub const SOCKET: u32 = 0x200000;
}

/// Bits of [`Peer::wscale`] with the window shift.
pub const WSCALE_MASK: u8 = 0x0f;
/// Bit of [`Peer::wscale`]: this side's SYN offered scaling.
pub const WSCALE_FLAG: u8 = 0x80;

/// Index into [`State::key`]: the addresses on the network.
pub const WIRE: usize = 0;
/// Index into [`State::key`]: the addresses that the host sees.
pub const STACK: usize = 1;

/// `struct pf_state_key`: index 0 is the source of inbound and the destination of outbound packets.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct StateKey {
    /// Addresses in network byte order, IPv4 in the first 4 bytes.
    pub address: [[u8; 16]; 2],
    /// Ports, two bytes each in network byte order. ICMP queries have the id and the type here.
    pub port: [[u8; 2]; 2],
    /// Interface id of an if-bound state, 0 for a floating one.
    pub interface: u32,
    /// Routing domain of the interface where the packets are.
    pub rdomain: u32,
    /// One of [`made`].
    pub made: u8,
    /// [`crate::INET`] or [`crate::INET6`]
    pub family: u8,
    /// IP protocol.
    pub protocol: u8,
    #[allow(missing_docs, reason = "the values are those of bpf/abi")]
    pub pad: u8,
}

/// `enum pf_made`: the kinds of states that share a key space.
#[allow(missing_docs, reason = "the values are those of bpf/abi")]
pub mod made {
    pub const PLAIN: u8 = 0;
    /// an inbound state with two keys, or one with the same key as an outbound plain state
    pub const IN: u8 = 1;
    pub const OUT: u8 = 2;
    /// a state that crosses families (`af-to`): the key on its maker's side
    pub const NEAR: u8 = 3;
    /// a state that crosses families: the key on the other side (af-to peer key)
    pub const FAR: u8 = 4;
}

/// Number of entries in a [`KeyLine`].
pub const KEY_ENTRIES: usize = 16;
/// Number of 32-bit words in a [`StateKey`].
pub const KEY_WORDS: usize = 12;
/// Bit of a claimed entry, which is not valid yet.
pub const KEY_CLAIMED: u32 = 0x8000_0000;
/// Index of no state.
pub const NO_PLACE: u32 = u32::MAX;

/// `struct pf_key_line`: a bucket of the state_keys map.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct KeyLine {
    /// From the highest bit: [`KEY_CLAIMED`], bits of the key's hash, the state's index plus 1. 0
    /// is a free entry.
    pub entry: [u32; KEY_ENTRIES],
    /// Prefetch hints: index plus 1 of the egress state of each entry's packets; 0: unknown.
    pub peer: [u32; KEY_ENTRIES],
}

/// `struct pf_key_hash`: parameters of the keyed hash.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct KeyHash {
    /// Random secret, drawn when the maps are created.
    pub secret: [u32; KEY_WORDS],
    /// Number of buckets in the state_keys map.
    pub lines: u32,
    /// Bits of an entry that are the state's index plus 1.
    pub index_mask: u32,
}

/// `struct pf_state_ref`: index of a state, with a check that it is still the same state.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct StateRef {
    /// Index in the states map.
    pub index: u32,
    /// [`State::serial`] of the referenced state.
    pub serial: u32,
}

/// `struct pf_peer`: one side of a state.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Peer {
    /// Highest sequence number seen from this side.
    pub seqlo: u32,
    /// Highest sequence number that the other side's window allows.
    pub seqhi: u32,
    /// Number added to this side's sequence numbers.
    pub seqdiff: u32,
    /// Largest window that this side has offered, in bytes before scaling.
    pub max_win: u16,
    /// One of [`tcp_state`] or of [`other_state`].
    pub state: u8,
    /// Window shift of this side: [`WSCALE_MASK`] and [`WSCALE_FLAG`].
    pub wscale: u8,
}

/// `enum pf_log_flags`: the log options of a rule that its states keep.
pub mod log_flags {
    /// Logs each packet, not only the first.
    pub const ALL: u8 = 1 << 0;
    /// Logs the owner of the socket.
    pub const USER: u8 = 1 << 1;
}

/// `struct pf_match_rule`: a match rule whose counters rise with those of the state.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct MatchRule {
    /// Index in rule_stats.
    pub slot: u32,
    /// Bits of [`log_flags`].
    pub log: u8,
    /// Number N of pflogN.
    pub log_to: u8,
    /// [`crate::verdict::action`]: legacy rules count like match rules.
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
    /// Index in the states map.
    pub index: u32,
    /// [`State::serial`] of the state to remove.
    pub serial: u32,
}

/// `struct pf_scrub`: the TCP timestamps of one side, for `reassemble tcp`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Scrub {
    /// Number added to this side's timestamps.
    pub offset: u32,
    /// Latest timestamp of this side.
    pub value: u32,
    /// First timestamp of this side.
    pub first: u32,
    /// Latest timestamp that this side echoed.
    pub echo: u32,
    /// Boot-clock second of the latest timestamp.
    pub last: u32,
    /// Bits of [`scrub_flags`].
    pub flags: u16,
    /// Highest TTL of this side's packets, which all of them get.
    pub ttl: u8,
    /// 1 if the state has timestamps of this side.
    pub present: u8,
}

/// `enum pf_scrub_flags`: bits of [`Scrub::flags`], OpenBSD's `PFSS_*`.
pub mod scrub_flags {
    /// The side's SYN had a timestamp, so its timestamps are modulated.
    pub const TIMESTAMP: u16 = 0x01;
    /// The side also echoed a timestamp, so timestamps are checked.
    pub const PAWS: u16 = 0x10;
    /// The side was silent for too long, so its timestamps are no longer checked.
    pub const PAWS_IDLED: u16 = 0x20;
    /// The side's first data had a timestamp.
    pub const DATA_TS: u16 = 0x40;
    /// The side's first data had no timestamp.
    pub const DATA_NO_TS: u16 = 0x80;
}

/// `struct pf_path`: the cached route of a state's packets.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Path {
    /// Index of the interface where the packets came in.
    pub came_in_by: u32,
    /// Number of the adjacency that the packets go to; 0: the packets do not follow the routes.
    pub hop: u32,
    /// Boot-clock second of the note; 0: the state has no cached route.
    pub second: u32,
    /// Generation number of rules and routes at that time; another number invalidates the note.
    pub epoch: u32,
    /// Longest IP packet of the route, in bytes.
    pub mtu: u16,
    /// TOS of the noted packet, because a route may depend on it.
    pub tos: u8,
    /// Zero.
    pub pad: u8,
}

/// `enum pf_express`: frames that XDP can send from one driver to a device.
pub mod xdp_fast_path {
    /// No frames.
    pub const NOT: u8 = 0;
    /// Frames in one piece.
    pub const SHORT: u8 = 1;
    /// All frames.
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
    /// Number that rises at each reuse of the index; odd while a state is stored.
    pub serial: u32,
    /// Bits of [`state_flags`].
    pub flags: u32,
    /// One of [`timeout`].
    pub timeout: u8,
    /// [`crate::verdict::direction`] of the first packet.
    pub direction: u8,
    /// Bits of [`log_flags`].
    pub log: u8,
    /// Number N of pflogN.
    pub log_to: u8,
    /// Boot-clock second of the last accepted packet, from which the timeout runs.
    pub expire: u32,
    /// Slot of the rule that created the state.
    pub rule_slot: u32,
    /// The egress state of the packets; serial 0: none.
    pub peer: StateRef,
    /// Cached route of the packets that leave.
    pub path: Path,
    /// Slot of the anchor rule that called that rule, [`crate::limits::IDLE_SLOT`] for none.
    pub anchor_slot: u32,
    /// Unique number, ascending in order of creation.
    pub id: u64,
    /// The side that created the state.
    pub src: Peer,
    /// The other side.
    pub dst: Peer,
    /// Packets with the state's direction, and against it.
    pub packets: [u64; 2],
    /// Bytes with the state's direction, and against it.
    pub bytes: [u64; 2],
    /// Keys, by [`WIRE`] and [`STACK`].
    pub key: [StateKey; 2],
    /// New priorities of the packets, with [`state_flags::SET_PRIO`].
    pub set_prio: [u8; 2],
    /// New TOS of the packets, with [`state_flags::SET_TOS`].
    pub set_tos: u8,
    /// Minimum TTL, 0 for no change.
    pub min_ttl: u8,
    /// Queue numbers, as [`crate::Rule::queue`].
    pub queue: [u16; 2],
    /// Boot-clock second of creation.
    pub creation: u32,
    /// Maximum MSS in bytes, 0 for no change.
    pub max_mss: u16,
    /// Tag that the packets get, 0 for none.
    pub tag: u16,
    /// Destination and source link address of the first frame, if the state was created on a port
    /// of a bridge; else zero.
    pub stations: [[u8; 6]; 2],
    /// Zero.
    pub pad: [u8; 4],
}

/// `struct pf_extension`: the state extension, fields that few states have, with
/// [`state_flags::EXTENSION`]. Unused fields are zero.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Extension {
    /// Match rules whose counters rise with the state's.
    pub r#match: [MatchRule; MATCH_RULES],
    /// Number of entries in use in `match`.
    pub match_count: u32,
    /// Slot of the rule whose pool chose the source address, and counts states for least-states.
    pub nat_slot: u32,
    /// Slot of the rule whose pool chose the destination address, and counts its states.
    pub rdr_slot: u32,
    /// Id of the interface where the next hop is; 0: the routes decide.
    pub hop_interface: u32,
    /// Next hop of the routed packets; zero with `hop_interface`: the destination of each packet.
    pub next_hop: [u8; 16],
    /// Indexes of the state's source nodes plus 1, by [`crate::source::node_kind`]; 0 for none.
    pub source_nodes: [u32; NODE_KINDS],
    /// Timestamps of `src` and of `dst`.
    pub scrub: [Scrub; 2],
    /// The next state with the same af-to peer key; serial 0 for none.
    pub next_far: StateRef,
    /// References to limiters, by [`crate::limiter::limiter_kind`].
    pub limited: [Limited; LIMITER_KINDS],
    /// `pflow`: index of the interface where the first packet came in.
    pub ifindex_in: u32,
    /// `pflow`: index of the interface where a packet left.
    pub ifindex_out: u32,
    /// Maximum packet length in bytes, 0 for no limit.
    pub max_pkt_size: u16,
    /// `synproxy state`: MSS that both sides support, in bytes.
    pub proxy_mss: u16,
    /// Routing table of packets with the state's direction, as [`crate::Rule::rtable`].
    pub rtable: u16,
    /// Milliseconds that the packets wait before they leave.
    pub delay: u16,
    /// One of [`crate::pool::route_kind`].
    pub route: u8,
    /// Family of `next_hop`, [`crate::INET`] or [`crate::INET6`].
    pub hop_family: u8,
    /// Zero.
    pub pad: [u8; 6],
}

/// `struct pf_flush`: a source whose states end; key of the `flushes` map.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Flush {
    /// Address of the source, in network byte order.
    pub address: [u8; 16],
    /// Slot of the rule whose states end; [`crate::limits::IDLE_SLOT`]: the states of all rules.
    pub rule_slot: u32,
    /// [`crate::INET`] or [`crate::INET6`]
    pub family: u8,
    /// Index of the source in a state key.
    pub side: u8,
    /// Zero.
    pub pad: [u8; 2],
}

/// `struct pf_flushed`: the flush of a source; value of the `flushes` map.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Flushed {
    /// States with lower ids end.
    pub before: u64,
    /// Number of the flush, ascending.
    pub number: u32,
    /// Zero.
    pub pad: u32,
}

/// `struct pf_kept_state`: argument of the program that restores a state.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct KeptState {
    /// The state to restore.
    pub state: State,
    /// Its state extension, with [`state_flags::EXTENSION`].
    pub extension: Extension,
}

impl State {
    /// Returns true if the entry of the states map has a state.
    pub fn in_use(&self) -> bool {
        self.serial & 1 == 1
    }
}
