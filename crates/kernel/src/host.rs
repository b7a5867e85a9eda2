//! The host as rules see it, read through rtnetlink: interfaces, addresses, groups and routes of
//! the current network namespace. Never sysfs, which shows another namespace inside `nsenter`.

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

/// Names of Linux's interface groups, `number name` a line.
const GROUP_NAMES: &str = "/etc/iproute2/group";

/// Names of realms, which stand for labels of routes.
const REALM_NAMES: &str = "/etc/iproute2/rt_realms";

/// Reads the host of the current network namespace. Every interface is in group `all`, loopback in
/// `lo`, those with a default route in `egress`, and each in its Linux group if that has a name.
pub fn read() -> Result<Host> {
    let mut netlink = Rtnetlink::open()?;
    let links = netlink.dump(RouteNetlinkMessage::GetLink(LinkMessage::default()))?;
    let addresses = netlink.dump(RouteNetlinkMessage::GetAddress(AddressMessage::default()))?;
    let routes = netlink.dump(RouteNetlinkMessage::GetRoute(RouteMessage::default()))?;
    Ok(assemble(links, addresses, routes))
}

/// The host that the replies of rtnetlink describe: about links, addresses and routes. Whatever
/// cannot be read in them is left out.
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
            // and that is the one of `:0`
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
        // OpenBSD gives the loopback its IPv6 addresses first; rules that name it come in that
        // order
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

/// The routing table of a VRF.
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

/// Index of the bridge, bond, VRF or the like that an interface belongs to.
fn master(link: &LinkMessage) -> Option<u32> {
    link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::Controller(index) => Some(*index).filter(|index| *index != 0),
        _ => None,
    })
}

/// The table of the VRF that an interface is or belongs to, its bridge or bond perhaps.
fn rdomain(index: u32, tables: &BTreeMap<u32, u32>, masters: &BTreeMap<u32, u32>) -> u32 {
    let mut index = index;
    // a bridge may be in a VRF, but nothing stands deeper than some steps
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

/// Group 0, `default`, holds every interface that nobody grouped and says nothing.
fn group_names() -> BTreeMap<u32, String> {
    let mut names = names(GROUP_NAMES);
    names.remove(&0);
    names
}

/// The names that iproute2 has for numbers in one of its files.
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
    // on a point-to-point link the local address has an attribute of its own
    let own = local.or(other)?;
    Some(InterfaceAddress {
        net: IpNet::new(own, message.header.prefix_len).ok()?,
        broadcast,
        peer: other.filter(|other| *other != own),
    })
}

/// The routes of a message; a default route of the main table puts its interface into `egress`.
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
        // the main table is that of interfaces in no VRF; of those in one it is a table like others
        let table = match number {
            0 if interface.rdomain != 0 => main,
            own if own == interface.rdomain => 0,
            other => other,
        };
        if length == 0 && number == 0 && table == 0 && !interface.is("egress") {
            interface.groups.push("egress".to_owned());
        }
        let interface = interface.name.clone();
        routes.push(Route { destination, interface, gateway, label: label.clone(), table });
    }
    routes
}

/// The name of a realm, its number if it has none; 0 is no realm.
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

/// Waits for changes of links, addresses and routes in the network namespace it was made in.
pub struct Watch {
    socket: Socket,
}

/// rtnetlink's multicast groups: links, IPv4 and IPv6 addresses, IPv4 and IPv6 routes.
const GROUPS: [u32; 5] = [1, 5, 9, 7, 11];

/// Changes come in bursts: how long there must be silence before one is reported.
const QUIET: Duration = Duration::from_millis(50);

/// Where changes never cease, as under a routing daemon: how long one waits at most.
const LONGEST_BURST: Duration = Duration::from_millis(80);

impl Watch {
    /// Listens from now on.
    pub fn new() -> Result<Self> {
        Self::of(&GROUPS)
    }

    /// Listens to changes of links alone.
    pub fn of_links() -> Result<Self> {
        Self::of(&GROUPS[..1])
    }

    fn of(groups: &[u32]) -> Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE).context(|| "rtnetlink: open".to_owned())?;
        socket.bind(&SocketAddr::new(0, 0)).context(|| "rtnetlink: bind".to_owned())?;
        for group in groups {
            socket.add_membership(*group).context(|| format!("rtnetlink: group {group}"))?;
        }
        socket.set_non_blocking(true).context(|| "rtnetlink".to_owned())?;
        Ok(Watch { socket })
    }

    /// Blocks until something changed (true) or `timeout` is over (false); no timeout waits for
    /// good. A burst of changes is one.
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

    /// Blocks until links changed or `timeout` is over. Returns the indices of interfaces that are
    /// new or changed, all there are if the kernel had no room for its messages.
    pub fn changed_links(&mut self, timeout: Duration) -> Result<BTreeSet<u32>> {
        if !self.readable(Some(timeout))? {
            return Ok(BTreeSet::new());
        }
        self.drain().map_or_else(link_indices, Ok)
    }

    /// Whether something changed since this was asked last; of a burst of changes it may be a part.
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

    /// Reads what is there. Returns the indices of the interfaces that it names, `None` if messages
    /// were lost.
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

/// Returns the index of an interface that is there and none of skipstepd's own.
fn index_of(object: &RouteNetlinkMessage) -> Option<u32> {
    match object {
        RouteNetlinkMessage::NewLink(link) if !own_device::is_ours(link.header.index) => {
            Some(link.header.index)
        }
        _ => None,
    }
}
