//! Tables that are spread: their entries stand in the trees of rules (`skipstep_classifier::spread`).
//!
//! A table is one as long as its contents are those that it was loaded with, and the data plane adds nothing to it.

use std::collections::{BTreeMap, BTreeSet};

use skipstep_classifier::Planner;
use skipstep_classifier::spread::{self, MOST_ENTRIES, Spread};
use skipstep_ruleset::{Ruleset, TableName};

use crate::record::{TableRecord, slot_seen};

/// Marks those that rules are to be sought by.
pub(crate) fn mark(
    ruleset: &Ruleset,
    planner: Planner,
    tables: &mut BTreeMap<TableName, TableRecord>,
) {
    let named = spread::tables(ruleset, planner);
    let seen: BTreeSet<u32> = named.iter().filter_map(|name| slot_seen(tables, name)).collect();
    for table in tables.values_mut() {
        table.spread = seen.contains(&table.slot) && may_be(table);
    }
}

fn may_be(table: &TableRecord) -> bool {
    let few = table.contents.as_ref().is_some_and(|entries| entries.len() <= MOST_ENTRIES);
    few && table.active && !table.filled && !table.dynamic
}

/// What is in them.
pub(crate) fn entries(tables: &BTreeMap<TableName, TableRecord>) -> Spread {
    let marked = tables.values().filter(|table| table.spread);
    marked.filter_map(|table| Some((table.slot, table.contents.clone()?))).collect()
}
