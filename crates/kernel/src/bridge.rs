//! Transparent bridges: their ports, the frame rules of ports, and the stations that the programs
//! have learned. Ports are recorded by name, so an interface that vanishes and returns is a port
//! again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use serde::{Deserialize, Serialize};
use skipstep_abi as abi;
use skipstep_abi::bridge::BRIDGE_TIMEOUT;
pub use skipstep_abi::bridge::{BRIDGE_ADDRESSES, BRIDGE_TIMEOUT_MAX, bridge_drop};
use skipstep_abi::bridge::{bridge_match, bridge_port_flags as flags};
use skipstep_abi::verdict::{action, direction};
use skipstep_ruleset::Direction;
use skipstep_ruleset::interface::{Host, Interface};

use crate::error::{Error, Result};
use crate::instance::Instance;
use crate::lab::offload;
use crate::netlink::Rtnetlink;
use crate::object::{Maps, Programs};
use crate::{attach, host};

/// Link address of a station (6 bytes, in the order of the frame).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LinkAddress(pub [u8; 6]);

impl fmt::Display for LinkAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for LinkAddress {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let is_hex = |part: &&str| !part.starts_with('+') && (1..=2).contains(&part.len());
        let parts: Vec<&str> = text.split(':').filter(is_hex).collect();
        let mut bytes = [0; 6];
        if parts.len() != 6 || text.split(':').count() != 6 {
            return Err(());
        }
        for (byte, part) in bytes.iter_mut().zip(parts) {
            *byte = u8::from_str_radix(part, 16).map_err(|_| ())?;
        }
        Ok(LinkAddress(bytes))
    }
}

/// A rule for frames, of one port. The first matching rule decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameRule {
    /// True to pass the frame, false to drop it.
    pub pass: bool,
    /// Direction of the frame, seen from the port; `None` matches both.
    pub direction: Option<Direction>,
    /// Link address of the sender; `None` matches all.
    pub source: Option<LinkAddress>,
    /// Link address of the receiver; `None` matches all.
    pub destination: Option<LinkAddress>,
    /// EtherType in host byte order; `None` matches all.
    pub ether_type: Option<u16>,
}

impl FrameRule {
    fn applies_to(&self, direction: Direction) -> bool {
        self.direction.is_none_or(|own| own == direction)
    }

    fn image(&self) -> abi::BridgeRule {
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        abi::BridgeRule {
            action: if self.pass { action::PASS } else { action::BLOCK },
            r#match: bit(self.source.is_some(), bridge_match::SOURCE)
                | bit(self.destination.is_some(), bridge_match::DESTINATION)
                | bit(self.ether_type.is_some(), bridge_match::TYPE),
            r#type: self.ether_type.unwrap_or(0).to_be_bytes(),
            source: self.source.map_or([0; 6], |address| address.0),
            destination: self.destination.map_or([0; 6], |address| address.0),
        }
    }
}

/// A port, as the instance's memory stores it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// Number of its bridge, from 1.
    bridge: u32,
    /// Seconds until the bridge forgets a silent station; 0 for never. The same in all ports of a
    /// bridge.
    timeout: u32,
    /// Number of the port, from 1.
    number: u32,
    /// Index of the interface, 0 while the interface is absent.
    index: u32,
    /// True if skipstep has made the interface promiscuous.
    promiscuous: bool,
    /// True if skipstep has turned off the joining of packets (LRO).
    kept_apart: bool,
    block_non_ip: bool,
    rules: Vec<FrameRule>,
}

impl Port {
    /// Returns the port's rules for frames in a direction, in their order.
    fn rules_of(&self, way: Direction) -> impl Iterator<Item = &FrameRule> {
        self.rules.iter().filter(move |rule| rule.applies_to(way))
    }
}

/// All ports, by the names of their interfaces.
pub type Ports = BTreeMap<String, Port>;

/// A bridge, as pfctl shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BridgeView {
    /// Number of the bridge, from 1.
    pub number: u32,
    /// Seconds until the bridge forgets a silent station; 0 for never.
    pub timeout: u32,
    /// Ports, sorted by name.
    pub ports: Vec<PortView>,
    /// Stations, sorted by port, VLAN and address.
    pub stations: Vec<Station>,
}

/// A port, as pfctl shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortView {
    /// Name of the interface.
    pub name: String,
    /// True if the interface exists.
    pub present: bool,
    /// True if the port drops all frames but IPv4, IPv6, ARP and reverse ARP.
    pub block_non_ip: bool,
    /// Frame rules in the order of evaluation.
    pub rules: Vec<FrameRule>,
    /// Counters, summed over all CPUs.
    pub stats: abi::BridgeStats,
}

/// A station that a bridge has learned.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Station {
    /// Name of the port that leads to the station.
    pub port: String,
    /// VLAN identifier, 0 for none.
    pub vlan: u16,
    /// Link address of the station.
    pub address: LinkAddress,
    /// Seconds since the last frame of the station.
    pub age: u32,
}

impl Instance {
    /// Joins interfaces to a bridge: the bridge of those that are ports already, or else a new
    /// bridge.
    ///
    /// # Errors
    /// Fails if the interfaces are ports of different bridges, or if an interface cannot be a port.
    /// Fails also if no port number is free, or if the kernel refuses a change.
    pub fn bridge_add(&self, names: &[String]) -> Result<()> {
        let mut change = self.begin()?;
        let host = host::read()?;
        let bridges: BTreeSet<u32> =
            names.iter().filter_map(|name| Some(change.memory.ports.get(name)?.bridge)).collect();
        let bridge = match bridges.len() {
            0 => first_free(change.memory.ports.values().map(|port| port.bridge)),
            1 => bridges.into_iter().next().unwrap_or_default(),
            _ => return change.refuse(wrong(&names.join(" "), "are ports of different bridges")),
        };
        let timeout = timeout_of(&change.memory.ports, bridge).unwrap_or(BRIDGE_TIMEOUT);
        for name in names {
            if change.memory.ports.contains_key(name) {
                continue;
            }
            if let Err(error) = may_be_port(name, &host) {
                return change.refuse(error);
            }
            let number = first_free(change.memory.ports.values().map(|port| port.number));
            if number >= abi::bridge::BRIDGE_PORTS {
                return change.refuse(wrong(name, "the maximum number of bridge ports is reached"));
            }
            let port = Port { bridge, timeout, number, ..Port::default() };
            change.memory.ports.insert(name.clone(), port);
        }
        // the record is saved first: a port that a killed process leaves is undone with the
        // instance
        change.save()?;
        self.start()?;
        if self.running() {
            // attach first, so that no frame crosses unfiltered: skipstepd may not have seen a new
            // interface yet
            for index in names.iter().filter_map(|name| Some(host.interface(name)?.index)) {
                attach::attach(&self.programs, &self.directory, index)?;
            }
        }
        self.follow(&mut change, &host)?;
        change.keep()
    }

    /// Removes interfaces from their bridges.
    ///
    /// # Errors
    /// Fails if an interface is not a port (then none is removed), or if the kernel refuses a
    /// change.
    pub fn bridge_delete(&self, names: &[String]) -> Result<()> {
        let mut change = self.begin()?;
        if let Some(name) = names.iter().find(|name| !change.memory.ports.contains_key(*name)) {
            return change.refuse(wrong(name, "is not a port"));
        }
        for mut port in
            names.iter().filter_map(|name| change.memory.ports.remove(name)).collect::<Vec<_>>()
        {
            if port.index != 0 {
                clear_port(&self.maps, &self.directory, &mut port)?;
            }
        }
        let host = host::read()?;
        self.follow(&mut change, &host)?;
        change.keep()
    }

    /// Sets the seconds until the bridge of a port forgets a silent station; 0 for never.
    ///
    /// # Errors
    /// Fails if the interface is not a port, or if the records or maps cannot be written.
    pub fn bridge_timeout(&self, name: &str, seconds: u32) -> Result<()> {
        let mut change = self.begin()?;
        let Some(bridge) = change.memory.ports.get(name).map(|port| port.bridge) else {
            return change.refuse(wrong(name, "is not a port"));
        };
        for port in change.memory.ports.values_mut().filter(|port| port.bridge == bridge) {
            port.timeout = seconds;
            self.rewrite_port(port)?;
        }
        change.keep()
    }

    /// Sets or clears `blocknonip`: the port drops all frames but IPv4, IPv6, ARP and reverse ARP.
    ///
    /// # Errors
    /// Fails if the interface is not a port, or if the records or maps cannot be written.
    pub fn bridge_block_non_ip(&self, name: &str, block: bool) -> Result<()> {
        self.change_port(name, |port| port.block_non_ip = block)
    }

    /// Appends a rule to the rules of a port.
    ///
    /// # Errors
    /// Fails if the interface is not a port, or if the port has the largest number of rules in a
    /// direction. Fails also if the records or maps cannot be written.
    pub fn bridge_add_rule(&self, name: &str, rule: FrameRule) -> Result<()> {
        self.change_port(name, |port| port.rules.push(rule))
    }

    /// Removes all rules of a port.
    ///
    /// # Errors
    /// Fails if the interface is not a port, or if the records or maps cannot be written.
    pub fn bridge_flush_rules(&self, name: &str) -> Result<()> {
        self.change_port(name, |port| port.rules.clear())
    }

    /// Removes all learned stations of all bridges.
    ///
    /// # Errors
    /// Fails if the map of stations cannot be read or changed.
    pub fn bridge_flush(&self) -> Result<()> {
        forget(&self.maps, |_| true)
    }

    /// Returns all bridges, sorted by number.
    ///
    /// # Errors
    /// Fails if the instance's memory or its maps cannot be read.
    pub fn bridges(&self) -> Result<Vec<BridgeView>> {
        let ports = self.run.memory()?.ports;
        let mut bridges: BTreeMap<u32, BridgeView> = BTreeMap::new();
        for (name, port) in &ports {
            let bridge = bridges.entry(port.bridge).or_default();
            bridge.number = port.bridge;
            bridge.timeout = port.timeout;
            bridge.ports.push(PortView {
                name: name.clone(),
                present: port.index != 0,
                block_non_ip: port.block_non_ip,
                rules: port.rules.clone(),
                stats: sum(self.maps.bridge_stats.get(&port.number)?),
            });
        }
        let now = self.uptime()?;
        self.maps.bridge_addresses.for_each(|station, known| {
            let port = ports.iter().find(|(_, port)| port.number == known.port);
            let age = now.saturating_sub(known.seen);
            if let Some((name, _)) =
                port.filter(|(_, port)| port.timeout == 0 || age <= port.timeout)
                && let Some(bridge) = bridges.get_mut(&station.bridge)
            {
                let address = LinkAddress(station.address);
                let station = Station { port: name.clone(), vlan: station.vlan, address, age };
                bridge.stations.push(station);
            }
        })?;
        bridges.values_mut().for_each(|bridge| bridge.stations.sort());
        Ok(bridges.into_values().collect())
    }

    fn change_port(&self, name: &str, how: impl FnOnce(&mut Port)) -> Result<()> {
        let mut change = self.begin()?;
        let Some(port) = change.memory.ports.get_mut(name) else {
            return change.refuse(wrong(name, "is not a port"));
        };
        how(port);
        let most = abi::bridge::BRIDGE_RULES as usize;
        if [Direction::In, Direction::Out].iter().any(|way| port.rules_of(*way).count() > most) {
            return change.refuse(wrong(name, &format!("has {most} rules, and can have no more")));
        }
        if port.index != 0 {
            write_rules(&self.maps, port)?;
        }
        self.rewrite_port(port)?;
        change.keep()
    }

    /// Writes a changed port to the map, if its interface exists.
    fn rewrite_port(&self, port: &Port) -> Result<()> {
        if port.index == 0 {
            return Ok(());
        }
        let hears = self.maps.bridge_ports.at(port.number)?.flags & flags::HEARS;
        write_port(&self.maps, port, hears)
    }
}

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
fn clear_port(maps: &Maps, directory: &Path, port: &mut Port) -> Result<()> {
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
fn forget(maps: &Maps, is_meant: impl Fn(u32) -> bool) -> Result<()> {
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
fn write_rules(maps: &Maps, port: &Port) -> Result<()> {
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

fn write_port(maps: &Maps, port: &Port, hears: u32) -> Result<()> {
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

/// Checks that an interface can become a port.
fn may_be_port(name: &str, host: &Host) -> Result<()> {
    let Some(interface) = host.interface(name) else {
        return Err(wrong(name, "no such interface"));
    };
    if interface.loopback || interface.no_link_header {
        return Err(wrong(name, "its frames have no Ethernet header"));
    }
    let link = link(interface.index)?;
    let has_master = |attribute: &LinkAttribute| matches!(attribute, LinkAttribute::Controller(master) if *master != 0);
    if link.attributes.iter().any(has_master) {
        return Err(wrong(name, "belongs to a bridge, a bond or a VRF of the kernel"));
    }
    Ok(())
}

fn link(index: u32) -> Result<LinkMessage> {
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

/// Returns the timeout of a bridge in seconds, from any of its ports; `None` if it has none.
fn timeout_of(ports: &Ports, bridge: u32) -> Option<u32> {
    ports.values().find(|port| port.bridge == bridge).map(|port| port.timeout)
}

/// Returns the least number from 1 on that is not in use.
fn first_free(used: impl Iterator<Item = u32>) -> u32 {
    let used: BTreeSet<u32> = used.collect();
    (1..).find(|number| !used.contains(number)).unwrap_or(u32::MAX)
}

fn sum(of_cpus: Vec<abi::BridgeStats>) -> abi::BridgeStats {
    let mut all = abi::BridgeStats::default();
    for one in of_cpus {
        for way in 0..2 {
            all.packets[way] += one.packets[way];
            all.bytes[way] += one.bytes[way];
        }
        all.flooded += one.flooded;
        all.unlearned += one.unlearned;
        for (sum, dropped) in all.dropped.iter_mut().zip(one.dropped) {
            *sum += dropped;
        }
    }
    all
}

fn wrong(name: &str, cause: &str) -> Error {
    Error::Port { name: name.to_owned(), cause: cause.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_addresses_are_read_as_they_are_written() {
        for text in ["00:00:5e:00:53:01", "fe:e1:ba:d0:0f:ff"] {
            assert_eq!(text.parse::<LinkAddress>().unwrap().to_string(), text);
        }
        assert_eq!("0:0:5e:0:53:1".parse(), Ok(LinkAddress([0, 0, 0x5e, 0, 0x53, 1])));
        for text in [
            "",
            "00:00:5e:00:53",
            "00:00:5e:00:53:01:02",
            "00:00:5e:00:53:100",
            "0:0:5e::53:1",
            "+0:0:5e:0:53:1",
        ] {
            assert!(text.parse::<LinkAddress>().is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_are_given_again() {
        assert_eq!(first_free([].into_iter()), 1);
        assert_eq!(first_free([1, 2, 4].into_iter()), 3);
    }

    #[test]
    fn a_rule_for_both_directions_is_one_of_each() {
        let rule = FrameRule {
            pass: false,
            direction: None,
            source: None,
            destination: Some(LinkAddress([1, 2, 3, 4, 5, 6])),
            ether_type: Some(0x0806),
        };
        assert!(rule.applies_to(Direction::In) && rule.applies_to(Direction::Out));
        let image = rule.image();
        assert_eq!(image.r#match, bridge_match::DESTINATION | bridge_match::TYPE);
        assert_eq!((image.action, image.r#type), (action::BLOCK, [8, 6]));
    }
}
