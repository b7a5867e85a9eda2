//! Transparent bridges: which interfaces are ports of which, what rules for frames they have, and
//! what the programs know of their stations. Ports are remembered by name: an interface that
//! vanishes and comes back is one again.

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

/// The address of a station.
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

/// A rule for frames, of one port. The first that matches decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameRule {
    /// What becomes of the frame.
    pub pass: bool,
    /// Which way it goes; `None` is both.
    pub direction: Option<Direction>,
    /// Who it comes from.
    pub source: Option<LinkAddress>,
    /// Who it is for.
    pub destination: Option<LinkAddress>,
    /// Its EtherType.
    pub ether_type: Option<u16>,
}

impl FrameRule {
    fn is_of(&self, direction: Direction) -> bool {
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

/// A port, as it is remembered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// Number of its bridge, from 1.
    bridge: u32,
    /// Of its bridge: seconds that a station is known from which nothing comes; 0: for good.
    timeout: u32,
    /// Its own number, from 1.
    number: u32,
    /// The interface's index, 0 while it is away.
    index: u32,
    /// We have it hear what is not for it.
    promiscuous: bool,
    /// We keep it from joining packets.
    kept_apart: bool,
    block_non_ip: bool,
    rules: Vec<FrameRule>,
}

impl Port {
    /// Its rules for frames that go this way, in their order.
    fn rules_of(&self, way: Direction) -> impl Iterator<Item = &FrameRule> {
        self.rules.iter().filter(move |rule| rule.is_of(way))
    }
}

/// All ports by name.
pub type Ports = BTreeMap<String, Port>;

/// A bridge, as it is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BridgeView {
    /// Its number.
    pub number: u32,
    /// Seconds that a station is known from which nothing comes; 0: for good.
    pub timeout: u32,
    /// By name.
    pub ports: Vec<PortView>,
    /// In the order of ports.
    pub stations: Vec<Station>,
}

/// A port, as it is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortView {
    /// The interface.
    pub name: String,
    /// It is there.
    pub present: bool,
    /// It takes nothing but IP.
    pub block_non_ip: bool,
    /// In their order.
    pub rules: Vec<FrameRule>,
    /// Of all CPUs.
    pub stats: abi::BridgeStats,
}

/// A station that a bridge knows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Station {
    /// The port that it is behind.
    pub port: String,
    /// Number of the VLAN, 0 for none.
    pub vlan: u16,
    /// Its address.
    pub address: LinkAddress,
    /// Seconds since the last frame from it.
    pub age: u32,
}

impl Instance {
    /// Joins interfaces by a bridge: by that of those which are ports already, if there is one,
    /// else by a new one.
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
                return change.refuse(wrong(name, "there are as many ports as there may be"));
            }
            let port = Port { bridge, timeout, number, ..Port::default() };
            change.memory.ports.insert(name.clone(), port);
        }
        // what a killed process leaves is remembered, and undone with the instance
        change.save()?;
        self.start()?;
        if self.running() {
            // nothing is to cross unfiltered, not even by an interface that nobody has told us of
            for index in names.iter().filter_map(|name| Some(host.interface(name)?.index)) {
                attach::attach(&self.programs, &self.directory, index)?;
            }
        }
        self.follow(&mut change, &host)?;
        change.keep()
    }

    /// Takes interfaces off their bridges.
    pub fn bridge_delete(&self, names: &[String]) -> Result<()> {
        let mut change = self.begin()?;
        if let Some(name) = names.iter().find(|name| !change.memory.ports.contains_key(*name)) {
            return change.refuse(wrong(name, "is not a port"));
        }
        for mut port in
            names.iter().filter_map(|name| change.memory.ports.remove(name)).collect::<Vec<_>>()
        {
            if port.index != 0 {
                vacate(&self.maps, &self.directory, &mut port)?;
            }
        }
        let host = host::read()?;
        self.follow(&mut change, &host)?;
        change.keep()
    }

    /// Has the bridge of a port know stations so many seconds from which nothing comes, or for
    /// good: 0.
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

    /// Has a port take and give nothing but IPv4, IPv6, ARP and reverse ARP, or everything.
    pub fn bridge_block_non_ip(&self, name: &str, block: bool) -> Result<()> {
        self.change_port(name, |port| port.block_non_ip = block)
    }

    /// Adds a rule behind those that a port has.
    pub fn bridge_add_rule(&self, name: &str, rule: FrameRule) -> Result<()> {
        self.change_port(name, |port| port.rules.push(rule))
    }

    /// Removes all rules of a port.
    pub fn bridge_flush_rules(&self, name: &str) -> Result<()> {
        self.change_port(name, |port| port.rules.clear())
    }

    /// Forgets all stations.
    pub fn bridge_flush(&self) -> Result<()> {
        forget(&self.maps, |_| true)
    }

    /// All bridges.
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

    /// Tells the programs what has changed of a port.
    fn rewrite_port(&self, port: &Port) -> Result<()> {
        if port.index == 0 {
            return Ok(());
        }
        let hears = self.maps.bridge_ports.at(port.number)?.flags & flags::HEARS;
        write_port(&self.maps, port, hears)
    }
}

/// Has the programs and the interfaces of the host be what is remembered of ports.
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
            vacate(maps, directory, port)?;
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
            hear_all(index, true)?;
            port.promiscuous = true;
        }
        // what others sent is to leave as they sent it
        port.kept_apart |= offload::let_join_packets(name, false);
    }
    Ok(())
}

/// Gives all interfaces back as they were.
pub(crate) fn tear_down(ports: &Ports) {
    for port in ports.values().filter(|port| port.index != 0) {
        release(port);
    }
}

/// Gives the interface of a port back as it was, unless it is gone.
fn release(port: &Port) {
    if port.promiscuous {
        let _ = hear_all(port.index, false);
    }
    if port.kept_apart
        && let Ok(link) = link(port.index)
        && let Some(name) = name_of(&link)
    {
        offload::let_join_packets(name, true);
    }
}

/// Makes the interface of a port one like any other, and forgets the stations behind it.
fn vacate(maps: &Maps, directory: &Path, port: &mut Port) -> Result<()> {
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

/// Forgets the stations behind ports of which `is_meant` says so by their numbers.
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

/// A port sees no more rules than [`write_port`] tells it of: those that are removed, it has been
/// told.
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

/// Whether the host can be spoken to there, by others than neighbours who seek a link-local
/// address.
fn has_addresses(interface: &Interface) -> bool {
    interface.addresses.iter().any(|own| match own.net.addr() {
        std::net::IpAddr::V4(_) => true,
        std::net::IpAddr::V6(own) => !own.is_unicast_link_local(),
    })
}

/// Whether an interface can become a port.
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

/// Whether somebody has it so already: then it stays so.
fn is_promiscuous(index: u32) -> Result<bool> {
    Ok(link(index)?.header.flags.contains(LinkFlags::Promisc))
}

/// Has an interface hear what is not for it, or no more.
fn hear_all(index: u32, all: bool) -> Result<()> {
    let mut link = LinkMessage::default();
    link.header.index = index;
    link.header.flags = if all { LinkFlags::Promisc } else { LinkFlags::empty() };
    link.header.change_mask = LinkFlags::Promisc;
    Rtnetlink::open()?.order(RouteNetlinkMessage::SetLink(link), 0)
}

/// That of the ports that a bridge has.
fn timeout_of(ports: &Ports, bridge: u32) -> Option<u32> {
    ports.values().find(|port| port.bridge == bridge).map(|port| port.timeout)
}

/// The first number from 1 on that is not in use.
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
        assert!(rule.is_of(Direction::In) && rule.is_of(Direction::Out));
        let image = rule.image();
        assert_eq!(image.r#match, bridge_match::DESTINATION | bridge_match::TYPE);
        assert_eq!((image.action, image.r#type), (action::BLOCK, [8, 6]));
    }
}
