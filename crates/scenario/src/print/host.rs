//! Prints the host and its changes in the notation of scenario files.

use std::fmt::{self, Display};

use skipstep_ruleset::interface::{Host, Interface, InterfaceAddress, Route};

use crate::host_change::HostChange;
use crate::write::quoted;

pub(super) fn write_host(f: &mut fmt::Formatter<'_>, host: &Host) -> fmt::Result {
    writeln!(f, "interfaces {{")?;
    for one in &host.interfaces {
        writeln!(f, "    {}", interface(one))?;
    }
    writeln!(f, "}}\nroutes {{")?;
    for one in &host.routes {
        writeln!(f, "    {}", route(one))?;
    }
    writeln!(f, "}}")
}

impl Display for HostChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostChange::AddAddress(name, own) => write!(f, "address add {name} {}", address(own)),
            HostChange::DeleteAddress(name, net) => write!(f, "address delete {name} {net}"),
            HostChange::Up(name) => write!(f, "link up {name}"),
            HostChange::Down(name) => write!(f, "link down {name}"),
            HostChange::AddInterface(new) => write!(f, "interface add {}", interface(new)),
            HostChange::DeleteInterface(name) => write!(f, "interface delete {name}"),
            HostChange::Join(name, group) => write!(f, "group add {name} {}", quoted(group)),
            HostChange::Leave(name, group) => write!(f, "group delete {name} {}", quoted(group)),
            HostChange::AddRoute(new) => write!(f, "route add {}", route(new)),
            HostChange::DeleteRoute(destination, name, table) => {
                write!(f, "route delete {destination} on {name}{}", in_table(*table))
            }
        }
    }
}

fn interface(interface: &Interface) -> String {
    let mut words = vec![interface.name.clone()];
    words.extend(interface.addresses.iter().map(address));
    let groups = interface.groups.iter().filter(|group| *group != "all");
    words.extend(groups.map(|group| format!("group {}", quoted(group))));
    if interface.mtu != 1500 {
        words.push(format!("mtu {}", interface.mtu));
    }
    if interface.rdomain != 0 {
        words.push(format!("rdomain {}", interface.rdomain));
    }
    words.extend(interface.loopback.then(|| "loopback".into()));
    words.extend(interface.no_link_header.then(|| "tunnel".into()));
    words.extend(interface.port.then(|| "port".into()));
    words.extend(interface.down.then(|| "down".into()));
    words.join(" ")
}

fn address(address: &InterfaceAddress) -> String {
    let peer = address.peer.map(|peer| format!(" peer {peer}"));
    format!("{}{}", address.net, peer.unwrap_or_default())
}

fn route(route: &Route) -> String {
    let mut text = format!("{} on {}", route.destination, route.interface);
    if let Some(gateway) = route.gateway {
        text += &format!(" via {gateway}");
    }
    if let Some(label) = &route.label {
        text += &format!(" label {}", quoted(label));
    }
    text + &in_table(route.table)
}

fn in_table(table: u32) -> String {
    if table == 0 { String::new() } else { format!(" table {table}") }
}
