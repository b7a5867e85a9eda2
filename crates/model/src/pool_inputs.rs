//! The inputs of a pool's choice besides the packet.

use skipstep_ruleset::{Pool, Ruleset};
use skipstep_views::NodeKind;

use crate::rulebook::Entry;
use crate::world::World;

/// The uses of a rule's pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Purpose {
    /// New source addresses.
    Nat,
    /// New destination addresses.
    Rdr,
    /// Next hops.
    Route,
}

impl Purpose {
    /// Returns the kind of source nodes that remember the choices of `sticky-address` pools.
    pub fn node_kind(self) -> NodeKind {
        match self {
            Purpose::Nat => NodeKind::Nat,
            Purpose::Rdr => NodeKind::Rdr,
            Purpose::Route => NodeKind::Route,
        }
    }
}

/// A pool, with its rule and purpose.
#[derive(Clone, Copy)]
pub(crate) struct RulePool<'a> {
    pub pool: &'a Pool,
    pub purpose: Purpose,
    pub rule: &'a Entry,
}

/// The inputs of pools besides rule and packet.
#[derive(Clone, Copy)]
pub(crate) struct PoolInputs<'a> {
    pub ruleset: &'a Ruleset,
    pub world: &'a World,
}
