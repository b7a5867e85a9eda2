//! Comparison of addresses with the criteria of rules (pf-features section 4).

use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use skipstep_ruleset::address::DynamicAddress;
use skipstep_ruleset::interface::Interface;
use skipstep_ruleset::{Address, Family, Host, Ruleset};

use crate::counters::Counters;
use crate::table;
use crate::world::World;

/// The inputs of a comparison besides rule and address.
pub(crate) struct MatchInputs<'a> {
    pub ruleset: &'a Ruleset,
    /// Path of the rule's anchor.
    pub anchor: &'a str,
    pub world: &'a World,
    /// Interface where the packet arrived, for `urpf-failed`; `None` for destinations.
    pub arrived_on: Option<&'a str>,
    /// Routing domain of the packet's interface.
    pub rdomain: u32,
}

/// Returns true if `address` matches the criterion, negation included.
pub(crate) fn matches(
    host: &Host,
    address: IpAddr,
    inputs: &MatchInputs,
    counters: &mut Counters,
) -> bool {
    matches_unnegated(&host.address, address, inputs, counters) != host.negated
}

fn matches_unnegated(
    criterion: &Address,
    address: IpAddr,
    inputs: &MatchInputs,
    counters: &mut Counters,
) -> bool {
    match criterion {
        Address::Any => true,
        Address::Net(net) => net.contains(&address),
        Address::Masked(value, mask) => masked(*value, *mask) == masked(address, *mask),
        Address::Range(low, high) => {
            Family::from_address(*low) == Family::from_address(address)
                && *low <= address
                && address <= *high
        }
        Address::Table(name) => {
            let Some((name, table)) = inputs.ruleset.table_seen_from(inputs.anchor, name) else {
                return false;
            };
            let inside = table::contains(table, address);
            if table.defined {
                counters.table_looked_up(name, inside);
            }
            inside
        }
        Address::Dynamic(dynamic) => interface_has(dynamic, address, inputs.world),
        Address::NoRoute => {
            !is_scoped(address) && inputs.world.interface_towards(address, inputs.rdomain).is_none()
        }
        Address::UrpfFailed => {
            inputs.arrived_on.is_none_or(|name| fails_urpf(address, name, inputs))
        }
        Address::RouteLabel(label) => {
            inputs.world.host.route_label(address) == Some(label.as_str())
        }
    }
}

fn masked(address: IpAddr, mask: IpAddr) -> Option<u128> {
    match (address, mask) {
        (IpAddr::V4(address), IpAddr::V4(mask)) => {
            Some(u128::from(address.to_bits() & mask.to_bits()))
        }
        (IpAddr::V6(address), IpAddr::V6(mask)) => Some(address.to_bits() & mask.to_bits()),
        _ => None,
    }
}

/// Returns true if the route back to `address` does not leave by the interface `name`.
fn fails_urpf(address: IpAddr, name: &str, inputs: &MatchInputs) -> bool {
    !is_scoped(address) && inputs.world.interface_towards(address, inputs.rdomain) != Some(name)
}

/// Returns true for addresses that are valid on one link only. They never fail for their route,
/// because PF stores them with their interface, where they are always reachable.
fn is_scoped(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(v6) => v6.is_unicast_link_local() || is_link_multicast(v6),
    }
}

/// Returns true for addresses that exist on each link, so no route leads to them.
pub(crate) fn is_on_every_link(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(v6) => v6.is_unicast_link_local() || v6.is_multicast(),
    }
}

/// Returns true for interface-local and link-local multicast groups.
fn is_link_multicast(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.octets();
    first == 0xff && matches!(second & 0x0f, 1 | 2)
}

/// Returns true if `(interface...)` includes `address` now.
fn interface_has(dynamic: &DynamicAddress, address: IpAddr, world: &World) -> bool {
    interface_networks(dynamic, world).iter().any(|net| net.contains(&address))
}

/// Returns the networks of `(interface...)` now, of both families.
pub(crate) fn interface_networks(dynamic: &DynamicAddress, world: &World) -> Vec<IpNet> {
    let name = if dynamic.interface == "self" { "all" } else { &dynamic.interface };
    let host = &world.host;
    let members: Vec<&Interface> = match host.interface(name) {
        Some(interface) => vec![interface],
        None => host.members(name).collect(),
    };
    members.into_iter().flat_map(|interface| networks(dynamic, interface)).collect()
}

/// Returns the networks that one interface contributes to a dynamic address.
fn networks(dynamic: &DynamicAddress, interface: &Interface) -> Vec<IpNet> {
    let mut seen = Vec::new(); // families whose single address `:0` has taken
    let mut nets = Vec::new();
    for own in &interface.addresses {
        let local = own.net.addr();
        let family = Family::from_address(local);
        let link_local = matches!(local, IpAddr::V6(v6) if v6.is_unicast_link_local());
        if dynamic.network && link_local || dynamic.no_alias && seen.contains(&family) {
            continue;
        }
        let address = match (dynamic.broadcast, dynamic.peer) {
            (true, _) if family == Family::Inet6 => None,
            (true, _) => own.broadcast,
            (_, true) => own.peer,
            _ => Some(local),
        };
        let Some(address) = address else { continue };
        seen.push(family);
        let full = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match dynamic.prefix {
            Some(prefix) => prefix.min(full),
            None if dynamic.network => own.net.prefix_len(),
            None => full,
        };
        nets.extend(IpNet::new(address, prefix).map(|net| net.trunc()));
    }
    nets
}
