//! The interfaces and routes that rules refer to. Tests invent them, `kernel` reads the system's.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// The interfaces and routes of a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Interfaces in ascending order of index.
    pub interfaces: Vec<Interface>,
    /// Routes of all routing domains. A route belongs to the routing domain of its interface.
    pub routes: Vec<Route>,
}

/// An interface with its addresses and groups.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Interface {
    /// Name of at most 15 bytes.
    pub name: String,
    /// Index that the kernel gives the interface.
    pub index: u32,
    /// True for loopback interfaces, which `on any` does not match.
    pub loopback: bool,
    /// True if frames begin with the IP header, without an Ethernet header.
    pub no_link_header: bool,
    /// True for one end of a veth pair.
    #[serde(default)]
    pub veth: bool,
    /// True if the interface is down, so no routes lead over it.
    #[serde(default)]
    pub down: bool,
    /// True for a port of a bridge, over which packets come and go without a route lookup.
    #[serde(default)]
    pub port: bool,
    /// Routing domain: number of the table of the interface's VRF, 0 without a VRF.
    pub rdomain: u32,
    /// Greatest length of an IP packet in bytes.
    pub mtu: u32,
    /// Interface groups, including `all` (pf-features section 3; docs/reference/linux.md).
    pub groups: Vec<String>,
    /// Addresses in the order in which the system lists them.
    pub addresses: Vec<InterfaceAddress>,
}

/// An address of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceAddress {
    /// Address with prefix length. Host bits are kept.
    pub net: IpNet,
    /// Broadcast address; `None` for IPv6.
    pub broadcast: Option<IpAddr>,
    /// Other end of a point-to-point link.
    pub peer: Option<IpAddr>,
}

/// A route to a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Prefix of the destinations.
    pub destination: IpNet,
    /// Name of the interface where packets leave.
    pub interface: String,
    /// Next hop; `None` for connected networks.
    pub gateway: Option<IpAddr>,
    /// Label of the route: on Linux the name of its realm.
    #[serde(default)]
    pub label: Option<String>,
    /// Number of the routing table; 0 for the table that routes packets of the interface.
    #[serde(default)]
    pub table: u32,
}

impl Host {
    /// Returns the interface with this name.
    pub fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces.iter().find(|interface| interface.name == name)
    }

    /// Returns the name of the interface that rules call `name`. BSD's loopback `lo0` means Linux's
    /// `lo` on a host that has neither an interface nor a group `lo0`.
    // Differs from OpenBSD: linux.md, "The name lo0"
    pub fn interface_name<'a>(&self, name: &'a str) -> &'a str {
        let has_loopback = || self.interface("lo").is_some_and(|lo| lo.loopback);
        match name {
            "lo0" if self.members(name).next().is_none() && has_loopback() => "lo",
            _ => name,
        }
    }

    /// Returns the routing domain of an interface, 0 if there is no such interface.
    pub fn rdomain(&self, name: &str) -> u32 {
        self.interface(name).map_or(0, |interface| interface.rdomain)
    }

    /// Returns the interfaces that a name refers to: one interface, or the members of a group.
    pub fn members<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Interface> {
        self.interfaces.iter().filter(move |interface| interface.has_name_or_group(name))
    }

    /// Returns the route with the longest prefix for `address` in a routing domain.
    pub fn route(&self, address: IpAddr, rdomain: u32) -> Option<&Route> {
        self.routes
            .iter()
            .filter(|route| route.table == 0 && route.destination.contains(&address))
            .filter(|route| self.rdomain(&route.interface) == rdomain)
            .max_by_key(|route| route.destination.prefix_len())
    }

    /// Returns the route to `address` in a routing table. Table 0 is that of the routing domain.
    pub fn route_in(&self, table: u32, address: IpAddr, rdomain: u32) -> Option<&Route> {
        if table == 0 {
            return self.route(address, rdomain);
        }
        self.routes
            .iter()
            .filter(|route| route.table == table && route.destination.contains(&address))
            .max_by_key(|route| route.destination.prefix_len())
    }
}

impl Host {
    /// Returns the label of the main table's route to `address`. `None` for the host's own
    /// addresses, whose routes have no label.
    pub fn route_label(&self, address: IpAddr) -> Option<&str> {
        let mut addresses = self.interfaces.iter().flat_map(|interface| &interface.addresses);
        if addresses.any(|own| own.net.addr() == address) {
            return None;
        }
        self.routes
            .iter()
            .filter(|route| route.table == 0 && route.destination.contains(&address))
            .filter(|route| self.rdomain(&route.interface) == 0)
            .rev() // so that max_by_key takes the first of equal routes in the kernel's order
            .max_by_key(|route| route.destination.prefix_len())?
            .label
            .as_deref()
    }
}

impl InterfaceAddress {
    /// Returns an address with the broadcast address that Linux would set.
    pub fn new(net: IpNet, loopback: bool) -> Self {
        let broadcast = match net {
            IpNet::V4(net) if net.prefix_len() < 31 && !loopback => Some(net.broadcast().into()),
            _ => None,
        };
        InterfaceAddress { net, broadcast, peer: None }
    }
}

impl Interface {
    /// Returns the addresses by which the link reaches this host among others: broadcast addresses,
    /// and subnet-router anycast addresses (RFC 4291 section 2.6.1, RFC 6164). Empty if the
    /// interface is down.
    pub fn shared_addresses(&self) -> impl Iterator<Item = IpAddr> {
        let up = !self.down;
        self.addresses.iter().filter(move |_| up).flat_map(|address| {
            let routers = match address.net {
                IpNet::V6(net) if net.prefix_len() < 127 => Some(IpAddr::V6(net.network())),
                _ => None,
            };
            address.broadcast.into_iter().chain(routers)
        })
    }

    /// True if `name` is the name of this interface or of one of its groups.
    pub fn has_name_or_group(&self, name: &str) -> bool {
        self.name == name || self.groups.iter().any(|group| group == name)
    }

    /// Returns the first link-local IPv6 address, which is the source for link-local neighbours.
    pub fn link_local(&self) -> Option<Ipv6Addr> {
        self.addresses.iter().find_map(|own| match own.net.addr() {
            IpAddr::V6(address) => Some(address).filter(Ipv6Addr::is_unicast_link_local),
            IpAddr::V4(_) => None,
        })
    }
}
