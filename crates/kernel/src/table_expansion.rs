//! Table expansion: tables whose networks are in the trees of rules
//! (`skipstep_classifier::table_expansion`).
//!
//! A table is expanded from its load until an entry is added that its networks do not cover. A
//! table to which the data plane adds entries is never expanded.

use std::collections::BTreeMap;

use skipstep_classifier::Planner;
use skipstep_classifier::cover::cover;
use skipstep_classifier::table_expansion::{self, TableExpansions};
use skipstep_ruleset::{Ruleset, TableName};

use crate::record::{TableRecord, visible_slot};

/// Sets the networks of the tables that are to be expanded in trees, and clears those of the
/// others.
pub(crate) fn mark(
    ruleset: &Ruleset,
    planner: Planner,
    tables: &mut BTreeMap<TableName, TableRecord>,
) {
    let mut looks: BTreeMap<u32, usize> = BTreeMap::new();
    for (name, rules) in table_expansion::tables(ruleset, planner) {
        if let Some(slot) = visible_slot(tables, &name) {
            *looks.entry(slot).or_default() += rules;
        }
    }
    let most = table_expansion::networks_per_table(planner, looks.values().sum());
    for table in tables.values_mut() {
        let may_be = looks.contains_key(&table.slot) && may_be(table);
        let networks = || Some(cover(table.contents.as_ref()?, most));
        table.expansions = if may_be { table.expansions.take().or_else(networks) } else { None };
    }
}

fn may_be(table: &TableRecord) -> bool {
    table.active && !table.filled && !table.dynamic
}

/// Returns the networks of each expanded table, by slot.
pub(crate) fn networks(tables: &BTreeMap<TableName, TableRecord>) -> TableExpansions {
    tables.values().filter_map(|table| Some((table.slot, table.expansions.clone()?))).collect()
}
