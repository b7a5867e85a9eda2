//! Where translated and routed packets go: pools of addresses, and the options that use them
//! (pf-features sections 6, 8 and 9).

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::address::{Address, DynamicAddress, Family, Host};
use crate::rule::InterfaceName;

/// A pool that replacement addresses or next hops come from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pool {
    /// The addresses.
    pub address: PoolAddress,
    /// How one of them is chosen.
    pub kind: PoolKind,
    /// `sticky-address`: a source keeps the address it got.
    pub sticky: bool,
    /// What becomes of the port.
    pub ports: PoolPorts,
    /// `endpoint-independent`: an address and port of ours keep their translation whoever they talk
    /// to; FreeBSD's.
    pub endpoint_independent: bool,
    /// `prefer-ipv6-nexthop`: IPv4 packets can have a next hop with an IPv6 address; FreeBSD's.
    pub prefer_ipv6: bool,
}

impl crate::Rule {
    /// The pools of the rule, whatever it uses them for.
    pub fn pools(&self) -> impl Iterator<Item = &Pool> {
        let af_to =
            self.af_to.iter().flat_map(|af_to| std::iter::once(&af_to.from).chain(&af_to.to));
        let route = self.route.iter().map(|route| &route.pool);
        self.nat.as_deref().into_iter().chain(self.rdr.as_deref()).chain(af_to).chain(route)
    }
}

impl PoolAddress {
    /// The interface by way of which its next hops are.
    pub fn way(&self) -> Option<&InterfaceName> {
        match self {
            PoolAddress::Through(interface, _) => Some(interface),
            _ => None,
        }
    }

    /// The interfaces by way of which its next hops are, those among its list.
    pub fn ways(&self) -> Vec<&InterfaceName> {
        match self {
            PoolAddress::List(list) => list.iter().flat_map(PoolAddress::ways).collect(),
            address => address.way().into_iter().collect(),
        }
    }

    /// The table it is, or those among its list.
    pub fn tables(&self) -> Vec<&str> {
        match self {
            PoolAddress::Table(name) => vec![name],
            PoolAddress::List(list) => list.iter().flat_map(PoolAddress::tables).collect(),
            PoolAddress::Through(_, Some(hop)) => hop.tables(),
            _ => Vec::new(),
        }
    }

    /// The interface it follows, or those among its list.
    pub fn interfaces(&self) -> Vec<&DynamicAddress> {
        match self {
            PoolAddress::Dynamic(address) => vec![address],
            PoolAddress::List(list) => list.iter().flat_map(PoolAddress::interfaces).collect(),
            PoolAddress::Through(_, Some(hop)) => hop.interfaces(),
            _ => Vec::new(),
        }
    }
}

/// The addresses of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PoolAddress {
    /// None in particular: what `binat-to` makes of a rule without source.
    Any,
    /// An address or a network, host bits cleared.
    Net(IpNet),
    /// `<name>`; a list in braces becomes a table called `__automatic_...`.
    Table(String),
    /// `low - high`: to pf the upper end is the mask of the lower one
    Range(IpAddr, IpAddr),
    /// `(em0)`
    Dynamic(DynamicAddress),
    /// `{ ... }` of an old rule, where tables and interfaces can stand among addresses.
    List(Vec<PoolAddress>),
    /// `(em0 10.0.0.1)` of an old rule, a next hop by way of an interface; `em0` alone leaves the
    /// next hop to the packet.
    Through(InterfaceName, Option<Box<PoolAddress>>),
}

/// How a pool chooses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PoolKind {
    /// There is nothing to choose, or nothing was said.
    #[default]
    None,
    /// `bitmask`: the pool's network, the packet's host bits
    Bitmask,
    /// `random`
    Random,
    /// `source-hash key`, the key as pf prints it: 32 hexadecimal digits
    SourceHash(u128),
    /// `round-robin`
    RoundRobin,
    /// `least-states`
    LeastStates,
}

/// The port of a translated packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PoolPorts {
    /// Nothing was said: `nat-to` takes one of 50001 to 65535, `rdr-to` leaves it.
    #[default]
    Unsaid,
    /// `static-port`: the packet keeps it
    Static,
    /// `port low:high`; equal for a single one. `rdr-to` keeps the packet's distance from the
    /// rule's lowest port: `port 8000:*` behind `to port 80:90` is `8000:8010`.
    Range(u16, u16),
    /// `map-e-portset offset/length/id`: those whose bits behind the first `offset` are the id (RFC
    /// 7597); FreeBSD's
    MapE {
        /// Bits in front of the id.
        offset: u8,
        /// Bits of the id.
        length: u8,
        /// The id.
        id: u16,
    },
}

/// `af-to family from pool [to pool]`
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AfTo {
    /// Family of the translated packet.
    pub family: Family,
    /// Its sources.
    pub from: Pool,
    /// Its destinations; embedded in the address (RFC 6052) if there is none.
    pub to: Option<Pool>,
}

impl AfTo {
    /// Without `to`: how long the prefix is behind which the packet's destination has an IPv4
    /// address, or gets it. 96 if there is none that could be one, as behind a table, whose name
    /// stands in its place in OpenBSD.
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

    /// How many bits of an address of `to` stay.
    pub fn kept(&self) -> u8 {
        let full = if self.family == Family::Inet { 32 } else { 128 };
        self.to.as_ref().map_or(0, |to| to.prefix(full))
    }
}

impl Pool {
    /// Length of its network. OpenBSD reads it where a table has its name, and finds none.
    fn prefix(&self, full: u8) -> u8 {
        match &self.address {
            PoolAddress::Net(net) => net.prefix_len(),
            // its upper end is where the mask of a network would be
            PoolAddress::Range(_, IpAddr::V4(high)) => high.to_bits().leading_ones() as u8,
            PoolAddress::Range(_, IpAddr::V6(high)) => high.to_bits().leading_ones() as u8,
            PoolAddress::Dynamic(dynamic) => dynamic.prefix.unwrap_or(full),
            _ => 0,
        }
    }
}

/// `route-to`, `reply-to`, `dup-to`
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Route {
    /// Which of the three.
    pub kind: RouteKind,
    /// Next hops.
    pub pool: Pool,
}

/// Which packets of a state are routed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RouteKind {
    /// those in its direction
    RouteTo,
    /// the replies
    ReplyTo,
    /// copies of all
    DupTo,
}

impl RouteKind {
    /// All of them.
    pub const ALL: [RouteKind; 3] = [RouteKind::RouteTo, RouteKind::ReplyTo, RouteKind::DupTo];

    /// Its word in pf.conf.
    pub fn name(self) -> &'static str {
        match self {
            RouteKind::RouteTo => "route-to",
            RouteKind::ReplyTo => "reply-to",
            RouteKind::DupTo => "dup-to",
        }
    }

    /// The one of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        RouteKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// `divert-to`, `divert-reply`, `divert-packet`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Divert {
    /// to a socket of this host, unchanged
    To {
        /// the socket's address
        address: IpAddr,
        /// and port
        port: u16,
    },
    /// replies of a socket bound to an address that is not ours
    Reply,
    /// to a program that hands it back
    Packet {
        /// number of the divert socket
        port: u16,
    },
}
