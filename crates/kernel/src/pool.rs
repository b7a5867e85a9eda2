//! Pools in the kernel: the pools of rules, and lists of the tables from which they choose. A list
//! has a version; a list whose version no table has is unused.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use skipstep_abi as abi;
use skipstep_abi::{
    PoolBlock, PoolBlockKey, PoolKey, PoolLoadKey, PoolMember, PoolMemberKey, address_bytes,
};
use skipstep_classifier::{Image, pool as classifier};
use skipstep_ruleset::{Family, LegacyList, PoolAddress, Rule, TableEntry, TableName};

use crate::contents;
use crate::error::Result;
use crate::kept_rules::KeptRules;
use crate::object::Maps;
use crate::record::{Memory, NO_TABLE, Record, SlotSet, TableRecord, visible_slot};

/// Tables and dynamic addresses by name.
type Tables = BTreeMap<TableName, TableRecord>;

/// Kinds of lists of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listing {
    /// No list: no pool chooses from the table.
    None,
    /// All entries of the table.
    Table,
    /// The addresses of an interface, of which link-local ones are never chosen.
    Interface,
}

/// Writes a table to its slot, which makes it valid. Writes its list first if pools choose from it.
pub(crate) fn publish(
    maps: &Maps,
    memory: &mut Memory,
    slot: u32,
    table: abi::Table,
    listing: Listing,
    entries: &[TableEntry],
) -> Result<()> {
    let before = maps.tables.at(slot)?.list;
    let table = match listing {
        Listing::None => abi::Table { list: 0, ..table },
        _ => write_list(maps, memory, table, listing, entries)?,
    };
    maps.tables.set(&slot, &table)?;
    if before != 0 {
        remove_lists(maps, |list| list == before)?;
    }
    Ok(())
}

/// Writes the pools of new rules: those whose slots are not among the `known` ones. Removes the
/// pools of rules that neither packets nor states use.
pub(crate) fn write(maps: &Maps, known: &SlotSet, image: &Image) -> Result<()> {
    let is_new = |slot| !known.contains(slot);
    let states = |slot| maps.shared_rule_states.load(slot, offset_of!(abi::RuleStates, current));
    let gone = |slot| is_new(slot) && states(slot) == 0;
    for key in maps.pools.keys_at_once()?.iter().filter(|key| gone(key.slot)) {
        maps.pools.remove(key)?;
    }
    for key in maps.pool_members.keys_at_once()?.iter().filter(|key| gone(key.slot)) {
        maps.pool_members.remove(key)?;
    }
    for (key, member) in &image.pool_members {
        if is_new(key.slot) {
            maps.pool_members.set(key, member)?;
        }
    }
    for (key, pool) in &image.pools {
        if is_new(key.slot) {
            maps.pools.set(key, pool)?;
        }
    }
    Ok(())
}

/// Writes the current slots of tables to the pools of reused rules, and to those of orphaned rules
/// that count states. Those of the rules that a trial keeps get them beside their own.
pub(crate) fn follow_tables(maps: &Maps, record: &Record, kept: Option<&KeptRules>) -> Result<()> {
    let followed = Followed { maps, record, kept };
    for (path, set) in &record.rule_sets {
        for (rule, slot) in record.ruleset.rules_of(path).iter().zip(&set.slots) {
            followed.write_pools(path, rule, *slot)?;
        }
        for (legacy, slot) in record.ruleset.legacy_rules_of(path).iter().zip(&set.legacy_slots) {
            // each of the two lists of `binat` has a pool of its own
            for list in LegacyList::ALL.into_iter().filter(|list| list.kind() == legacy.kind) {
                followed.write_pools(path, &legacy.seen_in(list), *slot)?;
            }
        }
    }
    for (slot, rule) in &record.orphans {
        for (purpose, name) in &rule.pools {
            followed.write_pool(PoolKey { slot: *slot, purpose: *purpose }, name)?;
        }
    }
    Ok(())
}

/// The rule set whose tables the pools follow.
struct Followed<'a> {
    maps: &'a Maps,
    record: &'a Record,
    kept: Option<&'a KeptRules>,
}

impl Followed<'_> {
    fn write_pools(&self, path: &str, rule: &Rule, slot: u32) -> Result<()> {
        for (purpose, pool) in classifier::by_purpose(rule) {
            let key = PoolKey { slot, purpose };
            match &pool.address {
                PoolAddress::List(members) => self.write_members(key, path, members)?,
                single => {
                    if let Some(name) = classifier::table_of(single, path) {
                        self.write_pool(key, &name)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn write_pool(&self, key: PoolKey, name: &TableName) -> Result<()> {
        let Some(before) = self.maps.pools.get(&key)? else { return Ok(()) };
        let table = self.slot(name);
        let pool = match KeptRules::generation(self.kept, key.slot) {
            Some(trial) => abi::Pool { trial, trial_table: table, ..before },
            None => abi::Pool { table, ..before },
        };
        if pool == before { Ok(()) } else { self.maps.pools.set(&key, &pool) }
    }

    fn write_members(
        &self,
        PoolKey { slot, purpose }: PoolKey,
        path: &str,
        members: &[PoolAddress],
    ) -> Result<()> {
        for (index, member) in (0..).zip(members) {
            let key = PoolMemberKey { slot, purpose, index };
            let name = classifier::table_of(member, path);
            let Some((name, before)) = name.zip(self.maps.pool_members.get(&key)?) else {
                continue;
            };
            let table = self.slot(&name);
            let member = match KeptRules::generation(self.kept, slot) {
                Some(trial) => PoolMember { trial, trial_table: table, ..before },
                None => PoolMember { table, ..before },
            };
            self.maps.pool_members.set(&key, &member)?;
        }
        Ok(())
    }

    fn slot(&self, name: &TableName) -> u32 {
        visible_slot(&self.record.tables, name).unwrap_or(NO_TABLE)
    }
}

/// Removes lists and counters of removed tables. Does nothing if no pool chose from a table before,
/// because a search for lists walks a map with room for a million.
pub(crate) fn release(maps: &Maps, before: &Tables, after: &Tables) -> Result<()> {
    let counted = || maps.pool_loads.keys().next().is_some();
    let pooled = before.values().any(|table| table.pooled);
    if pooled || counted() { remove_unused(maps, || after.values()) } else { Ok(()) }
}

/// Removes all lists and counters but those of `tables`.
pub(crate) fn remove_unused<'a, T: Iterator<Item = &'a TableRecord>>(
    maps: &Maps,
    tables: impl Fn() -> T,
) -> Result<()> {
    let slots: BTreeSet<u32> = tables().map(|table| table.slot).collect();
    let mut lists = BTreeSet::new();
    for slot in &slots {
        lists.insert(maps.tables.at(*slot)?.list);
    }
    remove_lists(maps, |list| !lists.contains(&list))?;
    let loads = maps.pool_loads.keys_at_once()?;
    for stats in loads.iter().map(|load| load.table).collect::<BTreeSet<u32>>() {
        let table = tables().find(|table| table.stats == stats);
        let entries = table.map(|table| contents::current(maps, table)).transpose()?;
        keep_loads(maps, stats, &entries.unwrap_or_default())?;
    }
    Ok(())
}

/// Removes the state counts of addresses that are not among `entries`, for the table whose counters
/// are in `stats`. An address that returns to the table starts at 0.
pub(crate) fn keep_loads(maps: &Maps, stats: u32, entries: &[TableEntry]) -> Result<()> {
    let mut loads = maps.pool_loads.keys_at_once()?;
    loads.retain(|load| load.table == stats);
    if loads.is_empty() {
        return Ok(());
    }
    let there: BTreeSet<IpAddr> = chosen_hosts(entries).collect();
    let address = |load: &PoolLoadKey| abi::address_from(load.family as u8, load.address);
    for load in loads.iter().filter(|load| !there.contains(&address(load))) {
        maps.pool_loads.remove(load)?;
    }
    Ok(())
}

/// Removes the state counts of the addresses among `entries`.
pub(crate) fn forget_loads(maps: &Maps, stats: u32, entries: &[TableEntry]) -> Result<()> {
    if maps.pool_loads.keys().next().is_none() {
        return Ok(());
    }
    for address in chosen_hosts(entries) {
        let family = if address.is_ipv4() { abi::INET } else { abi::INET6 };
        let address = address_bytes(address);
        maps.pool_loads.remove(&PoolLoadKey { table: stats, family: family.into(), address })?;
    }
    Ok(())
}

/// Returns the addresses that a pool which counts states can choose: hosts that are not negated.
fn chosen_hosts(entries: &[TableEntry]) -> impl Iterator<Item = IpAddr> {
    let is_host = |net: &IpNet| net.prefix_len() == net.max_prefix_len();
    let chosen = entries.iter().filter(move |entry| !entry.negated && is_host(&entry.net));
    chosen.map(|entry| entry.net.addr())
}

fn remove_lists(maps: &Maps, unwanted: impl Fn(u32) -> bool) -> Result<()> {
    for key in maps.pool_blocks.keys_at_once()?.iter().filter(|key| unwanted(key.list)) {
        maps.pool_blocks.remove(key)?;
    }
    Ok(())
}

/// Writes entries in the order of a radix tree: by address, and of two networks with the same
/// address the smaller first.
fn write_list(
    maps: &Maps,
    memory: &mut Memory,
    table: abi::Table,
    listing: Listing,
    entries: &[TableEntry],
) -> Result<abi::Table> {
    let list = memory.table_version();
    for family in [Family::Inet, Family::Inet6] {
        let mut blocks: Vec<Block> =
            entries.iter().filter_map(|e| Block::from_entry(e, family)).collect();
        blocks.sort_by_key(|block| (block.low, block.high));
        let chosen = blocks.iter().filter(|block| !block.negated);
        for (index, block) in (0..).zip(chosen) {
            let unusable = listing == Listing::Interface && block.is_link_local(family);
            let parts = if unusable { Vec::new() } else { block.parts(&blocks) };
            // a block without parts keeps its index in the list
            let shown = if parts.is_empty() { &[(block.low, block.high)][..] } else { &parts[..] };
            for (part, (low, high)) in (0..).zip(shown) {
                let number = if family == Family::Inet { abi::INET } else { abi::INET6 };
                let key = PoolBlockKey { list, family: number.into(), part, index };
                let value = PoolBlock {
                    base: bytes(family, block.low),
                    mask: mask(family, block),
                    weight: block.weight,
                    parts: parts.len() as u16,
                    low: bytes(family, *low),
                    high: bytes(family, *high),
                };
                maps.pool_blocks.set(&key, &value)?;
            }
        }
    }
    let weights = || entries.iter().map(|entry| u32::from(entry.weight.max(1)));
    Ok(abi::Table {
        list,
        total: entries.len() as u32,
        weighted: u32::from(entries.iter().any(|entry| entry.weight != 0)),
        gcd: weights().fold(0, greatest_common_divisor),
        heaviest: weights().max().unwrap_or(1),
        ..table
    })
}

/// An entry as a range of addresses, both ends inclusive.
struct Block {
    low: u128,
    high: u128,
    negated: bool,
    weight: u16,
}

impl Block {
    fn from_entry(entry: &TableEntry, family: Family) -> Option<Self> {
        let bits = |address| match address {
            std::net::IpAddr::V4(v4) => u128::from(v4.to_bits()),
            std::net::IpAddr::V6(v6) => v6.to_bits(),
        };
        (Family::from_address(entry.net.addr()) == family).then(|| Block {
            low: bits(entry.net.network()),
            high: bits(entry.net.broadcast()),
            negated: entry.negated,
            weight: entry.weight,
        })
    }

    fn is_link_local(&self, family: Family) -> bool {
        family == Family::Inet6 && self.low >> 118 == 0xfe80 >> 6
    }

    /// Returns the parts of the block that smaller entries, negated or not, do not cover.
    fn parts(&self, all: &[Block]) -> Vec<(u128, u128)> {
        let inside = |other: &&Block| {
            self.low <= other.low
                && other.high <= self.high
                && (other.low, other.high) != (self.low, self.high)
        };
        let (mut parts, mut next) = (Vec::new(), Some(self.low));
        let mut smaller: Vec<&Block> = all.iter().filter(inside).collect();
        smaller.sort_by_key(|block| (block.low, std::cmp::Reverse(block.high)));
        for block in smaller {
            let Some(at) = next.filter(|at| *at <= block.high) else { continue };
            if at < block.low {
                parts.push((at, block.low - 1));
            }
            next = block.high.checked_add(1);
        }
        parts.extend(next.filter(|at| *at <= self.high).map(|at| (at, self.high)));
        parts
    }
}

fn bytes(family: Family, bits: u128) -> [u8; 16] {
    address_bytes(match family {
        Family::Inet => Ipv4Addr::from(bits as u32).into(),
        Family::Inet6 => Ipv6Addr::from(bits).into(),
    })
}

/// Returns the block's mask; the bits after an IPv4 address are all set.
fn mask(family: Family, block: &Block) -> [u8; 16] {
    let mut mask = bytes(family, !(block.high ^ block.low));
    if family == Family::Inet {
        mask[4..].fill(0xff);
    }
    mask
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(family: Family, entries: &[&str]) -> Vec<(u128, u128)> {
        let entry = |text: &&str| TableEntry {
            negated: text.starts_with('!'),
            net: text.trim_start_matches('!').parse().unwrap(),
            weight: 0,
        };
        let blocks: Vec<Block> =
            entries.iter().filter_map(|text| Block::from_entry(&entry(text), family)).collect();
        blocks[0].parts(&blocks)
    }

    #[test]
    fn smaller_entries_leave_parts() {
        let base = 0x0a00_0000;
        assert_eq!(parts(Family::Inet, &["10.0.0.0/29"]), [(base, base + 7)]);
        assert_eq!(
            parts(Family::Inet, &["10.0.0.0/29", "!10.0.0.0/31", "10.0.0.5/32", "10.1.0.0/16"]),
            [(base + 2, base + 4), (base + 6, base + 7)]
        );
        assert!(parts(Family::Inet, &["10.0.0.0/31", "10.0.0.0/32", "10.0.0.1/32"]).is_empty());
        assert_eq!(parts(Family::Inet6, &["::/125", "::2/128"]), [(0, 1), (3, 7)]);
    }
}
