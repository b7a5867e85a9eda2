//! Changes of the host while the firewall runs: addresses, links, interfaces, groups and routes.
//! Each change includes the side effects that Linux adds.

use std::net::IpAddr;

use ipnet::IpNet;
use skipstep_ruleset::interface::{Host, Interface, InterfaceAddress, Route};

use crate::host;

/// A change of the host. Interfaces are given by name.
#[derive(Debug, Clone, PartialEq)]
pub enum HostChange {
    /// Adds an address to an interface: IPv4 as the last address, IPv6 as the first of its scope.
    AddAddress(String, InterfaceAddress),
    /// Deletes an address of an interface.
    DeleteAddress(String, IpNet),
    /// Sets a link up.
    Up(String),
    /// Sets a link down.
    Down(String),
    /// Adds an interface, which gets the next free index.
    AddInterface(Interface),
    /// Deletes an interface.
    DeleteInterface(String),
    /// Adds an interface to a group.
    Join(String, String),
    /// Removes an interface from a group.
    Leave(String, String),
    /// Adds a route, or replaces the route of the same table to the same destination.
    AddRoute(Route),
    /// Deletes a route: destination, interface, table.
    DeleteRoute(IpNet, String, u32),
}

/// Group of interfaces with a default route.
const EGRESS: &str = "egress";

impl HostChange {
    /// Returns the host after the change.
    ///
    /// # Errors
    /// Fails if the host has no such object to change, or if Linux would refuse the change.
    pub fn applied(&self, host: &Host) -> Result<Host, String> {
        let mut next = host.clone();
        match self {
            HostChange::AddAddress(name, address) => add_address(&mut next, name, *address)?,
            HostChange::DeleteAddress(name, net) => delete_address(&mut next, name, *net)?,
            HostChange::Up(name) => up(&mut next, name)?,
            HostChange::Down(name) => down(&mut next, name)?,
            HostChange::AddInterface(interface) => add_interface(&mut next, interface)?,
            HostChange::DeleteInterface(name) => {
                device(&mut next, name)?;
                next.routes.retain(|route| route.interface != *name);
                next.interfaces.retain(|interface| interface.name != *name);
            }
            HostChange::Join(name, group) => {
                let interface = interface(&mut next, name)?;
                if interface.has_name_or_group(group) {
                    return Err(format!("{name} is in {group} already"));
                }
                interface.groups.push(group.clone());
            }
            HostChange::Leave(name, group) => {
                let groups = &mut interface(&mut next, name)?.groups;
                let place = groups.iter().position(|other| other == group && group != "all");
                groups.remove(place.ok_or_else(|| format!("{name} cannot leave {group}"))?);
            }
            HostChange::AddRoute(route) => add_route(&mut next, route)?,
            HostChange::DeleteRoute(destination, name, table) => {
                let is_meant = |route: &Route| {
                    (route.destination, &route.interface, route.table)
                        == (*destination, name, *table)
                };
                let place = next.routes.iter().position(is_meant);
                next.routes
                    .remove(place.ok_or_else(|| format!("{name} has no route to {destination}"))?);
            }
        }
        follow_default_routes(host, &mut next);
        Ok(next)
    }
}

fn interface<'h>(host: &'h mut Host, name: &str) -> Result<&'h mut Interface, String> {
    let found = host.interfaces.iter_mut().find(|interface| interface.name == name);
    found.ok_or_else(|| format!("the host has no interface {name}"))
}

/// Returns an interface that can be set down or deleted; loopback cannot.
fn device<'h>(host: &'h mut Host, name: &str) -> Result<&'h mut Interface, String> {
    match interface(host, name)? {
        loopback if loopback.loopback => Err(format!("{name} is always there")),
        other => Ok(other),
    }
}

fn add_address(host: &mut Host, name: &str, address: InterfaceAddress) -> Result<(), String> {
    let known = host.interfaces.iter().flat_map(|interface| &interface.addresses);
    if known.clone().any(|own| own.net.addr() == address.net.addr()) {
        return Err(format!("the host has {} already", address.net.addr()));
    }
    let interface = interface(host, name)?;
    if interface.down && !address.net.addr().is_ipv4() {
        return Err(format!("{name} is down"));
    }
    let broadcast = address.broadcast.filter(|_| !interface.loopback);
    let place = insert_position(&interface.addresses, address.net.addr());
    interface.addresses.insert(place, InterfaceAddress { broadcast, ..address });
    connect(host, name, address)
}

/// Returns the position of a new address: last, but an IPv6 address comes before others of its
/// scope.
fn insert_position(addresses: &[InterfaceAddress], new: IpAddr) -> usize {
    let alike = |own: &InterfaceAddress| {
        !own.net.addr().is_ipv4() && is_link_local(own.net.addr()) == is_link_local(new)
    };
    let before = addresses.iter().position(alike).filter(|_| !new.is_ipv4());
    before.unwrap_or(addresses.len())
}

/// Adds the route to an address's network. Link-local networks get none, because they are on every
/// link.
fn connect(host: &mut Host, name: &str, address: InterfaceAddress) -> Result<(), String> {
    let interface = interface(host, name)?;
    if interface.loopback || interface.down || is_link_local(address.net.addr()) {
        return Ok(());
    }
    let route = host::connected_by(interface, &address);
    let same = |other: &&Route| other.table == 0 && other.destination == route.destination;
    match host.routes.iter().find(same) {
        Some(other) if other.interface == name => {}
        // The kernel would decide between the two routes, so refuse.
        Some(other) => {
            return Err(format!("{} has a route to {}", other.interface, route.destination));
        }
        None => host.routes.push(route),
    }
    Ok(())
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

fn delete_address(host: &mut Host, name: &str, net: IpNet) -> Result<(), String> {
    let interface = interface(host, name)?;
    let place = interface.addresses.iter().position(|own| own.net == net);
    let gone =
        interface.addresses.remove(place.ok_or_else(|| format!("{name} has no address {net}"))?);
    let gone = host::connected_by(interface, &gone);
    let stays = interface
        .addresses
        .iter()
        .any(|own| host::connected_by(interface, own).destination == gone.destination);
    let last =
        net.addr().is_ipv4() && !interface.addresses.iter().any(|own| own.net.addr().is_ipv4());
    host.routes.retain(|route| {
        let connected = route.gateway.is_none()
            && (route.destination, &route.interface, route.table)
                == (gone.destination, &gone.interface, 0);
        let unnumbered = last && route.interface == name && route.destination.addr().is_ipv4();
        !(connected && !stays || unnumbered)
    });
    Ok(())
}

/// Sets a link up. Routes to the networks of its IPv4 addresses return, others do not.
fn up(host: &mut Host, name: &str) -> Result<(), String> {
    let interface = device(host, name)?;
    interface.down = false;
    let addresses = interface.addresses.clone();
    addresses.into_iter().try_for_each(|address| connect(host, name, address))
}

/// Sets a link down, which deletes its routes and its IPv6 addresses.
fn down(host: &mut Host, name: &str) -> Result<(), String> {
    let interface = device(host, name)?;
    interface.down = true;
    interface.addresses.retain(|address| address.net.addr().is_ipv4());
    host.routes.retain(|route| route.interface != name);
    Ok(())
}

fn add_interface(host: &mut Host, new: &Interface) -> Result<(), String> {
    if host.interface(&new.name).is_some() {
        return Err(format!("the host has {} already", new.name));
    }
    let index = host.interfaces.iter().map(|interface| interface.index).max().unwrap_or(0) + 1;
    let addresses = Vec::new();
    host.interfaces.push(Interface { index, addresses, ..new.clone() });
    let (first, others): (Vec<InterfaceAddress>, _) =
        new.addresses.iter().copied().partition(|address| address.net.addr().is_ipv4());
    let mut in_turn = first.into_iter().chain(others.into_iter().rev());
    in_turn.try_for_each(|address| add_address(host, &new.name, address))
}

fn add_route(host: &mut Host, route: &Route) -> Result<(), String> {
    let out = interface(host, &route.interface)?;
    if out.down {
        return Err(format!("{} is down", out.name));
    }
    let near = |gateway: IpAddr| {
        is_link_local(gateway)
            || host.routes.iter().any(|other| {
                other.gateway.is_none()
                    && (other.table, &other.interface) == (0, &route.interface)
                    && other.destination.prefix_len() > 0
                    && other.destination.contains(&gateway)
            })
    };
    if let Some(gateway) = route.gateway.filter(|gateway| !near(*gateway)) {
        return Err(format!("{gateway} is in no network of {}", route.interface));
    }
    host.routes
        .retain(|other| (other.destination, other.table) != (route.destination, route.table));
    host.routes.push(route.clone());
    Ok(())
}

/// Adds interfaces that got a default route to `egress`, and removes those that lost it.
fn follow_default_routes(before: &Host, after: &mut Host) {
    let has_default = |host: &Host, name: &str| {
        let is_default = |route: &&Route| route.destination.prefix_len() == 0 && route.table == 0;
        host.routes.iter().filter(is_default).any(|route| route.interface == name)
    };
    let names: Vec<String> = after.interfaces.iter().map(|one| one.name.clone()).collect();
    for (place, name) in names.iter().enumerate() {
        let (had, has) = (has_default(before, name), has_default(after, name));
        let groups = &mut after.interfaces[place].groups;
        if had && !has {
            groups.retain(|group| group != EGRESS);
        } else if has && !had && !groups.iter().any(|group| group == EGRESS) {
            groups.push(EGRESS.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    /// Returns the standard host after changes in the notation of scenario files.
    fn after(changes: &str) -> Result<Host, String> {
        let text = format!("rules {{ }}\n{changes}\n");
        let file = parse::file(&text, "x.scn").map_err(|error| error.to_string())?;
        file.cases[0].steps.iter().try_fold(host::standard(), |host, step| match &step.action {
            crate::case::Action::Host(change) => change.applied(&host),
            other => panic!("{other}"),
        })
    }

    fn routes(host: &Host, name: &str) -> Vec<String> {
        let of = |route: &&Route| route.interface == name && route.table == 0;
        host.routes.iter().filter(of).map(|route| route.destination.to_string()).collect()
    }

    #[test]
    fn an_address_brings_its_network_and_takes_it_along() {
        let host = after("address add em0 10.0.9.1/24").unwrap();
        assert_eq!(routes(&host, "em0"), ["10.0.1.0/24", "2001:db8:1::/64", "10.0.9.0/24"]);
        let host = after("address add em0 10.0.1.9/24\naddress delete em0 10.0.1.1/24").unwrap();
        assert_eq!(routes(&host, "em0"), ["10.0.1.0/24", "2001:db8:1::/64"]);
        let host = after("address delete em0 10.0.1.1/24").unwrap();
        assert_eq!(routes(&host, "em0"), ["2001:db8:1::/64"]);
    }

    #[test]
    fn the_last_ipv4_address_takes_all_ipv4_routes_along() {
        let host = after("address delete em1 10.0.2.1/24").unwrap();
        assert_eq!(routes(&host, "em1"), ["2001:db8:2::/64", "::/0"]);
        assert!(host.interface("em1").unwrap().has_name_or_group("egress"));
    }

    #[test]
    fn a_link_that_was_down_has_its_ipv4_networks_alone() {
        let host = after("link down em1").unwrap();
        let em1 = host.interface("em1").unwrap();
        assert!(
            routes(&host, "em1").is_empty()
                && em1.addresses.len() == 1
                && !em1.has_name_or_group("egress")
        );
        let host = after("link down em1\nlink up em1").unwrap();
        assert_eq!(routes(&host, "em1"), ["10.0.2.0/24"]);
        let host = after("link down em1\nlink up em1\nroute add default on em1 via 10.0.2.254");
        assert!(host.unwrap().interface("em1").unwrap().has_name_or_group("egress"));
    }

    #[test]
    fn an_added_interface_has_the_given_properties_only() {
        let host = after("interface delete em1\ninterface add em1 10.0.3.1/24 group dmz").unwrap();
        let em1 = host.interface("em1").unwrap();
        assert!(
            em1.has_name_or_group("dmz")
                && !em1.has_name_or_group("egress")
                && em1.addresses.len() == 1
        );
        assert_eq!(routes(&host, "em1"), ["10.0.3.0/24"]);
    }

    #[test]
    fn missing_objects_cannot_change() {
        for change in [
            "address add em0 10.0.2.1/24",
            "address add em0 10.0.2.9/24",
            "address delete em0 10.0.2.1/24",
            "address add em9 10.0.9.1/24",
            "link down lo0",
            "interface delete em9",
            "interface add em0",
            "group add em1 egress",
            "group delete em0 all",
            "route add default on em0 via 10.0.2.254",
            "route delete 10.0.9.0/24 on em0",
        ] {
            assert!(after(change).is_err(), "{change}");
        }
        assert!(after("link down em1\naddress add em1 2001:db8:9::1/64").is_err());
    }
}
