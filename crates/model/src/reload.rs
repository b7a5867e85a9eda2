//! Load of other rules while states live on. States keep the timeouts, limits, pools and source
//! nodes of their rules, even if these are orphaned (pf-semantics section 19).

use std::sync::Arc;

use ipnet::IpNet;
use skipstep_ruleset::{Next, Ruleset, Table, TableEntry, TableName};

use crate::Firewall;
use crate::rulebook::Rulebook;

impl Firewall {
    /// Commits other rules, options and tables in one step.
    ///
    /// # Errors
    ///
    /// Fails, and changes nothing, if a source limiter has sources and its table or masks would
    /// change.
    pub fn replace_rules(&mut self, next: &Next) -> Result<(), String> {
        self.limiters.check_replacement(&next.ruleset)?;
        let ruleset = with_surviving_tables(&self.ruleset, next);
        let rulebook = Arc::make_mut(&mut self.rulebook);
        let before = rulebook.clone();
        rulebook.replace(&next.ruleset, |path| next.replaces(path));
        self.counters.make_room(rulebook.len());
        if ruleset.options.keep_counters {
            keep_counters(&mut self.counters, &before, rulebook);
        }
        self.replace_limiters(&next.ruleset, next.replaces(""));
        self.forget_tables(&self.ruleset.clone(), &ruleset);
        let (limit, timeout) = Self::fragment_limits(&ruleset.options);
        self.fragments.configure(limit, timeout);
        self.ruleset = Arc::new(ruleset);
        Ok(())
    }

    /// Voids the references of states to removed limiters.
    pub(crate) fn replace_limiters(&mut self, ruleset: &Ruleset, loaded: bool) {
        let removed = self.limiters.replace(ruleset, loaded);
        for state in self.states.iter_mut() {
            let held = state.source_limiter.as_ref().map(|held| held.id);
            if held.is_some_and(|id| removed.contains(&(true, id))) {
                state.source_limiter = None;
            }
            if state.state_limiter.is_some_and(|id| removed.contains(&(false, id))) {
                state.state_limiter = None;
            }
        }
    }

    /// Forgets the counters of tables and entries that `before` has and `now` has not. During a
    /// trial, the tables before it count as present.
    pub(crate) fn forget_tables(&mut self, before: &Ruleset, now: &Ruleset) {
        let kept = self.trial.as_ref().map(|trial| Arc::clone(&trial.ruleset));
        self.counters.keep_tables(
            |name| table(before, name),
            |name| table(now, name).or_else(|| table(kept.as_ref()?, name)),
        );
        if kept.is_none() {
            self.pools.keep_tables(now, &self.world);
        }
    }
}

pub(crate) fn table<'a>(ruleset: &'a Ruleset, name: &TableName) -> Option<&'a Table> {
    ruleset.tables_of(&name.anchor).iter().find(|table| table.name == name.name)
}

/// Returns the next rule set with the tables that live on. Tables without new contents keep theirs.
/// Tables of unchanged anchors and persistent tables stay.
fn with_surviving_tables(previous: &Ruleset, next: &Next) -> Ruleset {
    let mut ruleset = next.ruleset.clone();
    let anchors = ruleset.anchors.iter_mut().map(|(path, anchor)| (&path[..], &mut anchor.tables));
    for (path, tables) in std::iter::once(("", &mut ruleset.tables)).chain(anchors) {
        for table in tables.iter_mut().filter(|_| next.replaces(path)) {
            let before = previous.tables_of(path).iter().find(|before| before.name == table.name);
            if let Some(before) = before {
                merge_previous(table, before);
            }
        }
    }
    // an anchor's table, even one that only persists, keeps the main rule set's table of the same
    // name
    let (main, of_anchors): (Vec<_>, Vec<_>) =
        previous.all_tables().partition(|(path, _)| path.is_empty());
    for (path, table) in of_anchors.into_iter().chain(main) {
        let of_anchors = || ruleset.anchors.values().flat_map(|anchor| &anchor.tables);
        let held = path.is_empty() && of_anchors().any(|other| other.name == table.name);
        let stays = table.persist || table.defined && (held || !next.replaces(path));
        if stays && !ruleset.tables_of(path).iter().any(|other| other.name == table.name) {
            let tables = match path {
                "" => &mut ruleset.tables,
                _ => &mut ruleset.anchors.entry(path.to_owned()).or_default().tables,
            };
            tables.push(table.clone());
        }
    }
    ruleset
}

/// Merges the previous table of the same name. A table without a statement keeps its properties. A
/// table without new contents takes over the previous entries. Otherwise known addresses keep their
/// weights.
fn merge_previous(table: &mut Table, before: &Table) {
    table.keep_properties(before);
    if !table.initialized {
        table.entries.clone_from(&before.entries);
        return;
    }
    let weight = |net: IpNet| before.entries.iter().find(|entry| entry.net == net);
    for entry in table.entries.iter_mut().filter(|_| before.defined) {
        entry.weight = weight(entry.net).map_or(entry.weight, |known: &TableEntry| known.weight);
    }
}

/// Copies counters for `set keepcounters` to rules that were there before. If several previous
/// rules are equal, the first one's counters are taken, as in FreeBSD.
fn keep_counters(counters: &mut crate::counters::Counters, before: &Rulebook, now: &Rulebook) {
    for new in now.since(before.len()) {
        let same = before.in_force().find(|previous| previous.has_same_contents(new));
        if let Some(previous) = same {
            counters.inherit(new.index, previous.index);
        }
    }
}
