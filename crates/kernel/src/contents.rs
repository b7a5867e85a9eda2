//! Contents of tables in the shared trie. Tables with an index of their own are stored elsewhere. A
//! version belongs to one table at a time. No packet sees entries under a version that no slot
//! names.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use ipnet::IpNet;
use skipstep_abi as abi;
use skipstep_abi::address_bytes;
use skipstep_abi::table::TABLE_KEY_FIXED_BITS;
use skipstep_ruleset::TableEntry;

use crate::error::Result;
use crate::object::Maps;
use crate::record::{Memory, TableRecord, wall_clock};
use crate::table_index::{self, Edition, NewIndexes};

/// Entries that one system call writes.
const BATCH: usize = 4096;

/// For each entry: true if it is negated, and the time from which it is counted (Unix seconds).
pub(crate) type Dates = HashMap<IpNet, (bool, u32)>;

/// An entry of a table as `pfctl -vT show` prints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryInfo {
    /// Network, negation and weight.
    pub entry: TableEntry,
    /// Time when the entry was added or its counters were cleared, in seconds since 1970.
    pub cleared: u32,
    /// Traffic of the entry, if its table has `counters` and a packet has matched the entry.
    pub traffic: Option<EntryTraffic>,
    /// States that `least-states` pools gave the address; `None` if they never did.
    pub states: Option<u32>,
}

/// Packets that matched a rule by an entry: `[in, out][block, match, pass]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EntryTraffic {
    /// Number of packets.
    pub packets: [[u64; 3]; 2],
    /// Number of bytes.
    pub bytes: [[u64; 3]; 2],
}

/// Returns the entries of a table: from its record if they are there, or else from the kernel.
pub(crate) fn current(maps: &Maps, table: &TableRecord) -> Result<Vec<TableEntry>> {
    match &table.contents {
        Some(entries) => Ok(entries.clone()),
        None => read(maps, Edition::current(maps, table.slot)?),
    }
}

/// Returns the dates of the entries of an edition.
pub(crate) fn dates(maps: &Maps, edition: Edition) -> Result<Dates> {
    let stored = stored(maps, edition)?.into_iter();
    Ok(stored.map(|(net, value)| (net, (value.negated != 0, value.cleared))).collect())
}

/// Writes `entries` into the trie under `version`, with the current time as their date.
pub(crate) fn write(maps: &Maps, version: u32, entries: &[TableEntry]) -> Result<()> {
    write_to_trie(maps, version, entries, &Dates::new())
}

/// Writes the `entries` of an edition that is not in force: into the trie, or into `indexes`, which
/// are committed with others. As in pf, an entry that was there before and whose negation did not
/// change keeps its date.
pub(crate) fn write_dated(
    maps: &Maps,
    edition: Edition,
    entries: &[TableEntry],
    dates: &Dates,
    indexes: &mut NewIndexes,
) -> Result<()> {
    if !edition.is_indexed() {
        return write_to_trie(maps, edition.version, entries, dates);
    }
    let values = values(entries, dates);
    let indexed = entries.iter().zip(values).map(|(entry, value)| abi::IndexEntry {
        entry: value,
        family: family(&entry.net),
        address: address_bytes(entry.net.network()),
    });
    indexes.make(edition, indexed.collect())
}

fn write_to_trie(maps: &Maps, version: u32, entries: &[TableEntry], dates: &Dates) -> Result<()> {
    for chunk in entries.chunks(BATCH) {
        let keys: Vec<_> = chunk.iter().map(|entry| key(version, &entry.net)).collect();
        maps.table_entries.set_many(&keys, &values(chunk, dates).collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Returns the values that the maps store for entries.
fn values<'a>(
    entries: &'a [TableEntry],
    dates: &'a Dates,
) -> impl Iterator<Item = abi::TableEntry> + 'a {
    let now = wall_clock() as u32;
    let cleared = move |entry: &TableEntry| match dates.get(&entry.net) {
        Some((negated, cleared)) if *negated == entry.negated => *cleared,
        _ => now,
    };
    entries.iter().map(move |entry| abi::TableEntry {
        cleared: cleared(entry),
        interface: 0,
        weight: entry.weight,
        prefix: entry.net.prefix_len(),
        negated: entry.negated.into(),
    })
}

/// Keeps the weights of addresses that were in the table before, as in pf: weights in a text count
/// for new addresses only.
pub(crate) fn keep_weights(before: &[TableEntry], entries: &mut [TableEntry]) {
    let weighs = |entry: &TableEntry| entry.weight != 0;
    if !before.iter().any(weighs) && !entries.iter().any(weighs) {
        return;
    }
    let known: HashMap<IpNet, u16> = before.iter().map(|entry| (entry.net, entry.weight)).collect();
    for entry in entries {
        if let Some(weight) = known.get(&entry.net) {
            entry.weight = *weight;
        }
    }
}

/// Removes `entries` from `version` in the trie.
pub(crate) fn remove(maps: &Maps, version: u32, entries: &[TableEntry]) -> Result<()> {
    for entry in entries {
        maps.table_entries.remove(&key(version, &entry.net))?;
    }
    Ok(())
}

/// Removes the contents of a table that no packet reads any more.
///
/// # Errors
/// Fails if a map cannot be read or written.
pub fn clear(maps: &Maps, table: &TableRecord) -> Result<()> {
    let edition = Edition::current(maps, table.slot)?;
    match edition.is_indexed() {
        true => table_index::remove(maps, &[edition]),
        false => remove(maps, edition.version, &current(maps, table)?),
    }
}

/// True if there may be counters for entries of the table in `slot`.
pub(crate) fn are_counted(maps: &Maps, slot: u32) -> Result<bool> {
    Ok(maps.tables.at(slot)?.counters != 0 && maps.entry_stats.keys().next().is_some())
}

/// Removes the counters of `entries` of the table in `slot`.
pub(crate) fn forget_counters(maps: &Maps, slot: u32, entries: &[TableEntry]) -> Result<()> {
    if !are_counted(maps, slot)? {
        return Ok(());
    }
    let counters = maps.tables.at(slot)?.counters;
    for entry in entries {
        maps.entry_stats.remove(&key(counters, &entry.net))?;
    }
    Ok(())
}

/// Removes the counters of all entries that are not `there` any more, or whose negation differs
/// from `before`. The keys of both maps are the numbers under which a table keeps its counters.
pub(crate) fn keep_counters(
    maps: &Maps,
    before: &BTreeMap<u32, Cow<[TableEntry]>>,
    there: &BTreeMap<u32, Vec<TableEntry>>,
) -> Result<()> {
    let (before, there) = (negations(before), negations(there));
    let is_there = |key: &abi::TableKey| {
        let Some(of) = net(key).map(|net| (key.version, net)) else { return false };
        let was = before.get(&of);
        there.get(&of).is_some_and(|is| was.is_none_or(|was| was == is))
    };
    for key in maps.entry_stats.keys().filter(|key| !is_there(key)).collect::<Vec<_>>() {
        maps.entry_stats.remove(&key)?;
    }
    Ok(())
}

/// Returns the negation of each entry.
fn negations(entries: &BTreeMap<u32, impl AsRef<[TableEntry]>>) -> HashMap<(u32, IpNet), bool> {
    let all = entries.iter().flat_map(|(counters, entries)| {
        entries.as_ref().iter().map(|entry| ((*counters, entry.net), entry.negated))
    });
    all.collect()
}

/// Returns the entries of an edition, ascending.
pub(crate) fn read(maps: &Maps, edition: Edition) -> Result<Vec<TableEntry>> {
    let stored = stored(maps, edition)?.into_iter();
    Ok(stored.map(|(net, value)| entry(net, &value)).collect())
}

/// Returns the entries of a table with date, traffic and number of states, ascending.
///
/// # Errors
/// Fails if a map cannot be read.
pub fn read_all(maps: &Maps, record: &TableRecord) -> Result<Vec<EntryInfo>> {
    let slot = record.slot;
    let table = maps.tables.at(slot)?;
    // the kept rule set of a trial may count entries that the rules in force do not
    let counted = record.counters && are_counted(maps, slot)?;
    let chosen = maps.pool_loads.keys().next().is_some();
    let stored = stored(maps, Edition { slot, version: table.version })?.into_iter();
    stored
        .map(|(net, value)| {
            let traffic = if counted { traffic(maps, table.counters, &net)? } else { None };
            let load = abi::PoolLoadKey {
                table: table.stats,
                family: family(&net),
                address: address_bytes(net.network()),
            };
            let states = if chosen { maps.pool_loads.get(&load)? } else { None };
            Ok(EntryInfo { entry: entry(net, &value), cleared: value.cleared, traffic, states })
        })
        .collect()
}

/// Returns the number of entries in the trie under each version.
pub(crate) fn count(maps: &Maps) -> Result<HashMap<u32, usize>> {
    let mut count = HashMap::new();
    maps.table_entries.for_each(|key, _| *count.entry(key.version).or_default() += 1)?;
    Ok(count)
}

/// Returns the stored entries of an edition, ascending. Reads the edition's index, or else walks
/// the whole trie.
fn stored(maps: &Maps, edition: Edition) -> Result<Vec<(IpNet, abi::TableEntry)>> {
    let mut stored = Vec::new();
    if edition.is_indexed() {
        let entries = table_index::read(maps, edition)?.into_iter();
        let of = |found: abi::IndexEntry| {
            let net = net_of(found.family, found.address, found.entry.prefix)?;
            Some((net, found.entry))
        };
        stored.extend(entries.filter_map(of));
    } else if edition.version != 0 {
        maps.table_entries.for_each(|key, value| {
            if let Some(net) = net(key).filter(|_| key.version == edition.version) {
                stored.push((net, *value));
            }
        })?;
    }
    stored.sort_by_key(|(net, _)| *net);
    stored.dedup_by_key(|(net, _)| *net);
    Ok(stored)
}

fn entry(net: IpNet, value: &abi::TableEntry) -> TableEntry {
    TableEntry { negated: value.negated != 0, net, weight: value.weight }
}

fn traffic(maps: &Maps, counters: u32, net: &IpNet) -> Result<Option<EntryTraffic>> {
    let stats = maps.entry_stats.get(&key(counters, net))?;
    // the longest match belongs to a wider entry if no packet has matched this entry yet
    let own = stats.filter(|stats| stats.prefix == u32::from(net.prefix_len()));
    Ok(own.map(|abi::EntryStats { packets, bytes, .. }| EntryTraffic { packets, bytes }))
}

/// Turns the entry counters of the table in `slot` on or off. Counters are stored under a number
/// that stays with the table when its contents or its slot change, so no count is lost.
pub(crate) fn set_counters(
    maps: &Maps,
    memory: &mut Memory,
    slot: u32,
    counters: bool,
) -> Result<()> {
    let table = maps.tables.at(slot)?;
    let counters = match (counters, table.counters) {
        (false, _) => 0,
        (true, 0) => memory.table_version(),
        (true, number) => number,
    };
    maps.tables.set(&slot, &abi::Table { counters, ..table })
}

/// Removes the contents of all tables but `tables`. Their records no longer have the contents, so
/// that they are read from the kernel.
///
/// # Errors
/// Fails if a map cannot be read or written.
pub(crate) fn remove_all_but<'a>(
    maps: &Maps,
    tables: impl Iterator<Item = &'a mut TableRecord>,
) -> Result<()> {
    let (mut editions, mut counted) = (BTreeSet::new(), BTreeSet::new());
    for table in tables {
        let abi::Table { version, counters, .. } = maps.tables.at(table.slot)?;
        editions.insert(Edition { slot: table.slot, version });
        counted.insert(counters);
        table.contents = None;
    }
    remove_unused(maps, &editions, &counted)
}

/// Removes the entries of all editions that are not in use, and all counters not under one of the
/// numbers of `counters`. Replaced tables and killed loaders leave such entries.
fn remove_unused(maps: &Maps, in_use: &BTreeSet<Edition>, counters: &BTreeSet<u32>) -> Result<()> {
    table_index::remove_unused(maps, in_use)?;
    let versions: BTreeSet<u32> = in_use.iter().map(|edition| edition.version).collect();
    let unused: Vec<_> =
        maps.table_entries.keys().filter(|key| !versions.contains(&key.version)).collect();
    for key in unused {
        maps.table_entries.remove(&key)?;
    }
    let unused: Vec<_> =
        maps.entry_stats.keys().filter(|key| !counters.contains(&key.version)).collect();
    for key in unused {
        maps.entry_stats.remove(&key)?;
    }
    Ok(())
}

/// Returns the key of a network in the trie.
pub(crate) fn key(version: u32, net: &IpNet) -> abi::TableKey {
    abi::TableKey {
        prefixlen: TABLE_KEY_FIXED_BITS + u32::from(net.prefix_len()),
        version,
        family: family(net),
        address: address_bytes(net.network()),
    }
}

fn family(net: &IpNet) -> u32 {
    if net.addr().is_ipv4() { abi::INET.into() } else { abi::INET6.into() }
}

fn net(key: &abi::TableKey) -> Option<IpNet> {
    let prefix = key.prefixlen.checked_sub(TABLE_KEY_FIXED_BITS)?;
    net_of(key.family, key.address, u8::try_from(prefix).ok()?)
}

fn net_of(family: u32, address: [u8; 16], prefix: u8) -> Option<IpNet> {
    IpNet::new(abi::address_from(family as u8, address), prefix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_was_there_keeps_its_weight() {
        let entry =
            |net: &str, weight| TableEntry { negated: false, net: net.parse().unwrap(), weight };
        let before = [entry("10.0.0.1/32", 3), entry("10.0.0.2/32", 0), entry("10.0.0.3/32", 9)];
        let mut entries =
            [entry("10.0.0.1/32", 0), entry("10.0.0.2/32", 7), entry("10.0.0.4/32", 8)];
        keep_weights(&before, &mut entries);
        assert_eq!(entries.map(|entry| entry.weight), [3, 0, 8]);
    }

    #[test]
    fn keys_survive_the_round_trip() {
        for text in ["10.1.0.0/16", "192.0.2.1/32", "2001:db8::/32", "0.0.0.0/0"] {
            let wanted: IpNet = text.parse().unwrap();
            assert_eq!(net(&key(7, &wanted)), Some(wanted));
        }
    }
}
