//! Ports of bridges in the maps of the programs, and on the interfaces of the host.

use std::path::Path;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use skipstep_abi as abi;
use skipstep_abi::bridge::bridge_port_flags as flags;
use skipstep_abi::verdict::direction;
use skipstep_ruleset::Direction;
use skipstep_ruleset::interface::{Host, Interface};

use crate::bridge_port::{Port, Ports};
use crate::error::Result;
use crate::netlink::Rtnetlink;
use crate::object::{Maps, Programs};
use crate::{attach, offload};

/// Applies the recorded ports to the programs and to the interfaces of the host.
pub(crate) fn follow(
    maps: &Maps,
    programs: &Programs,
    directory: &Path,
    ports: &mut Ports,
    host: &Host,
) -> Result<()> {
    let index_of = |name: &str| host.interface(name).map_or(0, |interface| interface.index);
    for (name, port) in &mut *ports {
        if port.index != index_of(name) && port.index != 0 {
            clear_port(maps, directory, port)?;
        }
    }
    for (name, port) in ports {
        let Some(interface) = host.interface(name) else { continue };
        let index = interface.index;
        if port.index == 0 {
            maps.bridge_stats.set(&port.number, &abi::BridgeStats::default())?;
            port.index = index;
            write_rules(maps, port)?;
        }
        write_port(maps, port, if has_addresses(interface) { flags::HEARS } else { 0 })?;
        maps.bridge_numbers.set(&index, &port.number)?;
        attach::attach_bridge(programs, directory, index)?;
        if !port.promiscuous && !is_promiscuous(index)? {
            set_promiscuous(index, true)?;
            port.promiscuous = true;
        }
        // frames must leave as they were sent
        port.kept_apart |= offload::set_lro(name, false);
    }
    Ok(())
}

/// Restores the settings of the interfaces of all ports.
pub(crate) fn tear_down(ports: &Ports) {
    for port in ports.values().filter(|port| port.index != 0) {
        release(port);
    }
}

/// Restores the settings of a port's interface, unless the interface is gone.
fn release(port: &Port) {
    if port.promiscuous {
        let _ = set_promiscuous(port.index, false);
    }
    if port.kept_apart
        && let Ok(link) = link(port.index)
        && let Some(name) = name_of(&link)
    {
        offload::set_lro(name, true);
    }
}

/// Makes the interface of a port an ordinary interface, and removes the stations behind the port.
pub(crate) fn clear_port(maps: &Maps, directory: &Path, port: &mut Port) -> Result<()> {
    attach::detach_bridge(directory, port.index)?;
    maps.bridge_numbers.remove(&port.index)?;
    maps.bridge_ports.set(&port.number, &abi::BridgePort::default())?;
    forget(maps, |behind| behind == port.number)?;
    write_rules(maps, &Port { rules: Vec::new(), ..*port })?;
    release(port);
    port.promiscuous = false;
    port.kept_apart = false;
    port.index = 0;
    Ok(())
}

/// Removes the stations behind the ports whose numbers `is_meant` accepts.
pub(crate) fn forget(maps: &Maps, is_meant: impl Fn(u32) -> bool) -> Result<()> {
    let mut meant = Vec::new();
    maps.bridge_addresses.for_each(|station, known| {
        if is_meant(known.port) {
            meant.push(*station);
        }
    })?;
    for station in meant {
        maps.bridge_addresses.remove(&station)?;
    }
    Ok(())
}

/// Writes a port's rules to the map. The programs read only as many rules as [`write_port`] has
/// counted for the port.
pub(crate) fn write_rules(maps: &Maps, port: &Port) -> Result<()> {
    for (way, number) in [(Direction::In, direction::IN), (Direction::Out, direction::OUT)] {
        let key = |place: usize| abi::BridgeRuleKey {
            ifindex: port.index,
            direction: number.into(),
            number: place as u16,
        };
        for (place, rule) in port.rules_of(way).enumerate() {
            maps.bridge_rules.set(&key(place), &rule.image())?;
        }
        for place in port.rules_of(way).count()..abi::bridge::BRIDGE_RULES as usize {
            if maps.bridge_rules.get(&key(place))?.is_none() {
                break;
            }
            maps.bridge_rules.remove(&key(place))?;
        }
    }
    Ok(())
}

/// Writes a port to the map. `hears` is the flag of ports with addresses of the host, or 0.
pub(crate) fn write_port(maps: &Maps, port: &Port, hears: u32) -> Result<()> {
    let image = abi::BridgePort {
        ifindex: port.index,
        bridge: port.bridge,
        flags: hears | if port.block_non_ip { flags::BLOCK_NON_IP } else { 0 },
        timeout: port.timeout,
        rules: [Direction::In, Direction::Out].map(|way| port.rules_of(way).count() as u32),
    };
    maps.bridge_ports.set(&port.number, &image)
}

/// True if the host has an address there that stations beyond the link can reach: any IPv4 address,
/// or an IPv6 address that is not link-local.
fn has_addresses(interface: &Interface) -> bool {
    interface.addresses.iter().any(|own| match own.net.addr() {
        std::net::IpAddr::V4(_) => true,
        std::net::IpAddr::V6(own) => !own.is_unicast_link_local(),
    })
}

/// Returns the attributes of an interface.
pub(crate) fn link(index: u32) -> Result<LinkMessage> {
    let mut wanted = LinkMessage::default();
    wanted.header.index = index;
    let answers = Rtnetlink::open()?.get(RouteNetlinkMessage::GetLink(wanted))?;
    let mut links = answers.into_iter().filter_map(|object| match object {
        RouteNetlinkMessage::NewLink(link) => Some(link),
        _ => None,
    });
    Ok(links.next().unwrap_or_default())
}

fn name_of(link: &LinkMessage) -> Option<&str> {
    link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name.as_str()),
        _ => None,
    })
}

/// True if another program has made the interface promiscuous; skipstep then leaves it so.
fn is_promiscuous(index: u32) -> Result<bool> {
    Ok(link(index)?.header.flags.contains(LinkFlags::Promisc))
}

/// Makes an interface promiscuous, or ends that.
fn set_promiscuous(index: u32, all: bool) -> Result<()> {
    let mut link = LinkMessage::default();
    link.header.index = index;
    link.header.flags = if all { LinkFlags::Promisc } else { LinkFlags::empty() };
    link.header.change_mask = LinkFlags::Promisc;
    Rtnetlink::open()?.order(RouteNetlinkMessage::SetLink(link), 0)
}
