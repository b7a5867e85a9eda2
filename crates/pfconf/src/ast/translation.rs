//! Where a rule sends its packets: pools of addresses and what uses them (pf-features sections 6, 8
//! and 9).

use std::net::IpAddr;

use skipstep_ruleset::{Family, PoolKind, RouteKind};

use super::Host;

/// A pool, its lists and names resolved.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pool {
    /// Any of these, each perhaps with a weight.
    pub hosts: Vec<Host>,
    /// `port`
    pub ports: Option<PoolPorts>,
    /// `bitmask`, `random` and the like
    pub kind: Option<PoolKind>,
    /// `sticky-address`
    pub sticky: bool,
    /// `static-port`
    pub static_port: bool,
    /// Next hops by way of an interface, of old times; then there are no hosts.
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
    /// The interface.
    pub interface: String,
    /// The next hop; none if the packet itself says where it goes.
    pub hosts: Vec<Host>,
}

impl Pool {
    /// The family that one of its hosts asks of the rule. With `prefer-ipv6-nexthop` packets of
    /// both are sent to a next hop with an IPv6 address.
    pub fn family_of(&self, host: &Host) -> Option<Family> {
        host.family().filter(|family| !self.prefer_ipv6 || *family == Family::Inet)
    }
}

/// `port` of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolPorts {
    /// `low:high`; equal for a single one. It may be the wrong way round.
    Range(u16, u16),
    /// `low:*`, as long as the range of the rule's destination ports
    From(u16),
}

/// What a rule does with the addresses of its packets.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Translation {
    /// `nat-to`, `binat-to` and the source of `af-to`
    pub nat: Option<Pool>,
    /// The pool above is that of `binat-to`.
    pub binat: bool,
    /// `rdr-to` and the destination of `af-to`
    pub rdr: Option<Pool>,
    /// `af-to`
    pub af_to: Option<Family>,
    /// `route-to`, `reply-to`, `dup-to`
    pub route: Option<(RouteKind, Pool)>,
    /// `divert-to`, `divert-reply`, `divert-packet`
    pub divert: Option<Divert>,
}

impl Translation {
    /// None of these.
    pub const NONE: Translation =
        Translation { nat: None, binat: false, rdr: None, af_to: None, route: None, divert: None };
}

/// `divert-to` and its like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Divert {
    /// `divert-to host port n`: the first address of the rule's family counts.
    To(Vec<IpAddr>, u16),
    /// `divert-reply`
    Reply,
    /// `divert-packet port n`
    Packet(u16),
}
