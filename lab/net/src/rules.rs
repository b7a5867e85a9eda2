//! The rules that every system gets.

use std::net::IpAddr;

use crate::family::Family;
use crate::topology::{End, Topology};
use crate::transport::Transport;

/// The first port that a rule blocks.
const FIRST_BLOCKED: u16 = 20_000;

/// Largest number of rules. Each rule has its own port.
pub const MOST_RULES: u32 = 40_000;

/// Rules as in the article of Adamo and Tablò: each blocks one port of the server, and all other
/// traffic passes.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Number of rules.
    pub count: u32,
    /// Protocol of the blocked ports.
    pub transport: Transport,
    /// The family of the server's address.
    pub family: Family,
    /// The end of the network that is the server.
    pub to: End,
    /// The topology in which the rules are loaded.
    pub topology: Topology,
}

impl Rules {
    /// Returns the blocked ports.
    pub fn ports(&self) -> impl Iterator<Item = u16> + use<> {
        FIRST_BLOCKED..FIRST_BLOCKED + self.count.min(MOST_RULES) as u16
    }

    /// A port that no rule blocks, next to the blocked ports.
    pub const OPEN: u16 = FIRST_BLOCKED - 1;

    /// Returns blocked ports that check if rules are applied: the ports of the first rule, of one
    /// in the middle, and of the last.
    pub fn tried(&self) -> Vec<u16> {
        let ports: Vec<u16> = self.ports().collect();
        let some = [ports.first(), ports.get(ports.len() / 2), ports.last()];
        let mut tried: Vec<u16> = some.into_iter().flatten().copied().collect();
        tried.dedup();
        tried
    }

    /// Returns the server's address.
    pub fn server(&self) -> IpAddr {
        self.to.address(self.family)
    }

    /// Returns a text with a line for each rule.
    pub(crate) fn lines(&self, line: impl Fn(u16) -> String) -> String {
        self.ports().map(|port| line(port) + "\n").collect()
    }
}
