//! Tracked sources.

use std::net::IpAddr;

use skipstep_ruleset::RuleId;

/// A tracked source, as tests compare it and `pfctl -sS` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceView {
    /// Rule that tracks the source; `None` for an orphaned rule.
    pub rule: Option<RuleId>,
    /// Purpose of the source node.
    pub kind: NodeKind,
    /// Address of the source.
    pub source: IpAddr,
    /// Address that a pool chose for the source.
    pub chosen: Option<IpAddr>,
    /// Current number of states.
    pub states: u32,
    /// Number of these states with an established TCP connection.
    pub connections: u32,
    /// Rate of recent connections, in thousandths, and the time of the last one, in seconds.
    pub rate: (u32, u32),
    /// Time of creation, in seconds.
    pub created_at: u32,
    /// Time of expiry if the source has no states, in seconds.
    pub expires_at: u32,
    /// Packets in the direction of their states, and against it.
    pub packets: [u64; 2],
    /// Bytes, in the same order.
    pub bytes: [u64; 2],
}

impl SourceView {
    /// Returns the key by which sources are sorted: rule, kind and address.
    pub fn order(&self) -> impl Ord + use<> {
        let rule = self.rule.as_ref().map(|rule| (rule.anchor.clone(), rule.number));
        (rule, self.kind, self.source, self.created_at)
    }
}

/// The purposes of a source node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeKind {
    /// `source-track` and the limits of sources.
    Track,
    /// `nat-to … sticky-address`
    Nat,
    /// `rdr-to … sticky-address`
    Rdr,
    /// `route-to … sticky-address`
    Route,
}
