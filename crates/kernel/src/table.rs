//! Tables by name, for `pfctl -T` and `-sT`.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ipnet::IpNet;
use skipstep_abi as abi;
pub use skipstep_abi::TableStats as Stats;
use skipstep_classifier::cover::covers;
use skipstep_ruleset::{Next, Ruleset, Table, TableEntry, TableName};
use skipstep_views::{Edit, TableEdit};

use crate::change::Change;
use crate::commit::Earlier;
use crate::error::{Error, Result};
use crate::instance::Instance;
use crate::object::Maps;
use crate::record::{Memory, Record, TableRecord, wall_clock};
use crate::table_index::{self, Edition};
use crate::{contents, counters, host, limiter, pool, table_slots};
use skipstep_abi::table::TABLE_INDEXED;

/// A table as `pfctl -vsT` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableInfo {
    /// Anchor and name of the table.
    pub name: TableName,
    /// True with `persist`.
    pub persist: bool,
    /// True with `const`.
    pub constant: bool,
    /// True with `counters`.
    pub counters: bool,
    /// True if a statement or a command made the table; false if rules only name it.
    pub active: bool,
    /// Number of references in rules.
    pub rules: u32,
    /// Number of anchors with a table of this name. Their rules use this table until the anchor
    /// defines its own.
    pub anchors: u32,
    /// Number of addresses and networks in the table.
    pub entries: u32,
    /// Counters, summed over all CPUs.
    pub stats: Stats,
    /// Time when the counters were last cleared.
    pub zeroed: SystemTime,
}

/// Numbers of entries that a replacement changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Replaced {
    /// Entries that the table did not have before.
    pub added: u32,
    /// Entries that the table does not have any more.
    pub deleted: u32,
}

impl Replaced {
    /// Counts the changes from `before` to `after`.
    fn between(before: &[TableEntry], after: &[TableEntry]) -> Self {
        let old: BTreeSet<&TableEntry> = before.iter().collect();
        let new: BTreeSet<&TableEntry> = after.iter().collect();
        Replaced {
            added: new.difference(&old).count() as u32,
            deleted: old.difference(&new).count() as u32,
        }
    }
}

impl Instance {
    /// Returns all tables, those of the main rule set first, sorted by name, without those of
    /// dynamic addresses.
    ///
    /// # Errors
    /// Fails if the maps or the record cannot be read.
    pub fn table_list(&self) -> Result<Vec<TableInfo>> {
        limiter::settle(&self.maps, &self.programs)?;
        let record = self.record()?;
        let sizes = table_slots::sizes(&self.maps, &record)?;
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

    /// Returns the contents of a table, ascending.
    ///
    /// # Errors
    /// Fails if there is no such table, or if the maps cannot be read.
    pub fn table_entries(&self, name: &TableName) -> Result<Vec<TableEntry>> {
        let record = self.record()?;
        let mut entries = contents::current(&self.maps, find(&record, name)?)?;
        entries.sort_by_key(|entry| entry.net);
        Ok(entries)
    }

    /// Returns the contents of a table, ascending, with date, traffic and number of states.
    ///
    /// # Errors
    /// Fails if there is no such table, or if the maps cannot be read.
    pub fn table_entry_list(&self, name: &TableName) -> Result<Vec<contents::EntryInfo>> {
        limiter::settle(&self.maps, &self.programs)?;
        let record = self.record()?;
        contents::read_all(&self.maps, find(&record, name)?)
    }

    /// Clears the counters of those `entries` that the table has. Returns their number.
    ///
    /// # Errors
    /// Fails if there is no such table, or if it is const. Fails also if the lock cannot be taken,
    /// or if a map is full.
    pub fn table_zero_entries(&self, name: &TableName, entries: &[TableEntry]) -> Result<u32> {
        self.change(name, false, |before| {
            let there = there_of(entries, before);
            let count = there.len() as u32;
            (Step::Date(there), count)
        })
    }

    /// Adds entries. Returns the number of new ones. Makes a table that does not exist, with
    /// `persist`.
    ///
    /// # Errors
    /// Fails if the table is const, or if the limit of entries is exceeded. Fails also if the lock
    /// cannot be taken, or if a map is full.
    pub fn table_add(&self, name: &TableName, entries: &[TableEntry]) -> Result<u32> {
        self.change(name, true, |before| {
            let new = new_among(entries, before);
            let count = new.len() as u32;
            (Step::Add(new), count)
        })
    }

    /// Deletes entries. Returns the number of entries that the table had.
    ///
    /// # Errors
    /// Fails if there is no such table, or if it is const. Fails also if the lock cannot be taken,
    /// or if a map cannot be written.
    pub fn table_delete(&self, name: &TableName, entries: &[TableEntry]) -> Result<u32> {
        self.change(name, false, |before| {
            let gone = there_of(entries, before);
            let count = gone.len() as u32;
            (Step::Delete(gone), count)
        })
    }

    /// Replaces the contents with one store, so no packet sees a part of them. Makes a table that
    /// does not exist, with `persist`. As in pf, an address that was there keeps its weight.
    ///
    /// # Errors
    /// Fails if the table is const, or if the limit of entries is exceeded. Fails also if the lock
    /// cannot be taken, or if a map is full.
    pub fn table_replace(&self, name: &TableName, entries: &[TableEntry]) -> Result<Replaced> {
        if self.request.is_some() {
            return self.replace_on_trial(name, entries);
        }
        self.change(name, true, |before| {
            let mut entries = entries.to_vec();
            contents::keep_weights(before, &mut entries);
            let replaced = Replaced::between(before, &entries);
            (Step::Replace(entries), replaced)
        })
    }

    /// Replaces all entries of a table by a load on trial.
    fn replace_on_trial(&self, name: &TableName, entries: &[TableEntry]) -> Result<Replaced> {
        let change = self.begin_load()?;
        let before = change.record.tables.get(name).filter(|table| !table.dynamic);
        if before.is_some_and(|table| table.constant) {
            return change.refuse(Error::ConstTable { name: name.clone() });
        }
        let known = before.map(|table| contents::current(&self.maps, table)).transpose()?;
        let replaced = Replaced::between(&known.unwrap_or_default(), entries);
        let table = Table {
            name: name.name.clone(),
            persist: before.is_none_or(|table| table.persist),
            counters: before.is_some_and(|table| table.counters),
            defined: true,
            stated: true,
            initialized: true,
            entries: entries.to_vec(),
            ..Table::default()
        };
        let next = Next::tables(&change.record.ruleset, &name.anchor, &[table]);
        self.commit(change, next, &host::read()?)?;
        Ok(replaced)
    }

    /// Empties a table. Returns the number of entries that it had.
    ///
    /// # Errors
    /// Fails if there is no such table, or if it is const. Fails also if the lock cannot be taken,
    /// or if a map cannot be written.
    pub fn table_flush(&self, name: &TableName) -> Result<u32> {
        self.change(name, false, |before| (Step::Replace(Vec::new()), before.len() as u32))
    }

    /// Returns for each network true if the table matches it: the longest entry that contains the
    /// whole network decides, unless it is negated.
    ///
    /// # Errors
    /// Fails if there is no such table, or if the maps cannot be read.
    pub fn table_test(&self, name: &TableName, nets: &[IpNet]) -> Result<Vec<bool>> {
        let entries = self.table_entries(name)?;
        Ok(nets.iter().map(|net| holds(&entries, net)).collect())
    }

    /// Clears the counters of a table and of all its entries.
    ///
    /// # Errors
    /// Fails if there is no such table, if the lock cannot be taken, or if a map cannot be written.
    pub fn table_zero(&self, name: &TableName) -> Result<()> {
        let mut change = self.begin()?;
        let table = find_mut(&mut change.record, name)?;
        table.zeroed_at = wall_clock();
        self.maps.table_stats.set(&table.stats, &abi::TableStats::default())?;
        let all = contents::current(&self.maps, table)?;
        apply(&self.maps, &mut change.memory, table, all.clone(), Step::Date(all))?;
        change.keep()
    }

    /// Deletes a table. As in pf, a table that rules look up is emptied and loses its properties.
    ///
    /// # Errors
    /// Fails if there is no such table, or if it is const. Fails also if the lock cannot be taken,
    /// or if a map or record cannot be written.
    pub fn table_kill(&self, name: &TableName) -> Result<()> {
        self.table_flush(name)?;
        let mut change = self.begin()?;
        let table = find_mut(&mut change.record, name)?;
        let was_active = std::mem::replace(&mut table.active, false);
        (table.persist, table.counters) = (false, false);
        contents::set_counters(&self.maps, &mut change.memory, table.slot, false)?;
        change.record.describe_tables();
        let looked_into = references(&change.record.ruleset, name) != 0;
        if !looked_into && anchors(&change.record, name) == 0 {
            change.record.tables.remove(name);
        }
        if was_active && looked_into && !name.anchor.is_empty() {
            // from now on the rules look up the table of the main rule set
            return self.look_up_tables(change);
        }
        change.keep()
    }

    /// Deletes all tables of an anchor that rules do not look up, and empties the others. The empty
    /// path names the main rule set. Returns the number of tables deleted or emptied.
    ///
    /// # Errors
    /// Fails as [`Instance::table_kill`] does.
    pub fn flush_tables(&self, anchor: &str) -> Result<u32> {
        let names = self.table_list()?.into_iter().map(|table| table.name);
        let names: Vec<TableName> = names.filter(|name| name.anchor == anchor).collect();
        for name in &names {
            self.table_kill(name)?;
        }
        Ok(names.len() as u32)
    }

    /// Returns the versions in the trie and the positions of indexes that have entries. There is
    /// one for each table that is not empty, and more only if a loader was killed since the last
    /// load.
    ///
    /// # Errors
    /// Fails if the maps cannot be read.
    pub fn table_versions(&self) -> Result<BTreeSet<u32>> {
        let in_trie = self.maps.table_entries.keys().map(|key| key.version);
        let indexes = table_index::occupied(&self.maps)?.into_iter();
        Ok(in_trie.chain(indexes.map(|place| place | TABLE_INDEXED)).collect())
    }

    /// Changes a table under the lock: `decide` gets the contents and returns the change.
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
        let begins = create && self.make_active(&mut change, name)?;
        let Change { memory, record, .. } = &mut change;
        let answer = change_contents(&self.maps, memory, record, name, decide)?;
        if begins && !name.anchor.is_empty() && references(&change.record.ruleset, name) != 0 {
            // until now the rules looked up the table of the main rule set
            self.look_up_tables(change)?;
        } else {
            change.keep()?;
        }
        Ok(answer)
    }

    /// Commits the same rules again, so that each looks up the tables that its names mean now.
    fn look_up_tables(&self, change: Change) -> Result<()> {
        let next = Next::same(&change.record.ruleset);
        self.commit(change, next, &host::read()?)
    }

    /// Makes a table that does not exist, and makes a table active that rules only name. Returns
    /// true if the table was not active before.
    fn make_active(&self, change: &mut Change, name: &TableName) -> Result<bool> {
        if !change.record.tables.contains_key(name) {
            let table = new_table(&self.maps, change.earlier())?;
            change.record.tables.insert(name.clone(), table);
        }
        let record = &mut change.record;
        let table = find_mut(record, name)?;
        let begins = !table.active;
        if begins {
            (table.active, table.persist) = (true, true);
            record.describe_tables();
        }
        Ok(begins)
    }
}

/// True if a change adds entries to an expanded table that its networks in the trees do not cover.
fn outgrows_trees<T>(
    maps: &Maps,
    record: &Record,
    name: &TableName,
    decide: impl Fn(&[TableEntry]) -> (Step, T),
) -> Result<bool> {
    let Some(table) = record.tables.get(name).filter(|table| !table.constant) else {
        return Ok(false);
    };
    let Some(networks) = &table.expansions else { return Ok(false) };
    let (step, _) = decide(&contents::current(maps, table)?);
    Ok(step.adds().iter().any(|entry| !entry.negated && !covers(networks, &entry.net)))
}

/// Removes the contents of a table from its record, so that it is not expanded in trees any more.
fn forget_contents(record: &mut Record, name: &TableName) -> Result<()> {
    let table = find_mut(record, name)?;
    (table.contents, table.expansions) = (None, None);
    Ok(())
}

/// Returns true if a change of a test needs other trees; they must then be built before the change.
///
/// # Errors
/// Fails if a map cannot be read.
pub fn needs_other_trees(maps: &Maps, record: &mut Record, edit: &TableEdit) -> Result<bool> {
    let needs = outgrows_trees(maps, record, &edit.table, |before| step_of(edit, before))?;
    if needs {
        forget_contents(record, &edit.table)?;
    }
    Ok(needs)
}

/// Changes the contents of an existing table for a test, without a lock.
///
/// # Errors
/// Fails if the table does not exist or is constant, if it would exceed the limit of entries, or if
/// a map cannot be read or written.
pub fn edit(maps: &Maps, memory: &mut Memory, record: &mut Record, edit: &TableEdit) -> Result<()> {
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

/// Changes the contents of a table: `decide` gets the contents and returns the change.
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
    let before = contents::current(maps, table)?;
    let (step, answer) = decide(&before);
    let entries = elsewhere + step.size_after(before.len());
    if entries > limit as usize {
        return Err(skipstep_classifier::Error::TableEntries { entries, limit }.into());
    }
    apply(maps, memory, table, before, step)?;
    table_slots::count_entries(maps, record)?;
    Ok(answer)
}

/// Returns the number of entries in the other tables of pf.conf, for `set limit table-entries`.
fn entries_elsewhere(maps: &Maps, record: &Record, name: &TableName) -> Result<usize> {
    let sizes = table_slots::sizes(maps, record)?;
    Ok(sizes.iter().filter(|(other, _)| **other != name).map(|(_, size)| size).sum())
}

/// Returns the `entries` whose networks are not `there`, without duplicates.
fn new_among(entries: &[TableEntry], there: &[TableEntry]) -> Vec<TableEntry> {
    let known: BTreeSet<IpNet> = there.iter().map(|entry| entry.net).collect();
    let mut new: Vec<TableEntry> = entries.to_vec();
    new.retain(|entry| !known.contains(&entry.net));
    new.sort_by_key(|entry| entry.net);
    new.dedup_by_key(|entry| entry.net);
    new
}

/// Returns the entries of `there` whose networks are among `entries`.
fn there_of(entries: &[TableEntry], there: &[TableEntry]) -> Vec<TableEntry> {
    let wanted: BTreeSet<IpNet> = entries.iter().map(|entry| entry.net).collect();
    there.iter().filter(|entry| wanted.contains(&entry.net)).copied().collect()
}

/// A change of the contents of a table.
enum Step {
    Add(Vec<TableEntry>),
    /// Writes existing entries again, with the current time as their date.
    Date(Vec<TableEntry>),
    Delete(Vec<TableEntry>),
    Replace(Vec<TableEntry>),
}

impl Step {
    /// Returns the entries that the table may not have had before.
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

/// Applies a step to a table with the contents `before`.
fn apply(
    maps: &Maps,
    memory: &mut Memory,
    table: &mut TableRecord,
    before: Vec<TableEntry>,
    step: Step,
) -> Result<()> {
    let edition = Edition::current(maps, table.slot)?;
    let listing = table_slots::listing(table.pooled, false);
    // an index does not change; a new one replaces it
    let in_place = edition.version != 0 && !edition.is_indexed();
    let grows = |entries: &[TableEntry]| {
        !table.filled && memory.indexing.wants(before.len() + entries.len())
    };
    let slot = table.slot;
    let replace = |memory: &mut Memory, entries: &[_], before, dates: &_| {
        table_slots::replace(maps, memory, slot, entries, Some(before), dates, listing)
    };
    match step {
        Step::Add(entries) if in_place && !grows(&entries) => {
            contents::write(maps, edition.version, &entries)?;
        }
        Step::Add(mut entries) => {
            let dates = contents::dates(maps, edition)?;
            entries.extend(&before);
            replace(memory, &entries, before, &dates)?;
        }
        Step::Date(entries) => {
            if in_place {
                contents::write(maps, edition.version, &entries)?;
            } else {
                let mut dates = contents::dates(maps, edition)?;
                entries.iter().for_each(|entry| _ = dates.remove(&entry.net));
                let same = before.clone();
                replace(memory, &before, same, &dates)?;
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
                replace(memory, &rest, before, &dates)?;
            }
            contents::forget_counters(maps, table.slot, &entries)?;
            pool::forget_loads(maps, table.stats, &entries)?;
        }
        Step::Replace(entries) => {
            let dates = contents::dates(maps, edition)?;
            replace(memory, &entries, before, &dates)?;
            if table.filled {
                table_slots::begin_to_fill(maps, memory, table.slot)?;
            }
        }
    }
    // from now on only the kernel has the contents
    table.contents = None;
    if table.pooled {
        table_slots::list(maps, memory, table)?;
    }
    Ok(())
}

fn new_table(maps: &Maps, earlier: Earlier) -> Result<TableRecord> {
    let taken: BTreeSet<u32> = table_slots::taken(earlier.records()).collect();
    let limit = maps.tables.capacity();
    let slot = (0..limit).find(|slot| !taken.contains(slot));
    let slot = slot.ok_or_else(|| Error::MapFull { map: "tables".to_owned(), limit })?;
    maps.tables.set(&slot, &abi::Table { stats: slot, ..abi::Table::default() })?;
    maps.table_stats.set(&slot, &abi::TableStats::default())?;
    let zeroed_at = wall_clock();
    Ok(TableRecord { slot, stats: slot, persist: true, zeroed_at, ..TableRecord::default() })
}

/// Returns the record of a table.
fn find<'a>(record: &'a Record, name: &TableName) -> Result<&'a TableRecord> {
    let table = record.tables.get(name).filter(|table| !table.dynamic);
    table.ok_or_else(|| Error::NoTable { name: name.clone() })
}

fn find_mut<'a>(record: &'a mut Record, name: &TableName) -> Result<&'a mut TableRecord> {
    let table = record.tables.get_mut(name).filter(|table| !table.dynamic);
    table.ok_or_else(|| Error::NoTable { name: name.clone() })
}

/// Returns the number of references to a table in the rules of its anchor.
pub fn references(ruleset: &Ruleset, name: &TableName) -> u32 {
    let named = ruleset.rules_of(&name.anchor).iter().flat_map(|rule| rule.tables());
    named.filter(|table| *table == name.name).count() as u32
}

/// Returns the number of anchors that have a table with the name of this table of the main rule
/// set.
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
