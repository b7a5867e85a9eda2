//! Changes while packets flow: killed states and new contents of tables (pf-semantics section 17).

use std::collections::BTreeSet;

use ipnet::IpNet;
use skipstep_ruleset::{TableEntry, TableName};
use skipstep_views::{Edit, TableEdit};

use crate::Firewall;
use crate::key::StateId;
use crate::state::State;

impl Firewall {
    /// Removes states as `pfctl -k` does, except states that already wait for removal.
    pub fn kill(&mut self, ids: &[StateId]) {
        let there = self.states.iter().filter(|state| ids.contains(&state.id) && !state.unlinked);
        for state in there.cloned().collect::<Vec<State>>() {
            self.remove(&state);
        }
    }

    /// Returns the states whose rules have this label, orphaned rules included.
    pub fn states_with_label(&self, label: &str) -> Vec<StateId> {
        let has_label =
            |state: &&State| self.rulebook.at(state.rule).labels.iter().any(|other| other == label);
        self.states().filter(has_label).map(|state| state.id).collect()
    }

    /// Changes an existing table. Returns false, and changes nothing, if the table is missing or
    /// constant, or if all tables together would exceed `set limit table-entries`.
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

    /// Removes a state, and its references to pools, source nodes, limiters and counters.
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

/// Returns the entries in ascending order, the first one of each network.
fn distinct(entries: &[TableEntry]) -> Vec<TableEntry> {
    let mut entries = entries.to_vec();
    entries.sort_by_key(|entry| entry.net);
    entries.dedup_by_key(|entry| entry.net);
    entries
}
