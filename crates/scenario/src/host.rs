//! The host of scenarios that do not describe their own.

use std::net::IpAddr;

use ipnet::IpNet;
use skipstep_ruleset::interface::{Host, Interface, InterfaceAddress, Route};

/// Returns the standard host, which the conformance vectors use too. It routes between em0 and em1.
/// The default routes lead through em1, which is in group `egress`. Their label is `isp`; that of
/// the other routes is `lan`. Routing table 1 has only the networks of em0.
pub fn standard() -> Host {
    let net = |text: &str| text.parse::<IpNet>().expect("a literal prefix");
    let interface = |name: &str, index, mtu, group: Option<&str>, nets: &[&str]| Interface {
        name: name.into(),
        index,
        loopback: name == "lo0",
        no_link_header: false,
        port: false,
        veth: false,
        down: false,
        rdomain: 0,
        mtu,
        groups: std::iter::once("all").chain(group).map(String::from).collect(),
        addresses: nets.iter().map(|text| address(net(text), name == "lo0")).collect(),
    };
    let interfaces = vec![
        interface("em0", 1, 1500, None, &["10.0.1.1/24", "fe80::1/64", "2001:db8:1::1/64"]),
        interface(
            "em1",
            2,
            1500,
            Some("egress"),
            &["10.0.2.1/24", "fe80::2/64", "2001:db8:2::1/64"],
        ),
        interface("lo0", 3, 32768, Some("lo"), &["::1/128", "fe80::1/64", "127.0.0.1/8"]),
    ];
    let route = |destination: &str, interface: &str, gateway: Option<&str>| Route {
        destination: net(destination),
        interface: interface.into(),
        gateway: gateway.map(|text| text.parse().expect("a literal address")),
        label: Some(if destination.ends_with("/0") { "isp" } else { "lan" }.into()),
        table: 0,
    };
    let in_table = |table, route: Route| Route { label: None, table, ..route };
    let routes = vec![
        route("10.0.1.0/24", "em0", None),
        route("10.0.2.0/24", "em1", None),
        route("2001:db8:1::/64", "em0", None),
        route("2001:db8:2::/64", "em1", None),
        route("0.0.0.0/0", "em1", Some("10.0.2.254")),
        route("::/0", "em1", None),
        in_table(1, route("10.0.1.0/24", "em0", None)),
        in_table(1, route("2001:db8:1::/64", "em0", None)),
    ];
    Host { interfaces, routes }
}

/// Returns an address of an interface, with the broadcast address that Linux would set.
pub fn address(net: IpNet, loopback: bool) -> InterfaceAddress {
    let broadcast = match net {
        IpNet::V4(net) if net.prefix_len() < 31 && !loopback => Some(IpAddr::V4(net.broadcast())),
        _ => None,
    };
    InterfaceAddress { net, broadcast, peer: None }
}

/// Returns the routes to the networks of `interfaces` that Linux would add.
pub(crate) fn connected(interfaces: &[Interface]) -> Vec<Route> {
    let linked = interfaces.iter().filter(|interface| !interface.loopback && !interface.down);
    let of_interface = |interface: &Interface| -> Vec<Route> {
        interface.addresses.iter().map(|address| connected_by(interface, address)).collect()
    };
    linked.flat_map(of_interface).collect()
}

/// Returns the route that Linux adds with an address: to its network, or to that of its peer.
pub(crate) fn connected_by(interface: &Interface, address: &InterfaceAddress) -> Route {
    let far = address.peer.unwrap_or(address.net.addr());
    let destination = IpNet::new(far, address.net.prefix_len()).unwrap_or(address.net);
    Route {
        destination: destination.trunc(),
        interface: interface.name.clone(),
        gateway: None,
        table: 0,
        label: None,
    }
}
