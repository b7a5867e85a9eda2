//! The ports that a machine uses for its outgoing connections. Their number limits the simultaneous
//! connections.

use std::fs;
use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Serialize};

const RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
const REUSE: &str = "/proc/sys/net/ipv4/tcp_tw_reuse";

/// Time for which the kernel keeps the port of the end that closed first (TIME-WAIT). With
/// `tcp_tw_reuse` a port towards the same destination is free after one second of the kernel's
/// clock, so after two seconds at most.
const KEPT: Duration = Duration::from_secs(60);
const KEPT_REUSED: Duration = Duration::from_secs(2);

/// The range of local ports, inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ports {
    /// The lowest port.
    pub first: u16,
    /// The highest port.
    pub last: u16,
    /// True if a port in TIME-WAIT is reused as soon as no segment of the previous connection can
    /// arrive.
    pub are_reused: bool,
}

impl Ports {
    /// Reads the port range of the calling thread's host.
    ///
    /// # Errors
    /// Fails if the files under `/proc/sys` cannot be read or do not have the expected form.
    pub fn here() -> anyhow::Result<Ports> {
        let range = fs::read_to_string(RANGE).context(RANGE)?;
        let reuse = fs::read_to_string(REUSE).context(REUSE)?;
        Ports::parse(&range, &reuse).with_context(|| format!("{RANGE}: {}", range.trim()))
    }

    fn parse(range: &str, reuse: &str) -> Option<Ports> {
        let mut words = range.split_whitespace().map(str::parse);
        let (first, last) = (words.next()?.ok()?, words.next()?.ok()?);
        // 2 enables reuse for loopback only
        Some(Ports { first, last, are_reused: reuse.trim() == "1" })
    }

    /// Returns the number of ports: the largest number of simultaneous connections from one address
    /// to one server port.
    pub fn count(&self) -> u64 {
        (u64::from(self.last) + 1).saturating_sub(self.first.into())
    }

    /// Returns the time for which a port stays in use after its connection was closed.
    pub fn kept(&self) -> Duration {
        if self.are_reused { KEPT_REUSED } else { KEPT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_range_and_reuse_are_parsed() {
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
