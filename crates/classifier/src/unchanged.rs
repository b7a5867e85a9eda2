//! Unchanged rule sets, whose compiled form the next load reuses.
//!
//! The compiled form of a rule set depends on its rules and on the meaning of the names in them. If
//! both are the same, only its position changes, because the number of rules and nodes before it
//! changes. Rules refer to other rules by index, and so do the first two nodes of a superblock;
//! these indexes are adjusted. All other nodes are position-independent (`bpf/abi/tree_set.h`).

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use skipstep_abi as abi;
use skipstep_abi::tree_set::{SUPERBLOCK_FIRST, TREE_SET_WALK, TREE_SETS};

/// A run of neighbouring rules that is searched with one set of trees: a superblock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Superblock {
    /// Indexes of the rules in their rule set.
    pub rules: Range<usize>,
    /// True if some rules have side effects, so a search returns all matching rules.
    pub meets_all: bool,
    /// Index of the superblock's first node, relative to the first node of the rule set.
    pub node: usize,
}

/// The superblocks of a rule set and the cost of their trees.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trees {
    /// Most nodes that one search reads.
    pub longest: u32,
    /// Most rules that a packet is evaluated against, as far as the compiler can compute it.
    pub walked: u32,
    pub superblocks: Vec<Superblock>,
}

/// The position of a compiled rule set and of its trees.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompiledSet {
    /// Indexes of its filter rules in the image.
    pub rules: Range<usize>,
    /// Indexes of the nodes of its trees in the image; `0..0` if it has none.
    pub nodes: Range<usize>,
    /// The superblocks in those nodes.
    pub(crate) trees: Trees,
}

/// The compiled form of rule sets that did not change since the last load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unchanged {
    /// Rules of the previous image, at least up to the last unchanged rule set.
    pub rules: Vec<abi::Rule>,
    /// Nodes of the previous image, at least up to the last unchanged rule set.
    pub nodes: Vec<abi::Node>,
    /// Positions of the unchanged rule sets in the previous image, by anchor path.
    pub sets: BTreeMap<String, CompiledSet>,
}

impl Unchanged {
    /// Returns the rules of an unchanged rule set, adjusted to begin at index `first`. The caller
    /// updates the rule sets that anchor rules call. Returns `None` if the rule set changed.
    pub(crate) fn rules(
        &self,
        path: &str,
        first: usize,
    ) -> Option<impl Iterator<Item = abi::Rule> + '_> {
        let CompiledSet { rules, .. } = self.sets.get(path)?;
        let moved = move |index: u32| index - rules.start as u32 + first as u32;
        Some(self.rules[rules.clone()].iter().map(move |rule| abi::Rule {
            skip: rule.skip.map(moved),
            set_end: moved(rule.set_end),
            superblock: 0,
            ..*rule
        }))
    }

    /// Appends the trees of an unchanged rule set to `nodes`, for rules that begin at index
    /// `first`. Returns `None` if the rule set changed.
    pub(crate) fn trees(
        &self,
        path: &str,
        first: usize,
        nodes: &mut Vec<abi::Node>,
    ) -> Option<Trees> {
        let compiled = self.sets.get(path)?;
        let begin = nodes.len();
        nodes.extend_from_slice(&self.nodes[compiled.nodes.clone()]);
        let moved = |place: u32| place - compiled.nodes.start as u32 + begin as u32;
        for superblock in &compiled.trees.superblocks {
            for head in &mut nodes[begin + superblock.node..][..2] {
                head.word[0] = (first + superblock.rules.end) as u32;
                head.word[SUPERBLOCK_FIRST] = (first + superblock.rules.start) as u32;
                for place in
                    head.word[1..=TREE_SETS].iter_mut().filter(|place| **place > TREE_SET_WALK)
                {
                    *place = moved(*place);
                }
            }
        }
        Some(compiled.trees.clone())
    }
}
