//! Rule sets that stand: a change of others does not compile them again.
//!
//! What the kernel has of a rule set comes of its rules, and of what interfaces, groups, tables and
//! systems mean to these. As long as nobody loads it and all of that is the same, it is copied from
//! the generation in force.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde::{Deserialize, Serialize};
use skipstep_classifier::spread::Spread;
use skipstep_classifier::{Planted, Standing};

use crate::object::Maps;
use crate::record::{Record, TableRecord};
use crate::{cells, rule_home};

/// The rule sets of a generation as they are in the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InForce {
    generation: u32,
    /// By the path of its anchor, a hash of what names mean in it and where it is.
    sets: BTreeMap<String, (u64, Planted)>,
}

/// Hashes of what names mean in rule sets, by the paths of their anchors.
pub(crate) struct Meanings(BTreeMap<String, u64>);

impl InForce {
    /// To be remembered of a generation.
    pub(crate) fn of(
        generation: u32,
        meanings: &Meanings,
        planted: BTreeMap<String, Planted>,
    ) -> Self {
        let meant = |path: &String| meanings.0.get(path).copied();
        let sets = planted.into_iter();
        let sets = sets.filter_map(|(path, set)| Some((meant(&path)?, path, set)));
        InForce {
            generation,
            sets: sets.map(|(meaning, path, set)| (path, (meaning, set))).collect(),
        }
    }

    /// What stands of a generation that is in force, where those at the paths `replaced` are loaded
    /// and `new` is to be in force. What cannot be read does not stand.
    pub(crate) fn standing(
        &self,
        maps: &Maps,
        generation: u32,
        (new, replaced): (&Record, &BTreeSet<String>),
        meanings: &Meanings,
    ) -> Standing {
        if self.generation != generation {
            return Standing::default();
        }
        let stays = |path: &String, meaning: u64, set: &Planted| {
            let has_all = |slots: &Vec<u32>| slots.len() == set.rules.len();
            !replaced.contains(path)
                && meanings.0.get(path) == Some(&meaning)
                && new.rule_sets.get(path).is_some_and(|set| has_all(&set.slots))
        };
        let sets = self.sets.iter().filter(|(path, (meaning, set))| stays(path, *meaning, set));
        let sets = sets.map(|(path, (_, set))| (path.clone(), set.clone()));
        self.copied(maps, sets.collect()).unwrap_or_default()
    }

    fn copied(&self, maps: &Maps, sets: BTreeMap<String, Planted>) -> Option<Standing> {
        let count = sets.values().map(|set| set.rules.end).max()?;
        let wanted = sets.values().map(|set| set.cells.end).max()?;
        let rules = rule_home::rules_of(maps, self.generation).ok()??;
        let rules: Vec<_> = rules.first(count as u32).ok()?.collect();
        let cells = cells::read(maps, self.generation, wanted).ok()?;
        (rules.len() == count && cells.len() == wanted).then_some(Standing { rules, cells, sets })
    }
}

impl Meanings {
    /// Of the rule sets that are to be in force.
    pub fn of(record: &Record, spread: &Spread) -> Self {
        let mut of_all = DefaultHasher::new();
        record.groups.hash(&mut of_all);
        record.ruleset.options.evaluator.hash(&mut of_all);
        record.ruleset.systems.keys().for_each(|name| name.hash(&mut of_all));
        let mut tables: BTreeMap<&str, Vec<(&str, &TableRecord)>> = BTreeMap::new();
        for (name, table) in &record.tables {
            tables.entry(&name.anchor).or_default().push((&name.name, table));
        }
        let add_tables = |hasher: &mut DefaultHasher, path: &str| {
            for (name, table) in tables.get(path).into_iter().flatten() {
                (name, table.slot, table.active, spread.get(&table.slot)).hash(hasher);
            }
        };
        // an anchor sees the tables of the main rule set besides its own
        add_tables(&mut of_all, "");
        let of = |path: &String| {
            let mut hasher = of_all.clone();
            add_tables(&mut hasher, path);
            (path.clone(), hasher.finish())
        };
        Meanings(record.rule_sets.keys().map(of).collect())
    }
}
