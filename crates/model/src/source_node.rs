//! Source nodes: the sources that a rule, or a pool of the rule, remembers (pf-semantics section
//! 15).

use std::collections::{BTreeMap, HashMap};

use skipstep_views::{LimitCounter, NodeKind, Status};

use crate::key::NodeKey;
use crate::pool::Chosen;
use crate::rate::Rate;
use crate::rulebook::Entry;

/// The counters and the pool's choice of a source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceNode {
    /// Number of states now.
    pub states: u32,
    /// Number of TCP connections of these states that were established.
    pub connections: u32,
    /// Choice of a pool, for `sticky-address`.
    pub chosen: Option<Chosen>,
    /// Second of creation.
    pub created_at: u32,
    /// Second at which the node is removed if it has no states.
    pub expires_at: u32,
    /// Packets with the direction of their states, and against it.
    pub packets: [u64; 2],
    /// Bytes, in the same order.
    pub bytes: [u64; 2],
    pub(crate) rate: Rate,
}

impl SourceNode {
    /// Returns the rate of connections: their number in thousandths, and the second of the last
    /// one.
    pub fn rate(&self) -> (u32, u32) {
        self.rate.parts()
    }
}

/// All source nodes.
#[derive(Debug, Clone, Default)]
pub(crate) struct SourceNodes {
    nodes: BTreeMap<NodeKey, SourceNode>,
    /// Number of nodes of each rule.
    of_rule: HashMap<usize, u32>,
}

/// Error: a limit was reached.
#[derive(Debug)]
pub(crate) struct Refused;

impl SourceNodes {
    /// Finds the node of a source, or creates it.
    ///
    /// # Errors
    ///
    /// Fails if the source has `max-src-states` states, if the rule has `max-src-nodes` nodes, or
    /// if `set limit src-nodes` is reached.
    pub fn insert(
        &mut self,
        key: NodeKey,
        rule: &Entry,
        chosen: Option<Chosen>,
        (limit, now): (u32, u32),
        status: &mut Status,
    ) -> Result<(), Refused> {
        let options = rule.state.as_deref().cloned().unwrap_or_default();
        status.source_searches += 1;
        if let Some(node) = self.nodes.get(&key) {
            if reached(options.max_src_states, node.states) {
                status.limits[LimitCounter::SourceStates as usize] += 1;
                return Err(Refused);
            }
            return Ok(());
        }
        let of_rule = self.of_rule.entry(key.rule).or_default();
        if reached(options.max_src_nodes, *of_rule) {
            status.limits[LimitCounter::SourceNodes as usize] += 1;
            return Err(Refused);
        }
        if self.nodes.len() >= limit as usize {
            return Err(Refused);
        }
        *of_rule += 1;
        status.source_inserts += 1;
        let node = SourceNode { chosen, created_at: now, ..SourceNode::default() };
        self.nodes.insert(key, node);
        Ok(())
    }

    /// Returns the node of a source, if it exists.
    pub fn get(&self, key: &NodeKey) -> Option<&SourceNode> {
        self.nodes.get(key)
    }

    /// Returns a node that a state references.
    pub fn get_mut(&mut self, key: &NodeKey) -> &mut SourceNode {
        self.nodes.get_mut(key).expect("a node lives as long as states hold it")
    }

    /// Releases a state's reference. Without states the node stays until `expires_at`.
    pub fn release(&mut self, key: &NodeKey, connected: bool, expires_at: u32) {
        let node = self.get_mut(key);
        // Differs from OpenBSD: linux.md, "Source nodes"
        // PF also subtracts connections from nodes of pools, which never counted them
        node.connections -= u32::from(connected && key.kind == NodeKind::Track);
        node.states -= 1;
        if node.states == 0 {
            node.expires_at = expires_at;
        }
    }

    /// Removes a node that has no states and has expired.
    pub fn remove_unused(&mut self, key: &NodeKey, now: u32, status: &mut Status) {
        if self.nodes.get(key).is_some_and(|node| node.states == 0 && node.expires_at <= now) {
            self.remove(key, status);
        }
    }

    /// Removes a node that has no states.
    pub fn remove(&mut self, key: &NodeKey, status: &mut Status) {
        self.nodes.remove(key);
        *self.of_rule.entry(key.rule).or_default() -= 1;
        status.source_removals += 1;
    }

    /// Removes all nodes that have no states and have expired.
    pub fn purge(&mut self, now: u32, status: &mut Status) {
        for key in self.nodes.keys().copied().collect::<Vec<_>>() {
            self.remove_unused(&key, now, status);
        }
    }

    /// Returns all nodes, ordered by rule.
    pub fn iter(&self) -> impl Iterator<Item = (&NodeKey, &SourceNode)> {
        self.nodes.iter()
    }
}

/// Returns true if `count` has reached a limit; 0 is no limit.
fn reached(limit: Option<u32>, count: u32) -> bool {
    limit.is_some_and(|limit| limit != 0 && count >= limit)
}
