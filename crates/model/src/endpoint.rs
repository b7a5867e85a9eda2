//! `endpoint-independent`: UDP packets from one inside address and port have the same outside ones
//! for all destinations, as long as one of their states lives. As in FreeBSD.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

/// An address and port, in a routing domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Endpoint {
    pub rdomain: u32,
    pub end: (IpAddr, u16),
}

/// The outside endpoint of an inside endpoint.
#[derive(Debug, Clone)]
struct Mapping {
    outside: Endpoint,
    /// Number of references: states, and the packet being filtered.
    uses: u32,
}

/// All endpoint mappings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Endpoints {
    by_inside: HashMap<Endpoint, Mapping>,
    outside: HashSet<Endpoint>,
    /// Inside endpoint that the packet being filtered references, until its state takes over.
    pending: Option<Endpoint>,
}

impl Endpoints {
    /// Returns the outside endpoint of the packet's inside endpoint, and takes a reference for the
    /// packet. Returns `None` if there is no mapping.
    pub fn take_reference(&mut self, inside: Endpoint) -> Option<(IpAddr, u16)> {
        let mapping = self.by_inside.get_mut(&inside)?;
        if self.pending.replace(inside).is_none() {
            mapping.uses += 1;
        }
        Some(mapping.outside.end)
    }

    /// Returns true if a mapping has this outside endpoint.
    pub fn has_outside(&self, outside: &Endpoint) -> bool {
        self.outside.contains(outside)
    }

    /// Adds a mapping for the packet's endpoint, and takes a reference.
    pub fn insert(&mut self, inside: Endpoint, outside: Endpoint) {
        self.by_inside.insert(inside, Mapping { outside, uses: 1 });
        self.outside.insert(outside);
        self.pending = Some(inside);
    }

    /// Hands the packet's reference over to its state.
    pub fn hand_over(&mut self) -> Option<Endpoint> {
        self.pending.take()
    }

    /// Releases the packet's reference, unless a state has taken it over.
    pub fn release_pending(&mut self) {
        if let Some(inside) = self.pending.take() {
            self.release(&inside);
        }
    }

    /// Releases a reference; the last one removes the mapping.
    pub fn release(&mut self, inside: &Endpoint) {
        let Some(mapping) = self.by_inside.get_mut(inside) else { return };
        mapping.uses -= 1;
        if mapping.uses == 0 {
            let outside = mapping.outside;
            self.by_inside.remove(inside);
            self.outside.remove(&outside);
        }
    }
}
