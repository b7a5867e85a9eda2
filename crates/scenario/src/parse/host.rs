//! Reads the host: blocks that describe it, and steps that change it.

use std::net::IpAddr;

use ipnet::IpNet;
use skipstep_ruleset::interface::{Interface, InterfaceAddress, Route};

use super::block::{Piece, Placed, entries};
use crate::host_change::HostChange;
use crate::line::{Line, Parsed};

/// Reads the pieces of `interfaces { … }`.
pub(super) fn interfaces(pieces: &[Piece]) -> Placed<Vec<Interface>> {
    entries(pieces, |place, line| Ok(Interface { index: place as u32 + 1, ..interface(line)? }))
}

/// Reads the pieces of `routes { … }`.
pub(super) fn routes(pieces: &[Piece]) -> Placed<Vec<Route>> {
    entries(pieces, |_, line| route(line))
}

/// Reads a step that begins with `address`, `link`, `interface`, `group` or `route`.
pub(super) fn change(what: &str, line: &mut Line) -> Parsed<HostChange> {
    if what == "link" {
        let up = line.value("up or down", |word| match word {
            "up" => Some(true),
            "down" => Some(false),
            _ => None,
        })?;
        let name = name(line)?;
        return Ok(if up { HostChange::Up(name) } else { HostChange::Down(name) });
    }
    let comes = line.value("add or delete", |word| match word {
        "add" => Some(true),
        "delete" => Some(false),
        _ => None,
    })?;
    Ok(match (what, comes) {
        ("address", true) => {
            let name = name(line)?;
            let net = net(line)?;
            let peer = if line.take("peer") { Some(address(line)?) } else { None };
            HostChange::AddAddress(
                name,
                InterfaceAddress { peer, ..InterfaceAddress::new(net, false) },
            )
        }
        ("address", false) => HostChange::DeleteAddress(name(line)?, net(line)?),
        ("interface", true) => HostChange::AddInterface(interface(line)?),
        ("interface", false) => HostChange::DeleteInterface(name(line)?),
        ("group", true) => HostChange::Join(name(line)?, group(line)?),
        ("group", false) => HostChange::Leave(name(line)?, group(line)?),
        (_, true) => HostChange::AddRoute(route(line)?),
        (_, false) => {
            let destination = destination(line)?;
            line.expect("on")?;
            HostChange::DeleteRoute(destination, name(line)?, table(line)?)
        }
    })
}

/// Reads the name of an interface. Characters that delimit blocks are refused.
fn name(line: &mut Line) -> Parsed<String> {
    let foreign = |c: char| c.is_whitespace() || ['{', '}', '#', '"', ';'].contains(&c);
    line.value("an interface's name", |text| {
        (!text.is_empty() && !text.contains(foreign)).then(|| text.to_owned())
    })
}

fn group(line: &mut Line) -> Parsed<String> {
    Ok(line.word("a group")?.text.clone())
}

fn net(line: &mut Line) -> Parsed<IpNet> {
    line.value("an address with its prefix length", |text| text.parse().ok())
}

fn address(line: &mut Line) -> Parsed<IpAddr> {
    line.value("an address", |text| text.parse().ok())
}

/// Reads an interface with its addresses.
fn interface(line: &mut Line) -> Parsed<Interface> {
    let mut interface = Interface {
        name: name(line)?,
        mtu: 1500,
        groups: vec!["all".into()],
        ..Interface::default()
    };
    let mut nets: Vec<(IpNet, Option<IpAddr>)> = Vec::new();
    while let Some(word) = line.peek() {
        match word {
            "group" => interface.groups.push(line.word_behind("a group")?),
            "mtu" => {
                line.next();
                interface.mtu = line.number("a number of bytes")?;
            }
            "rdomain" => {
                line.next();
                interface.rdomain = line.number("a routing domain")?;
            }
            "loopback" => interface.loopback = line.next().is_some(),
            "tunnel" => interface.no_link_header = line.next().is_some(),
            "port" => interface.port = line.next().is_some(),
            "down" => interface.down = line.next().is_some(),
            "peer" => {
                line.next();
                let peer = address(line)?;
                match nets.last_mut() {
                    Some((_, last)) => *last = Some(peer),
                    None => return Err(line.fault_before("peer belongs behind an address")),
                }
            }
            _ => nets.push((net(line)?, None)),
        }
    }
    let own =
        |(net, peer)| InterfaceAddress { peer, ..InterfaceAddress::new(net, interface.loopback) };
    interface.addresses = nets.into_iter().map(own).collect();
    Ok(interface)
}

fn route(line: &mut Line) -> Parsed<Route> {
    let destination = destination(line)?;
    line.expect("on")?;
    let interface = name(line)?;
    let gateway = if line.take("via") { Some(address(line)?) } else { None };
    let label = match line.take("label") {
        true => Some(line.word("a label")?.text.clone()),
        false => None,
    };
    Ok(Route { destination, interface, gateway, label, table: table(line)? })
}

fn destination(line: &mut Line) -> Parsed<IpNet> {
    line.value("a prefix, default or default6", |text| match text {
        "default" => "0.0.0.0/0".parse().ok(),
        "default6" => "::/0".parse().ok(),
        _ => text.parse().ok(),
    })
}

/// Reads `table N`. Returns 0 if the words are missing.
fn table(line: &mut Line) -> Parsed<u32> {
    if line.take("table") {
        return line.value("the number of a table", |text| text.parse().ok());
    }
    Ok(0)
}
