//! Transparent bridges: their ports, the frame rules of ports, and the stations that the programs
//! have learned. Ports are recorded by name, so an interface that vanishes and returns is a port
//! again.

use std::collections::{BTreeMap, BTreeSet};

use netlink_packet_route::link::LinkAttribute;
use skipstep_abi as abi;
use skipstep_abi::bridge::BRIDGE_TIMEOUT;
use skipstep_abi::bridge::bridge_port_flags as flags;
pub use skipstep_abi::bridge::{BRIDGE_ADDRESSES, BRIDGE_TIMEOUT_MAX, bridge_drop};
use skipstep_ruleset::Direction;
use skipstep_ruleset::interface::Host;

use crate::bridge_port::{FrameRule, LinkAddress, Port, Ports};
use crate::error::{Error, Result};
use crate::instance::Instance;
use crate::{attach, host, ports};

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
                ports::clear_port(&self.maps, &self.directory, &mut port)?;
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
        ports::forget(&self.maps, |_| true)
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
            ports::write_rules(&self.maps, port)?;
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
        ports::write_port(&self.maps, port, hears)
    }
}

/// Checks that an interface can become a port.
fn may_be_port(name: &str, host: &Host) -> Result<()> {
    let Some(interface) = host.interface(name) else {
        return Err(wrong(name, "no such interface"));
    };
    if interface.loopback || interface.no_link_header {
        return Err(wrong(name, "its frames have no Ethernet header"));
    }
    let link = ports::link(interface.index)?;
    let has_master = |attribute: &LinkAttribute| matches!(attribute, LinkAttribute::Controller(master) if *master != 0);
    if link.attributes.iter().any(has_master) {
        return Err(wrong(name, "belongs to a bridge, a bond or a VRF of the kernel"));
    }
    Ok(())
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
    fn numbers_are_given_again() {
        assert_eq!(first_free([].into_iter()), 1);
        assert_eq!(first_free([1, 2, 4].into_iter()), 3);
    }
}
