//! An evaluation of rules: the packet in question, and the parts of the firewall that rules and
//! their pools read and change.

use skipstep_ruleset::Ruleset;

use crate::counters::Counters;
use crate::endpoint::Endpoints;
use crate::fate::Packet;
use crate::icmp::Mapping;
use crate::key::NodeKey;
use crate::limiter::Limiters;
use crate::packet::Descriptor;
use crate::pool::Pools;
use crate::pool_inputs::PoolInputs;
use crate::rulebook::Rulebook;
use crate::source_node::SourceNodes;
use crate::state::StateTable;
use crate::world::World;

/// The input of an evaluation.
pub(crate) struct Question<'r, 'p> {
    /// Rule set, for its tables.
    pub ruleset: &'r Ruleset,
    pub rulebook: &'r Rulebook,
    pub world: &'p World,
    /// The packet as it came, for its metadata.
    pub input: &'p Packet,
    pub packet: &'p Descriptor,
    /// Relation to states, for ICMP and ICMPv6.
    pub mapping: Option<Mapping>,
}

impl Question<'_, '_> {
    /// Returns the inputs of pools.
    pub fn pool_inputs(&self) -> PoolInputs<'_> {
        PoolInputs { ruleset: self.ruleset, world: self.world }
    }
}

/// The parts of the firewall that an evaluation reads and changes.
pub(crate) struct Context<'w> {
    pub states: &'w mut StateTable,
    pub pools: &'w mut Pools,
    pub endpoints: &'w mut Endpoints,
    pub sources: &'w mut SourceNodes,
    /// Source nodes that pools created or found, and that the state will reference.
    pub held: Vec<NodeKey>,
    pub limiters: &'w mut Limiters,
    pub counters: &'w mut Counters,
}
