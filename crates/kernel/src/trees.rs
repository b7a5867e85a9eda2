//! Trees of the main rule set that stand: a change of anchors alone does not plant them again.
//!
//! They are made of its rules, and of what interfaces, groups and tables mean to these. As long as that is the same, so
//! are they, and their cells are copied from the generation in force.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde::{Deserialize, Serialize};
use skipstep_classifier::spread::Spread;
use skipstep_classifier::{Standing, Trees};

use crate::cells;
use crate::object::Maps;
use crate::record::Record;

/// The trees of a generation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planted {
    generation: u32,
    /// Hash of what names mean.
    meaning: u64,
    trees: Trees,
}

impl Planted {
    /// To be remembered of a generation.
    pub fn of(generation: u32, meaning: u64, trees: Trees) -> Self {
        Planted { generation, meaning, trees }
    }

    /// What stands of a generation that is in force, if names mean the same.
    pub fn standing(&self, maps: &Maps, generation: u32, meaning: u64) -> Option<Standing> {
        let is_same = (self.generation, self.meaning) == (generation, meaning);
        let wanted = self.trees.cells as usize;
        if !is_same || wanted == 0 {
            return None;
        }
        let cells = cells::read(maps, generation, wanted).ok()?;
        (cells.len() == wanted).then(|| Standing { trees: self.trees.clone(), cells })
    }
}

/// Hash of what names mean in the main rule set.
pub(crate) fn meaning(record: &Record, spread: &Spread) -> u64 {
    let mut hasher = DefaultHasher::new();
    record.groups.hash(&mut hasher);
    for (name, table) in record.tables.iter().filter(|(name, _)| name.anchor.is_empty()) {
        (name, table.slot).hash(&mut hasher);
    }
    spread.hash(&mut hasher);
    hasher.finish()
}
