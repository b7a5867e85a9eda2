//! What the firewall knows of its host's interfaces and routes. Tests make one up, `kernel` reads
//! the real one.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// The host as rules see it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Interfaces in the order of their index.
    pub interfaces: Vec<Interface>,
    /// Routes of each routing domain, by its interfaces.
    pub routes: Vec<Route>,
}

/// An interface with its addresses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Interface {
    /// Name, at most 15 bytes.
    pub name: String,
    /// Kernel's index.
    pub index: u32,
    /// Loopback interfaces do not match `on any`.
    pub loopback: bool,
    /// Frames begin with the IP header: no Ethernet.
    pub no_link_header: bool,
    /// One end of a veth pair.
    #[serde(default)]
    pub veth: bool,
    /// Its link was taken down: no routes lead over it.
    #[serde(default)]
    pub down: bool,
    /// Port of a bridge: packets may come and go that no route is asked about.
    #[serde(default)]
    pub port: bool,
    /// Routing domain: the table of the VRF it is in, 0 if it is in none.
    pub rdomain: u32,
    /// Bytes of IP packet it can carry.
    pub mtu: u32,
    /// Groups it is in, `all` among them (pf-features section 3; see docs for Linux groups).
    pub groups: Vec<String>,
    /// Addresses in the order in which the system lists them.
    pub addresses: Vec<InterfaceAddress>,
}

/// An address of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceAddress {
    /// Address with prefix length; host bits stay.
    pub net: IpNet,
    /// Broadcast address, IPv4 only.
    pub broadcast: Option<IpAddr>,
    /// Other end of a point-to-point link.
    pub peer: Option<IpAddr>,
}

/// A route: where packets to `destination` leave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Destination prefix.
    pub destination: IpNet,
    /// Name of the outgoing interface.
    pub interface: String,
    /// Next hop, none for connected networks.
    pub gateway: Option<IpAddr>,
    /// Its label: on Linux the name of its realm.
    #[serde(default)]
    pub label: Option<String>,
    /// Number of the table it is in, 0 for the one that packets of its interface are routed by.
    #[serde(default)]
    pub table: u32,
}

impl Host {
    /// The interface called `name`.
    pub fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces.iter().find(|interface| interface.name == name)
    }

    /// The routing domain of the interface called `name`.
    pub fn rdomain(&self, name: &str) -> u32 {
        self.interface(name).map_or(0, |interface| interface.rdomain)
    }

    /// Interfaces that `name` means: that interface, or the members of that group.
    pub fn members<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Interface> {
        self.interfaces.iter().filter(move |interface| interface.is(name))
    }

    /// The route a packet to `address` would take in a routing domain: longest prefix first.
    pub fn route(&self, address: IpAddr, rdomain: u32) -> Option<&Route> {
        self.routes
            .iter()
            .filter(|route| route.table == 0 && route.destination.contains(&address))
            .filter(|route| self.rdomain(&route.interface) == rdomain)
            .max_by_key(|route| route.destination.prefix_len())
    }

    /// The route that a table has for a packet to `address`; table 0 is that of the routing domain.
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
    /// The label of the main table's route to `address`; the host's own addresses have routes
    /// without.
    pub fn route_label(&self, address: IpAddr) -> Option<&str> {
        let mut addresses = self.interfaces.iter().flat_map(|interface| &interface.addresses);
        if addresses.any(|own| own.net.addr() == address) {
            return None;
        }
        self.routes
            .iter()
            .filter(|route| route.table == 0 && route.destination.contains(&address))
            .filter(|route| self.rdomain(&route.interface) == 0)
            .rev() // of several the first counts, as the kernel lists them
            .max_by_key(|route| route.destination.prefix_len())?
            .label
            .as_deref()
    }
}

impl Interface {
    /// Addresses by which its links reach this host among others, while it is up: broadcast
    /// addresses, and those of all routers of an IPv6 network (RFC 4291 section 2.6.1, RFC 6164).
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

    /// Whether `name` is this interface's name or one of its groups.
    pub fn is(&self, name: &str) -> bool {
        self.name == name || self.groups.iter().any(|group| group == name)
    }

    /// Its own address for neighbours that have a link-local one: the first of its link-local
    /// addresses.
    pub fn link_local(&self) -> Option<Ipv6Addr> {
        self.addresses.iter().find_map(|own| match own.net.addr() {
            IpAddr::V6(address) => Some(address).filter(Ipv6Addr::is_unicast_link_local),
            IpAddr::V4(_) => None,
        })
    }
}
