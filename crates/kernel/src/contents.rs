//! Contents of tables in the one trie that holds them all. A version belongs to one table at one
//! time; what is written under a version that no slot names is seen by nobody.

use std::collections::{BTreeSet, HashMap};

use ipnet::IpNet;
use skipstep_abi as abi;
use skipstep_abi::address_bytes;
use skipstep_abi::table::TABLE_KEY_FIXED_BITS;
use skipstep_ruleset::TableEntry;

use crate::error::Result;
use crate::object::Maps;
use crate::record::wall_clock;
use crate::table::{EntryInfo, EntryTraffic};

/// Entries that one system call writes.
const BATCH: usize = 4096;

/// Writes `entries` under `version`.
pub(crate) fn write(maps: &Maps, version: u32, entries: &[TableEntry]) -> Result<()> {
    let cleared = wall_clock() as u32;
    for chunk in entries.chunks(BATCH) {
        let keys: Vec<_> = chunk.iter().map(|entry| key(version, &entry.net)).collect();
        let values: Vec<_> = chunk
            .iter()
            .map(|entry| abi::TableEntry {
                negated: u32::from(entry.negated),
                interface: 0,
                cleared,
                weight: u32::from(entry.weight),
                prefix: u32::from(entry.net.prefix_len()),
            })
            .collect();
        maps.table_entries.set_many(&keys, &values)?;
    }
    Ok(())
}

/// An address that was in a table before keeps its weight, as in pf: what a text says of weights
/// counts for new ones.
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

/// Removes `entries` from `version`.
pub(crate) fn remove(maps: &Maps, version: u32, entries: &[TableEntry]) -> Result<()> {
    for entry in entries {
        maps.table_entries.remove(&key(version, &entry.net))?;
    }
    forget_counters(maps, version, entries)
}

/// Forgets what was counted for `entries` of `version`.
pub(crate) fn forget_counters(maps: &Maps, version: u32, entries: &[TableEntry]) -> Result<()> {
    if maps.entry_stats.keys().next().is_none() {
        return Ok(());
    }
    for entry in entries {
        maps.entry_stats.remove(&key(version, &entry.net))?;
    }
    Ok(())
}

/// Takes what was counted for `entries` under the version `before` over to `version`.
pub(crate) fn keep_counters(
    maps: &Maps,
    before: u32,
    version: u32,
    entries: &[TableEntry],
) -> Result<()> {
    let nets: BTreeSet<IpNet> = entries.iter().map(|entry| entry.net).collect();
    let counted: Vec<_> = maps.entry_stats.keys().filter(|key| key.version == before).collect();
    for key in counted.iter().filter(|key| net(key).is_some_and(|net| nets.contains(&net))) {
        if let Some(stats) = maps.entry_stats.get(key)? {
            maps.entry_stats.set(&abi::TableKey { version, ..*key }, &stats)?;
        }
    }
    Ok(())
}

/// The entries of `version`.
pub(crate) fn read(maps: &Maps, version: u32) -> Result<Vec<TableEntry>> {
    Ok(read_all(maps, None, version)?.into_iter().map(|info| info.entry).collect())
}

/// The entries of `version` with all that is known of them, if the table's slot is given also of its
/// use by pools; found by walking the whole trie.
pub(crate) fn read_all(maps: &Maps, slot: Option<u32>, version: u32) -> Result<Vec<EntryInfo>> {
    let mut entries = Vec::new();
    if version == 0 {
        return Ok(entries);
    }
    let counted = maps.entry_stats.keys().next().is_some();
    for key in maps.table_entries.keys().filter(|key| key.version == version) {
        let value = maps.table_entries.get(&key)?;
        if let (Some(net), Some(value)) = (net(&key), value) {
            let (negated, weight) = (value.negated != 0, value.weight as u16);
            let entry = TableEntry { negated, net, weight };
            let stats = if counted { maps.entry_stats.get(&key)? } else { None };
            let traffic =
                stats.map(|abi::EntryStats { packets, bytes }| EntryTraffic { packets, bytes });
            let states = match slot {
                Some(table) => {
                    let load = abi::PoolLoadKey { table, family: key.family, address: key.address };
                    maps.pool_loads.get(&load)?
                }
                None => None,
            };
            entries.push(EntryInfo { entry, cleared: value.cleared, traffic, states });
        }
    }
    entries.sort_by_key(|info| info.entry.net);
    Ok(entries)
}

/// Says whether the entries of the table in `slot` have counters of their own.
pub(crate) fn set_counters(maps: &Maps, slot: u32, counters: bool) -> Result<()> {
    let table = maps.tables.at(slot)?;
    maps.tables.set(&slot, &abi::Table { counters: u32::from(counters), ..table })
}

/// Removes everything that is not under one of the versions in use: what replaced tables and
/// loaders that were killed left behind.
pub(crate) fn remove_unused(maps: &Maps, in_use: &BTreeSet<u32>) -> Result<()> {
    let unused: Vec<_> =
        maps.table_entries.keys().filter(|key| !in_use.contains(&key.version)).collect();
    for key in unused {
        maps.table_entries.remove(&key)?;
    }
    let unused: Vec<_> =
        maps.entry_stats.keys().filter(|key| !in_use.contains(&key.version)).collect();
    for key in unused {
        maps.entry_stats.remove(&key)?;
    }
    Ok(())
}

/// The key of a network.
pub(crate) fn key(version: u32, net: &IpNet) -> abi::TableKey {
    let family = if net.addr().is_ipv4() { abi::INET } else { abi::INET6 };
    abi::TableKey {
        prefixlen: TABLE_KEY_FIXED_BITS + u32::from(net.prefix_len()),
        version,
        family: u32::from(family),
        address: address_bytes(net.network()),
    }
}

fn net(key: &abi::TableKey) -> Option<IpNet> {
    let address = abi::address_from(key.family as u8, key.address);
    let prefix = key.prefixlen.checked_sub(TABLE_KEY_FIXED_BITS)?;
    IpNet::new(address, u8::try_from(prefix).ok()?).ok()
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
