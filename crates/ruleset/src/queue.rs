//! `queue` statements, and the limiters of later OpenBSD releases (pf-features sections 2 and 11).

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// A `queue` statement: `queue name on em0 bandwidth 10M` for a root queue, `queue name parent
/// other bandwidth 5M` for a child.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Queue {
    /// Name by which rules and children refer to the queue.
    pub name: String,
    /// Line of the statement in pf.conf.
    pub line: u32,
    /// Interface of a root queue. Children use that of their root.
    pub interface: Option<String>,
    /// Name of the parent; `None` for a root queue.
    pub parent: Option<String>,
    /// `bandwidth`, with its burst.
    pub bandwidth: Option<ServiceCurve>,
    /// `min`: guaranteed bandwidth.
    pub min: Option<ServiceCurve>,
    /// `max`: greatest bandwidth.
    pub max: Option<ServiceCurve>,
    /// `qlimit`: most packets in the queue.
    pub limit: Option<u32>,
    /// `default`: the queue takes packets of rules without `set queue`.
    pub default: bool,
    /// `flows`: number of flows of a fair queue.
    pub flows: Option<u32>,
    /// `quantum`: bytes that a flow may send before the next flow.
    pub quantum: Option<u32>,
}

impl Queue {
    /// Returns a queue without parameters.
    pub fn named(name: &str) -> Self {
        Queue {
            name: name.to_owned(),
            line: 0,
            interface: None,
            parent: None,
            bandwidth: None,
            min: None,
            max: None,
            limit: None,
            default: false,
            flows: None,
            quantum: None,
        }
    }

    /// True if the queue is a child of `parent`, on the queue's interface if it has one.
    pub fn is_below(&self, parent: &Queue) -> bool {
        let elsewhere = self.interface.is_some() && self.interface != parent.interface;
        self.parent.as_ref() == Some(&parent.name) && !elsewhere
    }

    /// Returns the children. Of two children with one name, the one with an interface counts.
    pub fn children<'q>(&self, queues: &'q [Queue]) -> Vec<&'q Queue> {
        let mut found: Vec<&Queue> = Vec::new();
        for child in queues.iter().filter(|queue| queue.is_below(self)) {
            match found.iter_mut().find(|known| known.name == child.name) {
                None => found.push(child),
                Some(known) if known.interface.is_none() => *known = child,
                Some(_) => {}
            }
        }
        found
    }

    /// Returns the queue and all its descendants. `queues` must be free of cycles.
    pub fn and_below<'q>(
        &'q self,
        queues: &'q [Queue],
    ) -> Box<dyn Iterator<Item = &'q Queue> + 'q> {
        let below = self.children(queues).into_iter().flat_map(|child| child.and_below(queues));
        Box::new(std::iter::once(self).chain(below))
    }
}

/// A rate, with another rate for the beginning of a backlog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ServiceCurve {
    /// Rate in bits per second.
    pub rate: u64,
    /// Rate in bits per second at the beginning of a backlog, and its duration in milliseconds.
    pub burst: Option<(u64, u32)>,
}

/// A `state limiter` or `source limiter` statement.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Limiter {
    /// True for a source limiter.
    pub source: bool,
    /// Name by which rules refer to the limiter.
    pub name: String,
    /// Line of the statement in pf.conf.
    pub line: u32,
    /// `id`: number of the limiter.
    pub id: u32,
    /// `entries` of a source limiter: most sources.
    pub entries: Option<u32>,
    /// `limit`: most states of the limiter, or of one source.
    pub limit: u32,
    /// `rate states/seconds`: most new states in a time.
    pub rate: Option<(u32, u32)>,
    /// `inet mask` of a source limiter: prefix length of an IPv4 source.
    pub inet_mask: Option<u8>,
    /// `inet6 mask` of a source limiter: prefix length of an IPv6 source.
    pub inet6_mask: Option<u8>,
    /// `table <name> above high below low` of a source limiter.
    pub table: Option<(String, u32, u32)>,
}

impl Limiter {
    /// Returns the prefix of a source address that the limiter counts by.
    pub fn masked(&self, source: IpAddr) -> IpNet {
        let length = match source {
            IpAddr::V4(_) => self.inet_mask.unwrap_or(32),
            IpAddr::V6(_) => self.inet6_mask.unwrap_or(128),
        };
        IpNet::new(source, length).map_or(IpNet::from(source), |net| net.trunc())
    }
}

/// The use of a limiter in a rule: `state limiter "name" (block)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LimiterUse {
    /// Number of the limiter.
    pub id: u32,
    /// `(no-match)`: beyond the limit the rule does not match. Otherwise the packet is dropped.
    pub no_match: bool,
}
