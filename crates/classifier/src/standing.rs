//! Rule sets that stand: where others change, these are taken as they are in force.
//!
//! What the kernel walks of a rule set comes of its rules, and of what the names in them mean. As
//! long as both are the same, all that changes is where it is, because there are more or fewer
//! rules and cells before it. Rules say of others by their indexes where they are, and so do the
//! first cells of a stretch; these are moved. All other cells are true wherever they are
//! (`bpf/abi/forest.h`).

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use skipstep_abi as abi;
use skipstep_abi::forest::{FOREST_WALK, FORESTS, STRETCH_FIRST};

/// Rules that stand together and are searched together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stretch {
    /// Where they are in their rule set.
    pub rules: Range<usize>,
    /// Some act on the way, so each that matches is met.
    pub meets_all: bool,
    /// Where its trees are among those of the rule set.
    pub cell: usize,
}

/// The trees of a rule set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trees {
    /// Cells that the longest search looks at.
    pub longest: u32,
    /// Rules that a packet may be tested against, as far as that can be told.
    pub walked: u32,
    pub stretches: Vec<Stretch>,
}

/// Where a rule set is, with its trees.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planted {
    /// Its filter rules in the image.
    pub rules: Range<usize>,
    /// Cells of its trees; from 0 to 0 if it has none.
    pub cells: Range<usize>,
    /// What these are.
    pub(crate) trees: Trees,
}

/// What is in force of rule sets that mean the same as before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// The rules of the image in force, as far as the last of those that stand.
    pub rules: Vec<abi::Rule>,
    /// Its cells, likewise.
    pub cells: Vec<abi::Cell>,
    /// Where the rule sets are, by the paths of their anchors.
    pub sets: BTreeMap<String, Planted>,
}

impl Standing {
    /// The rules of a rule set, if it stands, as they are where its first one has this index. Which
    /// rules they call is still what it was.
    pub(crate) fn rules(
        &self,
        path: &str,
        first: usize,
    ) -> Option<impl Iterator<Item = abi::Rule> + '_> {
        let Planted { rules, .. } = self.sets.get(path)?;
        let moved = move |index: u32| index - rules.start as u32 + first as u32;
        Some(self.rules[rules.clone()].iter().map(move |rule| abi::Rule {
            skip: rule.skip.map(moved),
            set_end: moved(rule.set_end),
            segment: 0,
            ..*rule
        }))
    }

    /// The trees of a rule set, if it stands; their cells are added to `cells`, for rules whose
    /// first one has this index.
    pub(crate) fn trees(
        &self,
        path: &str,
        first: usize,
        cells: &mut Vec<abi::Cell>,
    ) -> Option<Trees> {
        let planted = self.sets.get(path)?;
        let begin = cells.len();
        cells.extend_from_slice(&self.cells[planted.cells.clone()]);
        let moved = |place: u32| place - planted.cells.start as u32 + begin as u32;
        for stretch in &planted.trees.stretches {
            for head in &mut cells[begin + stretch.cell..][..2] {
                head.word[0] = (first + stretch.rules.end) as u32;
                head.word[STRETCH_FIRST] = (first + stretch.rules.start) as u32;
                for place in head.word[1..=FORESTS].iter_mut().filter(|place| **place > FOREST_WALK)
                {
                    *place = moved(*place);
                }
            }
        }
        Some(planted.trees.clone())
    }
}
