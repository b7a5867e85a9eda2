//! `queue` statements, and the limiters of later releases (pf-features sections 2 and 11).

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// `queue name on em0 bandwidth 10M`, `queue name parent other bandwidth 5M`
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Queue {
    /// Name.
    pub name: String,
    /// Line of the pf.conf it was written on.
    pub line: u32,
    /// Interface of a root queue; children have their root's.
    pub interface: Option<String>,
    /// Parent of a child.
    pub parent: Option<String>,
    /// `bandwidth`, with its burst
    pub bandwidth: Option<ServiceCurve>,
    /// `min`
    pub min: Option<ServiceCurve>,
    /// `max`
    pub max: Option<ServiceCurve>,
    /// `qlimit`, packets
    pub limit: Option<u32>,
    /// `default`
    pub default: bool,
    /// `flows`: a fair queue of so many flows
    pub flows: Option<u32>,
    /// `quantum`, bytes
    pub quantum: Option<u32>,
}

impl Queue {
    /// A queue of which nothing is said.
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

    /// Whether it stands right below `parent`: one that names an interface, on that interface only.
    pub fn is_below(&self, parent: &Queue) -> bool {
        let elsewhere = self.interface.is_some() && self.interface != parent.interface;
        self.parent.as_ref() == Some(&parent.name) && !elsewhere
    }

    /// The queues right below this one. Of two with one name, the one for its interface counts.
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

    /// This queue and all below it. They are known to be a tree.
    pub fn and_below<'q>(
        &'q self,
        queues: &'q [Queue],
    ) -> Box<dyn Iterator<Item = &'q Queue> + 'q> {
        let below = self.children(queues).into_iter().flat_map(|child| child.and_below(queues));
        Box::new(std::iter::once(self).chain(below))
    }
}

/// A rate, and another for the first moments of a backlog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ServiceCurve {
    /// Bits a second.
    pub rate: u64,
    /// Bits a second at first, and for how many milliseconds.
    pub burst: Option<(u64, u32)>,
}

/// `state limiter`, `source limiter`
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Limiter {
    /// Whether it counts by source.
    pub source: bool,
    /// Name.
    pub name: String,
    /// Line of the pf.conf it was written on.
    pub line: u32,
    /// `id`
    pub id: u32,
    /// `entries`, of source limiters
    pub entries: Option<u32>,
    /// `limit`
    pub limit: u32,
    /// `rate states/seconds`
    pub rate: Option<(u32, u32)>,
    /// `inet mask`, of source limiters
    pub inet_mask: Option<u8>,
    /// `inet6 mask`, of source limiters
    pub inet6_mask: Option<u8>,
    /// `table <name> above high below low`, of source limiters
    pub table: Option<(String, u32, u32)>,
}

impl Limiter {
    /// What its mask leaves of a source.
    pub fn masked(&self, source: IpAddr) -> IpNet {
        let length = match source {
            IpAddr::V4(_) => self.inet_mask.unwrap_or(32),
            IpAddr::V6(_) => self.inet6_mask.unwrap_or(128),
        };
        IpNet::new(source, length).map_or(IpNet::from(source), |net| net.trunc())
    }
}

/// `state limiter "name" (block)` of a rule
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LimiterUse {
    /// Number of the limiter.
    pub id: u32,
    /// `(no-match)`: beyond the limit the rule does not match; otherwise the packet is dropped.
    pub no_match: bool,
}
