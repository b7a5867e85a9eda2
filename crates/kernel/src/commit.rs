//! Loading a rule set in one piece: everything new is written beside what is in force, then one
//! word, the generation in `status`, turns the page. Killed before that, a loader leaves the old
//! rule set whole; killed after, the new one. Whoever calls holds the instance's lock.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};

use ipnet::IpNet;
use skipstep_abi as abi;
use skipstep_classifier::{Image, Slots, TableUse};
use skipstep_ruleset::interface::{Host, InterfaceAddress};
use skipstep_ruleset::{Ruleset, TableEntry};

use crate::contents;
use crate::error::{Error, Result};
use crate::forget;
use crate::map;
use crate::object::Maps;
use crate::record::{Memory, Record, SELF_NAME, TableRecord, wall_clock};
use skipstep_abi::limits::SELF_TABLE;

/// Inner maps of different sizes need this flag (`BPF_F_INNER_MAP`).
const INNER_MAP: u32 = libbpf_rs::libbpf_sys::BPF_F_INNER_MAP;

/// Where rules are written.
pub(crate) enum RuleHome {
    /// Into a map made to measure, as long as packets may walk the old one.
    New,
    /// Into two maps that are there from the start, one for each generation. For tests, whose
    /// packets come when they are sent: waiting for none takes tens of milliseconds.
    Standing([map::Map<u32, abi::Rule>; 2]),
}

impl RuleHome {
    /// Two maps with room for `rules` rules, as both generations' rule sets.
    pub fn standing(maps: &Maps, rules: u32) -> Result<Self> {
        let homes = [new_rules(rules)?, new_rules(rules)?];
        for (generation, home) in (0..).zip(&homes) {
            put(maps, generation, home)?;
        }
        Ok(RuleHome::Standing(homes))
    }
}

/// A rule set written but not in force.
pub(crate) struct Prepared {
    /// What to remember of it.
    pub record: Record,
    /// Contents of tables that nobody sees once it is in force: version, and entries if known.
    replaced: Vec<(u32, Option<Vec<TableEntry>>)>,
    /// Rules in a map of their own.
    rules: Option<map::Map<u32, abi::Rule>>,
}

/// Writes a rule set beside the one in force, which `old` describes.
pub(crate) fn prepare(
    maps: &Maps,
    home: &RuleHome,
    old: &Record,
    memory: &mut Memory,
    ruleset: &Ruleset,
    host: &Host,
) -> Result<Prepared> {
    skipstep_classifier::image::check_rules(ruleset)?;
    forget::make_room(maps, &mut memory.names, host, &[&old.ruleset, ruleset])?;
    let generation = old.generation.wrapping_add(1);
    let (tables, replaced) = place_tables(maps, old, memory, ruleset, host)?;
    let slots = Slots {
        rules: free_rule_slots(maps, old, memory, ruleset.rules.len())?,
        tables: tables.iter().map(|(name, table)| (name.clone(), table.slot)).collect(),
    };
    let mut image = skipstep_classifier::compile(ruleset, host, &slots, &mut memory.names)?;
    image.config.hostid = ruleset.options.hostid.unwrap_or(memory.hostid);
    write_rule_slots(maps, &slots.rules, &image)?;
    let rules = write_rules(maps, home, generation, &image)?;
    maps.configs.set(&(generation & 1), &image.config)?;
    write_interfaces(maps, memory, host, skip_lists(generation, old, ruleset))?;
    let record = Record {
        generation,
        ruleset: ruleset.clone(),
        rule_slots: slots.rules,
        tables,
        loaded_at: wall_clock(),
        uid: nix::unistd::getuid().as_raw(),
        pid: std::process::id(),
    };
    Ok(Prepared { record, replaced, rules })
}

/// Puts a prepared rule set in force and lets go of the old one.
pub(crate) fn flip(maps: &Maps, old: &Record, prepared: &Prepared) -> Result<()> {
    let generation = prepared.record.generation;
    maps.shared_status.store(0, offset_of!(abi::Status, generation), generation);
    if let Some(rules) = &prepared.rules {
        // the kernel waits for its readers whenever a map of maps is changed, even into what it
        // was: every packet that began under the old generation is through when this returns
        put(maps, generation, rules)?;
    }
    for slot in &old.rule_slots {
        let gone = -1i32;
        maps.shared_rule_states.store(*slot, offset_of!(abi::RuleStates, number), gone as u32);
    }
    release_tables(maps, prepared)
}

/// Interfaces that come, go or change groups while rules stay.
pub(crate) fn write_interfaces(
    maps: &Maps,
    memory: &mut Memory,
    host: &Host,
    skip: [&[String]; 2],
) -> Result<()> {
    let present = skipstep_classifier::interfaces(host, skip, &mut memory.names)?;
    for (index, interface) in &present {
        maps.interfaces.set(index, interface)?;
    }
    let gone: Vec<u32> = maps
        .interfaces
        .keys()
        .filter(|index| !present.iter().any(|(there, _)| there == index))
        .collect();
    for index in gone {
        maps.interfaces.remove(&index)?;
    }
    Ok(())
}

/// The operands of `set skip on` for even and odd generations while one follows the other.
pub(crate) fn skip_lists<'a>(
    generation: u32,
    old: &'a Record,
    ruleset: &'a Ruleset,
) -> [&'a [String]; 2] {
    let (old, new) = (&old.ruleset.options.skip[..], &ruleset.options.skip[..]);
    if generation & 1 == 0 { [new, old] } else { [old, new] }
}

/// Slots of rules that are neither in force nor still named by a state.
fn free_rule_slots(
    maps: &Maps,
    old: &Record,
    memory: &mut Memory,
    wanted: usize,
) -> Result<Vec<u32>> {
    let in_force: BTreeSet<u32> = old.rule_slots.iter().copied().collect();
    let has_states =
        |slot: u32| maps.shared_rule_states.load(slot, offset_of!(abi::RuleStates, current)) != 0;
    let first = abi::limits::IDLE_SLOT + 1;
    let capacity = maps.rule_states.capacity();
    let used = memory.slots_used.max(first);
    let slots: Vec<u32> = (first..capacity)
        .filter(|slot| *slot >= used || (!in_force.contains(slot) && !has_states(*slot)))
        .take(wanted)
        .collect();
    if slots.len() < wanted {
        return Err(Error::RuleSlots { wanted, free: slots.len(), limit: capacity });
    }
    memory.slots_used = slots.last().map_or(used, |last| used.max(last + 1));
    Ok(slots)
}

fn write_rule_slots(maps: &Maps, slots: &[u32], image: &Image) -> Result<()> {
    maps.rule_stats.clear_many(slots)?;
    maps.rule_states.set_many(slots, &image.states)
}

fn write_rules(
    maps: &Maps,
    home: &RuleHome,
    generation: u32,
    image: &Image,
) -> Result<Option<map::Map<u32, abi::Rule>>> {
    let count = image.rules.len() as u32;
    let numbers: Vec<u32> = (0..count).collect();
    match home {
        RuleHome::New => {
            let rules = new_rules(count)?;
            rules.set_many(&numbers, &image.rules)?;
            put(maps, generation, &rules)?;
            Ok(Some(rules))
        }
        RuleHome::Standing(homes) => {
            homes[(generation & 1) as usize].set_many(&numbers, &image.rules)?;
            Ok(None)
        }
    }
}

fn new_rules(count: u32) -> Result<map::Map<u32, abi::Rule>> {
    map::new_array("rules", count, INNER_MAP)
}

fn put(maps: &Maps, generation: u32, rules: &map::Map<u32, abi::Rule>) -> Result<()> {
    maps.rulesets.set(&(generation & 1), &(rules.as_fd().as_raw_fd() as u32))
}

type Replaced = Vec<(u32, Option<Vec<TableEntry>>)>;

/// Gives every table a slot and writes its contents. A table whose contents change gets a new slot,
/// so that the old rules go on seeing the old ones until the page is turned.
fn place_tables(
    maps: &Maps,
    old: &Record,
    memory: &mut Memory,
    ruleset: &Ruleset,
    host: &Host,
) -> Result<(BTreeMap<String, TableRecord>, Replaced)> {
    let mut taken: BTreeSet<u32> = old.tables.values().map(|table| table.slot).collect();
    taken.insert(SELF_TABLE);
    let mut tables = BTreeMap::new();
    for wanted in skipstep_classifier::tables(ruleset, host)? {
        let before = old.tables.get(&wanted.name);
        let mut table = match before {
            Some(before) if keeps_contents(before, &wanted) => before.clone(),
            _ => new_table(maps, memory, before, &wanted, &mut taken)?,
        };
        table.dynamic = ruleset.table(&wanted.name).is_none();
        if let Some(defined) = ruleset.table(&wanted.name) {
            table.persist = defined.persist;
            table.constant = defined.constant;
            table.counters = defined.counters;
            table.active = table.active || defined.defined;
        }
        tables.insert(wanted.name, table);
    }
    for (name, table) in old.tables.iter().filter(|(_, table)| table.persist) {
        tables.entry(name.clone()).or_insert_with(|| table.clone());
    }
    tables.insert(SELF_NAME.to_owned(), own_addresses(maps, old, memory, host)?);
    let kept: BTreeSet<u32> = tables.values().map(|table| table.slot).collect();
    let replaced = old
        .tables
        .values()
        .filter(|table| !kept.contains(&table.slot))
        .map(|table| Ok((maps.tables.at(table.slot)?.version, table.contents.clone())))
        .collect::<Result<_>>()?;
    Ok((tables, replaced))
}

fn keeps_contents(before: &TableRecord, wanted: &TableUse) -> bool {
    wanted.entries.is_none() || before.contents == wanted.entries
}

fn new_table(
    maps: &Maps,
    memory: &mut Memory,
    before: Option<&TableRecord>,
    wanted: &TableUse,
    taken: &mut BTreeSet<u32>,
) -> Result<TableRecord> {
    let limit = maps.tables.capacity();
    let slot = (0..limit).find(|slot| !taken.contains(slot));
    let slot = slot.ok_or_else(|| Error::MapFull { map: "tables".to_owned(), limit })?;
    taken.insert(slot);
    let entries = wanted.entries.clone().unwrap_or_default();
    let version = if entries.is_empty() { 0 } else { memory.table_version() };
    contents::write(maps, version, &entries)?;
    maps.tables.set(&slot, &abi::Table { version })?;
    // counters belong to the name, not to the contents
    let stats = match before {
        Some(before) => maps.table_stats.get(&before.slot)?,
        None => Vec::new(),
    };
    maps.table_stats.set_each(&slot, &stats)?;
    Ok(TableRecord {
        slot,
        contents: Some(entries),
        zeroed_at: before.map_or_else(wall_clock, |before| before.zeroed_at),
        ..TableRecord::default()
    })
}

/// The host's own addresses, always in slot 0. They are the same whatever the rules say, so they
/// change at once.
pub(crate) fn own_addresses(
    maps: &Maps,
    old: &Record,
    memory: &mut Memory,
    host: &Host,
) -> Result<TableRecord> {
    let addresses = host.interfaces.iter().flat_map(|interface| &interface.addresses);
    let entries: BTreeSet<TableEntry> = addresses
        .flat_map(own)
        .map(|(address, negated)| TableEntry { negated, net: address.into() })
        .collect();
    let entries: Vec<TableEntry> = entries.into_iter().collect();
    let before = old.tables.get(SELF_NAME).cloned();
    if let Some(before) = &before
        && before.contents.as_ref() == Some(&entries)
    {
        own_interfaces(maps, memory, host)?;
        return Ok(before.clone());
    }
    replace(maps, memory, SELF_TABLE, &entries, before.and_then(|before| before.contents))?;
    own_interfaces(maps, memory, host)?;
    Ok(TableRecord {
        slot: SELF_TABLE,
        dynamic: true,
        contents: Some(entries),
        ..TableRecord::default()
    })
}

/// What the host is reached by because of an address: the address itself; the broadcast address, or
/// that of all routers (RFC 4291 2.6.1), which are ours too but not to answer from: negated.
fn own(address: &InterfaceAddress) -> Vec<(IpAddr, bool)> {
    let routers = match address.net {
        IpNet::V6(net) if net.prefix_len() < 127 => Some(IpAddr::V6(net.network())),
        _ => None,
    };
    let others = [address.broadcast, routers].into_iter().flatten();
    let mut own = vec![(address.net.addr(), false)];
    own.extend(others.map(|other| (other, true)));
    own
}

/// Says of each of the host's own addresses which interface has it, for `urpf-failed`.
fn own_interfaces(maps: &Maps, memory: &mut Memory, host: &Host) -> Result<()> {
    let version = maps.tables.at(SELF_TABLE)?.version;
    for interface in &host.interfaces {
        let id = memory.names.interfaces.number(&interface.name)?;
        for address in &interface.addresses {
            for (own, negated) in own(address) {
                let entry = abi::TableEntry { negated: u32::from(negated), interface: id };
                let key = contents::key(version, &own.into());
                maps.table_entries.set(&key, &entry)?;
            }
        }
    }
    Ok(())
}

/// Brings dynamic addresses and the host's own up to date while rules stay.
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
            replace(maps, memory, table.slot, &entries, table.contents.take())?;
            table.contents = Some(entries);
        }
    }
    let own = own_addresses(maps, record, memory, host)?;
    record.tables.insert(SELF_NAME.to_owned(), own);
    Ok(())
}

/// Replaces the contents of one table in one piece; `known` are its contents so far if they are.
pub(crate) fn replace(
    maps: &Maps,
    memory: &mut Memory,
    slot: u32,
    entries: &[TableEntry],
    known: Option<Vec<TableEntry>>,
) -> Result<()> {
    let before = maps.tables.at(slot)?.version;
    let version = if entries.is_empty() { 0 } else { memory.table_version() };
    contents::write(maps, version, entries)?;
    maps.tables.set(&slot, &abi::Table { version })?;
    if before == 0 {
        return Ok(());
    }
    match known {
        Some(known) => contents::remove(maps, before, &known),
        None => contents::remove(maps, before, &contents::read(maps, before)?),
    }
}

fn release_tables(maps: &Maps, prepared: &Prepared) -> Result<()> {
    for (version, entries) in prepared.replaced.iter().filter(|(version, _)| *version != 0) {
        match entries {
            Some(entries) => contents::remove(maps, *version, entries)?,
            None => contents::remove(maps, *version, &contents::read(maps, *version)?)?,
        }
    }
    Ok(())
}
