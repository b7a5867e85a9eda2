//! Tables by name: `pfctl -T` and `-sT`.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ipnet::IpNet;
use skipstep_abi as abi;
use skipstep_ruleset::{Address, Ruleset, TableEntry};

use crate::error::{Error, Result};
use crate::instance::Instance;
use crate::object::Maps;
use crate::record::{Memory, Record, TableRecord, wall_clock};
use crate::{commit, contents, counters};
use skipstep_abi::limits::SELF_TABLE;

/// A table as `pfctl -vsT` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableInfo {
    /// Its name.
    pub name: String,
    /// `persist`
    pub persist: bool,
    /// `const`
    pub constant: bool,
    /// `counters`
    pub counters: bool,
    /// Defined by a statement or made by hand; false if rules only name it.
    pub active: bool,
    /// How many rules look into it.
    pub rules: u32,
    /// How many addresses and networks are in it.
    pub entries: u32,
    /// Counters.
    pub stats: abi::TableStats,
    /// When they were last cleared.
    pub zeroed: SystemTime,
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
    /// All tables in order of name, without those of dynamic addresses.
    pub fn table_list(&self) -> Result<Vec<TableInfo>> {
        let record = self.record()?;
        let named = record.tables.iter().filter(|(_, table)| !table.dynamic);
        named.map(|(name, table)| self.table_info(&record, name, table)).collect()
    }

    fn table_info(&self, record: &Record, name: &str, table: &TableRecord) -> Result<TableInfo> {
        Ok(TableInfo {
            name: name.to_owned(),
            persist: table.persist,
            constant: table.constant,
            counters: table.counters,
            active: table.active,
            rules: references(&record.ruleset, name),
            entries: current(&self.maps, table)?.len() as u32,
            stats: counters::table(&self.maps, table.slot)?,
            zeroed: UNIX_EPOCH + Duration::from_secs(table.zeroed_at),
        })
    }

    /// The contents of a table, ascending.
    pub fn table_entries(&self, name: &str) -> Result<Vec<TableEntry>> {
        let record = self.record()?;
        let mut entries = current(&self.maps, find(&record, name)?)?;
        entries.sort_by_key(|entry| entry.net);
        Ok(entries)
    }

    /// Adds entries; how many were new. A table that does not exist is made, to persist.
    pub fn table_add(&self, name: &str, entries: &[TableEntry]) -> Result<u32> {
        self.change(name, true, |before| {
            let known: BTreeSet<IpNet> = before.iter().map(|entry| entry.net).collect();
            let mut new: Vec<TableEntry> = entries.to_vec();
            new.retain(|entry| !known.contains(&entry.net));
            new.sort_by_key(|entry| entry.net);
            new.dedup_by_key(|entry| entry.net);
            let count = new.len() as u32;
            (Step::Add(new), count)
        })
    }

    /// Deletes entries; how many were there.
    pub fn table_delete(&self, name: &str, entries: &[TableEntry]) -> Result<u32> {
        self.change(name, false, |before| {
            let wanted: BTreeSet<IpNet> = entries.iter().map(|entry| entry.net).collect();
            let mut gone = before.to_vec();
            gone.retain(|entry| wanted.contains(&entry.net));
            let count = gone.len() as u32;
            (Step::Delete(gone), count)
        })
    }

    /// Replaces the contents in one piece: no packet sees part of them. A table that does not exist
    /// is made, to persist.
    pub fn table_replace(&self, name: &str, entries: &[TableEntry]) -> Result<Replaced> {
        self.change(name, true, |before| {
            let old: BTreeSet<&TableEntry> = before.iter().collect();
            let new: BTreeSet<&TableEntry> = entries.iter().collect();
            let replaced = Replaced {
                added: new.difference(&old).count() as u32,
                deleted: old.difference(&new).count() as u32,
            };
            (Step::Replace(entries.to_vec()), replaced)
        })
    }

    /// Empties a table; how many entries were in it.
    pub fn table_flush(&self, name: &str) -> Result<u32> {
        self.change(name, false, |before| (Step::Replace(Vec::new()), before.len() as u32))
    }

    /// For each network whether the table holds it: the longest match decides, and a network is
    /// held if an entry covers it.
    pub fn table_test(&self, name: &str, nets: &[IpNet]) -> Result<Vec<bool>> {
        let entries = self.table_entries(name)?;
        Ok(nets.iter().map(|net| holds(&entries, net)).collect())
    }

    /// Clears the counters of a table.
    pub fn table_zero(&self, name: &str) -> Result<()> {
        let mut change = self.begin()?;
        let table = find_mut(&mut change.record, name)?;
        table.zeroed_at = wall_clock();
        self.maps.table_stats.set(&table.slot, &abi::TableStats::default())?;
        change.keep()
    }

    /// Deletes a table. One that rules look into is emptied and no longer persists, as pf does.
    pub fn table_kill(&self, name: &str) -> Result<()> {
        self.table_flush(name)?;
        let mut change = self.begin()?;
        let table = find_mut(&mut change.record, name)?;
        (table.persist, table.active) = (false, false);
        if references(&change.record.ruleset, name) == 0 {
            change.record.tables.remove(name);
        }
        change.keep()
    }

    /// Deletes all tables that rules do not look into and empties the others; how many were
    /// deleted or emptied.
    pub fn flush_tables(&self) -> Result<u32> {
        let names: Vec<String> = self.table_list()?.into_iter().map(|table| table.name).collect();
        for name in &names {
            self.table_kill(name)?;
        }
        Ok(names.len() as u32)
    }

    /// Versions that have entries in the kernel: one for each table that is not empty, unless a
    /// loader was killed since the last load.
    pub fn table_versions(&self) -> Result<BTreeSet<u32>> {
        Ok(self.maps.table_entries.keys().map(|key| key.version).collect())
    }

    /// Changes a table under the lock: `decide` sees what is in it and says what to do.
    fn change<T>(
        &self,
        name: &str,
        create: bool,
        decide: impl FnOnce(&[TableEntry]) -> (Step, T),
    ) -> Result<T> {
        let mut change = self.begin()?;
        let record = &mut change.record;
        if create {
            self.make_active(record, name)?;
        }
        let limit = record.ruleset.options.limits.table_entries;
        let elsewhere = self.entries_elsewhere(record, name)?;
        let table = find_mut(record, name)?;
        if table.constant {
            return Err(Error::ConstTable { name: name.to_owned() });
        }
        let before = current(&self.maps, table)?;
        let (step, answer) = decide(&before);
        let entries = elsewhere + step.size_after(before.len());
        if entries > limit as usize {
            return Err(skipstep_classifier::Error::TableEntries { entries, limit }.into());
        }
        apply(&self.maps, &mut change.memory, table, step)?;
        change.keep()?;
        Ok(answer)
    }

    /// A table that does not exist is made, and one that rules only name begins to exist.
    fn make_active(&self, record: &mut Record, name: &str) -> Result<()> {
        if !record.tables.contains_key(name) {
            let table = new_table(&self.maps, record)?;
            record.tables.insert(name.to_owned(), table);
        }
        let table = find_mut(record, name)?;
        if !table.active {
            (table.active, table.persist) = (true, true);
        }
        Ok(())
    }

    /// Entries in the other tables of pf.conf: what `set limit table-entries` counts too.
    fn entries_elsewhere(&self, record: &Record, name: &str) -> Result<usize> {
        let others = record.tables.iter().filter(|(other, table)| *other != name && !table.dynamic);
        others.map(|(_, table)| Ok(current(&self.maps, table)?.len())).sum()
    }
}

/// What to do with the contents of a table.
enum Step {
    Add(Vec<TableEntry>),
    Delete(Vec<TableEntry>),
    Replace(Vec<TableEntry>),
}

impl Step {
    fn size_after(&self, before: usize) -> usize {
        match self {
            Step::Add(entries) => before + entries.len(),
            Step::Delete(entries) => before - entries.len(),
            Step::Replace(entries) => entries.len(),
        }
    }
}

fn apply(maps: &Maps, memory: &mut Memory, table: &mut TableRecord, step: Step) -> Result<()> {
    let version = maps.tables.at(table.slot)?.version;
    match step {
        Step::Add(entries) if version == 0 => {
            commit::replace(maps, memory, table.slot, &entries, None)?
        }
        Step::Add(entries) => contents::write(maps, version, &entries)?,
        Step::Delete(entries) => contents::remove(maps, version, &entries)?,
        Step::Replace(entries) => {
            commit::replace(maps, memory, table.slot, &entries, table.contents.take())?;
        }
    }
    // from here on only the kernel knows what is in it
    table.contents = None;
    Ok(())
}

fn new_table(maps: &Maps, record: &Record) -> Result<TableRecord> {
    let taken: BTreeSet<u32> = record.tables.values().map(|table| table.slot).collect();
    let limit = maps.tables.capacity();
    let slot = (SELF_TABLE + 1..limit).find(|slot| !taken.contains(slot));
    let slot = slot.ok_or_else(|| Error::MapFull { map: "tables".to_owned(), limit })?;
    maps.tables.set(&slot, &abi::Table::default())?;
    maps.table_stats.set(&slot, &abi::TableStats::default())?;
    Ok(TableRecord { slot, persist: true, zeroed_at: wall_clock(), ..TableRecord::default() })
}

/// What is in a table at this moment.
fn current(maps: &Maps, table: &TableRecord) -> Result<Vec<TableEntry>> {
    match &table.contents {
        Some(entries) => Ok(entries.clone()),
        None => contents::read(maps, maps.tables.at(table.slot)?.version),
    }
}

fn find<'a>(record: &'a Record, name: &str) -> Result<&'a TableRecord> {
    let table = record.tables.get(name).filter(|table| !table.dynamic);
    table.ok_or_else(|| Error::NoTable { name: name.to_owned() })
}

fn find_mut<'a>(record: &'a mut Record, name: &str) -> Result<&'a mut TableRecord> {
    let table = record.tables.get_mut(name).filter(|table| !table.dynamic);
    table.ok_or_else(|| Error::NoTable { name: name.to_owned() })
}

fn references(ruleset: &Ruleset, name: &str) -> u32 {
    let looks = |address: &Address| matches!(address, Address::Table(table) if table == name);
    let looks = ruleset
        .rules
        .iter()
        .filter(|rule| looks(&rule.source.host.address) || looks(&rule.destination.host.address));
    looks.count() as u32
}

fn holds(entries: &[TableEntry], net: &IpNet) -> bool {
    let covers = entries.iter().filter(|entry| entry.net.contains(net));
    covers.max_by_key(|entry| entry.net.prefix_len()).is_some_and(|entry| !entry.negated)
}
