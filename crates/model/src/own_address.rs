//! The choice of the host's source address, as Linux makes it.

use std::cmp::Reverse;
use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use skipstep_ruleset::Family;
use skipstep_ruleset::interface::{Interface, Route};

use crate::address::is_on_every_link;
use crate::world::World;

/// Returns the source address for a receiver that `route` leads to. Addresses of the egress
/// interface come first, then addresses of other interfaces. Addresses that are valid on one link
/// only are the last resort.
pub(crate) fn towards(receiver: IpAddr, route: &Route, world: &World) -> Option<IpAddr> {
    let (out, others): (Vec<&Interface>, Vec<&Interface>) =
        world.host.interfaces.iter().partition(|interface| interface.name == route.interface);
    let among = |interfaces: &[&Interface], of_link: bool| {
        let nets = interfaces.iter().flat_map(|interface| &interface.addresses);
        let nets = nets.map(|own| own.net).filter(|net| {
            let own = net.addr();
            Family::from_address(own) == Family::from_address(receiver)
                && !own.is_loopback()
                && is_on_every_link(own) == of_link
        });
        match receiver {
            IpAddr::V4(_) => nearby(nets, route.gateway.unwrap_or(receiver)),
            IpAddr::V6(receiver) => most_alike(nets, receiver),
        }
    };
    [false, true]
        .into_iter()
        .find_map(|of_link| among(&out, of_link).or_else(|| among(&others, of_link)))
}

/// Returns the first address whose network has the next hop, else the first address.
fn nearby(mut nets: impl Iterator<Item = IpNet> + Clone, next_hop: IpAddr) -> Option<IpAddr> {
    let near = nets.clone().find(|net| net.contains(&next_hop));
    near.or_else(|| nets.next()).map(|net| net.addr())
}

/// Returns the first address with the longest prefix in common with the receiver (RFC 6724, rule
/// 8).
fn most_alike(nets: impl Iterator<Item = IpNet>, receiver: Ipv6Addr) -> Option<IpAddr> {
    let common = |net: &IpNet| match net.addr() {
        IpAddr::V6(own) => {
            let bits = (own.to_bits() ^ receiver.to_bits()).leading_zeros();
            bits.min(net.prefix_len().into())
        }
        IpAddr::V4(_) => 0,
    };
    nets.min_by_key(|net| Reverse(common(net))).map(|net| net.addr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use skipstep_ruleset::interface::{Host, InterfaceAddress};

    fn sent_from(receiver: &str, out: &str, gateway: Option<&str>) -> Option<String> {
        let interface = |name: &str, nets: &[&str]| Interface {
            name: name.into(),
            addresses: nets
                .iter()
                .map(|net| InterfaceAddress {
                    net: net.parse().unwrap(),
                    broadcast: None,
                    peer: None,
                })
                .collect(),
            ..Interface::default()
        };
        let interfaces = vec![
            interface("lo0", &["127.0.0.1/8", "::1/128"]),
            interface("em0", &["10.0.1.1/24", "10.0.9.1/24", "fe80::1/64"]),
            interface("em1", &["2001:db8:2::1/64", "2001:db8:3::1/64", "fe80::2/64"]),
            interface("em2", &[]),
        ];
        let world = World { host: Host { interfaces, routes: Vec::new() }, ..World::default() };
        let route = Route {
            destination: "::/0".parse().unwrap(),
            interface: out.into(),
            gateway: gateway.map(|text| text.parse().unwrap()),
            table: 0,
            label: None,
        };
        towards(receiver.parse().unwrap(), &route, &world).map(|own| own.to_string())
    }

    #[test]
    fn source_is_in_the_network_of_the_next_hop() {
        assert_eq!(sent_from("10.0.9.7", "em0", None).unwrap(), "10.0.9.1");
        assert_eq!(sent_from("192.0.2.1", "em0", Some("10.0.9.254")).unwrap(), "10.0.9.1");
        assert_eq!(sent_from("192.0.2.1", "em0", None).unwrap(), "10.0.1.1");
    }

    #[test]
    fn ipv6_source_has_the_longest_common_prefix() {
        assert_eq!(sent_from("2001:db8:3::7", "em1", None).unwrap(), "2001:db8:3::1");
        assert_eq!(sent_from("2001:db8:2::7", "em1", None).unwrap(), "2001:db8:2::1");
        assert_eq!(sent_from("3fff::1", "em1", None).unwrap(), "2001:db8:2::1");
    }

    #[test]
    fn source_of_another_interface_as_a_fallback() {
        assert_eq!(sent_from("192.0.2.1", "em2", None).unwrap(), "10.0.1.1");
        assert_eq!(sent_from("2001:db8:3::7", "em0", None).unwrap(), "2001:db8:3::1");
        assert_eq!(sent_from("192.0.2.1", "em1", None).unwrap(), "10.0.1.1");
    }

    #[test]
    fn link_local_source_as_the_last_resort() {
        let interface = |name: &str, net: &str| Interface {
            name: name.into(),
            addresses: vec![InterfaceAddress {
                net: net.parse().unwrap(),
                broadcast: None,
                peer: None,
            }],
            ..Interface::default()
        };
        let interfaces = vec![interface("em0", "fe80::1/64"), interface("em1", "fe80::2/64")];
        let routes = vec![Route {
            destination: "::/0".parse().unwrap(),
            interface: "em1".into(),
            gateway: None,
            table: 0,
            label: None,
        }];
        let world = World { host: Host { interfaces, routes }, ..World::default() };
        let receiver = "2001:db8::7".parse().unwrap();
        let own = towards(receiver, &world.host.routes[0], &world).unwrap();
        assert_eq!(own.to_string(), "fe80::2");
    }
}
