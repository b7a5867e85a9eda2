//! Tables that are spread: they stand in the trees of rules (`skipstep_classifier::spread`).
//!
//! A table is one from when it is loaded until something is added that its networks do not cover,
//! unless the data plane adds to it.

use std::collections::BTreeMap;

use skipstep_classifier::Planner;
use skipstep_classifier::cover::cover;
use skipstep_classifier::spread::{self, Spread};
use skipstep_ruleset::{Ruleset, TableName};

use crate::record::{TableRecord, slot_seen};

/// Marks those that rules are to be sought by.
pub(crate) fn mark(
    ruleset: &Ruleset,
    planner: Planner,
    tables: &mut BTreeMap<TableName, TableRecord>,
) {
    let mut looks: BTreeMap<u32, usize> = BTreeMap::new();
    for (name, rules) in spread::tables(ruleset, planner) {
        if let Some(slot) = slot_seen(tables, &name) {
            *looks.entry(slot).or_default() += rules;
        }
    }
    let most = spread::networks_of_a_table(planner, looks.values().sum());
    for table in tables.values_mut() {
        let may_be = looks.contains_key(&table.slot) && may_be(table);
        let networks = || Some(cover(table.contents.as_ref()?, most));
        table.spread = if may_be { table.spread.take().or_else(networks) } else { None };
    }
}

fn may_be(table: &TableRecord) -> bool {
    table.active && !table.filled && !table.dynamic
}

/// The networks of each.
pub(crate) fn networks(tables: &BTreeMap<TableName, TableRecord>) -> Spread {
    tables.values().filter_map(|table| Some((table.slot, table.spread.clone()?))).collect()
}
