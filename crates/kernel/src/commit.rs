//! Loading a rule set in one piece: everything new is written beside what is in force, then one
//! word, the generation in `status`, turns the page. Killed before that, a loader leaves the old
//! rule set whole; killed after, the new one. Whoever calls holds the instance's lock.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd};

use skipstep_abi as abi;
use skipstep_abi::limits::FINGERPRINTS;
use skipstep_abi::rule::source_flags;
use skipstep_classifier::{Image, Slots};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{OldRule, Rule, Ruleset};

use crate::error::{Error, Result};
use crate::next::Next;
use crate::object::Maps;
use crate::place::{self, Replaced};
use crate::record::{Load, Memory, Record, RuleSetRecord, slot_seen};
use crate::{forget, limiter, map, pool};

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
    /// Contents of tables that nobody sees once it is in force.
    replaced: Replaced,
    /// Rules in a map of their own.
    rules: Option<map::Map<u32, abi::Rule>>,
    /// The main rule set was loaded.
    main: bool,
    /// Rules that stay, and what their states are to know of them from now on.
    staying: Vec<(u32, abi::RuleStates)>,
}

/// Writes a rule set beside the one in force, which `old` describes.
pub(crate) fn prepare(
    maps: &Maps,
    home: &RuleHome,
    old: &Record,
    memory: &mut Memory,
    next: &Next,
    host: &Host,
) -> Result<Prepared> {
    let ruleset = &next.ruleset;
    skipstep_classifier::image::check_rules(ruleset)?;
    forget::make_room(maps, &mut memory.names, host, &[&old.ruleset, ruleset])?;
    let generation = old.generation.wrapping_add(1);
    let (tables, own_addresses, replaced) = place::tables(maps, old, memory, next, host)?;
    let rule_sets = place_rules(maps, old, memory, next)?;
    let slots = Slots {
        rules: rule_sets.iter().map(|(path, set)| (path.clone(), set.slots.clone())).collect(),
        old_rules: rule_sets
            .iter()
            .map(|(path, set)| (path.clone(), set.old_slots.clone()))
            .collect(),
        tables: tables
            .keys()
            .filter_map(|name| Some((name.clone(), slot_seen(&tables, name)?)))
            .collect(),
    };
    let mut image = skipstep_classifier::compile(ruleset, host, &slots, &mut memory.names)?;
    image.config.hostid = ruleset.options.hostid.unwrap_or(memory.hostid);
    let in_force: BTreeSet<u32> = old.slots().collect();
    pool::write(maps, &in_force, &image, |slot| !in_force.contains(&slot))?;
    let staying = write_rule_slots(maps, next, &image)?;
    if next.ruleset.options.keep_counters {
        keep_counters(maps, old, next, &rule_sets)?;
    }
    let rules = write_rules(maps, home, generation, &image)?;
    maps.configs.set(&(generation & 1), &image.config)?;
    let first = (generation & 1) * FINGERPRINTS;
    let places: Vec<u32> = (first..).take(image.fingerprints.len()).collect();
    maps.fingerprints.set_many(&places, &image.fingerprints)?;
    limiter::write(maps, generation, (&old.ruleset, ruleset), &image)?;
    let skip = [&old.ruleset.options.skip[..], &ruleset.options.skip[..]];
    write_interfaces(maps, memory, host, skip_lists(generation, skip))?;
    let ruleset = ruleset.clone();
    let record = Record { generation, ruleset, rule_sets, tables, own_addresses };
    Ok(Prepared { record, replaced, rules, main: next.replaces(""), staying })
}

/// Puts a prepared rule set in force and lets go of the old one.
pub(crate) fn flip(maps: &Maps, old: &Record, prepared: &Prepared) -> Result<()> {
    let generation = prepared.record.generation;
    maps.shared_status.store(0, offset_of!(abi::Status, generation), generation);
    let (before, after) = (&old.ruleset, &prepared.record.ruleset);
    limiter::retire(maps, before, after);
    if let Some(rules) = &prepared.rules {
        // the kernel waits for its readers whenever a map of maps is changed, even into what it
        // was: every packet that began under the old generation is through when this returns
        put(maps, generation, rules)?;
    }
    limiter::finish(maps, before, after, prepared.main);
    let in_force: BTreeSet<u32> = prepared.record.slots().collect();
    for slot in old.slots().filter(|slot| !in_force.contains(slot)) {
        let gone = -1i32;
        maps.shared_rule_states.store(slot, offset_of!(abi::RuleStates, number), gone as u32);
        // its table may be another one's soon: sources are refused, but not put there any more
        let flags = offset_of!(abi::RuleStates, source_flags);
        let kept = maps.shared_rule_states.load(slot, flags) & !source_flags::OVERLOAD;
        maps.shared_rule_states.store(slot, flags, kept);
    }
    for (slot, states) in &prepared.staying {
        let overload = offset_of!(abi::RuleStates, overload_table);
        maps.shared_rule_states.store(*slot, overload, states.overload_table);
        let tables = offset_of!(abi::RuleStates, tables);
        for (table, place) in states.tables.iter().zip(0..) {
            let offset = tables + place * size_of::<abi::RuleTable>();
            let offset = offset + offset_of!(abi::RuleTable, slot);
            maps.shared_rule_states.store(*slot, offset, table.slot);
        }
    }
    let tables = prepared.record.tables.values().map(|table| table.slot);
    pool::release(maps, &tables.collect())?;
    place::release(maps, &prepared.replaced, &prepared.record.tables)?;
    place::count_entries(maps, &prepared.record)
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
    for (name, id) in memory.names.interfaces.iter() {
        let index = host.interface(name).map_or(0, |interface| interface.index);
        maps.interface_indexes.set(&id, &index)?;
    }
    Ok(())
}

/// The operands of `set skip on`, those in force and those to come, as even and odd generations
/// see them.
fn skip_lists(generation: u32, [old, new]: [&[String]; 2]) -> [&[String]; 2] {
    if generation & 1 == 0 { [new, old] } else { [old, new] }
}

/// The rule sets to be, with slots for those that are new.
fn place_rules(
    maps: &Maps,
    old: &Record,
    memory: &mut Memory,
    next: &Next,
) -> Result<BTreeMap<String, RuleSetRecord>> {
    let paths = next.ruleset.anchors.keys().map(String::as_str);
    let (new, staying): (Vec<&str>, Vec<&str>) =
        std::iter::once("").chain(paths).partition(|path| next.replaces(path));
    let mut rule_sets: BTreeMap<String, RuleSetRecord> = staying
        .into_iter()
        .filter_map(|path| Some((path.to_owned(), old.rule_sets.get(path)?.clone())))
        .collect();
    if let Some(path) = &next.untranslated
        && let Some(set) = rule_sets.get_mut(path)
    {
        let mut kinds = old.ruleset.old_rules_of(path).iter().map(|old| old.kind);
        set.old_slots.retain(|_| kinds.next().is_some_and(|kind| !kind.translates()));
    }
    let lengths =
        |path: &str| (next.ruleset.rules_of(path).len(), next.ruleset.old_rules_of(path).len());
    let wanted = new.iter().map(|path| lengths(path)).map(|(rules, old)| rules + old).sum();
    let mut free = free_rule_slots(maps, old, memory, wanted)?.into_iter();
    for path in new {
        let (rules, old) = lengths(path);
        let slots = free.by_ref().take(rules).collect();
        let old_slots = free.by_ref().take(old).collect();
        rule_sets.insert(path.to_owned(), RuleSetRecord { slots, old_slots, load: Load::now() });
    }
    Ok(rule_sets)
}

/// Slots of rules that are neither in force nor still named by a state or a tracked source.
fn free_rule_slots(
    maps: &Maps,
    old: &Record,
    memory: &mut Memory,
    wanted: usize,
) -> Result<Vec<u32>> {
    let in_force: BTreeSet<u32> = old.slots().collect();
    let has = |slot, field| maps.shared_rule_states.load(slot, field) != 0;
    let has_states = |slot: u32| {
        has(slot, offset_of!(abi::RuleStates, current))
            || has(slot, offset_of!(abi::RuleStates, source_nodes))
    };
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

/// Fills the slots of new rules. Returns what is to be known of those that stay.
fn write_rule_slots(
    maps: &Maps,
    next: &Next,
    image: &Image,
) -> Result<Vec<(u32, abi::RuleStates)>> {
    let mut staying = Vec::new();
    for (path, rules) in &image.states {
        if next.replaces(path) {
            let (slots, states): (Vec<u32>, Vec<abi::RuleStates>) = rules.iter().copied().unzip();
            maps.rule_stats.clear_many(&slots)?;
            maps.rule_states.set_many(&slots, &states)?;
        } else {
            staying.extend(rules);
        }
    }
    Ok(staying)
}

/// `set keepcounters`: a rule that was in its rule set before goes on counting where it was. Of rules
/// that are equal the first one's counters are taken, as FreeBSD does.
fn keep_counters(
    maps: &Maps,
    old: &Record,
    next: &Next,
    rule_sets: &BTreeMap<String, RuleSetRecord>,
) -> Result<()> {
    for path in &next.replaced {
        let (Some(before), Some(now)) = (old.rule_sets.get(path), rule_sets.get(path)) else {
            continue;
        };
        let mut known = HashMap::new();
        for (rule, slot) in meanings(&old.ruleset, path, before) {
            known.entry(rule).or_insert(slot);
        }
        for (rule, slot) in meanings(&next.ruleset, path, now) {
            if let Some(before) = known.get(&rule) {
                maps.rule_stats.set_each(&slot, &maps.rule_stats.get(before)?)?;
            }
        }
    }
    Ok(())
}

/// What each rule of an anchor does, wherever it stands, with its slot.
fn meanings(ruleset: &Ruleset, path: &str, set: &RuleSetRecord) -> Vec<(String, u32)> {
    let nowhere = |rule: &Rule| Rule { number: 0, line: 0, file: None, ..rule.clone() };
    let filter = ruleset.rules_of(path).iter().zip(&set.slots);
    let filter = filter.map(|(rule, slot)| (format!("{:?}", nowhere(rule)), *slot));
    let old = ruleset.old_rules_of(path).iter().zip(&set.old_slots);
    let old = old.map(|(old, slot)| {
        let old = OldRule { rule: nowhere(&old.rule), ..old.clone() };
        (format!("{old:?}"), *slot)
    });
    filter.chain(old).collect()
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
