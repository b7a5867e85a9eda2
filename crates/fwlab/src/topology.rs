//! Networks as code: a client, a server, and what stands between them. Addresses are those that RFC
//! 2544 and RFC 5180 set aside for benchmarks, the same in each topology:
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
//! A proxy's host has the same addresses as a router, but forwards nothing: who wants to get
//! through has to be served by it. A bridge has no addresses, and a direct cable no device: client
//! and server are in one network there. Neighbours are static, so that no frame waits for one to be
//! found.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;

use serde::{Deserialize, Serialize};
use skipstep_kernel::lab::offload::{self, Offload};

use crate::family::Family;
use crate::host::Host;

/// What stands between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Topology {
    /// nothing: one cable
    Direct,
    /// a host that forwards between two networks
    Router,
    /// a host that joins two cables to one network
    Bridge,
    /// a router with a third network, the demilitarised zone
    ThreeLegged,
    /// a host between two networks that forwards nothing, but may speak with both sides
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

/// A host where load begins or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
pub enum End {
    /// the one that asks
    Client,
    /// the one that answers
    Server,
    /// the one in the third network
    Dmz,
}

impl End {
    /// Its address.
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

    /// The address of one of several that are in its place, counted from 0, which is itself.
    pub fn address_of(self, number: usize, family: Family) -> IpAddr {
        match self.address(family) {
            IpAddr::V4(first) => Ipv4Addr::from(first.to_bits() + number as u32).into(),
            IpAddr::V6(first) => Ipv6Addr::from(first.to_bits() + number as u128).into(),
        }
    }

    /// The address of the host in the middle towards it, where that has addresses.
    pub fn gateway(self, family: Family) -> IpAddr {
        match self.address(family) {
            IpAddr::V4(address) => Ipv4Addr::from(address.to_bits() - 1).into(),
            IpAddr::V6(address) => Ipv6Addr::from(address.to_bits() - 1).into(),
        }
    }

    /// The link address of its interface.
    pub fn link(self) -> [u8; 6] {
        [2, 0x66, 0x77, 0, 2, self as u8 + 1]
    }

    /// The device's interface that leads to it.
    pub fn leg(self) -> &'static str {
        ["lan0", "wan0", "dmz0"][self as usize]
    }

    /// The link address of that interface.
    pub fn leg_link(self) -> [u8; 6] {
        [2, 0x66, 0x77, 0, 1, self as u8 + 1]
    }
}

/// What an interface does for the kernel.
#[derive(Debug, Clone)]
pub struct Offloads {
    /// Host and interface.
    pub interface: String,
    /// Offloads by name, and whether they are on.
    pub states: Vec<(&'static str, bool)>,
}

/// The interface of client, server and dmz.
pub const INTERFACE: &str = "eth0";

/// How networks are made.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// What stands between client and server.
    pub topology: Topology,
    /// Longest IP packet of all cables.
    pub mtu: u32,
    /// Whether the device's interfaces take packets in turns of NAPI, by way of GRO, as generated
    /// frames need it.
    pub napi: bool,
}

/// A network; it goes when this value does.
#[derive(Debug)]
pub struct Lab {
    shape: Shape,
    client: Host,
    server: Host,
    device: Option<Host>,
    dmz: Option<Host>,
}

impl Lab {
    /// Makes a network; `name` tells it apart from others of this process.
    ///
    /// # Errors
    /// Not root, no `ip`, or a kernel without what the topology needs.
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

    /// What it is like.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The host between the others; none if they are joined directly.
    pub fn device(&self) -> Option<&Host> {
        self.device.as_ref()
    }

    /// A host where load begins or ends; the server where there is no dmz.
    pub fn end(&self, end: End) -> &Host {
        match end {
            End::Client => &self.client,
            End::Server => &self.server,
            End::Dmz => self.dmz.as_ref().unwrap_or(&self.server),
        }
    }

    /// Where the dmz is: at the server if there is none.
    pub fn nearest(&self, end: End) -> End {
        if end == End::Dmz && self.dmz.is_none() { End::Server } else { end }
    }

    /// The link address to which `from` sends what is for `to`.
    pub fn next_link(&self, from: End, to: End) -> [u8; 6] {
        match self.shape.topology {
            Topology::Direct | Topology::Bridge => to.link(),
            Topology::Router | Topology::ThreeLegged | Topology::Proxy => from.leg_link(),
        }
    }

    /// Which offloads all interfaces have, by host and interface.
    ///
    /// # Errors
    /// A host is gone, or the kernel does not tell.
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

    /// Client and server, and the dmz where there is one.
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

    /// Joins the hosts; all offloads are off, so that each packet is one packet and is paid for.
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

    /// Lets devices sum, cut and join packets, as they do where nobody measures single ones, or no
    /// longer.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn set_offloads(&self, on: bool) -> anyhow::Result<()> {
        for (host, interface) in self.interfaces() {
            host.inside(|| {
                Offload::ALL.iter().try_for_each(|&one| offload::set(interface, one, on))
            })??;
        }
        Ok(())
    }

    /// Lets the interfaces of the host in the middle take redirected frames, or no longer: veth
    /// does once GRO is switched on while both its ends are up.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn set_napi(&self, on: bool) -> anyhow::Result<()> {
        for (host, interface) in self.interfaces() {
            if interface != INTERFACE {
                host.inside(|| offload::set(interface, Offload::Gro, on))??;
            }
        }
        Ok(())
    }

    /// Makes the ends' interfaces as slow as a link of so many bits a second, in tc's words, and
    /// keeps the host in the middle from joining packets to longer ones, as NAPI does.
    ///
    /// # Errors
    /// The kernel has no such queue.
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

    /// Gives client and server so many addresses of IPv4 each, as if they were so many hosts: from
    /// each of the client's to the server's of the same number.
    ///
    /// # Errors
    /// The kernel refuses one.
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
                // loads come from and go to whole networks, all of them by way of one neighbour
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

/// What ip(8) has to be told so that an address can be used at once.
fn nodad(family: Family) -> &'static str {
    if family == Family::V4 { "" } else { " nodad" }
}

/// The network behind a leg of the router.
fn network(end: End, family: Family) -> String {
    match (end.address(family), end) {
        (IpAddr::V4(_), End::Dmz) => "192.0.2.0/24".to_owned(),
        (IpAddr::V4(address), _) => format!("198.{}.0.0/16", address.octets()[1]),
        (IpAddr::V6(address), _) => format!("2001:2:0:{:x}::/64", address.segments()[3]),
    }
}

/// A link address as ip(8) reads it.
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
