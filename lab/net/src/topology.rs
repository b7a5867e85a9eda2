//! Networks of a client, a server, and a device between them. The addresses are reserved for
//! benchmarks by RFC 2544 and RFC 5180, and the same in each topology:
//!
//! ```text
//! client                        device                       server
//! eth0 --------------- lan0              wan0 --------------- eth0
//! 198.18.0.2           198.18.0.1  198.19.0.1           198.19.0.2
//! 2001:2:0:1::2     2001:2:0:1::1  2001:2:0:2::1     2001:2:0:2::2
//!
//!                              dmz0 192.0.2.1, 2001:2:0:3::1
//!                               |
//!                       dmz eth0 192.0.2.2, 2001:2:0:3::2
//! ```
//!
//! The host of a proxy has the same addresses as a router, but does not forward, so packets cannot
//! bypass the proxy. A bridge has no addresses, and a direct cable has no device. In these two
//! topologies client and server are in one network. Neighbour entries are static, so no frame waits
//! for address resolution.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;

use serde::{Deserialize, Serialize};
use skipstep_kernel::offload::{self, Offload};

use crate::family::Family;
use crate::host::Host;

/// The device between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Topology {
    /// one cable, without a device
    Direct,
    /// a host that forwards between two networks
    Router,
    /// a host that joins two cables to one network
    Bridge,
    /// a router with a third network, the demilitarised zone
    ThreeLegged,
    /// a host between two networks that runs a proxy and forwards no packets
    Proxy,
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Topology::Direct => "direct",
            Topology::Router => "router",
            Topology::Bridge => "bridge",
            Topology::ThreeLegged => "three-legged",
            Topology::Proxy => "proxy",
        })
    }
}

/// A host at which load begins or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
pub enum End {
    /// the host that sends requests
    Client,
    /// the host that answers requests
    Server,
    /// the host in the third network
    Dmz,
}

impl End {
    /// Returns the host's address.
    pub fn address(self, family: Family) -> IpAddr {
        let (v4, v6): ([u8; 4], u16) = match self {
            End::Client => ([198, 18, 0, 2], 1),
            End::Server => ([198, 19, 0, 2], 2),
            End::Dmz => ([192, 0, 2, 2], 3),
        };
        match family {
            Family::V4 => Ipv4Addr::from(v4).into(),
            Family::V6 => Ipv6Addr::new(0x2001, 2, 0, v6, 0, 0, 0, 2).into(),
        }
    }

    /// Returns address `number` of several consecutive ones at this end. Number 0 is the host's own
    /// address.
    pub fn address_of(self, number: usize, family: Family) -> IpAddr {
        match self.address(family) {
            IpAddr::V4(first) => Ipv4Addr::from(first.to_bits() + number as u32).into(),
            IpAddr::V6(first) => Ipv6Addr::from(first.to_bits() + number as u128).into(),
        }
    }

    /// Returns the device's address towards this end. Only a router or proxy has that address.
    pub fn gateway(self, family: Family) -> IpAddr {
        match self.address(family) {
            IpAddr::V4(address) => Ipv4Addr::from(address.to_bits() - 1).into(),
            IpAddr::V6(address) => Ipv6Addr::from(address.to_bits() - 1).into(),
        }
    }

    /// Returns the link address of the host's interface.
    pub fn link(self) -> [u8; 6] {
        [2, 0x66, 0x77, 0, 2, self as u8 + 1]
    }

    /// Returns the name of the device's interface towards this end.
    pub fn leg(self) -> &'static str {
        ["lan0", "wan0", "dmz0"][self as usize]
    }

    /// Returns the link address of that interface.
    pub fn leg_link(self) -> [u8; 6] {
        [2, 0x66, 0x77, 0, 1, self as u8 + 1]
    }
}

/// The offloads of an interface.
#[derive(Debug, Clone)]
pub struct Offloads {
    /// Role of the host and name of the interface.
    pub interface: String,
    /// Offloads by name; true means on.
    pub states: Vec<(&'static str, bool)>,
}

/// The interface of client, server and DMZ host.
pub const INTERFACE: &str = "eth0";

/// The parameters of a network.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// The device between client and server.
    pub topology: Topology,
    /// MTU of all cables in bytes.
    pub mtu: u32,
    /// True if the device's interfaces receive by NAPI and GRO, which redirected frames need on
    /// veth.
    pub napi: bool,
}

/// A network. Dropping it removes its hosts.
#[derive(Debug)]
pub struct Lab {
    shape: Shape,
    client: Host,
    server: Host,
    device: Option<Host>,
    dmz: Option<Host>,
}

impl Lab {
    /// Makes a network. `name` distinguishes it from the other networks of this process.
    ///
    /// # Errors
    /// Fails without root, without `ip`, or if the kernel lacks a feature of the topology.
    pub fn new(name: &str, shape: Shape) -> anyhow::Result<Lab> {
        let host = |role| Host::new(name, role);
        let has_device = shape.topology != Topology::Direct;
        let lab = Lab {
            shape,
            client: host("client")?,
            server: host("server")?,
            device: has_device.then(|| host("device")).transpose()?,
            dmz: (shape.topology == Topology::ThreeLegged).then(|| host("dmz")).transpose()?,
        };
        lab.lay_cables()?;
        match shape.topology {
            Topology::Direct => {}
            Topology::Bridge => lab.make_bridge()?,
            Topology::Router | Topology::ThreeLegged => lab.make_router(true)?,
            Topology::Proxy => lab.make_router(false)?,
        }
        lab.give_addresses()?;
        Ok(lab)
    }

    /// Returns the parameters of the network.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the host in the middle, or None if client and server are joined directly.
    pub fn device(&self) -> Option<&Host> {
        self.device.as_ref()
    }

    /// Returns the host of an end. Without a DMZ host, the server takes its place.
    pub fn end(&self, end: End) -> &Host {
        match end {
            End::Client => &self.client,
            End::Server => &self.server,
            End::Dmz => self.dmz.as_ref().unwrap_or(&self.server),
        }
    }

    /// Returns the end itself, or the server for the DMZ of a network without one.
    pub fn nearest(&self, end: End) -> End {
        if end == End::Dmz && self.dmz.is_none() { End::Server } else { end }
    }

    /// Returns the link address to which `from` sends frames for `to`.
    pub fn next_link(&self, from: End, to: End) -> [u8; 6] {
        match self.shape.topology {
            Topology::Direct | Topology::Bridge => to.link(),
            Topology::Router | Topology::ThreeLegged | Topology::Proxy => from.leg_link(),
        }
    }

    /// Returns the offloads of all interfaces.
    ///
    /// # Errors
    /// Fails if a namespace no longer exists, or if the kernel does not report an offload.
    pub fn offloads(&self) -> anyhow::Result<Vec<Offloads>> {
        let mut all = Vec::new();
        for (host, interface) in self.interfaces() {
            let states: Vec<_> = host.inside(|| {
                let state = |&one| Ok((Offload::name(one), offload::get(interface, one)?));
                Offload::ALL.iter().map(state).collect::<anyhow::Result<_>>()
            })??;
            let role = host.name().rsplit('-').next().unwrap_or_default();
            all.push(Offloads { interface: format!("{role} {interface}"), states });
        }
        Ok(all)
    }

    /// Returns the description of the network under a name, for results.
    ///
    /// # Errors
    /// Fails as [`Lab::offloads`] does.
    pub fn described(&self, name: String) -> anyhow::Result<fwlab_results::Topology> {
        let mut offloads = BTreeMap::new();
        for Offloads { interface, states } in self.offloads()? {
            for (offload, on) in states {
                offloads.insert(format!("{interface} {offload}"), on);
            }
        }
        let middle = match self.shape.topology {
            Topology::Direct => "one cable",
            Topology::Router => "a router between them",
            Topology::Bridge => "a bridge between them",
            Topology::ThreeLegged => "a router with a third network between them",
            Topology::Proxy => "a host between them that forwards nothing",
        };
        Ok(fwlab_results::Topology {
            name,
            description: format!(
                "client and server in network namespaces, {middle}, static neighbours"
            ),
            mtu: self.shape.mtu,
            families: vec!["inet".to_owned(), "inet6".to_owned()],
            offloads,
        })
    }

    /// Returns client and server, and the DMZ if there is one.
    fn ends(&self) -> Vec<End> {
        let dmz = self.dmz.as_ref().map(|_| End::Dmz);
        [End::Client, End::Server].into_iter().chain(dmz).collect()
    }

    fn interfaces(&self) -> Vec<(&Host, &'static str)> {
        let mut all: Vec<_> =
            self.ends().into_iter().map(|end| (self.end(end), INTERFACE)).collect();
        if let Some(device) = &self.device {
            all.extend(self.ends().into_iter().map(|end| (device, end.leg())));
        }
        all
    }

    /// Joins the hosts by cables with all offloads off, so that each packet is processed by itself.
    fn lay_cables(&self) -> anyhow::Result<()> {
        let mtu = self.shape.mtu;
        let cable = |end: End, peer: &Host, name: &str, link: [u8; 6]| {
            self.end(end).ip(&format!(
                "link add {INTERFACE} mtu {mtu} address {} type veth \
                 peer name {name} mtu {mtu} address {} netns {}\n",
                link_text(end.link()),
                link_text(link),
                peer.name(),
            ))
        };
        match &self.device {
            None => cable(End::Client, &self.server, INTERFACE, End::Server.link())?,
            Some(device) => {
                for end in self.ends() {
                    cable(end, device, end.leg(), end.leg_link())?;
                }
            }
        }
        for (host, interface) in self.interfaces() {
            host.ip(&format!("link set {interface} addrgenmode none\nlink set {interface} up\n"))?;
        }
        self.set_offloads(false)?;
        self.set_napi(self.shape.napi)
    }

    /// Switches the offloads of all interfaces: segmentation, checksums, and the joining of
    /// received packets. They are off where single packets are measured.
    ///
    /// # Errors
    /// Fails if a namespace no longer exists, or if the kernel refuses the change.
    pub fn set_offloads(&self, on: bool) -> anyhow::Result<()> {
        for (host, interface) in self.interfaces() {
            host.inside(|| {
                Offload::ALL.iter().try_for_each(|&one| offload::set(interface, one, on))
            })??;
        }
        Ok(())
    }

    /// Switches GRO of the device's interfaces. A veth interface accepts redirected frames once GRO
    /// is switched on while both ends are up.
    ///
    /// # Errors
    /// Fails if a namespace no longer exists, or if the kernel refuses the change.
    pub fn set_napi(&self, on: bool) -> anyhow::Result<()> {
        for (host, interface) in self.interfaces() {
            if interface != INTERFACE {
                host.inside(|| offload::set(interface, Offload::Gro, on))??;
            }
        }
        Ok(())
    }

    /// Limits the ends' interfaces to a rate, in the notation of tc(8). The device may then not
    /// join packets to longer ones, as NAPI would.
    ///
    /// # Errors
    /// Fails without `tc`, or if the kernel lacks the queue `tbf` or the limit of GRO.
    pub fn slow_down(&self, rate: &str) -> anyhow::Result<()> {
        for end in self.ends() {
            let mut tc = Command::new("tc");
            tc.args(["qdisc", "add", "dev", INTERFACE, "root", "tbf", "rate", rate]);
            tc.args(["burst", "256k", "latency", "50ms"]);
            self.end(end).run(&mut tc, "")?;
            if let Some(device) = &self.device {
                let (leg, mtu) = (end.leg(), self.shape.mtu);
                let order = format!("link set {leg} gro_max_size {mtu}\n");
                device.ip(&order)?;
            }
        }
        Ok(())
    }

    /// Gives client and server `count` IPv4 addresses each. Each of the client's addresses is the
    /// source towards the server's address of the same number.
    ///
    /// # Errors
    /// Fails if the kernel refuses an address or a route.
    pub fn multiply(&self, count: usize) -> anyhow::Result<()> {
        let routed = !matches!(self.shape.topology, Topology::Direct | Topology::Bridge);
        for (end, peer) in [(End::Client, End::Server), (End::Server, End::Client)] {
            let via = match routed {
                true => format!("via {} onlink", end.gateway(Family::V4)),
                false => String::new(),
            };
            let mut orders = String::new();
            for number in 1..count {
                let [own, other] = [end, peer].map(|one| one.address_of(number, Family::V4));
                orders += &format!("address add {own}/32 dev {INTERFACE}\n");
                orders += &format!("route add {other}/32 dev {INTERFACE} src {own} {via}\n");
                if !routed {
                    let link = link_text(peer.link());
                    orders += &format!(
                        "neighbour replace {other} lladdr {link} dev {INTERFACE} nud permanent\n"
                    );
                }
            }
            self.end(end).ip(&orders)?;
        }
        Ok(())
    }

    fn make_bridge(&self) -> anyhow::Result<()> {
        let Some(device) = &self.device else { return Ok(()) };
        let mut orders = "link add br0 type bridge stp_state 0 mcast_snooping 0\n".to_owned();
        orders += "link set br0 addrgenmode none\nlink set br0 up\n";
        for end in self.ends() {
            orders += &format!("link set {} master br0\n", end.leg());
        }
        device.ip(&orders)
    }

    fn make_router(&self, forwards: bool) -> anyhow::Result<()> {
        let Some(device) = &self.device else { return Ok(()) };
        let forwarding = if forwards { "1" } else { "0" };
        device.set("net/ipv4/ip_forward", forwarding)?;
        device.set("net/ipv6/conf/all/forwarding", forwarding)?;
        let mut orders = String::new();
        for end in self.ends() {
            let leg = end.leg();
            device.set(&format!("net/ipv4/conf/{leg}/rp_filter"), "0")?;
            for family in [Family::V4, Family::V6] {
                let (address, network) = (end.address(family), network(end, family));
                let (gateway, link) = (end.gateway(family), link_text(end.link()));
                let nodad = nodad(family);
                // loads use addresses of whole networks, all of them behind one neighbour
                orders += &format!(
                    "address add {gateway} peer {address} dev {leg}{nodad}\n\
                     neighbour replace {address} lladdr {link} dev {leg} nud permanent\n\
                     route add {network} via {address} dev {leg} onlink\n"
                );
            }
        }
        device.set("net/ipv4/conf/all/rp_filter", "0")?;
        device.ip(&orders)
    }

    fn give_addresses(&self) -> anyhow::Result<()> {
        let routed = !matches!(self.shape.topology, Topology::Direct | Topology::Bridge);
        for end in self.ends() {
            let mut orders = String::new();
            for family in [Family::V4, Family::V6] {
                let own = end.address(family);
                let nodad = nodad(family);
                if routed {
                    let gateway = end.gateway(family);
                    let link = link_text(end.leg_link());
                    orders += &format!(
                        "address add {own} peer {gateway} dev {INTERFACE}{nodad}\n\
                         neighbour replace {gateway} lladdr {link} dev {INTERFACE} nud permanent\n\
                         route add default via {gateway} dev {INTERFACE} onlink\n"
                    );
                } else {
                    let length = if family == Family::V4 { 15 } else { 48 };
                    orders += &format!("address add {own}/{length} dev {INTERFACE}{nodad}\n");
                    for other in self.ends().into_iter().filter(|&other| other != end) {
                        orders += &format!(
                            "neighbour replace {} lladdr {} dev {INTERFACE} nud permanent\n",
                            other.address(family),
                            link_text(other.link()),
                        );
                    }
                }
            }
            self.end(end).ip(&orders)?;
        }
        Ok(())
    }
}

/// Returns the option of ip(8) that makes an address usable at once.
fn nodad(family: Family) -> &'static str {
    if family == Family::V4 { "" } else { " nodad" }
}

/// Returns the network behind the device's interface towards an end.
fn network(end: End, family: Family) -> String {
    match (end.address(family), end) {
        (IpAddr::V4(_), End::Dmz) => "192.0.2.0/24".to_owned(),
        (IpAddr::V4(address), _) => format!("198.{}.0.0/16", address.octets()[1]),
        (IpAddr::V6(address), _) => format!("2001:2:0:{:x}::/64", address.segments()[3]),
    }
}

/// Formats a link address for ip(8).
fn link_text(link: [u8; 6]) -> String {
    link.map(|byte| format!("{byte:02x}")).join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_set_aside_for_benchmarks() {
        assert_eq!(End::Client.address(Family::V4).to_string(), "198.18.0.2");
        assert_eq!(End::Server.address(Family::V6).to_string(), "2001:2:0:2::2");
        assert_eq!(End::Server.gateway(Family::V4).to_string(), "198.19.0.1");
        assert_eq!(End::Client.gateway(Family::V6).to_string(), "2001:2:0:1::1");
        assert_eq!(End::Server.address_of(7, Family::V4).to_string(), "198.19.0.9");
        assert_eq!(network(End::Server, Family::V4), "198.19.0.0/16");
        assert_eq!(network(End::Dmz, Family::V6), "2001:2:0:3::/64");
        assert_eq!(link_text(End::Client.link()), "02:66:77:00:02:01");
    }
}
