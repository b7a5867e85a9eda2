//! `sticky-address`: a source keeps the address that a pool chose (pf-semantics section 11). It
//! keeps it as long as the pool has the address and the source node lives.

use std::net::IpAddr;

use skipstep_ruleset::{Family, PoolKind};

use crate::pool::{self, Chosen};

use crate::evaluation::Context;
use crate::key::NodeKey;
use crate::pool_inputs::{PoolInputs, RulePool};
use crate::source_node::Refused;

impl Context<'_> {
    /// Chooses an address of a pool for a packet from `source`; `first` as in
    /// [`crate::pool::Pools::choose`]. A remembered address does not set `first`.
    pub fn choose(
        &mut self,
        of: RulePool,
        inputs: PoolInputs,
        family: Family,
        source: IpAddr,
        first: Option<&mut Option<IpAddr>>,
    ) -> Option<Chosen> {
        let key = NodeKey { rule: of.rule.index, kind: of.purpose.node_kind(), source };
        let asked = self.held.iter().any(|held| held.kind == key.kind);
        if of.pool.sticky
            && of.pool.kind != PoolKind::None
            && !asked
            && let Some(chosen) = self.remembered(&key, of, inputs)
        {
            return Some(chosen);
        }
        let chosen = self.pools.choose(of, inputs, family, source, first)?;
        if of.pool.sticky {
            self.remember(key, of, inputs, &chosen).ok()?;
        }
        Some(chosen)
    }

    /// Returns the source's previous address. If the pool no longer has it, the node is removed,
    /// and no state references it any more.
    fn remembered(&mut self, key: &NodeKey, of: RulePool, inputs: PoolInputs) -> Option<Chosen> {
        self.counters.status.source_searches += 1;
        let chosen = self.sources.get(key)?.chosen.clone()?;
        if !pool::contains(of, inputs, chosen.address) {
            for state in self.states.iter_mut() {
                state.sources.retain(|held| held != key);
            }
            self.sources.remove(key, &mut self.counters.status);
            return None;
        }
        self.held.push(*key);
        if of.pool.kind == PoolKind::LeastStates {
            let family = Family::from_address(chosen.address);
            self.pools.count(of, inputs, family, chosen.address, 1)?;
        }
        Some(chosen)
    }

    /// Stores the choice of a pool in the source's node. The node of an earlier choice for this
    /// packet is released.
    fn remember(
        &mut self,
        key: NodeKey,
        of: RulePool,
        inputs: PoolInputs,
        chosen: &Chosen,
    ) -> Result<(), Refused> {
        let (limit, now) = (inputs.ruleset.options.limits.src_nodes, inputs.world.now);
        let status = &mut self.counters.status;
        if let Some(place) = self.held.iter().position(|held| held.kind == key.kind) {
            let earlier = self.held.remove(place);
            self.sources.remove_unused(&earlier, now, status);
        }
        self.sources.insert(key, of.rule, Some(chosen.clone()), (limit, now), status)?;
        self.held.push(key);
        Ok(())
    }
}
