//! The one place through which time, randomness, interfaces and routes reach the model.

use std::net::IpAddr;

use skipstep_ruleset::interface::{Host, Interface, Route};

/// The world around the firewall, as far as it matters to it.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// Interfaces and routes.
    pub host: Host,
    /// Seconds since an arbitrary start.
    pub now: u32,
    /// What every random draw returns, cut down to the bound of the draw.
    pub random: u32,
    /// The next initial sequence number.
    pub sequence: u32,
    /// The next offset of a TCP timestamp.
    pub timestamp: u32,
    /// The key of syncookies, kept for good; `None` if keys come and go.
    pub cookie_key: Option<[u8; 16]>,
}

/// Sets something that is random in real life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draw {
    /// What every draw with a bound returns, cut down to the bound. A rule with `probability` p (of
    /// 2^32 - 1) matches if p is greater than the draw plus 1.
    Bounded(u32),
    /// Initial sequence numbers that the firewall chooses.
    Sequence(u32),
    /// Offsets that it adds to TCP timestamps.
    Timestamp(u32),
    /// The key of syncookies, which stays from then on.
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

    /// A random number from 0 to `bound - 1`.
    pub(crate) fn draw(&self, bound: u32) -> u32 {
        self.random.min(bound.saturating_sub(1))
    }

    /// A random IPv4 identification.
    pub(crate) fn random_id(&self) -> u16 {
        self.draw(0x1_0000) as u16
    }

    /// The interface called `name`.
    pub(crate) fn interface(&self, name: &str) -> Option<&Interface> {
        self.host.interface(name)
    }

    /// The route to `address` in a routing domain.
    pub(crate) fn route(&self, address: IpAddr, rdomain: u32) -> Option<&Route> {
        self.host.route(address, rdomain)
    }

    /// The interface by which `address` is reached in a routing domain; an own one by that which
    /// has it.
    pub(crate) fn way(&self, address: IpAddr, rdomain: u32) -> Option<&str> {
        let has = |interface: &&Interface| {
            interface.rdomain == rdomain
                && interface.addresses.iter().any(|own| own.net.addr() == address)
        };
        let own = self.host.interfaces.iter().find(has).map(|interface| &interface.name);
        own.or_else(|| Some(&self.route(address, rdomain)?.interface)).map(String::as_str)
    }

    /// The route that a table has, 0 for that of the routing domain.
    pub(crate) fn route_in(&self, table: u32, address: IpAddr, rdomain: u32) -> Option<&Route> {
        self.host.route_in(table, address, rdomain)
    }

    /// Whether `address` is one of the firewall's own.
    pub(crate) fn is_local(&self, address: IpAddr) -> bool {
        self.host
            .interfaces
            .iter()
            .any(|interface| interface.addresses.iter().any(|own| own.net.addr() == address))
    }

    /// Whether `address` is one that the firewall shares with others of a link.
    pub(crate) fn is_shared(&self, address: IpAddr) -> bool {
        self.host
            .interfaces
            .iter()
            .any(|interface| interface.shared_addresses().any(|own| own == address))
    }
}
