//! States.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;

use skipstep_ruleset::{Direction, Family, InterfaceName, RouteKind, RuleId, Timeout};

/// A state, as tests compare it and `pfctl -ss` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateView {
    /// Id, ascending in order of creation. Tests compare the order, not the value.
    pub id: u64,
    /// IP protocol number.
    pub protocol: u8,
    /// Address family on the network's side.
    pub family: Family,
    /// Direction of the packet that created the state.
    pub direction: Direction,
    /// Interface that the state is bound to; `None` for all.
    pub interface: Option<String>,
    /// Routing domain of the state's packets.
    pub rdomain: u32,
    /// Rule that created the state; `None` is the default rule or an orphaned one.
    pub rule: Option<RuleId>,
    /// Number of the anchor rule that led to that rule; `None` also for an orphaned rule.
    pub anchor_rule: Option<u32>,
    /// Key on the network's side: addresses and ports; index 0 is the source of inbound packets.
    pub wire: [(IpAddr, u16); 2],
    /// Key on the host's side, in the same order.
    pub stack: [(IpAddr, u16); 2],
    /// Peer that created the state.
    pub src: Peer,
    /// Other peer.
    pub dst: Peer,
    /// Timeout that applies.
    pub timeout: Timeout,
    /// Time of creation, in seconds.
    pub created_at: u32,
    /// Time of expiry without further packets, in seconds.
    pub expires_at: u32,
    /// Packets in the state's direction, and against it.
    pub packets: [u64; 2],
    /// Bytes, in the same order.
    pub bytes: [u64; 2],
    /// OpenBSD's flag bits: 1 allow-opts, 2 sloppy, 4 pflow, 8 no-sync, 0x20 no-df, 0x40 set tos,
    /// 0x80 random-id, 0x200 set prio.
    pub flags: u16,
    /// Lowest TTL of the state's packets, 0 if not set.
    pub min_ttl: u8,
    /// Highest MSS of the state's packets, 0 if not set.
    pub max_mss: u16,
    /// Tag of the state's packets.
    pub tag: Option<String>,
    /// True if source nodes count the state.
    pub tracked: bool,
    /// Next hop of the state's packets by `route-to` and its like.
    pub route: Option<NextHop>,
}

/// The properties by which the two states of a forwarded connection find each other: protocol,
/// routing domain, direction, and the key on the host's side.
type Side = (u8, u32, Direction, [(IpAddr, u16); 2]);

impl StateView {
    fn side(&self) -> Side {
        (self.protocol, self.rdomain, self.direction, self.stack)
    }

    /// Returns the properties of the state on the connection's other interface.
    fn other_side(&self) -> Side {
        let direction = match self.direction {
            Direction::In => Direction::Out,
            Direction::Out => Direction::In,
        };
        (self.protocol, self.rdomain, direction, [self.stack[1], self.stack[0]])
    }
}

/// Returns the positions of the states on the other interfaces of the connections that the `chosen`
/// states belong to (FreeBSD's `pfctl -M`, `pf_kill_matching_state`). As in FreeBSD, a state with
/// several counterparts has none.
pub fn other_sides<'a>(
    states: impl IntoIterator<Item = &'a StateView>,
    chosen: &[bool],
) -> Vec<usize> {
    let mut wanted = Vec::new();
    let mut by_side: HashMap<Side, Vec<usize>> = HashMap::new();
    for (place, (state, is_chosen)) in states.into_iter().zip(chosen).enumerate() {
        if *is_chosen {
            wanted.push(state.other_side());
        }
        by_side.entry(state.side()).or_default().push(place);
    }
    let found = wanted.iter().filter_map(|side| match by_side.get(side)?[..] {
        [only] => Some(only),
        _ => None,
    });
    found.collect()
}

/// One side of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Peer {
    /// BSD's number of the TCP state. For other protocols 0 (sent nothing), 1 (sent a packet) or 2
    /// (got an answer).
    pub state: u8,
    /// Highest sequence number seen from this side.
    pub seqlo: u32,
    /// Highest sequence number that the other side allows.
    pub seqhi: u32,
    /// Number added to this side's sequence numbers.
    pub seqdiff: u32,
    /// Largest window of this side, in bytes before scaling.
    pub max_win: u16,
    /// Window shift in the low 4 bits, and [`WSCALE_OFFERED`].
    pub wscale: u8,
}

/// Bit of [`Peer::wscale`]: the side's SYN had the window scale option.
pub const WSCALE_OFFERED: u8 = 0x80;

impl Peer {
    /// Returns the shift of this side's windows, in bits.
    pub fn shift(&self) -> u32 {
        u32::from(self.wscale & 0x0f)
    }
}

/// The next hop of packets of a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextHop {
    /// Packets that it applies to: `route-to`, `reply-to` or `dup-to`.
    pub kind: RouteKind,
    /// Address of the neighbour; unspecified if each packet's destination is the neighbour.
    pub address: IpAddr,
    /// Interface of the neighbour; `None` means that the routing table decides.
    pub interface: Option<InterfaceName>,
}

impl fmt::Display for NextHop {
    /// Writes `10.0.0.1`, `10.0.0.1@em0`, or `em0` if each packet's destination is next.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.interface {
            None => write!(f, "{}", self.address),
            Some(interface) if self.address.is_unspecified() => f.write_str(interface),
            Some(interface) => write!(f, "{}@{interface}", self.address),
        }
    }
}
