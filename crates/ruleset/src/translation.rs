//! Pools of addresses, and the options that use them for translation and routing (pf-features
//! sections 6, 8 and 9).

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::address::{Address, DynamicAddress, Family, Host};
use crate::rule::InterfaceName;

/// A pool of translation addresses or next hops.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pool {
    /// The addresses of the pool.
    pub address: PoolAddress,
    /// The way in which an address is chosen.
    pub kind: PoolKind,
    /// `sticky-address`: a source keeps its address.
    pub sticky: bool,
    /// The treatment of the port.
    pub ports: PoolPorts,
    /// `endpoint-independent` of FreeBSD: an internal address and port have the same translation
    /// for all destinations.
    pub endpoint_independent: bool,
    /// `prefer-ipv6-nexthop` of FreeBSD: IPv4 packets may have an IPv6 next hop.
    pub prefer_ipv6: bool,
}

impl crate::Rule {
    /// Returns all pools of the rule: of `nat-to`, `rdr-to`, `af-to` and `route-to`.
    pub fn pools(&self) -> impl Iterator<Item = &Pool> {
        let af_to =
            self.af_to.iter().flat_map(|af_to| std::iter::once(&af_to.from).chain(&af_to.to));
        let route = self.route.iter().map(|route| &route.pool);
        self.nat.as_deref().into_iter().chain(self.rdr.as_deref()).chain(af_to).chain(route)
    }
}

impl PoolAddress {
    /// Returns the interface of the next hop, if the address is `(interface hop)`.
    pub fn next_hop_interface(&self) -> Option<&InterfaceName> {
        match self {
            PoolAddress::Through(interface, _) => Some(interface),
            _ => None,
        }
    }

    /// Returns the interfaces of all next hops, including those in a list.
    pub fn next_hop_interfaces(&self) -> Vec<&InterfaceName> {
        match self {
            PoolAddress::List(list) => {
                list.iter().flat_map(PoolAddress::next_hop_interfaces).collect()
            }
            address => address.next_hop_interface().into_iter().collect(),
        }
    }

    /// Returns the names of the tables in the address, including those in a list.
    pub fn tables(&self) -> Vec<&str> {
        match self {
            PoolAddress::Table(name) => vec![name],
            PoolAddress::List(list) => list.iter().flat_map(PoolAddress::tables).collect(),
            PoolAddress::Through(_, Some(hop)) => hop.tables(),
            _ => Vec::new(),
        }
    }

    /// Returns the dynamic addresses in the address, including those in a list.
    pub fn interfaces(&self) -> Vec<&DynamicAddress> {
        match self {
            PoolAddress::Dynamic(address) => vec![address],
            PoolAddress::List(list) => list.iter().flat_map(PoolAddress::interfaces).collect(),
            PoolAddress::Through(_, Some(hop)) => hop.interfaces(),
            _ => Vec::new(),
        }
    }
}

/// An address of a pool, or several.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PoolAddress {
    /// No particular address: `binat-to` in a rule without source.
    Any,
    /// An address or network with its host bits cleared.
    Net(IpNet),
    /// `<name>`. A list in braces becomes a table called `__automatic_...`.
    Table(String),
    /// `low - high`. pf stores the upper end where a network has its mask.
    Range(IpAddr, IpAddr),
    /// `(em0)`: the current addresses of an interface.
    Dynamic(DynamicAddress),
    /// `{ ... }` of a legacy rule, which may mix addresses, tables and interfaces.
    List(Vec<PoolAddress>),
    /// `(em0 10.0.0.1)` of a legacy rule: an interface and a next hop. `em0` alone has `None`: the
    /// next hop is the packet's destination.
    Through(InterfaceName, Option<Box<PoolAddress>>),
}

/// The way in which a pool chooses an address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PoolKind {
    /// The rule names none, or the pool has one address.
    #[default]
    None,
    /// `bitmask`: the pool's network with the packet's host bits.
    Bitmask,
    /// `random`: a random address.
    Random,
    /// `source-hash key`, with the key as pf prints it: 32 hexadecimal digits.
    SourceHash(u128),
    /// `round-robin`: one address after the other.
    RoundRobin,
    /// `least-states`: the address with the fewest states.
    LeastStates,
}

/// The port of a translated packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PoolPorts {
    /// The rule names no port: `nat-to` takes one from 50001 to 65535, `rdr-to` keeps the port.
    #[default]
    Default,
    /// `static-port`: the packet keeps its port.
    Static,
    /// `port low:high`, inclusive; both are equal for a single port. `rdr-to` keeps the distance
    /// from the rule's lowest port: `port 8000:*` behind `to port 80:90` is `8000:8010`.
    Range(u16, u16),
    /// `map-e-portset offset/length/id` of FreeBSD: the ports whose bits behind the first `offset`
    /// bits are the id (RFC 7597).
    MapE {
        /// Number of bits in front of the id.
        offset: u8,
        /// Number of bits of the id.
        length: u8,
        /// The port set identifier.
        id: u16,
    },
}

/// `af-to family from pool [to pool]`
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AfTo {
    /// Family of the translated packet.
    pub family: Family,
    /// Pool of source addresses.
    pub from: Pool,
    /// Pool of destination addresses. `None` if the IPv6 address embeds the destination (RFC 6052).
    pub to: Option<Pool>,
}

impl AfTo {
    /// Returns the prefix length for the embedded IPv4 address (RFC 6052) of a rule without `to`.
    /// For a translation to IPv4 the prefix is that of the rule's destination, or 96 if the
    /// destination has no prefix of 32 bits or more. For a translation to IPv6 the prefix is that
    /// of `from`, at most 96. A table has none, because OpenBSD stores its name in place of the
    /// mask.
    pub fn prefix(&self, destination: &Host) -> u8 {
        const USUAL: u8 = 96;
        let sought = match &destination.address {
            Address::Net(net) => net.prefix_len(),
            Address::Masked(_, IpAddr::V6(mask)) => mask.to_bits().leading_ones() as u8,
            Address::Dynamic(dynamic) => dynamic.prefix.unwrap_or(128),
            _ => 0,
        };
        match self.family {
            Family::Inet if sought < 32 => USUAL,
            Family::Inet => sought,
            Family::Inet6 => self.from.prefix(128).min(USUAL),
        }
    }

    /// Returns the number of leading bits that an address of `to` keeps, 0 without `to`.
    pub fn kept_bits(&self) -> u8 {
        let full = if self.family == Family::Inet { 32 } else { 128 };
        self.to.as_ref().map_or(0, |to| to.prefix(full))
    }
}

impl Pool {
    /// Returns the prefix length of the pool's network, 0 for a table (see [`AfTo::prefix`]).
    fn prefix(&self, full: u8) -> u8 {
        match &self.address {
            PoolAddress::Net(net) => net.prefix_len(),
            // pf stores the upper end in place of a network's mask
            PoolAddress::Range(_, IpAddr::V4(high)) => high.to_bits().leading_ones() as u8,
            PoolAddress::Range(_, IpAddr::V6(high)) => high.to_bits().leading_ones() as u8,
            PoolAddress::Dynamic(dynamic) => dynamic.prefix.unwrap_or(full),
            _ => 0,
        }
    }
}

/// A `route-to`, `reply-to` or `dup-to` option.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Route {
    /// The option of the three that the rule has.
    pub kind: RouteKind,
    /// Pool of next hops.
    pub pool: Pool,
}

/// The packets of a state that are routed to the next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RouteKind {
    /// `route-to`: packets in the direction of the state.
    RouteTo,
    /// `reply-to`: replies of the state.
    ReplyTo,
    /// `dup-to`: copies of all packets.
    DupTo,
}

impl RouteKind {
    /// All options.
    pub const ALL: [RouteKind; 3] = [RouteKind::RouteTo, RouteKind::ReplyTo, RouteKind::DupTo];

    /// Returns the keyword in pf.conf.
    pub fn name(self) -> &'static str {
        match self {
            RouteKind::RouteTo => "route-to",
            RouteKind::ReplyTo => "reply-to",
            RouteKind::DupTo => "dup-to",
        }
    }

    /// Returns the option with this keyword.
    pub fn by_name(name: &str) -> Option<Self> {
        RouteKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The target of `divert-to`, `divert-reply` or `divert-packet`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Divert {
    /// `divert-to`: to a local socket, unchanged.
    To {
        /// Address of the socket.
        address: IpAddr,
        /// Port of the socket, in host byte order.
        port: u16,
    },
    /// `divert-reply`: replies of a socket that is bound to a foreign address.
    Reply,
    /// `divert-packet`: to a program that returns the packet.
    Packet {
        /// Number of the divert socket.
        port: u16,
    },
}
