//! The host of scenarios that do not describe their own.

use ipnet::IpNet;
use skipstep_ruleset::interface::{Host, Interface, InterfaceAddress, Route};

/// Returns the standard host, which the conformance vectors use too. It routes between em0 and em1.
/// The default routes lead through em1, which is in group `egress`. Their label is `isp`; that of
/// the other routes is `lan`. Routing table 1 has only the networks of em0.
pub fn standard() -> Host {
    let host = Host::with([
        Interface::new("em0", &["10.0.1.1/24", "fe80::1/64", "2001:db8:1::1/64"]),
        Interface::new("em1", &["10.0.2.1/24", "fe80::2/64", "2001:db8:2::1/64"])
            .in_group("egress"),
        Interface::new("lo0", &["::1/128", "fe80::1/64", "127.0.0.1/8"]).in_group("lo"),
    ]);
    let route = |destination: &str, interface: &str, gateway: Option<&str>| Route {
        label: Some(if destination.ends_with("/0") { "isp" } else { "lan" }.into()),
        ..Route::new(destination, interface, gateway)
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
    Host { routes, ..host }
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
