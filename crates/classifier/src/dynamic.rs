//! The current addresses of `(em0)`, `(em0:network)` and their like (pf-features section 4).

use std::net::IpAddr;

use ipnet::IpNet;
use skipstep_ruleset::address::DynamicAddress;
use skipstep_ruleset::interface::{Host, Interface, InterfaceAddress};
use skipstep_ruleset::{Family, TableName};

/// Returns the contents of a dynamic address, in the order of the host's list, without duplicates.
pub fn contents(dynamic: &DynamicAddress, host: &Host) -> Vec<IpNet> {
    let mut nets = Vec::new();
    for interface in host.interfaces.iter().filter(|i| is_meant(i, &dynamic.interface)) {
        for net in of_interface(dynamic, interface) {
            if !nets.contains(&net) {
                nets.push(net);
            }
        }
    }
    nets
}

/// Returns the name of the address's table slot: its text in pf.conf with the parentheses, which no
/// table name has. It means the same in every anchor.
pub fn name(dynamic: &DynamicAddress) -> TableName {
    let mut name = format!("({}", dynamic.interface);
    for (set, suffix) in [
        (dynamic.network, ":network"),
        (dynamic.broadcast, ":broadcast"),
        (dynamic.peer, ":peer"),
        (dynamic.no_alias, ":0"),
    ] {
        if set {
            name.push_str(suffix);
        }
    }
    name.push(')');
    if let Some(prefix) = dynamic.prefix {
        name.push_str(&format!("/{prefix}"));
    }
    name.as_str().into()
}

fn is_meant(interface: &Interface, name: &str) -> bool {
    name == "self" || interface.has_name_or_group(name)
}

fn of_interface(dynamic: &DynamicAddress, interface: &Interface) -> Vec<IpNet> {
    let mut seen = Vec::new();
    let mut nets = Vec::new();
    for address in &interface.addresses {
        let family = Family::from_address(address.net.addr());
        let Some(chosen) = choose(dynamic, address) else {
            continue;
        };
        if dynamic.no_alias && seen.contains(&family) {
            continue;
        }
        seen.push(family);
        nets.push(cut(chosen, prefix_length(dynamic, address)));
    }
    nets
}

/// Returns the address that the modifiers select from the entry, if it has one.
fn choose(dynamic: &DynamicAddress, address: &InterfaceAddress) -> Option<IpAddr> {
    if dynamic.broadcast {
        return address.broadcast;
    }
    if dynamic.peer {
        return address.peer;
    }
    match address.net.addr() {
        IpAddr::V6(v6) if dynamic.network && v6.is_unicast_link_local() => None,
        any => Some(any),
    }
}

fn prefix_length(dynamic: &DynamicAddress, address: &InterfaceAddress) -> u8 {
    let full = address.net.max_prefix_len();
    match dynamic.prefix {
        Some(prefix) => prefix.min(full),
        None if dynamic.network => address.net.prefix_len(),
        None => full,
    }
}

fn cut(address: IpAddr, prefix: u8) -> IpNet {
    IpNet::new(address, prefix).map_or_else(|_| IpNet::from(address), |net| net.trunc())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        let em0 = ["10.0.1.1/24", "10.0.1.2/24", "fe80::1/64", "2001:db8:1::1/64"];
        let tun0 = Interface::new("tun0", &["192.0.2.1/32"]).with_peer("192.0.2.2");
        Host::with([Interface::new("em0", &em0), tun0])
    }

    fn dynamic(interface: &str) -> DynamicAddress {
        DynamicAddress {
            interface: interface.into(),
            network: false,
            broadcast: false,
            peer: false,
            no_alias: false,
            prefix: None,
        }
    }

    fn text(dynamic: &DynamicAddress) -> Vec<String> {
        contents(dynamic, &host()).iter().map(|net| net.to_string()).collect()
    }

    #[test]
    fn addresses() {
        assert_eq!(
            text(&dynamic("em0")),
            ["10.0.1.1/32", "10.0.1.2/32", "fe80::1/128", "2001:db8:1::1/128"]
        );
    }

    #[test]
    fn networks_are_given_once_and_never_link_local() {
        let network = DynamicAddress { network: true, ..dynamic("em0") };
        assert_eq!(text(&network), ["10.0.1.0/24", "2001:db8:1::/64"]);
        assert_eq!(name(&network).name, "(em0:network)");
    }

    #[test]
    fn no_alias_takes_the_first_of_each_family() {
        let first = DynamicAddress { no_alias: true, ..dynamic("em0") };
        assert_eq!(text(&first), ["10.0.1.1/32", "fe80::1/128"]);
    }

    #[test]
    fn broadcast_peer_self_and_prefix() {
        let broadcast = DynamicAddress { broadcast: true, ..dynamic("all") };
        assert_eq!(text(&broadcast), ["10.0.1.255/32"]);
        let peer = DynamicAddress { peer: true, ..dynamic("all") };
        assert_eq!(text(&peer), ["192.0.2.2/32"]);
        let prefix = DynamicAddress { prefix: Some(16), no_alias: true, ..dynamic("self") };
        assert_eq!(text(&prefix), ["10.0.0.0/16", "fe80::/16", "192.0.0.0/16"]);
        assert_eq!(name(&prefix).name, "(self:0)/16");
        assert!(text(&dynamic("gone0")).is_empty());
    }
}
