//! Changes of the host while packets flow: addresses, links, interfaces, groups and routes that
//! appear and disappear.

use fastrand::Rng;
use ipnet::IpNet;
use skipstep_ruleset::interface::{Host, Interface, InterfaceAddress, Route};
use skipstep_scenario::case::Action;
use skipstep_scenario::host_change::HostChange;

use super::pool::{one_in, pick};

/// One of this many cases has a changing host, because the kernel needs time for each change.
const CASES: u32 = 64;
/// Average number of steps between two changes in such a case.
const STEPS: u32 = 25;

/// Addresses that interfaces can get besides their first ones. No network is on two interfaces.
const ADDRESSES: [(&str, &[&str]); 2] = [
    ("em0", &["10.0.1.5/24", "10.0.1.77/24", "203.0.113.9/28", "2001:db8:3::1/64"]),
    ("em1", &["10.0.2.10/24", "10.0.2.77/24", "198.51.100.7/24", "2001:db8:ffff::7/64"]),
];

/// Destinations of further routes.
const DESTINATIONS: [&str; 4] = ["0.0.0.0/0", "::/0", "192.0.2.0/24", "2001:db8:9::/48"];

/// Draws the changes of one case.
pub struct HostChanges {
    /// True if the case has changes.
    any: bool,
    /// The host at the start.
    first: Host,
}

impl HostChanges {
    pub fn new(rng: &mut Rng, host: &Host) -> Self {
        HostChanges { any: one_in(rng, CASES), first: host.clone() }
    }

    /// Draws a change of the present host for some steps.
    pub fn step(&self, rng: &mut Rng, host: &Host) -> Option<Action> {
        if !self.any || !one_in(rng, STEPS) {
            return None;
        }
        let change = self.change(rng, host)?;
        // a change that is not possible is left out
        change.applied(host).ok().map(|_| Action::Host(change))
    }

    fn change(&self, rng: &mut Rng, host: &Host) -> Option<HostChange> {
        // half of the time something that was removed comes back
        if rng.bool()
            && let Some(change) = self.mended(rng, host)
        {
            return Some(change);
        }
        let name = pick(rng, &["em0", "em1"]).to_owned();
        let here = host.interface(&name)?;
        Some(match rng.u8(..12) {
            0..3 => {
                let (_, nets) = ADDRESSES.iter().find(|(of, _)| *of == name)?;
                let net: IpNet = pick(rng, nets).parse().expect("a literal address");
                HostChange::AddAddress(name, InterfaceAddress::new(net, false))
            }
            3..6 if !here.addresses.is_empty() => {
                let net = pick(rng, &here.addresses).net;
                HostChange::DeleteAddress(name, net)
            }
            6 => HostChange::Down(name),
            7 => HostChange::DeleteInterface(name),
            8 if here.has_name_or_group("egress") => HostChange::Leave(name, "egress".to_owned()),
            8 => HostChange::Join(name, "egress".to_owned()),
            9 | 10 => {
                let destination = pick(rng, &DESTINATIONS).parse().expect("a literal prefix");
                let label = one_in(rng, 3).then(|| "lan".to_owned());
                let (gateway, table) = (None, 0);
                HostChange::AddRoute(Route { destination, interface: name, gateway, label, table })
            }
            _ => {
                // routes to own networks stay: without them the kernel's choice of a source address
                // is uncertain
                let is_own = |route: &Route| {
                    here.addresses.iter().any(|own| own.net.trunc() == route.destination)
                };
                let of_name = |route: &&Route| route.interface == name && !is_own(route);
                let routes: Vec<&Route> = host.routes.iter().filter(of_name).collect();
                let route = routes.get(rng.usize(..routes.len().max(1)))?;
                HostChange::DeleteRoute(route.destination, name, route.table)
            }
        })
    }

    /// Draws a change that restores a part of the first host.
    fn mended(&self, rng: &mut Rng, host: &Host) -> Option<HostChange> {
        let mut changes = Vec::new();
        for first in &self.first.interfaces {
            match host.interface(&first.name) {
                None => changes.push(HostChange::AddInterface(Interface {
                    groups: vec!["all".to_owned()],
                    ..first.clone()
                })),
                Some(now) if now.down => changes.push(HostChange::Up(now.name.clone())),
                Some(now) => changes.extend(
                    first
                        .addresses
                        .iter()
                        .filter(|address| !now.addresses.contains(address))
                        .map(|address| HostChange::AddAddress(now.name.clone(), *address)),
                ),
            }
        }
        // routes to own networks come with their addresses
        let addresses = self.first.interfaces.iter().flat_map(|interface| &interface.addresses);
        let own: Vec<IpNet> = addresses.map(|own| own.net.trunc()).collect();
        let lost = self.first.routes.iter().filter(|route| {
            !host.routes.contains(route) && (route.table != 0 || !own.contains(&route.destination))
        });
        changes.extend(lost.map(|route| HostChange::AddRoute(route.clone())));
        (!changes.is_empty()).then(|| pick(rng, &changes))
    }
}

/// Returns true if the interfaces that a packet needs exist and are up.
pub fn is_possible(action: &Action, before: Option<&Action>, host: &Host) -> bool {
    let has = |name: &String| host.interface(name).is_some_and(|interface| !interface.down);
    match action {
        Action::Packet(arrival, _) => {
            has(&arrival.interface) && arrival.received_on.iter().all(has)
        }
        Action::Forward(interface, _) => {
            has(interface)
                && matches!(before, Some(Action::Packet(arrival, _)) if has(&arrival.interface))
        }
        _ => true,
    }
}
