//! Slots: indexes of rules and tables in the kernel's maps, assigned by the loader.

use std::collections::BTreeMap;

use skipstep_ruleset::TableName;

use crate::table_expansion::TableExpansions;

/// The slots that the loader assigned to a rule set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slots {
    /// Statistics slots of the filter rules of each rule set, in rule order, by anchor path.
    pub rules: BTreeMap<String, Vec<u32>>,
    /// Statistics slots of the legacy rules of each rule set, in rule order, by anchor path.
    pub legacy_rules: BTreeMap<String, Vec<u32>>,
    /// Slot of each table and dynamic address that [`fn@crate::tables`] returned. A table that its
    /// anchor does not define has the slot of the main rule set's table of that name.
    pub tables: BTreeMap<TableName, u32>,
    /// The networks of expanded tables, by table slot.
    pub expansions: TableExpansions,
}
