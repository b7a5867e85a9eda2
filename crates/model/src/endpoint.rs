//! `endpoint-independent`: UDP packets from one address and port inside have the same ones outside,
//! whoever they are for, as long as one of their states lives. As FreeBSD has it.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

/// An address with a port, in a routing domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Endpoint {
    pub rdomain: u32,
    pub end: (IpAddr, u16),
}

/// What is outside of an endpoint inside.
#[derive(Debug, Clone)]
struct Mapping {
    outside: Endpoint,
    /// States, and the packet in hand.
    uses: u32,
}

/// All mappings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Endpoints {
    by_inside: HashMap<Endpoint, Mapping>,
    outside: HashSet<Endpoint>,
    /// Held for the packet in hand, until its state holds it.
    pending: Option<Endpoint>,
}

impl Endpoints {
    /// What is outside of the packet's endpoint, if there is a mapping: it is held then.
    pub fn hold(&mut self, inside: Endpoint) -> Option<(IpAddr, u16)> {
        let mapping = self.by_inside.get_mut(&inside)?;
        if self.pending.replace(inside).is_none() {
            mapping.uses += 1;
        }
        Some(mapping.outside.end)
    }

    /// Whether some endpoint is seen as this one outside.
    pub fn has_outside(&self, outside: &Endpoint) -> bool {
        self.outside.contains(outside)
    }

    /// Maps the packet's endpoint, and holds it.
    pub fn insert(&mut self, inside: Endpoint, outside: Endpoint) {
        self.by_inside.insert(inside, Mapping { outside, uses: 1 });
        self.outside.insert(outside);
        self.pending = Some(inside);
    }

    /// What is held for the packet, for its state to hold.
    pub fn hand_over(&mut self) -> Option<Endpoint> {
        self.pending.take()
    }

    /// The packet has no state that holds what was held for it.
    pub fn let_go(&mut self) {
        if let Some(inside) = self.pending.take() {
            self.release(&inside);
        }
    }

    /// The mapping goes with its last state.
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
