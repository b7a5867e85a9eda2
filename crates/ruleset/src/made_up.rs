//! Hosts from literals: the standard host of scenarios, and the hosts of tests.

use std::str::FromStr;

use crate::interface::{Host, Interface, InterfaceAddress, Route};

impl Host {
    /// Returns a host without routes whose interfaces have the indexes 1, 2, 3 and so on.
    pub fn with(interfaces: impl IntoIterator<Item = Interface>) -> Host {
        let numbered = |(index, interface)| Interface { index, ..interface };
        let interfaces = (1..).zip(interfaces).map(numbered).collect();
        Host { interfaces, routes: Vec::new() }
    }
}

impl Interface {
    /// Returns an interface in group `all`, with the broadcast addresses that Linux would set. `lo`
    /// with or without a number is a loopback interface.
    ///
    /// # Panics
    /// Panics if an address is no address with a prefix length, such as `10.0.0.1/24`.
    pub fn new(name: &str, addresses: &[&str]) -> Interface {
        let loopback = name.trim_end_matches(|c: char| c.is_ascii_digit()) == "lo";
        let address = |text: &&str| InterfaceAddress::new(literal(text), loopback);
        Interface {
            name: name.to_owned(),
            loopback,
            mtu: if loopback { 32768 } else { 1500 },
            groups: vec!["all".to_owned()],
            addresses: addresses.iter().map(address).collect(),
            ..Interface::default()
        }
    }

    /// Adds a group.
    pub fn in_group(mut self, group: &str) -> Interface {
        self.groups.push(group.to_owned());
        self
    }

    /// Sets the other end of the link for the last address.
    ///
    /// # Panics
    /// Panics if `peer` is no address, or if the interface has no address.
    pub fn with_peer(mut self, peer: &str) -> Interface {
        let address = self.addresses.last_mut().expect("the peer of an address");
        address.peer = Some(literal(peer));
        self
    }
}

impl Route {
    /// Returns a route of the main table, without a label.
    ///
    /// # Panics
    /// Panics if `destination` is no prefix, or `gateway` no address.
    pub fn new(destination: &str, interface: &str, gateway: Option<&str>) -> Route {
        Route {
            destination: literal(destination),
            interface: interface.to_owned(),
            gateway: gateway.map(literal),
            label: None,
            table: 0,
        }
    }
}

fn literal<T: FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("{text}: no {}", std::any::type_name::<T>()))
}
