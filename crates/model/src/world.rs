//! The only source of time, randomness, interfaces and routes for the model.

use std::net::IpAddr;

use skipstep_ruleset::interface::{Host, Interface, Route};

/// The environment of the firewall.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// Interfaces and routes.
    pub host: Host,
    /// Seconds since an arbitrary start.
    pub now: u32,
    /// Result of each random draw, limited by the bound of the draw.
    pub random: u32,
    /// Next initial sequence number.
    pub sequence: u32,
    /// Next offset of TCP timestamps.
    pub timestamp: u32,
    /// Fixed key of syncookies; `None` if keys are renewed.
    pub cookie_key: Option<[u8; 16]>,
}

/// A fixed value in place of a random one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draw {
    /// Result of each bounded draw, limited by the bound. A rule with `probability` p (of 2^32 - 1)
    /// matches if p is greater than the draw plus 1.
    Bounded(u32),
    /// Initial sequence number that the firewall chooses.
    Sequence(u32),
    /// Offset that the firewall adds to TCP timestamps.
    Timestamp(u32),
    /// Key of syncookies, which is fixed from then on.
    SyncookieKey([u8; 16]),
}

impl World {
    pub(crate) fn set_random(&mut self, draw: Draw) {
        match draw {
            Draw::Bounded(number) => self.random = number,
            Draw::Sequence(number) => self.sequence = number,
            Draw::Timestamp(number) => self.timestamp = number,
            Draw::SyncookieKey(key) => self.cookie_key = Some(key),
        }
    }

    /// Returns a random number from 0 to `bound - 1`.
    pub(crate) fn draw(&self, bound: u32) -> u32 {
        self.random.min(bound.saturating_sub(1))
    }

    /// Returns a random IPv4 identification.
    pub(crate) fn random_id(&self) -> u16 {
        self.draw(0x1_0000) as u16
    }

    /// Returns the interface called `name`.
    pub(crate) fn interface(&self, name: &str) -> Option<&Interface> {
        self.host.interface(name)
    }

    /// Returns the route to `address` in a routing domain.
    pub(crate) fn route(&self, address: IpAddr, rdomain: u32) -> Option<&Route> {
        self.host.route(address, rdomain)
    }

    /// Returns the name of the interface that leads to `address` in a routing domain. For an own
    /// address it is the interface that has it.
    pub(crate) fn interface_towards(&self, address: IpAddr, rdomain: u32) -> Option<&str> {
        let has = |interface: &&Interface| {
            interface.rdomain == rdomain
                && interface.addresses.iter().any(|own| own.net.addr() == address)
        };
        let own = self.host.interfaces.iter().find(has).map(|interface| &interface.name);
        own.or_else(|| Some(&self.route(address, rdomain)?.interface)).map(String::as_str)
    }

    /// Returns the route in a table; table 0 is that of the routing domain.
    pub(crate) fn route_in(&self, table: u32, address: IpAddr, rdomain: u32) -> Option<&Route> {
        self.host.route_in(table, address, rdomain)
    }

    /// Returns true if `address` is one of the firewall's own.
    pub(crate) fn is_local(&self, address: IpAddr) -> bool {
        self.host
            .interfaces
            .iter()
            .any(|interface| interface.addresses.iter().any(|own| own.net.addr() == address))
    }

    /// Returns true if the firewall shares `address` with other hosts of a link.
    pub(crate) fn is_shared(&self, address: IpAddr) -> bool {
        self.host
            .interfaces
            .iter()
            .any(|interface| interface.shared_addresses().any(|own| own == address))
    }
}
