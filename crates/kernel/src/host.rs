//! The host as rules see it: interfaces, addresses, groups and routes of the current network
//! namespace. All come from rtnetlink, because inside `nsenter` sysfs shows another namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoPortKind, InfoVrf, LinkAttribute, LinkFlags, LinkInfo, LinkLayerType,
    LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteType,
};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use skipstep_ruleset::interface::{Host, Interface, InterfaceAddress, Route};

use crate::error::{Context, Result};
use crate::netlink::{self, Rtnetlink};
use crate::own_device;

/// File with the names of Linux's interface groups, `number name` a line.
// Differs from OpenBSD: linux.md, "Interface groups"
const GROUP_NAMES: &str = "/etc/iproute2/group";

/// File with the names of realms, which serve as route labels.
// Differs from OpenBSD: linux.md, "Route labels"
const REALM_NAMES: &str = "/etc/iproute2/rt_realms";

/// Reads the host of the current network namespace. Every interface is in group `all`, loopback in
/// `lo`, and an interface with a default route in `egress`. Each is also in its Linux group if the
/// group has a name.
///
/// # Errors
/// Fails if rtnetlink cannot be opened or refuses a request.
pub fn read() -> Result<Host> {
    let mut netlink = Rtnetlink::open()?;
    let links = netlink.dump(RouteNetlinkMessage::GetLink(LinkMessage::default()))?;
    let addresses = netlink.dump(RouteNetlinkMessage::GetAddress(AddressMessage::default()))?;
    let routes = netlink.dump(RouteNetlinkMessage::GetRoute(RouteMessage::default()))?;
    Ok(assemble(links, addresses, routes))
}

/// Returns the host that three replies of rtnetlink describe: links, addresses and routes. Skips
/// messages that cannot be read.
pub fn from_replies(replies: [&[u8]; 3]) -> Host {
    let [links, addresses, routes] = replies.map(|datagram| {
        netlink::messages(datagram).filter_map(|message| match message.payload {
            NetlinkPayload::InnerMessage(object) => Some(object),
            _ => None,
        })
    });
    assemble(links, addresses, routes)
}

fn assemble(
    links: impl IntoIterator<Item = RouteNetlinkMessage>,
    addresses: impl IntoIterator<Item = RouteNetlinkMessage>,
    routes: impl IntoIterator<Item = RouteNetlinkMessage>,
) -> Host {
    let mut interfaces = BTreeMap::new();
    let group_names = group_names();
    let (mut tables, mut masters) = (BTreeMap::new(), BTreeMap::new());
    for object in links {
        if let RouteNetlinkMessage::NewLink(link) = object {
            let interface = interface(&link, &group_names);
            tables.extend(vrf_table(&link).map(|table| (link.header.index, table)));
            masters.extend(master(&link).map(|master| (link.header.index, master)));
            if !own_device::is_ours(interface.index) {
                interfaces.insert(link.header.index, interface);
            }
        }
    }
    for interface in interfaces.values_mut() {
        interface.rdomain = rdomain(interface.index, &tables, &masters);
    }
    let mut scope = None;
    for object in addresses {
        if let RouteNetlinkMessage::NewAddress(message) = object
            && let Some(interface) = interfaces.get_mut(&message.header.index)
            && let Some(address) = address(&message)
        {
            // Linux lists IPv6 addresses of one scope newest first; OpenBSD lists the oldest first,
            // and `:0` means the first address of that list
            let (own, here) =
                (&mut interface.addresses, (message.header.index, message.header.scope));
            let first = match scope {
                Some((first, of)) if of == here && address.net.addr().is_ipv6() => first,
                _ => own.len(),
            };
            scope = Some((first, here));
            own.insert(first, address);
        }
    }
    for interface in interfaces.values_mut().filter(|interface| interface.loopback) {
        // OpenBSD's loopback has its IPv6 addresses first, so rules that name the loopback expand
        // in that order
        interface.addresses.sort_by_key(|address| address.net.addr().is_ipv4());
    }
    let mut found = Vec::new();
    let realms = names(REALM_NAMES);
    for object in routes {
        if let RouteNetlinkMessage::NewRoute(message) = object {
            found.extend(route(&message, &mut interfaces, &realms));
        }
    }
    Host { interfaces: interfaces.into_values().collect(), routes: found }
}

// Differs from OpenBSD: linux.md, "Loopback"
fn interface(link: &LinkMessage, group_names: &BTreeMap<u32, String>) -> Interface {
    let loopback = link.header.flags.contains(LinkFlags::Loopback);
    let mut interface = Interface {
        index: link.header.index,
        loopback,
        no_link_header: !matches!(
            link.header.link_layer_type,
            LinkLayerType::Ether | LinkLayerType::Loopback
        ),
        down: !link.header.flags.contains(LinkFlags::Up),
        groups: vec!["all".to_owned()],
        ..Interface::default()
    };
    if loopback {
        interface.groups.push("lo".to_owned());
    }
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(name) => interface.name.clone_from(name),
            LinkAttribute::Mtu(mtu) => interface.mtu = *mtu,
            LinkAttribute::LinkInfo(infos) => {
                interface.veth = infos.contains(&LinkInfo::Kind(InfoKind::Veth));
                interface.port = infos.contains(&LinkInfo::PortKind(InfoPortKind::Bridge));
            }
            LinkAttribute::Group(group) => interface.groups.extend(group_names.get(group).cloned()),
            _ => {}
        }
    }
    interface
}

/// Returns the routing table of a VRF; `None` for other interfaces.
fn vrf_table(link: &LinkMessage) -> Option<u32> {
    link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::LinkInfo(infos) => infos.iter().find_map(|info| match info {
            LinkInfo::Data(InfoData::Vrf(data)) => data.iter().find_map(|item| match item {
                InfoVrf::TableId(table) => Some(*table),
                _ => None,
            }),
            _ => None,
        }),
        _ => None,
    })
}

/// Returns the index of the bridge, bond, VRF or the like that an interface belongs to.
fn master(link: &LinkMessage) -> Option<u32> {
    link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::Controller(index) => Some(*index).filter(|index| *index != 0),
        _ => None,
    })
}

/// Returns the table of the VRF that an interface is or belongs to, perhaps through a bridge or
/// bond; 0 for none.
// Differs from OpenBSD: linux.md, "Routing domains"
fn rdomain(index: u32, tables: &BTreeMap<u32, u32>, masters: &BTreeMap<u32, u32>) -> u32 {
    let mut index = index;
    // a bridge may be in a VRF, but no interface is nested deeper than some steps
    for _ in 0..8 {
        if let Some(table) = tables.get(&index) {
            return *table;
        }
        match masters.get(&index) {
            Some(master) => index = *master,
            None => return 0,
        }
    }
    0
}

/// Returns the names of Linux's groups. Omits group 0, `default`: every interface without a group
/// is in it.
fn group_names() -> BTreeMap<u32, String> {
    let mut names = names(GROUP_NAMES);
    names.remove(&0);
    names
}

/// Returns the names of numbers in one of iproute2's files.
fn names(path: &str) -> BTreeMap<u32, String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            let mut words = line.split('#').next()?.split_whitespace();
            let number = words.next()?.parse().ok()?;
            Some((number, words.next()?.to_owned()))
        })
        .collect()
}

fn address(message: &AddressMessage) -> Option<InterfaceAddress> {
    let (mut local, mut other, mut broadcast) = (None, None, None);
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Local(address) => local = Some(*address),
            AddressAttribute::Address(address) => other = Some(*address),
            AddressAttribute::Broadcast(address) => broadcast = Some(IpAddr::V4(*address)),
            _ => {}
        }
    }
    // on a point-to-point link the local address has its own attribute
    let own = local.or(other)?;
    Some(InterfaceAddress {
        net: IpNet::new(own, message.header.prefix_len).ok()?,
        broadcast,
        peer: other.filter(|other| *other != own),
    })
}

/// Returns the routes of a message. A default route of the main table puts its interface into group
/// `egress`.
fn route(
    message: &RouteMessage,
    interfaces: &mut BTreeMap<u32, Interface>,
    realms: &BTreeMap<u32, String>,
) -> Vec<Route> {
    if message.header.kind != RouteType::Unicast {
        return Vec::new();
    }
    let main = u32::from(RouteHeader::RT_TABLE_MAIN);
    let number = Some(table_of(message)).filter(|table| *table != main).unwrap_or(0);
    let length = message.header.destination_prefix_length;
    let (mut destination, mut gateway, mut label, mut outgoing) = (None, None, None, Vec::new());
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(address) => destination = ip(address),
            RouteAttribute::Gateway(address) => gateway = ip(address),
            RouteAttribute::Realm(realm) => label = label_of(realm.destination, realms),
            RouteAttribute::Oif(index) => outgoing.push(*index),
            RouteAttribute::MultiPath(hops) => {
                outgoing.extend(hops.iter().map(|hop| hop.interface_index));
            }
            _ => {}
        }
    }
    let unspecified = match message.header.address_family {
        netlink_packet_route::AddressFamily::Inet6 => IpAddr::from([0u16; 8]),
        _ => IpAddr::from([0u8; 4]),
    };
    let Ok(destination) = IpNet::new(destination.unwrap_or(unspecified), length) else {
        return Vec::new();
    };
    let mut routes = Vec::new();
    for index in outgoing {
        let Some(interface) = interfaces.get_mut(&index) else {
            continue;
        };
        // 0 is the table of the interface's own VRF; for an interface in a VRF the main table is
        // another table
        let table = match number {
            0 if interface.rdomain != 0 => main,
            own if own == interface.rdomain => 0,
            other => other,
        };
        if length == 0 && number == 0 && table == 0 && !interface.has_name_or_group("egress") {
            interface.groups.push("egress".to_owned());
        }
        let interface = interface.name.clone();
        routes.push(Route { destination, interface, gateway, label: label.clone(), table });
    }
    routes
}

/// Returns the name of a realm, or its number if it has no name; `None` for 0.
fn label_of(realm: u16, names: &BTreeMap<u32, String>) -> Option<String> {
    let number = Some(u32::from(realm)).filter(|number| *number != 0)?;
    Some(names.get(&number).cloned().unwrap_or_else(|| number.to_string()))
}

fn table_of(message: &RouteMessage) -> u32 {
    let attribute = message.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Table(table) => Some(*table),
        _ => None,
    });
    attribute.unwrap_or(u32::from(message.header.table))
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(v4) => Some(IpAddr::V4(*v4)),
        RouteAddress::Inet6(v6) => Some(IpAddr::V6(*v6)),
        _ => None,
    }
}

/// Waits for changes of links, addresses and routes in the network namespace where it was made.
pub struct Watch {
    socket: Socket,
}

/// rtnetlink's multicast groups: links, IPv4 and IPv6 addresses, IPv4 and IPv6 routes.
const GROUPS: [u32; 5] = [1, 5, 9, 7, 11];

/// Silence that ends a burst of changes.
const QUIET: Duration = Duration::from_millis(50);

/// Longest wait for the end of a burst. Under a routing daemon changes never cease.
const LONGEST_BURST: Duration = Duration::from_millis(80);

impl Watch {
    /// Listens from now on to changes of links, addresses and routes.
    ///
    /// # Errors
    /// Fails if rtnetlink cannot be opened, or if a multicast group cannot be joined.
    pub fn new() -> Result<Self> {
        Self::for_groups(&GROUPS)
    }

    /// Listens from now on to changes of links only.
    ///
    /// # Errors
    /// Fails if rtnetlink cannot be opened, or if the multicast group cannot be joined.
    pub fn for_links() -> Result<Self> {
        Self::for_groups(&GROUPS[..1])
    }

    fn for_groups(groups: &[u32]) -> Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE).context(|| "rtnetlink: open".to_owned())?;
        socket.bind(&SocketAddr::new(0, 0)).context(|| "rtnetlink: bind".to_owned())?;
        for group in groups {
            socket.add_membership(*group).context(|| format!("rtnetlink: group {group}"))?;
        }
        socket.set_non_blocking(true).context(|| "rtnetlink".to_owned())?;
        Ok(Watch { socket })
    }

    /// Waits for a change. Returns true if something changed, false after `timeout` or a signal.
    /// `None` waits forever. A burst of changes counts as one.
    ///
    /// # Errors
    /// Fails if poll fails.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<bool> {
        if !self.readable(timeout)? {
            return Ok(false);
        }
        let end = Instant::now() + LONGEST_BURST;
        loop {
            self.drain();
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.readable(Some(left.min(QUIET)))? {
                return Ok(true);
            }
        }
    }

    /// Waits until links change, at most `timeout`. Returns the indices of new or changed
    /// interfaces, or of all interfaces if the kernel lost messages.
    ///
    /// # Errors
    /// Fails if poll fails, or if the list of all interfaces cannot be read.
    pub fn changed_links(&mut self, timeout: Duration) -> Result<BTreeSet<u32>> {
        if !self.readable(Some(timeout))? {
            return Ok(BTreeSet::new());
        }
        self.drain().map_or_else(link_indices, Ok)
    }

    /// Returns true if something has changed since the last call. Does not wait for the end of a
    /// burst.
    ///
    /// # Errors
    /// Fails if poll fails.
    pub fn changed(&mut self) -> Result<bool> {
        let changed = self.readable(Some(Duration::ZERO))?;
        self.drain();
        Ok(changed)
    }

    fn readable(&self, timeout: Option<Duration>) -> Result<bool> {
        let timeout = timeout.map_or(PollTimeout::NONE, |timeout| {
            PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX)
        });
        // SAFETY: the socket is open as long as `self` lives, which is longer than this call
        let fd = unsafe { BorrowedFd::borrow_raw(self.socket.as_raw_fd()) };
        match poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], timeout) {
            Ok(ready) => Ok(ready > 0),
            Err(nix::errno::Errno::EINTR) => Ok(false),
            Err(error) => Err(io::Error::from(error)).context(|| "rtnetlink: wait".to_owned()),
        }
    }

    /// Reads all waiting messages. Returns the indices of the interfaces that they name, or `None`
    /// if messages were lost.
    fn drain(&mut self) -> Option<BTreeSet<u32>> {
        let (mut named, mut lost) = (BTreeSet::new(), false);
        loop {
            match self.socket.recv_from_full() {
                Ok((datagram, _)) => named.extend(indices(netlink::messages(&datagram))),
                Err(error) if error.raw_os_error() == Some(nix::libc::ENOBUFS) => lost = true,
                Err(_) => return (!lost).then_some(named),
            }
        }
    }
}

/// Returns the indices of all interfaces but skipstepd's own.
///
/// # Errors
/// Fails if rtnetlink cannot be opened or refuses the request.
pub fn link_indices() -> Result<BTreeSet<u32>> {
    let get = RouteNetlinkMessage::GetLink(LinkMessage::default());
    Ok(Rtnetlink::open()?.dump(get)?.iter().filter_map(index_of).collect())
}

fn indices(
    messages: impl Iterator<Item = NetlinkMessage<RouteNetlinkMessage>>,
) -> impl Iterator<Item = u32> {
    messages.filter_map(|message| match message.payload {
        NetlinkPayload::InnerMessage(object) => index_of(&object),
        _ => None,
    })
}

/// Returns the index of an interface that exists and is not skipstepd's own.
fn index_of(object: &RouteNetlinkMessage) -> Option<u32> {
    match object {
        RouteNetlinkMessage::NewLink(link) if !own_device::is_ours(link.header.index) => {
            Some(link.header.index)
        }
        _ => None,
    }
}
