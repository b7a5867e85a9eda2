//! The addresses, ports and tags of one case. The rule generator adds the addresses and ports
//! around everything it writes, so that packets fall near the limits of rules.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fastrand::Rng;

/// Addresses, ports and tags of a case.
pub struct Pool {
    pub ipv4: Vec<Ipv4Addr>,
    pub ipv6: Vec<Ipv6Addr>,
    pub ports: Vec<u16>,
    /// Tables that rules may name.
    pub tables: Vec<String>,
    /// Files that the rules name, each with name and text.
    pub files: Vec<(String, String)>,
    /// True if the rules have queues.
    pub has_queues: bool,
    /// Limiters that rules may use, in the words of a rule.
    pub limiters: Vec<String>,
}

/// Tags and labels in rules.
pub const TAGS: &[&str] = &["A", "B", "T"];

/// Users and groups that own sockets.
pub const IDS: &[u32] = &[0, 1, 1000, 65534];

impl Pool {
    /// Creates a pool with a few hosts on each side of the router, one further away, and the
    /// router.
    pub fn new() -> Self {
        let ipv4 = [
            "10.0.1.5",
            "10.0.1.6",
            "10.0.2.10",
            "198.51.100.7",
            "203.0.113.9",
            "10.0.1.1",
            "10.0.2.1",
        ];
        let ipv6 = [
            "2001:db8:1::5",
            "2001:db8:1::6",
            "2001:db8:2::10",
            "2001:db8:ffff::7",
            "2001:db8:1::1",
            "fe80::5",
        ];
        Pool {
            ipv4: ipv4.map(|text| text.parse().expect("a literal address")).to_vec(),
            ipv6: ipv6.map(|text| text.parse().expect("a literal address")).to_vec(),
            ports: vec![22, 53, 80, 1024, 4000, 40000],
            tables: Vec::new(),
            files: Vec::new(),
            has_queues: false,
            limiters: Vec::new(),
        }
    }

    /// Draws a port of the pool, or sometimes a neighbouring one.
    pub fn port(&self, rng: &mut Rng) -> u16 {
        let port = pick(rng, &self.ports);
        match rng.u8(..20) {
            0 => port.wrapping_add(1),
            1 => port.wrapping_sub(1),
            _ => port,
        }
    }

    /// Draws two addresses of one family.
    pub fn pair(&self, rng: &mut Rng, ipv6: bool) -> (IpAddr, IpAddr) {
        if ipv6 {
            (pick(rng, &self.ipv6).into(), pick(rng, &self.ipv6).into())
        } else {
            (pick(rng, &self.ipv4).into(), pick(rng, &self.ipv4).into())
        }
    }

    /// Draws a network in the notation of pf.conf. The addresses at its edges join the pool.
    pub fn network(&mut self, rng: &mut Rng, ipv6: bool) -> String {
        if ipv6 {
            let length = pick(rng, &[0, 10, 32, 48, 64, 112, 120, 125, 127, 128]);
            let bits = u128::from(pick(rng, &self.ipv6));
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            let (first, last) = (bits & mask, bits | !mask);
            for edge in [first, last, first.wrapping_sub(1), last.wrapping_add(1)] {
                remember(rng, &mut self.ipv6, Ipv6Addr::from(edge), is_plain_ipv6);
            }
            format!("{}/{length}", Ipv6Addr::from(first))
        } else {
            let length = pick(rng, &[0, 1, 8, 16, 24, 26, 29, 30, 31, 32]);
            let bits = u32::from(pick(rng, &self.ipv4));
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            let (first, last) = (bits & mask, bits | !mask);
            for edge in [first, last, first.wrapping_sub(1), last.wrapping_add(1)] {
                remember(rng, &mut self.ipv4, Ipv4Addr::from(edge), is_plain_ipv4);
            }
            format!("{}/{length}", Ipv4Addr::from(first))
        }
    }

    /// Draws a range of addresses in the notation of pf.conf.
    pub fn range(&mut self, rng: &mut Rng, ipv6: bool) -> String {
        if ipv6 {
            let low = u128::from(pick(rng, &self.ipv6));
            let high = low.saturating_add(rng.u128(..10));
            remember(rng, &mut self.ipv6, Ipv6Addr::from(high), is_plain_ipv6);
            remember(rng, &mut self.ipv6, Ipv6Addr::from(high.saturating_add(1)), is_plain_ipv6);
            format!("{} - {}", Ipv6Addr::from(low), Ipv6Addr::from(high))
        } else {
            let low = u32::from(pick(rng, &self.ipv4));
            let high = low.saturating_add(rng.u32(..10));
            remember(rng, &mut self.ipv4, Ipv4Addr::from(high), is_plain_ipv4);
            remember(rng, &mut self.ipv4, Ipv4Addr::from(high.saturating_add(1)), is_plain_ipv4);
            format!("{} - {}", Ipv4Addr::from(low), Ipv4Addr::from(high))
        }
    }

    /// Draws a port for a rule. The port and its neighbours join the pool.
    pub fn rule_port(&mut self, rng: &mut Rng) -> u16 {
        let port = match rng.u8(..8) {
            0 => pick(rng, &[1, 1023, 1024, 1025, 65534, 65535]),
            1 => rng.u16(1..),
            _ => pick(rng, &self.ports),
        };
        for near in [port, port.saturating_sub(1), port.saturating_add(1)] {
            if !self.ports.contains(&near) && self.ports.len() < 16 {
                self.ports.push(near);
            }
        }
        port
    }
}

/// Returns true if hosts have such an address. Linux and OpenBSD handle packets from loopback,
/// multicast, broadcast and reserved addresses differently.
fn is_plain_ipv4(address: &Ipv4Addr) -> bool {
    !matches!(address.octets()[0], 0 | 127 | 224..)
}

/// Returns true for global unicast and link-local addresses, for the reason of [`is_plain_ipv4`].
fn is_plain_ipv6(address: &Ipv6Addr) -> bool {
    matches!(address.segments()[0], 0x2000..0x4000 | 0xfe80)
}

/// Adds an address to the pool in some cases only, because conversations need repeated addresses.
fn remember<T: PartialEq>(rng: &mut Rng, pool: &mut Vec<T>, address: T, fit: impl Fn(&T) -> bool) {
    if pool.len() < 20 && rng.bool() && fit(&address) && !pool.contains(&address) {
        pool.push(address);
    }
}

/// Draws one of several values.
pub fn pick<T: Clone>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.usize(..choices.len())].clone()
}

/// Draws true once in `n` times.
pub fn one_in(rng: &mut Rng, n: u32) -> bool {
    rng.u32(..n) == 0
}
