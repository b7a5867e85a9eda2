//! Keys: the identity of flows ([`Key`]), with the addresses and ports of a packet ([`Ends`]), and
//! the identity of the sources that states refer to (pf-semantics section 6).

use std::net::IpAddr;

use skipstep_ruleset::{Direction, Family};
use skipstep_views::NodeKind;

/// Number of a state: ascending in order of creation, from 1, never reused.
pub type StateId = u64;

/// Index of a state's key on the network's side, which inbound packets have.
pub const WIRE: usize = 0;
/// Index of a state's key on the host's side, which outbound packets have.
pub const STACK: usize = 1;

/// The identity of a flow.
///
/// Index 0 is the source of inbound and the destination of outbound packets, so a reply has the
/// same key. For ICMP queries one port is the identifier, the other the type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// Routing domain.
    pub rdomain: u32,
    /// Address family.
    pub family: Family,
    /// IP protocol number.
    pub protocol: u8,
    /// Addresses, the source of inbound packets first.
    pub address: [IpAddr; 2],
    /// Ports in host byte order, the source of inbound packets first.
    pub port: [u16; 2],
}

impl Key {
    /// Returns the key of a packet that travels in `direction`. `source` and `destination` are
    /// pairs of address and port.
    pub fn new(
        rdomain: u32,
        family: Family,
        protocol: u8,
        direction: Direction,
        source: (IpAddr, u16),
        destination: (IpAddr, u16),
    ) -> Self {
        let [first, second] = match direction {
            Direction::In => [source, destination],
            Direction::Out => [destination, source],
        };
        let (address, port) = ([first.0, second.0], [first.1, second.1]);
        Key { rdomain, family, protocol, address, port }
    }
}

/// The address/port pairs of a packet. For an ICMP query the ports are its id and its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// Address and port of the sender, the port in host byte order.
    pub source: (IpAddr, u16),
    /// Address and port of the receiver, the port in host byte order.
    pub destination: (IpAddr, u16),
}

impl Ends {
    /// Returns the family of the addresses.
    pub(crate) fn family(&self) -> Family {
        Family::from_address(self.source.0)
    }

    /// Returns the pairs of an answer.
    pub(crate) fn opposite(&self) -> Self {
        Ends { source: self.destination, destination: self.source }
    }

    /// Returns the pairs of a packet that travels in `direction` and has this key.
    pub(crate) fn from_key(key: &Key, direction: Direction) -> Self {
        let end = |index: usize| (key.address[index], key.port[index]);
        match direction {
            Direction::In => Ends { source: end(0), destination: end(1) },
            Direction::Out => Ends { source: end(1), destination: end(0) },
        }
    }
}

/// The identity of a source node. In PF each rule has its own nodes, with `source-track global`,
/// too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeKey {
    /// Index of the rule.
    pub rule: usize,
    pub kind: NodeKind,
    pub source: IpAddr,
}

/// A state's reference to a source of a source limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LimitedBy {
    pub id: u32,
    pub source: (u32, IpAddr),
}
