//! Tables by name: `pfctl -T` and `-sT`.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ipnet::IpNet;
use skipstep_abi as abi;
pub use skipstep_abi::TableStats as Stats;
use skipstep_classifier::cover::covers;
use skipstep_ruleset::{Next, Ruleset, TableEntry, TableName};
use skipstep_scenario::engine::{Edit, TableEdit};

use crate::change::Change;
use crate::error::{Error, Result};
use crate::instance::Instance;
use crate::object::Maps;
use crate::record::{Memory, Record, TableRecord, wall_clock};
use crate::table_index::{self, Edition};
use crate::{contents, counters, host, limiter, place, pool};
use skipstep_abi::limits::SELF_TABLE;
use skipstep_abi::table::TABLE_INDEXED;

/// A table as `pfctl -vsT` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableInfo {
    /// Its name.
    pub name: TableName,
    /// `persist`
    pub persist: bool,
    /// `const`
    pub constant: bool,
    /// `counters`
    pub counters: bool,
    /// Defined by a statement or made by hand; false if rules only name it.
    pub active: bool,
    /// How often rules name it.
    pub rules: u32,
    /// How many anchors have a table of this name, which it stands in for until they define it.
    pub anchors: u32,
    /// How many addresses and networks are in it.
    pub entries: u32,
    /// Counters.
    pub stats: Stats,
    /// When they were last cleared.
    pub zeroed: SystemTime,
}

/// An entry of a table as `pfctl -vT show` prints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryInfo {
    /// The entry.
    pub entry: TableEntry,
    /// Second since 1970 when it was added or its counters were cleared.
    pub cleared: u32,
    /// What was counted for it, if it was defined with `counters` and a packet hit it.
    pub traffic: Option<EntryTraffic>,
    /// States that `least-states` pools gave the address, if they ever did.
    pub states: Option<u32>,
}

/// Packets that matched a rule for the sake of an entry: `[in, out][block, match, pass]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EntryTraffic {
    /// Packets.
    pub packets: [[u64; 3]; 2],
    /// Bytes.
    pub bytes: [[u64; 3]; 2],
}

/// What replacing the contents of a table changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Replaced {
    /// Entries that were not there before.
    pub added: u32,
    /// Entries that are there no longer.
    pub deleted: u32,
}

impl Instance {
    /// All tables, those of the main rule set first, in order of name; without those of dynamic
    /// addresses.
    pub fn table_list(&self) -> Result<Vec<TableInfo>> {
        limiter::settle(&self.maps, &self.programs)?;
        let record = self.record()?;
        let sizes = place::sizes(&self.maps, &record)?;
        let named = record.tables.iter().filter(|(_, table)| !table.dynamic);
        named.map(|(name, table)| self.table_info(&record, name, table, sizes[name])).collect()
    }

    fn table_info(
        &self,
        record: &Record,
        name: &TableName,
        table: &TableRecord,
        entries: usize,
    ) -> Result<TableInfo> {
        Ok(TableInfo {
            name: name.clone(),
            persist: table.persist,
            constant: table.constant,
            counters: table.counters,
            active: table.active,
            rules: references(&record.ruleset, name),
            anchors: anchors(record, name),
            entries: entries as u32,
            stats: counters::table(&self.maps, table.stats)?,
            zeroed: UNIX_EPOCH + Duration::from_secs(table.zeroed_at),
        })
    }

    /// The contents of a table, ascending.
    pub fn table_entries(&self, name: &TableName) -> Result<Vec<TableEntry>> {
        let record = self.record()?;
        let mut entries = place::current(&self.maps, find(&record, name)?)?;
        entries.sort_by_key(|entry| entry.net);
        Ok(entries)
    }

    /// The contents of a table, ascending, with all that is known of them.
    pub fn table_entry_list(&self, name: &TableName) -> Result<Vec<EntryInfo>> {
        limiter::settle(&self.maps, &self.programs)?;
        let record = self.record()?;
        let slot = find(&record, name)?.slot;
        contents::read_all(&self.maps, slot)
    }

    /// Clears the counters of entries; how many of them there are.
    pub fn table_zero_entries(&self, name: &TableName, entries: &[TableEntry]) -> Result<u32> {
        self.change(name, false, |before| {
            let there = there_of(entries, before);
            let count = there.len() as u32;
            (Step::Date(there), count)
        })
    }

    /// Adds entries; how many were new. A table that does not exist is made, to persist.
    pub fn table_add(&self, name: &TableName, entries: &[TableEntry]) -> Result<u32> {
        self.change(name, true, |before| {
            let new = new_among(entries, before);
            let count = new.len() as u32;
            (Step::Add(new), count)
        })
    }

    /// Deletes entries; how many were there.
    pub fn table_delete(&self, name: &TableName, entries: &[TableEntry]) -> Result<u32> {
        self.change(name, false, |before| {
            let gone = there_of(entries, before);
            let count = gone.len() as u32;
            (Step::Delete(gone), count)
        })
    }

    /// Replaces the contents in one piece: no packet sees part of them. A table that does not exist
    /// is made, to persist. As in pf, an address that was there keeps its weight.
    pub fn table_replace(&self, name: &TableName, entries: &[TableEntry]) -> Result<Replaced> {
        self.change(name, true, |before| {
            let mut entries = entries.to_vec();
            contents::keep_weights(before, &mut entries);
            let old: BTreeSet<&TableEntry> = before.iter().collect();
            let new: BTreeSet<&TableEntry> = entries.iter().collect();
            let replaced = Replaced {
                added: new.difference(&old).count() as u32,
                deleted: old.difference(&new).count() as u32,
            };
            (Step::Replace(entries), replaced)
        })
    }

    /// Empties a table; how many entries were in it.
    pub fn table_flush(&self, name: &TableName) -> Result<u32> {
        self.change(name, false, |before| (Step::Replace(Vec::new()), before.len() as u32))
    }

    /// For each network whether the table holds it: the longest match decides, and a network is
    /// held if an entry covers it.
    pub fn table_test(&self, name: &TableName, nets: &[IpNet]) -> Result<Vec<bool>> {
        let entries = self.table_entries(name)?;
        Ok(nets.iter().map(|net| holds(&entries, net)).collect())
    }

    /// Clears the counters of a table and of all its entries.
    pub fn table_zero(&self, name: &TableName) -> Result<()> {
        let mut change = self.begin()?;
        let table = find_mut(&mut change.record, name)?;
        table.zeroed_at = wall_clock();
        self.maps.table_stats.set(&table.stats, &abi::TableStats::default())?;
        let all = place::current(&self.maps, table)?;
        apply(&self.maps, &mut change.memory, table, all.clone(), Step::Date(all))?;
        change.keep()
    }

    /// Deletes a table. One that rules look into is emptied and no longer persists, as pf does.
    pub fn table_kill(&self, name: &TableName) -> Result<()> {
        self.table_flush(name)?;
        let mut change = self.begin()?;
        let table = find_mut(&mut change.record, name)?;
        let was_active = std::mem::replace(&mut table.active, false);
        table.persist = false;
        set_defined(&mut change.record.ruleset, name, false);
        let looked_into = references(&change.record.ruleset, name) != 0;
        if !looked_into && anchors(&change.record, name) == 0 {
            change.record.tables.remove(name);
        }
        if was_active && looked_into && !name.anchor.is_empty() {
            // from now on the rules look into the table of the main rule set
            return self.look_up_tables(change);
        }
        change.keep()
    }

    /// Deletes all tables of an anchor (of the main rule set if the path is empty) that rules do
    /// not look into, and empties the others; how many were deleted or emptied.
    pub fn flush_tables(&self, anchor: &str) -> Result<u32> {
        let names = self.table_list()?.into_iter().map(|table| table.name);
        let names: Vec<TableName> = names.filter(|name| name.anchor == anchor).collect();
        for name in &names {
            self.table_kill(name)?;
        }
        Ok(names.len() as u32)
    }

    /// What has entries in the kernel, versions in the trie and places of indexes: one for each
    /// table that is not empty, unless a loader was killed since the last load.
    pub fn table_versions(&self) -> Result<BTreeSet<u32>> {
        let in_trie = self.maps.table_entries.keys().map(|key| key.version);
        let indexes = table_index::occupied(&self.maps)?.into_iter();
        Ok(in_trie.chain(indexes.map(|place| place | TABLE_INDEXED)).collect())
    }

    /// Changes a table under the lock: `decide` sees what is in it and says what to do.
    fn change<T>(
        &self,
        name: &TableName,
        create: bool,
        decide: impl Fn(&[TableEntry]) -> (Step, T),
    ) -> Result<T> {
        let mut change = self.begin()?;
        while outgrows_trees(&self.maps, &change.record, name, &decide)? {
            forget_contents(&mut change.record, name)?;
            self.look_up_tables(change)?;
            change = self.begin()?;
        }
        let record = &mut change.record;
        let begins = create && self.make_active(record, name)?;
        let answer = change_contents(&self.maps, &mut change.memory, record, name, decide)?;
        if begins && !name.anchor.is_empty() && references(&change.record.ruleset, name) != 0 {
            // so far the rules looked into the table of the main rule set
            self.look_up_tables(change)?;
        } else {
            change.keep()?;
        }
        Ok(answer)
    }

    /// Puts the rules in force once more, each with the tables that it means now.
    fn look_up_tables(&self, change: Change) -> Result<()> {
        let next = Next::same(&change.record.ruleset);
        self.commit(change, next, &host::read()?)
    }

    /// A table that does not exist is made, and one that rules only name begins to exist; whether
    /// it does so now.
    fn make_active(&self, record: &mut Record, name: &TableName) -> Result<bool> {
        if !record.tables.contains_key(name) {
            let table = new_table(&self.maps, record)?;
            record.tables.insert(name.clone(), table);
        }
        let table = find_mut(record, name)?;
        let begins = !table.active;
        if begins {
            (table.active, table.persist) = (true, true);
            set_defined(&mut record.ruleset, name, true);
        }
        Ok(begins)
    }
}

/// Whether a table that stands in the trees of rules would have entries that do not.
fn outgrows_trees<T>(
    maps: &Maps,
    record: &Record,
    name: &TableName,
    decide: impl Fn(&[TableEntry]) -> (Step, T),
) -> Result<bool> {
    let Some(table) = record.tables.get(name).filter(|table| !table.constant) else {
        return Ok(false);
    };
    let Some(networks) = &table.spread else { return Ok(false) };
    let (step, _) = decide(&place::current(maps, table)?);
    Ok(step.adds().iter().any(|entry| !entry.negated && !covers(networks, &entry.net)))
}

/// From now on only the kernel knows what is in a table, and no tree.
fn forget_contents(record: &mut Record, name: &TableName) -> Result<()> {
    let table = find_mut(record, name)?;
    (table.contents, table.spread) = (None, None);
    Ok(())
}

/// Whether a change that a test makes needs other trees; if so, they are to be planted before it.
pub(crate) fn needs_other_trees(
    maps: &Maps,
    record: &mut Record,
    edit: &TableEdit,
) -> Result<bool> {
    let needs = outgrows_trees(maps, record, &edit.table, |before| step_of(edit, before))?;
    if needs {
        forget_contents(record, &edit.table)?;
    }
    Ok(needs)
}

/// Changes the contents of a table that there is, as a test does: without a lock.
pub(crate) fn edit(
    maps: &Maps,
    memory: &mut Memory,
    record: &mut Record,
    edit: &TableEdit,
) -> Result<()> {
    change_contents(maps, memory, record, &edit.table, |before| step_of(edit, before))
}

fn step_of(edit: &TableEdit, before: &[TableEntry]) -> (Step, ()) {
    let given = &edit.entries;
    let step = match edit.edit {
        Edit::Add => Step::Add(new_among(given, before)),
        Edit::Delete => Step::Delete(there_of(given, before)),
        Edit::Replace => Step::Replace(new_among(given, &[])),
    };
    (step, ())
}

/// `decide` sees what is in a table and says what to do.
fn change_contents<T>(
    maps: &Maps,
    memory: &mut Memory,
    record: &mut Record,
    name: &TableName,
    decide: impl FnOnce(&[TableEntry]) -> (Step, T),
) -> Result<T> {
    let limit = record.ruleset.options.limits.table_entries;
    let elsewhere = entries_elsewhere(maps, record, name)?;
    let table = find_mut(record, name)?;
    if table.constant {
        return Err(Error::ConstTable { name: name.clone() });
    }
    let before = place::current(maps, table)?;
    let (step, answer) = decide(&before);
    let entries = elsewhere + step.size_after(before.len());
    if entries > limit as usize {
        return Err(skipstep_classifier::Error::TableEntries { entries, limit }.into());
    }
    apply(maps, memory, table, before, step)?;
    place::count_entries(maps, record)?;
    Ok(answer)
}

/// Entries in the other tables of pf.conf: what `set limit table-entries` counts too.
fn entries_elsewhere(maps: &Maps, record: &Record, name: &TableName) -> Result<usize> {
    let sizes = place::sizes(maps, record)?;
    Ok(sizes.iter().filter(|(other, _)| **other != name).map(|(_, size)| size).sum())
}

/// Those of `entries` whose networks are not there, the first of several that are the same.
fn new_among(entries: &[TableEntry], there: &[TableEntry]) -> Vec<TableEntry> {
    let known: BTreeSet<IpNet> = there.iter().map(|entry| entry.net).collect();
    let mut new: Vec<TableEntry> = entries.to_vec();
    new.retain(|entry| !known.contains(&entry.net));
    new.sort_by_key(|entry| entry.net);
    new.dedup_by_key(|entry| entry.net);
    new
}

/// Those that are there of the networks of `entries`.
fn there_of(entries: &[TableEntry], there: &[TableEntry]) -> Vec<TableEntry> {
    let wanted: BTreeSet<IpNet> = entries.iter().map(|entry| entry.net).collect();
    there.iter().filter(|entry| wanted.contains(&entry.net)).copied().collect()
}

/// What to do with the contents of a table.
enum Step {
    Add(Vec<TableEntry>),
    /// Write entries again that are there, with the time that it is now.
    Date(Vec<TableEntry>),
    Delete(Vec<TableEntry>),
    Replace(Vec<TableEntry>),
}

impl Step {
    /// Entries that will be there for it, if they were not there before.
    fn adds(&self) -> &[TableEntry] {
        match self {
            Step::Add(entries) | Step::Replace(entries) => entries,
            Step::Date(_) | Step::Delete(_) => &[],
        }
    }

    fn size_after(&self, before: usize) -> usize {
        match self {
            Step::Add(entries) => before + entries.len(),
            Step::Date(_) => before,
            Step::Delete(entries) => before - entries.len(),
            Step::Replace(entries) => entries.len(),
        }
    }
}

/// Takes a step from what is in a table `before` it.
fn apply(
    maps: &Maps,
    memory: &mut Memory,
    table: &mut TableRecord,
    before: Vec<TableEntry>,
    step: Step,
) -> Result<()> {
    let edition = Edition::of(maps, table.slot)?;
    let listing = place::listing(table.pooled, false);
    // an index is not changed, but made anew
    let in_place = edition.version != 0 && !edition.is_indexed();
    let grows = |entries: &[TableEntry]| {
        !table.filled && memory.indexing.wants(before.len() + entries.len())
    };
    match step {
        Step::Add(entries) if in_place && !grows(&entries) => {
            contents::write(maps, edition.version, &entries)?;
        }
        Step::Add(mut entries) => {
            let dates = contents::dates(maps, edition)?;
            entries.extend(&before);
            place::replace(maps, memory, table.slot, &entries, Some(before), &dates, listing)?;
        }
        Step::Date(entries) => {
            if in_place {
                contents::write(maps, edition.version, &entries)?;
            } else {
                let mut dates = contents::dates(maps, edition)?;
                entries.iter().for_each(|entry| _ = dates.remove(&entry.net));
                let same = before.clone();
                place::replace(maps, memory, table.slot, &before, Some(same), &dates, listing)?;
            }
            contents::forget_counters(maps, table.slot, &entries)?;
            pool::forget_loads(maps, table.stats, &entries)?;
        }
        Step::Delete(entries) => {
            if in_place {
                contents::remove(maps, edition.version, &entries)?;
            } else {
                let gone: BTreeSet<IpNet> = entries.iter().map(|entry| entry.net).collect();
                let mut rest = before.clone();
                rest.retain(|entry| !gone.contains(&entry.net));
                let dates = contents::dates(maps, edition)?;
                place::replace(maps, memory, table.slot, &rest, Some(before), &dates, listing)?;
            }
            contents::forget_counters(maps, table.slot, &entries)?;
            pool::forget_loads(maps, table.stats, &entries)?;
        }
        Step::Replace(entries) => {
            let dates = contents::dates(maps, edition)?;
            place::replace(maps, memory, table.slot, &entries, Some(before), &dates, listing)?;
            if table.filled {
                place::begin_to_fill(maps, memory, table.slot)?;
            }
        }
    }
    // from here on only the kernel knows what is in it
    table.contents = None;
    if table.pooled {
        place::list(maps, memory, table)?;
    }
    Ok(())
}

fn new_table(maps: &Maps, record: &Record) -> Result<TableRecord> {
    let taken: BTreeSet<u32> = record.tables.values().flat_map(TableRecord::slots).collect();
    let limit = maps.tables.capacity();
    let slot = (SELF_TABLE + 1..limit).find(|slot| !taken.contains(slot));
    let slot = slot.ok_or_else(|| Error::MapFull { map: "tables".to_owned(), limit })?;
    maps.tables.set(&slot, &abi::Table { stats: slot, ..abi::Table::default() })?;
    maps.table_stats.set(&slot, &abi::TableStats::default())?;
    let zeroed_at = wall_clock();
    Ok(TableRecord { slot, stats: slot, persist: true, zeroed_at, ..TableRecord::default() })
}

/// What is in a table at this moment.
fn find<'a>(record: &'a Record, name: &TableName) -> Result<&'a TableRecord> {
    let table = record.tables.get(name).filter(|table| !table.dynamic);
    table.ok_or_else(|| Error::NoTable { name: name.clone() })
}

fn find_mut<'a>(record: &'a mut Record, name: &TableName) -> Result<&'a mut TableRecord> {
    let table = record.tables.get_mut(name).filter(|table| !table.dynamic);
    table.ok_or_else(|| Error::NoTable { name: name.clone() })
}

/// Makes the rule set say of an anchor's table whether it exists, as far as it mentions it: whoever
/// evaluates the rules must look into the same tables as the kernel.
fn set_defined(ruleset: &mut Ruleset, name: &TableName, defined: bool) {
    let anchor = ruleset.anchors.get_mut(&name.anchor);
    let mut tables = anchor.into_iter().flat_map(|anchor| &mut anchor.tables);
    if let Some(table) = tables.find(|table| table.name == name.name) {
        table.defined = defined;
    }
}

/// How often rules of its anchor name a table.
pub fn references(ruleset: &Ruleset, name: &TableName) -> u32 {
    let named = ruleset.rules_of(&name.anchor).iter().flat_map(|rule| rule.tables());
    named.filter(|table| *table == name.name).count() as u32
}

/// How many anchors have a table of the same name as one of the main rule set.
fn anchors(record: &Record, name: &TableName) -> u32 {
    if !name.anchor.is_empty() {
        return 0;
    }
    let same = |other: &&TableName| other.name == name.name && !other.anchor.is_empty();
    record.tables.keys().filter(same).count() as u32
}

fn holds(entries: &[TableEntry], net: &IpNet) -> bool {
    let covers = entries.iter().filter(|entry| entry.net.contains(net));
    covers.max_by_key(|entry| entry.net.prefix_len()).is_some_and(|entry| !entry.negated)
}
