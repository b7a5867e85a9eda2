//! The rules that every system has.

use std::net::IpAddr;

use crate::family::Family;
use crate::raw::frame::Transport;
use crate::topology::{End, Topology};

/// The first port that a rule blocks.
const FIRST_BLOCKED: u16 = 20_000;

/// Rules there may be, each with a port of its own.
pub const MOST_RULES: u32 = 40_000;

/// Rules as in the article of Adamo and Tablò: each blocks one port of the server, everything else
/// passes.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// How many.
    pub count: u32,
    /// Of which protocol the ports are.
    pub transport: Transport,
    /// The family of the server's address.
    pub family: Family,
    /// Whose ports these are, by the name of server.
    pub to: End,
    /// Where they are loaded.
    pub topology: Topology,
}

impl Rules {
    /// The ports that are blocked.
    pub fn ports(&self) -> impl Iterator<Item = u16> + use<> {
        FIRST_BLOCKED..FIRST_BLOCKED + self.count.min(MOST_RULES) as u16
    }

    /// A port that none of them blocks, next to those that are.
    pub const OPEN: u16 = FIRST_BLOCKED - 1;

    /// Blocked ports that show whether rules are obeyed: that of the first, of one in the middle,
    /// and of the last.
    pub fn tried(&self) -> Vec<u16> {
        let ports: Vec<u16> = self.ports().collect();
        let some = [ports.first(), ports.get(ports.len() / 2), ports.last()];
        let mut tried: Vec<u16> = some.into_iter().flatten().copied().collect();
        tried.dedup();
        tried
    }

    /// The server's address.
    pub fn server(&self) -> IpAddr {
        self.to.address(self.family)
    }

    /// A text with a line for each rule.
    pub(crate) fn lines(&self, line: impl Fn(u16) -> String) -> String {
        self.ports().map(|port| line(port) + "\n").collect()
    }
}
