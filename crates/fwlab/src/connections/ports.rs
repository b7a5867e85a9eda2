//! The ports that a machine gives to connections which it makes: how many there can be bounds what
//! can be open at once.

use std::fs;
use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Serialize};

const RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
const REUSE: &str = "/proc/sys/net/ipv4/tcp_tw_reuse";

/// How long a port is kept from who closed a connection first (the kernel's TIME-WAIT), and how
/// long where it may be taken again to the same place, which is a second and what the kernel's
/// clock of seconds adds to it.
const KEPT: Duration = Duration::from_secs(60);
const KEPT_REUSED: Duration = Duration::from_secs(2);

/// Such ports, from one to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ports {
    /// The lowest.
    pub first: u16,
    /// The highest.
    pub last: u16,
    /// Whether one is taken again as soon as nothing of the connection before can come.
    pub are_reused: bool,
}

impl Ports {
    /// Those of this host.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn here() -> anyhow::Result<Ports> {
        let range = fs::read_to_string(RANGE).context(RANGE)?;
        let reuse = fs::read_to_string(REUSE).context(REUSE)?;
        Ports::parse(&range, &reuse).with_context(|| format!("{RANGE}: {}", range.trim()))
    }

    fn parse(range: &str, reuse: &str) -> Option<Ports> {
        let mut words = range.split_whitespace().map(str::parse);
        let (first, last) = (words.next()?.ok()?, words.next()?.ok()?);
        // 2 is for connections of a host with itself
        Some(Ports { first, last, are_reused: reuse.trim() == "1" })
    }

    /// How many there are: so many connections can be open at once from one address to one port of
    /// one server.
    pub fn count(&self) -> u64 {
        (u64::from(self.last) + 1).saturating_sub(self.first.into())
    }

    /// How long one is taken after its connection was closed.
    pub fn kept(&self) -> Duration {
        if self.are_reused { KEPT_REUSED } else { KEPT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_read() {
        let ports = Ports::parse("32768\t60999\n", "2\n").unwrap();
        assert_eq!((ports.count(), ports.kept()), (28_232, KEPT));
        let ports = Ports::parse("1024 65535", "1\n").unwrap();
        assert_eq!((ports.count(), ports.kept()), (64_512, KEPT_REUSED));
        assert!(Ports::parse("32768", "1").is_none());
        assert!(Ports::parse("1 70000", "1").is_none());
        assert_eq!(Ports { first: 2, last: 1, are_reused: false }.count(), 0);
        assert!(Ports::here().unwrap().count() > 0);
    }
}
