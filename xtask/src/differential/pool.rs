//! What rules and packets of one case are made of, so that packets hit near the rules' boundaries:
//! the rule generator leaves here the addresses and ports around everything it writes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fastrand::Rng;

/// Addresses, ports and tags of a case.
pub struct Pool {
    pub ipv4: Vec<Ipv4Addr>,
    pub ipv6: Vec<Ipv6Addr>,
    pub ports: Vec<u16>,
    /// Tables that the rules may mention.
    pub tables: Vec<String>,
    /// Files that the rules name: name and text.
    pub files: Vec<(String, String)>,
    /// Whether the rules have queues.
    pub has_queues: bool,
    /// Limiters that rules may use, as they name them.
    pub limiters: Vec<String>,
}

/// Tags and labels in rules.
pub const TAGS: &[&str] = &["A", "B", "T"];

/// Users and groups that own sockets.
pub const IDS: &[u32] = &[0, 1, 1000, 65534];

impl Pool {
    /// A few hosts on each side of the router, one further away, and itself.
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

    /// A port in use, or one beside it.
    pub fn port(&self, rng: &mut Rng) -> u16 {
        let port = pick(rng, &self.ports);
        match rng.u8(..20) {
            0 => port.wrapping_add(1),
            1 => port.wrapping_sub(1),
            _ => port,
        }
    }

    /// Two addresses of one family.
    pub fn pair(&self, rng: &mut Rng, ipv6: bool) -> (IpAddr, IpAddr) {
        if ipv6 {
            (pick(rng, &self.ipv6).into(), pick(rng, &self.ipv6).into())
        } else {
            (pick(rng, &self.ipv4).into(), pick(rng, &self.ipv4).into())
        }
    }

    /// A network in pf.conf's words; the addresses at its edges join the pool.
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

    /// A range of addresses in pf.conf's words.
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

    /// A port number for a rule; it and its neighbours join the pool.
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

/// Whether hosts have such an address. What Linux and OpenBSD think of packets from loopback,
/// multicast, broadcast and reserved addresses differs.
fn is_plain_ipv4(address: &Ipv4Addr) -> bool {
    !matches!(address.octets()[0], 0 | 127 | 224..)
}

/// As [`is_plain_ipv4`]: global unicast and link-local.
fn is_plain_ipv6(address: &Ipv6Addr) -> bool {
    matches!(address.segments()[0], 0x2000..0x4000 | 0xfe80)
}

/// Edges join the pool now and then only: conversations need addresses that come back.
fn remember<T: PartialEq>(rng: &mut Rng, pool: &mut Vec<T>, address: T, fit: impl Fn(&T) -> bool) {
    if pool.len() < 20 && rng.bool() && fit(&address) && !pool.contains(&address) {
        pool.push(address);
    }
}

/// One of several.
pub fn pick<T: Clone>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.usize(..choices.len())].clone()
}

/// True once in `n` times.
pub fn one_in(rng: &mut Rng, n: u32) -> bool {
    rng.u32(..n) == 0
}
