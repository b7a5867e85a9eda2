//! What is changed while packets flow: states that are killed, tables that get other contents
//! (pf-semantics section 17).

use std::collections::BTreeSet;

use ipnet::IpNet;
use skipstep_ruleset::{TableEntry, TableName};

use crate::Firewall;
use crate::state::{State, StateId};

/// What `pfctl -T` does to the contents of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableEdit {
    /// Whose contents change.
    pub table: TableName,
    /// How.
    pub edit: Edit,
    /// The entries given.
    pub entries: Vec<TableEntry>,
}

/// How contents change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    /// The entries join them, those of networks that are not there.
    Add,
    /// The entries' networks leave them.
    Delete,
    /// The entries take their place.
    Replace,
}

impl Firewall {
    /// Removes states as `pfctl -k` does. Those that only wait to be removed are left.
    pub fn kill(&mut self, ids: &[StateId]) {
        let there = self.states.iter().filter(|state| ids.contains(&state.id) && !state.unlinked);
        for state in there.cloned().collect::<Vec<State>>() {
            self.remove(&state);
        }
    }

    /// The states that rules with this label made, be those gone or not.
    pub fn labelled(&self, label: &str) -> Vec<StateId> {
        let has_label =
            |state: &&State| self.rulebook.at(state.rule).labels.iter().any(|other| other == label);
        self.states().filter(has_label).map(|state| state.id).collect()
    }

    /// Changes a table that there is, unless that makes too many entries; whether it did.
    pub fn edit_table(&mut self, edit: &TableEdit) -> bool {
        let limit = self.ruleset().options.limits.table_entries as usize;
        let count: usize = self.ruleset().all_tables().map(|(_, table)| table.entries.len()).sum();
        let TableName { anchor, name } = &edit.table;
        let Some(table) = self.table_mut(anchor, name).filter(|table| !table.constant) else {
            return false;
        };
        let given = distinct(&edit.entries);
        let nets: BTreeSet<IpNet> = given.iter().map(|entry| entry.net).collect();
        let entries: Vec<TableEntry> = match edit.edit {
            Edit::Add => {
                let known: BTreeSet<IpNet> = table.entries.iter().map(|entry| entry.net).collect();
                let new = given.into_iter().filter(|entry| !known.contains(&entry.net));
                table.entries.iter().copied().chain(new).collect()
            }
            Edit::Delete => {
                let left = table.entries.iter().filter(|entry| !nets.contains(&entry.net));
                left.copied().collect()
            }
            Edit::Replace => given,
        };
        if count - table.entries.len() + entries.len() > limit {
            return false;
        }
        let before = std::mem::replace(&mut table.entries, entries.clone());
        self.counters.keep_entries(&edit.table, &before, &entries);
        self.pools.keep_entries(&edit.table, &entries);
        true
    }

    /// A state goes, and what counts it loses it.
    pub(crate) fn remove(&mut self, state: &State) {
        if !state.unlinked {
            self.release_addresses(state);
            self.release_sources(state);
            self.release_limiters(state, false);
        }
        self.states.remove(state.id);
        self.counters.state_removed(state);
    }
}

/// The first of several entries with the same network, ascending.
fn distinct(entries: &[TableEntry]) -> Vec<TableEntry> {
    let mut entries = entries.to_vec();
    entries.sort_by_key(|entry| entry.net);
    entries.dedup_by_key(|entry| entry.net);
    entries
}
