//! Limiters and their sources.

use ipnet::IpNet;
use skipstep_ruleset::Limiter;

/// A limiter, as tests compare it and `pfctl -s` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimiterView {
    /// Definition of the limiter.
    pub limiter: Limiter,
    /// Current number of states.
    pub states: u32,
    /// Admitted and refused packets of all sources.
    pub counts: Admissions,
    /// Number of sources ever added.
    pub sources_made: u64,
    /// Number of packets refused by `entries`.
    pub sources_limited: u64,
    /// Number of packets refused because there was no memory for a source.
    pub sources_lost: u64,
    /// Sources of the limiter, sorted by address.
    pub sources: Vec<LimitedView>,
}

/// A source of a limiter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitedView {
    /// Routing domain of the source's packets.
    pub rdomain: u32,
    /// Address of the source under the limiter's mask.
    pub net: IpNet,
    /// Current number of states.
    pub states: u32,
    /// Admitted and refused packets of the source.
    pub counts: Admissions,
}

/// Counters of the states that a limiter admitted and refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Admissions {
    /// Number of states created.
    pub admitted: u64,
    /// Packets refused by `limit`.
    pub hard_limited: u64,
    /// Packets refused by `rate`.
    pub rate_limited: u64,
}
