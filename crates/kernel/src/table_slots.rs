//! Slots for tables: each table that a rule set looks up has a slot and a version of its contents.
//! Also the update of the tables that follow the host's addresses.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;
use std::net::IpAddr;

use ipnet::IpNet;
use skipstep_abi as abi;
use skipstep_abi::limits::SELF_TABLE;
use skipstep_classifier::TableUse;
use skipstep_ruleset::interface::{Host, Interface};
use skipstep_ruleset::table::has_same_entries;
use skipstep_ruleset::{Next, Ruleset, Table, TableEntry, TableName};

use crate::commit::Earlier;
use crate::contents::Dates;
use crate::error::{Error, Result};
use crate::object::Maps;
use crate::pool::Listing;
use crate::record::{Memory, Record, TableRecord, wall_clock};
use crate::table_index::{self, Edition, NewIndexes};
use crate::{contents, pool};

/// Contents of tables that are released after the commit.
pub(crate) type ReplacedContents = Vec<Contents>;

/// Contents of a table.
pub(crate) struct Contents {
    edition: Edition,
    /// Number under which its entries are counted, 0 if they are not counted.
    counters: u32,
    /// The entries; `None` if only the kernel has them.
    entries: Option<Vec<TableEntry>>,
}

/// Gives every table a slot and writes its contents. Returns the tables, the host's own addresses,
/// and the contents to release after the commit. A table whose contents change gets a new slot, so
/// the previous rules see the previous contents until the commit.
pub(crate) fn tables(
    maps: &Maps,
    earlier: Earlier,
    memory: &mut Memory,
    next: &Next,
    host: &Host,
) -> Result<(BTreeMap<TableName, TableRecord>, Option<TableRecord>, ReplacedContents)> {
    let previous = earlier.in_force;
    let mut tables = BTreeMap::new();
    let mut slots = Slots::new(maps, earlier, memory, next);
    for wanted in skipstep_classifier::tables(&next.ruleset, host)? {
        let (name, table) = slots.place(wanted)?;
        tables.insert(name, table);
    }
    slots.indexes.put()?;
    add_surviving(previous, next, &mut tables);
    let own = own_addresses(maps, previous, memory, host)?;
    let replaced = replaced_contents(maps, previous, &tables)?;
    Ok((tables, Some(own), replaced))
}

/// The placement of the tables of the next rule set.
struct Slots<'a> {
    maps: &'a Maps,
    earlier: Earlier<'a>,
    memory: &'a mut Memory,
    next: &'a Next,
    /// Slots that tables have.
    taken: BTreeSet<u32>,
    indexes: NewIndexes<'a>,
}

impl<'a> Slots<'a> {
    fn new(
        maps: &'a Maps,
        earlier: Earlier<'a>,
        memory: &'a mut Memory,
        next: &'a Next,
    ) -> Slots<'a> {
        let taken = taken(earlier.records()).collect();
        Slots { maps, earlier, memory, next, taken, indexes: NewIndexes::new(maps) }
    }

    /// Returns the table that a trial keeps.
    fn kept(&self, name: &TableName) -> Option<&'a TableRecord> {
        self.earlier.kept?.tables.get(name)
    }

    /// Returns the table whose counters a table continues: the previous one, or the kept one if the
    /// rules on trial have none. A table that the load on trial only names must not change the
    /// counters of the kept table, so it continues none.
    fn counted(&self, name: &TableName) -> Option<&'a TableRecord> {
        let before = self.earlier.in_force.tables.get(name);
        if self.earlier.kept.is_none() {
            return before;
        }
        let exists = |table: &&TableRecord| table.active || table.dynamic;
        let table = before.filter(exists).or(self.kept(name).filter(exists))?;
        let is_defined = || self.definition(name).is_some_and(|defined| defined.defined);
        (table.dynamic || is_defined()).then_some(table)
    }

    /// Returns the statement of the load for a table.
    fn definition(&self, name: &TableName) -> Option<&'a Table> {
        let is_new = self.next.replaces(&name.anchor);
        let mut tables = self.next.ruleset.tables_of(&name.anchor).iter();
        tables.find(|table| is_new && table.name == name.name)
    }

    /// Gives a table a slot, and writes its contents if they are new.
    fn place(&mut self, mut wanted: TableUse) -> Result<(TableName, TableRecord)> {
        let before = self.earlier.in_force.tables.get(&wanted.name);
        self.complete_entries(&mut wanted, before)?;
        let mut table = match before {
            Some(before) if self.keeps_contents(before, &wanted)? => before.clone(),
            _ => self.new_table(before, &wanted)?,
        };
        table.dynamic = wanted.dynamic;
        // changes of a table that a trial shares are for the kept rules, too
        let shared = self.kept(&wanted.name).filter(|kept| kept.slot == table.slot);
        let pooled = wanted.pooled || shared.is_some_and(|kept| kept.pooled);
        if pooled && !table.pooled {
            list(self.maps, self.memory, &table)?;
        }
        table.pooled = pooled;
        table.filled = wanted.filled || shared.is_some_and(|kept| kept.filled);
        if table.filled {
            table.contents = None;
            begin_to_fill(self.maps, self.memory, table.slot)?;
        }
        self.set_properties(&wanted.name, &mut table)?;
        Ok((wanted.name, table))
    }

    /// True if a table keeps its slot, because the load does not change its contents. The kept
    /// rules of a trial share such a table.
    fn keeps_contents(&self, before: &TableRecord, wanted: &TableUse) -> Result<bool> {
        let Some(entries) = &wanted.entries else { return Ok(true) };
        if before.contents.as_ref() == Some(entries) {
            return Ok(true);
        }
        let is_shared = self.kept(&wanted.name).is_some_and(|kept| kept.slot == before.slot);
        Ok(is_shared && has_same_entries(&contents::current(self.maps, before)?, entries))
    }

    /// Removes the entries of a table that the load does not replace, and adds the weights of known
    /// entries.
    fn complete_entries(&self, wanted: &mut TableUse, before: Option<&TableRecord>) -> Result<()> {
        if wanted.dynamic {
            return Ok(());
        }
        if !self.next.replaces(&wanted.name.anchor) {
            wanted.entries = None;
        }
        if let Some(entries) = &mut wanted.entries
            && let Some(before) = before.filter(|before| before.active)
        {
            contents::keep_weights(&contents::current(self.maps, before)?, entries);
        }
        Ok(())
    }

    /// Gives a table a free slot, and writes its contents there.
    fn new_table(
        &mut self,
        before: Option<&TableRecord>,
        wanted: &TableUse,
    ) -> Result<TableRecord> {
        let (maps, limit) = (self.maps, self.maps.tables.capacity());
        // go back to the slot where the table is counted, so that a table never has more than two
        // slots, or three during a trial
        let counted = self.counted(&wanted.name);
        let home = before.filter(|before| before.slot != before.stats).map(|before| before.stats);
        let mut kept = self.earlier.kept.into_iter().flat_map(|kept| kept.tables.values());
        let is_kept = |table: &TableRecord, slot| {
            table.slot == slot || counted.is_none() && table.stats == slot
        };
        let home = home.filter(|home| !kept.any(|table| is_kept(table, *home)));
        let slot = home.or_else(|| (0..limit).find(|slot| !self.taken.contains(slot)));
        let slot = slot.ok_or_else(|| Error::MapFull { map: "tables".to_owned(), limit })?;
        self.taken.insert(slot);
        let entries = wanted.entries.clone().unwrap_or_default();
        let edition = Edition::next(maps, self.memory, slot, entries.len(), wanted.filled)?;
        let dates = match before.filter(|before| before.active && !wanted.dynamic) {
            Some(before) => contents::dates(maps, Edition::current(maps, before.slot)?)?,
            None => Dates::new(),
        };
        contents::write_dated(maps, edition, &entries, &dates, &mut self.indexes)?;
        // counters belong to names and addresses, not to the contents as a whole
        let (stats, counters) = match counted {
            Some(table) => (table.stats, maps.tables.at(table.slot)?.counters),
            None => (slot, 0),
        };
        if counted.is_none() {
            maps.table_stats.set(&stats, &abi::TableStats::default())?;
        }
        let version = edition.version;
        let table = abi::Table { version, counters, stats, ..abi::Table::default() };
        let listing = listing(wanted.pooled, wanted.dynamic);
        pool::publish(maps, self.memory, slot, table, listing, &entries)?;
        Ok(TableRecord {
            slot,
            stats,
            pooled: wanted.pooled,
            contents: Some(entries),
            zeroed_at: counted.map_or_else(wall_clock, |table| table.zeroed_at),
            ..TableRecord::default()
        })
    }

    /// Sets the properties of a table that the load defines. A table that the load only mentions
    /// keeps those that an earlier load or a command gave it.
    fn set_properties(&mut self, name: &TableName, table: &mut TableRecord) -> Result<()> {
        let Some(defined) = self.definition(name) else { return Ok(()) };
        let before = self.earlier.in_force.tables.get(name);
        if defined.stated || !before.is_some_and(|before| before.active) {
            table.persist = defined.persist;
            table.constant = defined.constant;
            table.counters = defined.counters;
        }
        let continues = |counted: &TableRecord| counted.active && counted.stats == table.stats;
        if defined.defined && !self.counted(name).is_some_and(continues) {
            // lookups of a table that did not exist are not counted
            self.maps.table_stats.set(&table.stats, &abi::TableStats::default())?;
        }
        table.active = table.active || defined.defined;
        // while a trial lasts, the entries of the kept table count on
        let counts = table.counters || self.kept(name).is_some_and(|kept| kept.counters);
        contents::set_counters(self.maps, self.memory, table.slot, counts)
    }
}

/// Returns the slots of the tables of `records`, and that of the host's own addresses.
pub(crate) fn taken<'a>(records: impl Iterator<Item = &'a Record>) -> impl Iterator<Item = u32> {
    let tables = records.flat_map(|record| record.tables.values());
    tables.flat_map(TableRecord::slots).chain([SELF_TABLE])
}

/// Adds the previous tables that stay without rules.
fn add_surviving(previous: &Record, next: &Next, tables: &mut BTreeMap<TableName, TableRecord>) {
    let stays = |name: &TableName, table: &TableRecord| {
        table.persist || table.active && !next.replaces(&name.anchor)
    };
    for (name, table) in previous.tables.iter().filter(|(name, table)| stays(name, table)) {
        tables.entry(name.clone()).or_insert_with(|| table.clone());
    }
    for (name, table) in held_by_anchors(previous, tables) {
        tables.entry(name).or_insert(table);
    }
}

/// Returns `next` for an instance whose maps are empty: all rule sets are new, and the tables whose
/// contents `next` keeps have their contents of now.
pub(crate) fn with_contents(maps: &Maps, record: &Record, next: &Next) -> Result<Next> {
    let mut ruleset = next.ruleset.clone();
    for (name, table) in record.tables.iter().filter(|(_, table)| table.active && !table.dynamic) {
        let is_new = next.replaces(&name.anchor);
        let mut known = next.ruleset.tables_of(&name.anchor).iter();
        let kept = match known.find(|known| known.name == name.name) {
            Some(known) if is_new && known.initialized => continue,
            Some(known) if is_new && known.stated => known.clone(),
            None if is_new && !table.persist => continue,
            _ => Table {
                name: name.name.clone(),
                persist: table.persist,
                constant: table.constant,
                counters: table.counters,
                ..Table::default()
            },
        };
        let entries = contents::current(maps, table)?;
        let tables = match name.anchor.as_str() {
            "" => &mut ruleset.tables,
            path => &mut ruleset.anchors.entry(path.to_owned()).or_default().tables,
        };
        tables.retain(|table| table.name != name.name);
        tables.push(Table { defined: true, stated: true, initialized: true, entries, ..kept });
    }
    Ok(Next::main(&Ruleset::default(), ruleset))
}

/// Returns the contents of the slots that no table has any more.
pub(crate) fn replaced_contents(
    maps: &Maps,
    previous: &Record,
    tables: &BTreeMap<TableName, TableRecord>,
) -> Result<ReplacedContents> {
    let kept: BTreeSet<u32> = tables.values().map(|table| table.slot).collect();
    let replaced = previous.tables.values().filter(|table| !kept.contains(&table.slot));
    let contents = replaced.map(|table| {
        let abi::Table { version, counters, .. } = maps.tables.at(table.slot)?;
        let edition = Edition { slot: table.slot, version };
        Ok(Contents { edition, counters, entries: table.contents.clone() })
    });
    contents.collect()
}

/// Returns the active tables of the main rule set whose rules go and that stay, because an anchor
/// has a table of the same name.
fn held_by_anchors(
    previous: &Record,
    tables: &BTreeMap<TableName, TableRecord>,
) -> Vec<(TableName, TableRecord)> {
    let of_anchors: BTreeSet<&str> =
        tables.keys().filter(|name| !name.anchor.is_empty()).map(|name| &name.name[..]).collect();
    let main =
        previous.tables.iter().filter(|(name, table)| name.anchor.is_empty() && table.active);
    let held = main.filter(|(name, _)| of_anchors.contains(&name.name[..]));
    held.map(|(name, table)| (name.clone(), table.clone())).collect()
}

/// Returns the number of entries of each table of pf.conf.
pub(crate) fn sizes<'a>(maps: &Maps, record: &'a Record) -> Result<BTreeMap<&'a TableName, usize>> {
    let tables = || record.tables.iter().filter(|(_, table)| !table.dynamic);
    let mut in_trie = None;
    let mut size = |table: &TableRecord| -> Result<usize> {
        if let Some(entries) = &table.contents {
            return Ok(entries.len());
        }
        let edition = Edition::current(maps, table.slot)?;
        if edition.is_indexed() {
            return table_index::count(maps, edition);
        }
        let in_trie = match &mut in_trie {
            Some(in_trie) => in_trie,
            none => none.insert(contents::count(maps)?),
        };
        Ok(in_trie.get(&edition.version).copied().unwrap_or(0))
    };
    tables().map(|(name, table)| Ok((name, size(table)?))).collect()
}

/// Gives a table a version in the trie, even if it is empty, so that the data plane can add
/// entries.
pub(crate) fn begin_to_fill(maps: &Maps, memory: &mut Memory, slot: u32) -> Result<()> {
    let before = Edition::current(maps, slot)?;
    if before.version != 0 && !before.is_indexed() {
        return Ok(());
    }
    let version = memory.table_version();
    let edition = Edition { slot, version };
    let (entries, dates) = (contents::read(maps, before)?, contents::dates(maps, before)?);
    contents::write_dated(maps, edition, &entries, &dates, &mut NewIndexes::new(maps))?;
    maps.tables.set(&slot, &abi::Table { version, ..maps.tables.at(slot)? })?;
    forget_index(maps, before)
}

/// Removes the index of an edition that was in force until now, if it has one.
fn forget_index(maps: &Maps, edition: Edition) -> Result<()> {
    if !edition.is_indexed() {
        return Ok(());
    }
    table_index::wait(maps, edition)?;
    table_index::remove(maps, &[edition])
}

/// Writes the number of entries in all tables of pf.conf for the data plane, if it adds to a table.
pub(crate) fn count_entries(maps: &Maps, record: &Record) -> Result<()> {
    if !record.tables.values().any(|table| table.filled) {
        return Ok(());
    }
    let count: usize = sizes(maps, record)?.values().sum();
    maps.shared_status.store(0, offset_of!(abi::Status, table_entries), count as u32);
    Ok(())
}

/// Writes the host's own addresses, always in slot 0, and returns their record. These addresses do
/// not depend on the rules, so they change at once.
fn own_addresses(
    maps: &Maps,
    previous: &Record,
    memory: &mut Memory,
    host: &Host,
) -> Result<TableRecord> {
    let own = own(host);
    let entries: Vec<TableEntry> = own
        .iter()
        .map(|(address, Own { negated, .. })| TableEntry {
            negated: *negated,
            net: (*address).into(),
            weight: 0,
        })
        .collect();
    let before = previous.own_addresses.clone();
    if let Some(before) = &before
        && before.contents.as_ref() == Some(&entries)
    {
        own_interfaces(maps, memory, &own)?;
        return Ok(before.clone());
    }
    let known = before.and_then(|before| before.contents);
    replace(maps, memory, SELF_TABLE, &entries, known, &Dates::new(), Listing::None)?;
    own_interfaces(maps, memory, &own)?;
    Ok(TableRecord {
        slot: SELF_TABLE,
        dynamic: true,
        contents: Some(entries),
        ..TableRecord::default()
    })
}

/// The ownership of an address of the host.
struct Own<'a> {
    /// True for an address that other hosts share (broadcast, for example). The host does not
    /// answer from it.
    negated: bool,
    interface: &'a Interface,
}

/// Returns the addresses that reach the host. An address of the host that is also the last of its
/// network (10.0.0.7/30 without another broadcast address) counts as its own.
fn own(host: &Host) -> BTreeMap<IpAddr, Own<'_>> {
    let mut all = BTreeMap::new();
    for interface in &host.interfaces {
        for address in &interface.addresses {
            all.entry(address.net.addr()).or_insert(Own { negated: false, interface });
        }
    }
    for interface in &host.interfaces {
        for address in interface.shared_addresses() {
            all.entry(address).or_insert(Own { negated: true, interface });
        }
    }
    all
}

/// Records the interface of each of the host's own addresses, for `urpf-failed`.
fn own_interfaces(maps: &Maps, memory: &mut Memory, all: &BTreeMap<IpAddr, Own>) -> Result<()> {
    let version = maps.tables.at(SELF_TABLE)?.version;
    for (address, own) in all {
        let entry = abi::TableEntry {
            cleared: 0,
            interface: memory.names.interfaces.number(&own.interface.name)?,
            weight: 0,
            prefix: if address.is_ipv4() { 32 } else { 128 },
            negated: own.negated.into(),
        };
        maps.table_entries.set(&contents::key(version, &(*address).into()), &entry)?;
    }
    Ok(())
}

/// Updates dynamic addresses and the host's own addresses; the rules stay.
pub(crate) fn follow_addresses(
    maps: &Maps,
    memory: &mut Memory,
    record: &mut Record,
    host: &Host,
) -> Result<()> {
    for wanted in skipstep_classifier::tables(&record.ruleset, host)? {
        let Some(table) = record.tables.get_mut(&wanted.name).filter(|table| table.dynamic) else {
            continue;
        };
        if let Some(entries) = wanted.entries
            && table.contents.as_ref() != Some(&entries)
        {
            let known = table.contents.take();
            let listing = listing(table.pooled, true);
            replace(maps, memory, table.slot, &entries, known, &Dates::new(), listing)?;
            table.contents = Some(entries);
        }
    }
    let own = own_addresses(maps, record, memory, host)?;
    record.own_addresses = Some(own);
    Ok(())
}

/// Updates the addresses of interfaces in the tables that only the rule set before a trial has.
pub(crate) fn follow_addresses_of_kept(
    maps: &Maps,
    memory: &mut Memory,
    in_force: &Record,
    kept: &Record,
    host: &Host,
) -> Result<()> {
    let shared: BTreeSet<u32> = in_force.tables.values().map(|table| table.slot).collect();
    for wanted in skipstep_classifier::tables(&kept.ruleset, host)? {
        let table = kept.tables.get(&wanted.name).filter(|table| table.dynamic);
        let table = table.filter(|table| !shared.contains(&table.slot));
        if let Some((table, entries)) = table.zip(wanted.entries) {
            let listing = listing(table.pooled, true);
            replace(maps, memory, table.slot, &entries, None, &Dates::new(), listing)?;
        }
    }
    Ok(())
}

/// Returns the kind of list for a table or a dynamic address.
pub(crate) fn listing(pooled: bool, dynamic: bool) -> Listing {
    match (pooled, dynamic) {
        (false, _) => Listing::None,
        (true, false) => Listing::Table,
        (true, true) => Listing::Interface,
    }
}

/// Writes the list of a table's entries, from which pools choose.
pub(crate) fn list(maps: &Maps, memory: &mut Memory, table: &TableRecord) -> Result<()> {
    let seen = maps.tables.at(table.slot)?;
    let entries = contents::current(maps, table)?;
    pool::publish(maps, memory, table.slot, seen, listing(true, table.dynamic), &entries)
}

/// Replaces the contents of one table with one store. `known` has its contents so far, if they are
/// known without the kernel. `dates` has the dates that entries keep.
pub(crate) fn replace(
    maps: &Maps,
    memory: &mut Memory,
    slot: u32,
    entries: &[TableEntry],
    known: Option<Vec<TableEntry>>,
    dates: &Dates,
    listing: Listing,
) -> Result<()> {
    let before = Edition::current(maps, slot)?;
    let edition = Edition::next(maps, memory, slot, entries.len(), false)?;
    let mut indexes = NewIndexes::new(maps);
    contents::write_dated(maps, edition, entries, dates, &mut indexes)?;
    indexes.put()?;
    let table = abi::Table { version: edition.version, ..maps.tables.at(slot)? };
    pool::publish(maps, memory, slot, table, listing, entries)?;
    pool::keep_loads(maps, table.stats, entries)?;
    if before.version == 0 {
        return Ok(());
    }
    let mut known = known.map_or_else(|| contents::read(maps, before), Ok)?;
    match before.is_indexed() {
        true => forget_index(maps, before)?,
        false => contents::remove(maps, before.version, &known)?,
    }
    if !contents::are_counted(maps, slot)? {
        return Ok(());
    }
    // an entry whose negation changes starts new counters, as in pf
    let stay: BTreeSet<(IpNet, bool)> =
        entries.iter().map(|entry| (entry.net, entry.negated)).collect();
    known.retain(|entry| !stay.contains(&(entry.net, entry.negated)));
    contents::forget_counters(maps, slot, &known)
}

/// Releases contents without readers, and the counters of the entries that were removed with them.
// Differs from OpenBSD: linux.md, "Tables of pools"
pub(crate) fn release(
    maps: &Maps,
    replaced: &[Contents],
    tables: &BTreeMap<TableName, TableRecord>,
) -> Result<()> {
    let mut before = BTreeMap::new();
    for Contents { edition, counters, entries } in replaced {
        if edition.version == 0 {
            continue;
        }
        let entries = match entries {
            Some(entries) => Cow::Borrowed(&entries[..]),
            None => Cow::Owned(contents::read(maps, *edition)?),
        };
        if !edition.is_indexed() {
            contents::remove(maps, edition.version, &entries)?;
        }
        if *counters != 0 {
            before.insert(*counters, entries);
        }
    }
    let editions: Vec<Edition> = replaced.iter().map(|contents| contents.edition).collect();
    table_index::remove(maps, &editions)?;
    if replaced.is_empty() || maps.entry_stats.keys().next().is_none() {
        return Ok(());
    }
    let mut there = BTreeMap::new();
    for table in tables.values() {
        let counters = maps.tables.at(table.slot)?.counters;
        if counters != 0 {
            there.insert(counters, contents::current(maps, table)?);
        }
    }
    contents::keep_counters(maps, &before, &there)
}
