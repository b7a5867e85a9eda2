//! A private network for tests: this thread moves into a network namespace of its own, which has
//! the interfaces, addresses and routes of a made-up host and goes when the thread ends.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::sched::{CloneFlags, unshare};
use skipstep_ruleset::interface::{Host, Interface, InterfaceAddress, Route};

use crate::error::{Context, Result};
use crate::netlink::Rtnetlink;

/// The network that this thread is in. Others of its kind may be made one after the other.
pub struct TestNetwork {
    host: Host,
}

/// The loopback interface is there from the start.
const LOOPBACK_INDEX: u32 = 1;

impl TestNetwork {
    /// Leaves the current network for one that has what `host` says; indices are the kernel's.
    /// Interfaces are veths whose other ends are up, so that routes over them count.
    pub fn enter(host: &Host) -> Result<Self> {
        unshare(CloneFlags::CLONE_NEWNET).context(|| "private network namespace".to_owned())?;
        forward();
        let mut netlink = Rtnetlink::open()?;
        let mut host = host.clone();
        let mut next = LOOPBACK_INDEX + 1;
        for interface in &mut host.interfaces {
            if interface.loopback {
                interface.index = LOOPBACK_INDEX;
                rename_loopback(&mut netlink, &interface.name)?;
            } else {
                interface.index = next;
                add_veth(&mut netlink, interface, next + 1)?;
                next += 2;
            }
            add_addresses(&mut netlink, interface)?;
        }
        for route in &host.routes {
            if let Some(out) = host.interface(&route.interface)
                && !comes_by_itself(route, out)
            {
                add_route(&mut netlink, route, out.index)?;
            }
        }
        Ok(TestNetwork { host })
    }

    /// The host with the indices that its interfaces got.
    pub fn host(&self) -> &Host {
        &self.host
    }
}

/// Lets packets be forwarded: without it the kernel answers no question about routes. A kernel
/// without IPv6 has no such file for it.
fn forward() {
    for file in ["/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding"] {
        let _ = std::fs::write(file, "1");
    }
}

fn up(netlink: &mut Rtnetlink, index: u32) -> Result<()> {
    let mut link = LinkMessage::default();
    link.header.index = index;
    link.header.flags = LinkFlags::Up;
    link.header.change_mask = LinkFlags::Up;
    netlink.order(RouteNetlinkMessage::SetLink(link), 0)
}

fn rename_loopback(netlink: &mut Rtnetlink, name: &str) -> Result<()> {
    let mut rename = LinkMessage::default();
    rename.header.index = LOOPBACK_INDEX;
    rename.attributes.push(LinkAttribute::IfName(name.to_owned()));
    netlink.order(RouteNetlinkMessage::SetLink(rename), 0)?;
    up(netlink, LOOPBACK_INDEX)
}

fn add_veth(netlink: &mut Rtnetlink, interface: &Interface, peer_index: u32) -> Result<()> {
    let mut peer = LinkMessage::default();
    peer.header.index = peer_index;
    peer.attributes.push(LinkAttribute::IfName(format!("peer{peer_index}")));
    let mut link = LinkMessage::default();
    link.header.index = interface.index;
    link.attributes.push(LinkAttribute::IfName(interface.name.clone()));
    if interface.mtu != 0 {
        link.attributes.push(LinkAttribute::Mtu(interface.mtu));
    }
    link.attributes.push(LinkAttribute::LinkInfo(vec![
        LinkInfo::Kind(InfoKind::Veth),
        LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
    ]));
    netlink.order(RouteNetlinkMessage::NewLink(link), NLM_F_CREATE | NLM_F_EXCL)?;
    up(netlink, interface.index)?;
    up(netlink, peer_index)
}

fn add_addresses(netlink: &mut Rtnetlink, interface: &Interface) -> Result<()> {
    for address in &interface.addresses {
        let mut message = AddressMessage::default();
        message.header.index = interface.index;
        message.header.family = family(address.net.addr());
        message.header.prefix_len = address.net.prefix_len();
        message.header.flags = AddressHeaderFlags::Nodad;
        let own = address.net.addr();
        message.attributes.push(AddressAttribute::Local(own));
        message.attributes.push(AddressAttribute::Address(address.peer.unwrap_or(own)));
        if let Some(IpAddr::V4(broadcast)) = address.broadcast {
            message.attributes.push(AddressAttribute::Broadcast(broadcast));
        }
        // the kernel gave loopback its usual addresses already
        netlink.order(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_REPLACE)?;
    }
    Ok(())
}

/// The kernel makes the routes of connected networks when it gets their addresses.
fn comes_by_itself(route: &Route, out: &Interface) -> bool {
    let connected = |address: &InterfaceAddress| address.net.trunc() == route.destination;
    route.gateway.is_none() && route.table == 0 && out.addresses.iter().any(connected)
}

fn add_route(netlink: &mut Rtnetlink, route: &Route, out: u32) -> Result<()> {
    let destination = route.destination;
    let mut message = RouteMessage::default();
    message.header.address_family = family(destination.addr());
    message.header.destination_prefix_length = destination.prefix_len();
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.protocol = RouteProtocol::Static;
    message.header.scope =
        if route.gateway.is_some() { RouteScope::Universe } else { RouteScope::Link };
    message.header.kind = RouteType::Unicast;
    if destination.prefix_len() > 0 {
        let address = RouteAddress::from(destination.addr());
        message.attributes.push(RouteAttribute::Destination(address));
    }
    if let Some(gateway) = route.gateway {
        message.attributes.push(RouteAttribute::Gateway(RouteAddress::from(gateway)));
    }
    message.attributes.push(RouteAttribute::Oif(out));
    if route.table != 0 {
        message.header.table = RouteHeader::RT_TABLE_UNSPEC;
        message.attributes.push(RouteAttribute::Table(route.table));
    }
    netlink.order(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_REPLACE)
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}
