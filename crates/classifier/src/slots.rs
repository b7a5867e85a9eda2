//! Slots: the places in the kernel that the loader gives to rules and tables.

use std::collections::BTreeMap;

use skipstep_ruleset::TableName;

use crate::spread::Spread;

/// Where the loader has made room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slots {
    /// Statistics slots of the rules of each rule set, in order, by the path of its anchor.
    pub rules: BTreeMap<String, Vec<u32>>,
    /// The same of old rules, in the order in which their anchor has them.
    pub old_rules: BTreeMap<String, Vec<u32>>,
    /// Slot of every table and dynamic address that [`fn@crate::tables`] gave. A table that its
    /// anchor has not defined has the slot of the one in the main rule set.
    pub tables: BTreeMap<TableName, u32>,
    /// The networks of tables that are spread.
    pub spread: Spread,
}
