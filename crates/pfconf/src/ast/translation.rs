//! Pools of addresses, and the options that use them (pf-features sections 6, 8 and 9).

use std::net::IpAddr;

use skipstep_ruleset::{Family, PoolKind, RouteKind};

use super::Host;

/// A pool with resolved names and lists.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pool {
    /// Addresses of the pool, possibly with weights.
    pub hosts: Vec<Host>,
    /// `port`
    pub ports: Option<PoolPorts>,
    /// `bitmask`, `random`, `source-hash`, `round-robin` or `least-states`.
    pub kind: Option<PoolKind>,
    pub sticky: bool,
    pub static_port: bool,
    /// Next hops with interfaces, in the legacy syntax. `hosts` is empty then.
    pub through: Vec<Hop>,
    /// `map-e-portset offset/length/id` of FreeBSD
    pub map_e: Option<(u8, u8, u16)>,
    /// `endpoint-independent` of FreeBSD
    pub endpoint_independent: bool,
    /// `prefer-ipv6-nexthop` of FreeBSD
    pub prefer_ipv6: bool,
}

/// `(em0 10.0.0.1)`, or `em0` alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Hop {
    /// Name of the interface.
    pub interface: String,
    /// Addresses of the next hop; empty if the next hop is the packet's destination.
    pub hosts: Vec<Host>,
}

impl Pool {
    /// Returns the family that a host of the pool requires of the rule. With `prefer-ipv6-nexthop`
    /// an IPv6 next hop takes packets of both families, and the result is `None`.
    pub fn family_of(&self, host: &Host) -> Option<Family> {
        host.family().filter(|family| !self.prefer_ipv6 || *family == Family::Inet)
    }
}

/// `port` of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolPorts {
    /// `low:high`; both are equal for a single port. `low` may be greater than `high`.
    Range(u16, u16),
    /// `low:*`: as many ports as the rule's destination ports.
    From(u16),
}

/// The translation options of a rule.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Translation {
    /// Pool of `nat-to`, of `binat-to`, or of the source of `af-to`.
    pub nat: Option<Pool>,
    /// True if `nat` is the pool of `binat-to`.
    pub binat: bool,
    /// Pool of `rdr-to`, or of the destination of `af-to`.
    pub rdr: Option<Pool>,
    /// Target family of `af-to`.
    pub af_to: Option<Family>,
    /// `route-to`, `reply-to` or `dup-to`, with the pool of next hops.
    pub route: Option<(RouteKind, Pool)>,
    /// `divert-to`, `divert-reply` or `divert-packet`.
    pub divert: Option<Divert>,
}

impl Translation {
    /// No translation.
    pub const NONE: Translation =
        Translation { nat: None, binat: false, rdr: None, af_to: None, route: None, divert: None };
}

/// `divert-to`, `divert-reply` or `divert-packet`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Divert {
    /// `divert-to host port n`. The first address of the rule's family counts.
    To(Vec<IpAddr>, u16),
    Reply,
    /// `divert-packet port n`
    Packet(u16),
}
