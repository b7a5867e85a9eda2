//! Sources with too many connections (pf-semantics section 15). The connection that exceeds a limit
//! ends, and its source is added to a table. The source's other states end, too, if the rule has
//! `flush`.

use std::sync::Arc;

use ipnet::IpNet;
use skipstep_ruleset::rule::{Overload, SourceTrack};
use skipstep_ruleset::{Direction, StateOptions, Table, TableEntry, TableName};
use skipstep_views::{LimitCounter, NodeKind};

use crate::firewall::Firewall;
use crate::key::{NodeKey, StateId, WIRE};
use crate::limiter::TableChange;

impl Firewall {
    /// Counts the newly established connection of a state. Returns true if its source has too many
    /// connections, or makes them too fast; then the state has ended.
    pub(crate) fn exceeds_connections(&mut self, id: StateId) -> bool {
        let rulebook = Arc::clone(&self.rulebook);
        let state = self.states.get_mut(id);
        let Some(key) = state.sources.iter().find(|key| key.kind == NodeKind::Track).copied()
        else {
            return false;
        };
        state.connected = true;
        let rule = rulebook.at(state.rule);
        let Some(options) = &rule.state else {
            return false;
        };
        let exceeded = self.exceeded(&key, options);
        for limit in &exceeded {
            self.count_limit(*limit);
        }
        if exceeded.is_empty() {
            return false;
        }
        if let Some(overload) = &options.overload {
            self.count_limit(LimitCounter::OverloadTable);
            self.add_to_table(&rule.path, &overload.table, IpNet::from(key.source));
            self.flush(id, &key, overload);
        }
        self.states.get_mut(id).end();
        true
    }

    /// Counts a connection, and returns the limits that it exceeds.
    fn exceeded(&mut self, key: &NodeKey, options: &StateOptions) -> Vec<LimitCounter> {
        let node = self.sources.get_mut(key);
        node.connections += 1;
        let many = options.max_src_conn.is_some_and(|max| max != 0 && node.connections > max);
        let rate = options.max_src_conn_rate.filter(|(limit, _)| *limit != 0);
        let fast = rate.is_some_and(|rate| node.rate.exceeds(rate, self.world.now));
        let exceeded = [
            many.then_some(LimitCounter::SourceConnections),
            fast.then_some(LimitCounter::SourceConnectionRate),
        ];
        exceeded.into_iter().flatten().collect()
    }

    /// Adds a network to the table of `overload`. A rule of an anchor uses the anchor's table, even
    /// if the main rule set has one of that name.
    fn add_to_table(&mut self, path: &str, name: &str, net: IpNet) {
        let limit = self.ruleset.options.limits.table_entries as usize;
        let count: usize = self.ruleset.all_tables().map(|(_, table)| table.entries.len()).sum();
        let Some(table) = self.table_mut(path, name) else {
            return;
        };
        if count < limit && !table.entries.iter().any(|entry| entry.net == net) {
            table.entries.push(TableEntry::from(net));
        }
    }

    /// Changes the table of a source limiter, which belongs to the main rule set.
    pub(crate) fn change_table(&mut self, change: Option<TableChange>) {
        match change {
            None => {}
            Some(TableChange::Add(name, net)) => self.add_to_table("", &name, net),
            Some(TableChange::Remove(name, net)) => {
                if let Some(table) = self.table_mut("", &name) {
                    table.entries.retain(|entry| entry.net != net);
                    let name = TableName { anchor: String::new(), name };
                    self.counters.forget_entry(&name, net);
                    self.pools.forget_entry(&name, net);
                }
            }
        }
    }

    pub(crate) fn table_mut(&mut self, path: &str, name: &str) -> Option<&mut Table> {
        let ruleset = Arc::make_mut(&mut self.ruleset);
        let tables = match ruleset.anchors.get_mut(path) {
            Some(anchor) => &mut anchor.tables,
            None => &mut ruleset.tables,
        };
        tables.iter_mut().find(|table| table.name == name)
    }

    /// Ends the other states of the source for `flush`, of this rule or of all rules.
    fn flush(&mut self, id: StateId, key: &NodeKey, overload: &Overload) {
        let Some(whose) = overload.flush else {
            return;
        };
        self.count_limit(LimitCounter::OverloadFlush);
        let (side, rule) = {
            let state = self.states.get(id);
            (usize::from(state.direction == Direction::Out), state.rule)
        };
        for state in self.states.iter_mut().filter(|state| !state.unlinked) {
            // PF derives the source's index in each key from the direction of the new connection's
            // state
            let is_source = state.key[WIRE].address[side] == key.source;
            if is_source && (whose == SourceTrack::Global || state.rule == rule) {
                state.end();
            }
        }
    }

    fn count_limit(&mut self, limit: LimitCounter) {
        self.counters.status.limits[limit as usize] += 1;
    }
}
