//! A private network for tests. The thread moves into a new network namespace with the interfaces,
//! addresses and routes of a made-up host. The namespace goes when the thread ends.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, State,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::sched::{CloneFlags, unshare};
use skipstep_kernel::error::Context;
use skipstep_kernel::netlink::Rtnetlink;
use skipstep_kernel::{Result, host};
use skipstep_ruleset::interface::{Host, Interface, InterfaceAddress, Route};

/// The network of this thread. A thread may make several, one after the other.
pub struct TestNetwork {
    host: Host,
    /// Index of the next interface. No index is used twice.
    next: u32,
}

/// Link address of every interface but loopback.
pub const LINK_ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// Longest wait for links and addresses.
const PATIENCE: Duration = Duration::from_secs(5);

/// Index of the loopback interface, which exists from the start.
const LOOPBACK_INDEX: u32 = 1;

impl TestNetwork {
    /// Leaves the current network for a new one with the interfaces, addresses and routes of
    /// `host`. The kernel chooses the indices. Interfaces are veths whose peers are up, so that
    /// their routes are valid.
    ///
    /// # Errors
    /// Fails if the process lacks CAP_SYS_ADMIN, if the kernel refuses an object, or if links and
    /// addresses are not ready in time.
    pub fn enter(host: &Host) -> Result<Self> {
        unshare(CloneFlags::CLONE_NEWNET).context(|| "private network namespace".to_owned())?;
        settings();
        let mut netlink = Rtnetlink::open()?;
        let mut network = TestNetwork { host: Host::default(), next: LOOPBACK_INDEX + 1 };
        for interface in &host.interfaces {
            network.add_interface(&mut netlink, interface)?;
        }
        network.host.routes.clone_from(&host.routes);
        for route in &host.routes {
            if let Some(out) = network.host.interface(&route.interface)
                && !is_made_by_kernel(route, out)
            {
                add_route(&mut netlink, route, out.index)?;
            }
        }
        network.settle(&mut netlink)?;
        Ok(network)
    }

    /// Returns the host, with the indices of its interfaces.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Changes the network into `host`, as an administrator would: links first, then addresses and
    /// routes, some of which the kernel adds and removes by itself.
    ///
    /// # Errors
    /// Fails if the kernel refuses a change, or if links and addresses are not ready in time.
    pub fn change(&mut self, host: &Host) -> Result<()> {
        let mut netlink = Rtnetlink::open()?;
        let before = std::mem::take(&mut self.host);
        for gone in
            before.interfaces.iter().filter(|previous| host.interface(&previous.name).is_none())
        {
            netlink.order(RouteNetlinkMessage::DelLink(link(gone.index)), 0)?;
        }
        for wanted in &host.interfaces {
            let Some(previous) = before.interface(&wanted.name) else {
                self.add_interface(&mut netlink, wanted)?;
                continue;
            };
            let wanted = Interface { index: previous.index, ..wanted.clone() };
            if wanted.down != previous.down {
                set_up(&mut netlink, wanted.index, !wanted.down)?;
            }
            if wanted.addresses != previous.addresses {
                change_addresses(&mut netlink, previous, &wanted)?;
            }
            self.host.interfaces.push(wanted);
        }
        self.host.routes.clone_from(&host.routes);
        self.change_routes(&mut netlink, &before)?;
        self.settle(&mut netlink)
    }

    /// Waits until links carry packets and the IPv6 addresses are local. The kernel does both with
    /// a delay.
    fn settle(&self, netlink: &mut Rtnetlink) -> Result<()> {
        let up = || self.host.interfaces.iter().filter(|interface| !interface.down);
        let links: BTreeSet<u32> =
            up().filter(|link| !link.loopback).map(|link| link.index).collect();
        let own = up().flat_map(|interface| &interface.addresses).map(|own| own.net.addr());
        let own: BTreeSet<IpAddr> = own.filter(IpAddr::is_ipv6).collect();
        let end = Instant::now() + PATIENCE;
        while !(running(netlink)?.is_superset(&links) && own_addresses(netlink)?.is_superset(&own))
        {
            if Instant::now() > end {
                let late: io::Result<()> = Err(io::ErrorKind::TimedOut.into());
                return late.context(|| "links and addresses of the test's network".to_owned());
            }
            thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }

    fn add_interface(&mut self, netlink: &mut Rtnetlink, interface: &Interface) -> Result<()> {
        let mut interface = interface.clone();
        if interface.loopback {
            interface.index = LOOPBACK_INDEX;
            rename_loopback(netlink, &interface.name)?;
        } else {
            interface.index = self.next;
            add_veth(netlink, &interface, self.next + 1)?;
            self.next += 2;
        }
        for address in creation_order(&interface.addresses) {
            // the kernel has given loopback its usual addresses already
            let message = address_message(interface.index, &address);
            let order = RouteNetlinkMessage::NewAddress(message);
            netlink.order(order, NLM_F_CREATE | NLM_F_REPLACE)?;
        }
        self.host.interfaces.push(interface);
        Ok(())
    }

    /// Removes the routes that only the host before had, and adds those that are missing.
    fn change_routes(&self, netlink: &mut Rtnetlink, before: &Host) -> Result<()> {
        let present = host::read()?.routes;
        let is_same = |a: &Route, b: &Route| {
            (a.destination, &a.interface, a.gateway, a.table)
                == (b.destination, &b.interface, b.gateway, b.table)
        };
        let has =
            |routes: &[Route], route: &Route| routes.iter().any(|other| is_same(other, route));
        for route in &before.routes {
            if !has(&self.host.routes, route)
                && has(&present, route)
                && let Some(out) = self.host.interface(&route.interface)
            {
                let mut message = route_message(route, out.index);
                // match the kernel's own routes, too
                message.header.protocol = RouteProtocol::Unspec;
                message.header.scope = RouteScope::NoWhere;
                netlink.order(RouteNetlinkMessage::DelRoute(message), 0)?;
            }
        }
        for route in self.host.routes.iter().filter(|route| !has(&present, route)) {
            if let Some(out) = self.host.interface(&route.interface) {
                add_route(netlink, route, out.index)?;
            }
        }
        Ok(())
    }
}

/// Turns forwarding on, because without it the kernel answers no route lookup. Turns automatic
/// addresses off, and keeps the secondary addresses of a network when the primary one goes. Ignores
/// errors: a kernel without IPv6 lacks its files.
fn settings() {
    for (file, value) in [
        ("ipv4/ip_forward", "1"),
        ("ipv6/conf/all/forwarding", "1"),
        ("ipv6/conf/default/addr_gen_mode", "1"),
        ("ipv4/conf/all/promote_secondaries", "1"),
    ] {
        let _ = std::fs::write(format!("/proc/sys/net/{file}"), value);
    }
}

fn link(index: u32) -> LinkMessage {
    let mut link = LinkMessage::default();
    link.header.index = index;
    link
}

fn set_up(netlink: &mut Rtnetlink, index: u32, up: bool) -> Result<()> {
    let mut link = link(index);
    link.header.flags = if up { LinkFlags::Up } else { LinkFlags::empty() };
    link.header.change_mask = LinkFlags::Up;
    netlink.order(RouteNetlinkMessage::SetLink(link), 0)
}

fn rename_loopback(netlink: &mut Rtnetlink, name: &str) -> Result<()> {
    let mut rename = link(LOOPBACK_INDEX);
    rename.attributes.push(LinkAttribute::IfName(name.to_owned()));
    netlink.order(RouteNetlinkMessage::SetLink(rename), 0)?;
    set_up(netlink, LOOPBACK_INDEX, true)
}

fn add_veth(netlink: &mut Rtnetlink, interface: &Interface, peer_index: u32) -> Result<()> {
    let mut peer = LinkMessage::default();
    peer.header.index = peer_index;
    peer.attributes.push(LinkAttribute::IfName(format!("peer{peer_index}")));
    let mut link = LinkMessage::default();
    link.header.index = interface.index;
    link.attributes.push(LinkAttribute::IfName(interface.name.clone()));
    link.attributes.push(LinkAttribute::Address(LINK_ADDRESS.to_vec()));
    if interface.mtu != 0 {
        link.attributes.push(LinkAttribute::Mtu(interface.mtu));
    }
    link.attributes.push(LinkAttribute::LinkInfo(vec![
        LinkInfo::Kind(InfoKind::Veth),
        LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
    ]));
    netlink.order(RouteNetlinkMessage::NewLink(link), NLM_F_CREATE | NLM_F_EXCL)?;
    set_up(netlink, interface.index, !interface.down)?;
    set_up(netlink, peer_index, true)
}

/// Replaces the addresses of an interface. The result is as if the interface had always had these
/// addresses, in this order: the first address of a network is the source of packets.
fn change_addresses(netlink: &mut Rtnetlink, previous: &Interface, new: &Interface) -> Result<()> {
    let present = |name: &str| -> Result<Vec<InterfaceAddress>> {
        let present = host::read()?;
        Ok(present.interface(name).map(|found| found.addresses.clone()).unwrap_or_default())
    };
    let kernel = present(&new.name)?;
    for gone in previous
        .addresses
        .iter()
        .filter(|previous| !has(&new.addresses, previous) && has(&kernel, previous))
    {
        let message = address_message(new.index, gone);
        netlink.order(RouteNetlinkMessage::DelAddress(message), 0)?;
    }
    let left = present(&new.name)?;
    for ipv4 in [true, false] {
        let of_family = |own: &InterfaceAddress| own.net.addr().is_ipv4() == ipv4;
        let wanted: Vec<_> = creation_order(&new.addresses).into_iter().filter(of_family).collect();
        let mut left: Vec<_> = creation_order(&left).into_iter().filter(of_family).collect();
        left.retain(|own| has(&wanted, own));
        // link-local addresses come after the others, in any order of creation
        let order = |all: &[InterfaceAddress]| -> Vec<IpNet> {
            let nets = all.iter().map(|own| own.net);
            nets.filter(|net| !is_link_local(net.addr())).collect()
        };
        if !order(&wanted).starts_with(&order(&left)) {
            for own in left.drain(..) {
                let message = address_message(new.index, &own);
                netlink.order(RouteNetlinkMessage::DelAddress(message), 0)?;
            }
        }
        for address in wanted.iter().filter(|address| !has(&left, address)) {
            let message = RouteNetlinkMessage::NewAddress(address_message(new.index, address));
            netlink.order(message, NLM_F_CREATE | NLM_F_EXCL)?;
        }
    }
    Ok(())
}

/// Returns the indices of links that carry packets.
fn running(netlink: &mut Rtnetlink) -> Result<BTreeSet<u32>> {
    let links = netlink.dump(RouteNetlinkMessage::GetLink(LinkMessage::default()))?;
    let running = links.into_iter().filter_map(|object| match object {
        RouteNetlinkMessage::NewLink(link) => {
            let up = LinkAttribute::OperState(State::Up);
            link.attributes.contains(&up).then_some(link.header.index)
        }
        _ => None,
    });
    Ok(running.collect())
}

/// Returns the IPv6 addresses that the kernel treats as local.
fn own_addresses(netlink: &mut Rtnetlink) -> Result<BTreeSet<IpAddr>> {
    let mut get = RouteMessage::default();
    get.header.address_family = AddressFamily::Inet6;
    let routes = netlink.dump(RouteNetlinkMessage::GetRoute(get))?;
    let own = routes.into_iter().filter_map(|object| match object {
        RouteNetlinkMessage::NewRoute(route) if route.header.kind == RouteType::Local => {
            route.attributes.into_iter().find_map(|attribute| match attribute {
                RouteAttribute::Destination(RouteAddress::Inet6(own)) => Some(IpAddr::V6(own)),
                _ => None,
            })
        }
        _ => None,
    });
    Ok(own.collect())
}

fn has(all: &[InterfaceAddress], one: &InterfaceAddress) -> bool {
    all.iter().any(|other| (other.net, other.peer) == (one.net, one.peer))
}

/// Returns the order of creation that gives the kernel's list the order of `addresses`. The kernel
/// lists the first address of each IPv4 network before the others, and the newest IPv6 address
/// first.
fn creation_order(addresses: &[InterfaceAddress]) -> Vec<InterfaceAddress> {
    let (ipv4, ipv6): (Vec<InterfaceAddress>, Vec<InterfaceAddress>) =
        addresses.iter().copied().partition(|own| own.net.addr().is_ipv4());
    let is_first = |own: &InterfaceAddress| {
        let same = |other: &&InterfaceAddress| other.net.trunc() == own.net.trunc();
        ipv4.iter().find(same).is_some_and(|first| first.net == own.net)
    };
    let (first, others): (Vec<InterfaceAddress>, Vec<InterfaceAddress>) =
        ipv4.iter().copied().partition(is_first);
    first.into_iter().chain(others).chain(ipv6.into_iter().rev()).collect()
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

fn address_message(index: u32, address: &InterfaceAddress) -> AddressMessage {
    let own = address.net.addr();
    let mut message = AddressMessage::default();
    message.header.index = index;
    message.header.family = family(own);
    message.header.prefix_len = address.net.prefix_len();
    message.header.flags = AddressHeaderFlags::Nodad;
    message.attributes.push(AddressAttribute::Local(own));
    message.attributes.push(AddressAttribute::Address(address.peer.unwrap_or(own)));
    if let Some(IpAddr::V4(broadcast)) = address.broadcast {
        message.attributes.push(AddressAttribute::Broadcast(broadcast));
    }
    message
}

/// True if the kernel makes this route itself, for the network of an address.
fn is_made_by_kernel(route: &Route, out: &Interface) -> bool {
    let connected = |address: &InterfaceAddress| address.net.trunc() == route.destination;
    route.gateway.is_none() && route.table == 0 && out.addresses.iter().any(connected)
}

fn add_route(netlink: &mut Rtnetlink, route: &Route, out: u32) -> Result<()> {
    let order = RouteNetlinkMessage::NewRoute(route_message(route, out));
    netlink.order(order, NLM_F_CREATE | NLM_F_REPLACE)
}

fn route_message(route: &Route, out: u32) -> RouteMessage {
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
    message
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}
