//! Unchanged rule sets: the load of other rule sets does not compile them again.
//!
//! The compiled form of a rule set depends on its rules, and on the meaning of interfaces, groups,
//! tables and systems. If nobody loads the rule set and all of these are the same, its compiled
//! form is copied from the generation in force.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use skipstep_classifier::table_expansion::TableExpansions;
use skipstep_classifier::{CompiledSet, Unchanged};

use crate::object::Maps;
use crate::record::{InForce, Record, TableRecord};
use crate::{nodes, rule_home};

/// Hashes of the meaning of names in rule sets, by anchor path.
pub(crate) struct Meanings(BTreeMap<String, u64>);

impl InForce {
    /// Makes the record of a generation.
    pub(crate) fn new(
        generation: u32,
        meanings: &Meanings,
        compiled: BTreeMap<String, CompiledSet>,
    ) -> Self {
        let meant = |path: &String| meanings.0.get(path).copied();
        let sets = compiled.into_iter();
        let sets = sets.filter_map(|(path, set)| Some((meant(&path)?, path, set)));
        InForce {
            generation,
            sets: sets.map(|(meaning, path, set)| (path, (meaning, set))).collect(),
        }
    }

    /// Returns the rule sets of the generation in force that can be reused. The anchors in
    /// `replaced` are loaded, and `new` is the next rule set. Rule sets that cannot be read are not
    /// reused.
    pub(crate) fn unchanged(
        &self,
        maps: &Maps,
        generation: u32,
        (new, replaced): (&Record, &BTreeSet<String>),
        meanings: &Meanings,
    ) -> Unchanged {
        if self.generation != generation {
            return Unchanged::default();
        }
        let stays = |path: &String, meaning: u64, set: &CompiledSet| {
            let has_all = |slots: &Vec<u32>| slots.len() == set.rules.len();
            !replaced.contains(path)
                && meanings.0.get(path) == Some(&meaning)
                && new.rule_sets.get(path).is_some_and(|set| has_all(&set.slots))
        };
        let sets = self.sets.iter().filter(|(path, (meaning, set))| stays(path, *meaning, set));
        let sets = sets.map(|(path, (_, set))| (path.clone(), set.clone()));
        self.copied(maps, sets.collect()).unwrap_or_default()
    }

    fn copied(&self, maps: &Maps, sets: BTreeMap<String, CompiledSet>) -> Option<Unchanged> {
        let count = sets.values().map(|set| set.rules.end).max()?;
        let wanted = sets.values().map(|set| set.nodes.end).max()?;
        let rules = rule_home::rules_of(maps, self.generation).ok()??;
        let rules: Vec<_> = rules.first(count as u32).ok()?.collect();
        let nodes = nodes::read(maps, self.generation, wanted).ok()?;
        (rules.len() == count && nodes.len() == wanted).then_some(Unchanged { rules, nodes, sets })
    }
}

impl Meanings {
    /// Computes the hashes for the next rule set.
    pub fn for_record(record: &Record, expansions: &TableExpansions) -> Self {
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
                (name, table.slot, table.active, expansions.get(&table.slot)).hash(hasher);
            }
        };
        // an anchor also sees the tables of the main rule set
        add_tables(&mut of_all, "");
        let of = |path: &String| {
            let mut hasher = of_all.clone();
            add_tables(&mut hasher, path);
            (path.clone(), hasher.finish())
        };
        Meanings(record.rule_sets.keys().map(of).collect())
    }
}
