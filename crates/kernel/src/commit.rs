//! The commit of a rule set in three steps. The first step prepares the new generation beside the
//! one in force. [`flip`] commits: it stores the new generation in one word of `status`. A loader
//! that is killed before this store leaves the previous rule set whole, and one killed after it the
//! new rule set. The caller holds the instance's lock.
//!
//! Packets that entered before the commit may read the previous rule set for a moment. [`settle`]
//! waits for them and then releases the previous rule set. Until then nothing may be written beside
//! the new rule set.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem::offset_of;
use std::thread;

use skipstep_abi as abi;
use skipstep_abi::limits::FINGERPRINTS;
use skipstep_classifier::spread::Spread;
use skipstep_classifier::{Image, Slots};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Next, OldRule, Rule, Ruleset, TableName};

use crate::error::{Context, Error, Result};
use crate::object::Maps;
use crate::place::{self, Replaced};
use crate::record::{Load, Memory, Record, RuleSetRecord, SlotSet, TableRecord, slot_seen};
use crate::rule_home::{self, RuleHome, Rules};
use crate::standing::{InForce, Meanings};
use crate::{cells, forget, gone, interfaces, limiter, pool, spread};

/// A rule set with slots beside the rule set in force. [`write()`] is the next step.
pub(crate) struct Placed {
    /// Paths of the anchors whose rule sets are new.
    replaced: BTreeSet<String>,
    /// Contents of tables that are unused after the commit.
    outdated: Replaced,
    /// The networks of tables that are expanded in trees.
    spread: Spread,
}

/// A rule set that has been written, with the work that remains after the commit.
pub(crate) struct Prepared {
    /// Contents of tables that are unused after the commit.
    outdated: Replaced,
    /// The map of the new rules; `None` if no packet can read the previous rules.
    rules: Option<Rules>,
    /// True if the main rule set was loaded.
    main: bool,
    /// Slots of reused rules, with the values for their states after the commit.
    staying: Vec<(u32, abi::RuleStates)>,
}

/// Finds slots for a rule set and writes its tables, beside the rule set in force, whose record is
/// `old`. Returns the record of the new rule set, too.
pub(crate) fn place(
    maps: &Maps,
    old: &Record,
    memory: &mut Memory,
    next: Next,
    host: &Host,
) -> Result<(Record, Placed)> {
    let ruleset = &next.ruleset;
    skipstep_classifier::image::check_rules(ruleset)?;
    forget::make_room(maps, &mut memory.names, host, &[&old.ruleset, ruleset])?;
    let generation = old.generation.wrapping_add(1);
    let (mut tables, own_addresses, outdated) = place::tables(maps, old, memory, &next, host)?;
    let rule_sets = place_rules(maps, old, memory, &next)?;
    let gone = gone::rules(maps, old, &slots(&rule_sets));
    gone::fill(maps, memory, &gone, &mut tables)?;
    spread::mark(ruleset, memory.planner, &mut tables);
    let spread = spread::networks(&tables);
    let groups = skipstep_classifier::groups(ruleset, host);
    let Next { ruleset, replaced, .. } = next;
    let record = Record { generation, ruleset, rule_sets, tables, own_addresses, gone, groups };
    Ok((record, Placed { replaced, outdated, spread }))
}

/// Writes the rules of a placed rule set. Does not read the contents of its tables.
pub(crate) fn write(
    maps: &Maps,
    home: &RuleHome,
    old: &Record,
    memory: &mut Memory,
    (new, placed): (&Record, Placed),
    host: &Host,
) -> Result<Prepared> {
    let Record { generation, ruleset, rule_sets, tables, .. } = new;
    let Placed { replaced, outdated, spread } = placed;
    let slots = Slots {
        rules: rule_sets.iter().map(|(path, set)| (path.clone(), set.slots.clone())).collect(),
        old_rules: rule_sets
            .iter()
            .map(|(path, set)| (path.clone(), set.old_slots.clone()))
            .collect(),
        tables: tables
            .keys()
            .filter_map(|name| Some((name.clone(), slot_seen(tables, name)?)))
            .collect(),
        spread,
    };
    let fresh = rule_sets.iter().filter(|(path, _)| replaced.contains(*path));
    let fresh: Vec<u32> = fresh.flat_map(|(_, set)| set.all_slots()).collect();
    let meanings = Meanings::of(new, &slots.spread);
    let standing = memory.in_force.standing(maps, old.generation, (new, &replaced), &meanings);
    let (names, planner) = (&mut memory.names, memory.planner);
    let counters = &maps.rule_stats;
    // the kernel clears counters while this thread compiles
    let (cleared, image) = beside(
        || counters.clear_many(&fresh),
        || skipstep_classifier::compile(ruleset, host, &slots, names, planner, &standing),
    )?;
    cleared?;
    let mut image = image?;
    memory.in_force = InForce::of(*generation, &meanings, std::mem::take(&mut image.planted));
    image.config.hostid = ruleset.options.hostid.unwrap_or(memory.hostid);
    let in_force: SlotSet = old.slots().collect();
    pool::write(maps, &in_force, &image, |slot| !in_force.contains(slot))?;
    let staying = write_rule_states(maps, &replaced, &image);
    if ruleset.options.keep_counters {
        keep_counters(maps, old, new, &replaced)?;
    }
    let rules = home.write(maps, *generation, &image.rules)?;
    cells::write(maps, *generation, &image.cells)?;
    maps.configs.set(&(generation & 1), &image.config)?;
    let first = (generation & 1) * FINGERPRINTS;
    let places: Vec<u32> = (first..).take(image.fingerprints.len()).collect();
    maps.fingerprints.set_many(&places, &image.fingerprints)?;
    limiter::write(maps, *generation, (&old.ruleset, ruleset), &image)?;
    let skip = [&old.ruleset.options.skip[..], &ruleset.options.skip[..]];
    let skip = skip_lists(*generation, skip);
    interfaces::write(maps, home, old.generation, memory, host, skip)?;
    let main = replaced.contains("");
    Ok(Prepared { outdated, rules, main, staying })
}

/// Runs `one` in a new thread while `other` runs in this thread. Returns both results.
pub(crate) fn beside<A: Send, B>(
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B,
) -> Result<(A, B)> {
    thread::scope(|scope| {
        let one = thread::Builder::new().spawn_scoped(scope, one);
        let one = one.context(|| "start a thread".to_owned())?;
        let other = other();
        Ok((one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), other))
    })
}

/// Commits a prepared rule set: stores its generation, which makes the rule set valid.
pub(crate) fn flip(maps: &Maps, old: &Record, new: &Record) {
    maps.shared_status.store(0, offset_of!(abi::Status, generation), new.generation);
    limiter::retire(maps, &old.ruleset, &new.ruleset);
}

/// Releases the previous rule set, after its last reader.
pub(crate) fn settle(maps: &Maps, old: &Record, new: &Record, prepared: &Prepared) -> Result<()> {
    if let Some(rules) = &prepared.rules {
        rule_home::wait_for_readers(maps, new.generation, rules)?;
    }
    limiter::finish(maps, &old.ruleset, &new.ruleset, prepared.main);
    let in_force: SlotSet = new.slots().collect();
    for slot in old.slots().filter(|slot| !in_force.contains(*slot)) {
        let gone = -1i32;
        maps.shared_rule_states.store(slot, offset_of!(abi::RuleStates, number), gone as u32);
    }
    gone::follow_tables(maps, new);
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
    if places(&old.tables) != places(&new.tables) {
        pool::follow_tables(maps, new)?;
    }
    pool::release(maps, &old.tables, &new.tables)?;
    place::release(maps, &prepared.outdated, &new.tables)?;
    place::count_entries(maps, new)
}

/// Returns the slots of tables by name, with true for each table that can be looked up.
fn places(tables: &BTreeMap<TableName, TableRecord>) -> Vec<(&TableName, u32, bool)> {
    tables.iter().map(|(name, table)| (name, table.slot, table.active)).collect()
}

/// Applies a change of the host to the rules in force: interfaces that appeared, vanished or
/// changed groups, and addresses.
pub(crate) fn follow_host(
    maps: &Maps,
    home: &RuleHome,
    memory: &mut Memory,
    record: &mut Record,
    host: &Host,
) -> Result<()> {
    let ruleset = &record.ruleset;
    forget::make_room(maps, &mut memory.names, host, &[ruleset])?;
    let skip = &ruleset.options.skip[..];
    interfaces::write(maps, home, record.generation, memory, host, [skip, skip])?;
    place::follow_addresses(maps, memory, record, host)
}

/// True if a name in the rules has changed its meaning since they were compiled: a group has
/// appeared, or an interface has the name that a group had.
pub(crate) fn is_outdated(record: &Record, host: &Host) -> bool {
    let now = skipstep_classifier::groups(&record.ruleset, host);
    !now.is_subset(&record.groups)
        || record.groups.iter().any(|name| host.interface(name).is_some())
}

/// Returns the operands of `set skip on` for even and for odd generations, from those in force and
/// those of the next generation.
fn skip_lists(generation: u32, [old, new]: [&[String]; 2]) -> [&[String]; 2] {
    if generation & 1 == 0 { [new, old] } else { [old, new] }
}

/// Returns the slots of all rules.
fn slots(rule_sets: &BTreeMap<String, RuleSetRecord>) -> SlotSet {
    rule_sets.values().flat_map(RuleSetRecord::all_slots).collect()
}

/// Returns the records of the next rule sets, with slots for those that are new.
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

/// Returns `wanted` free slots of rules: slots that are neither in force nor referenced by a state
/// or a source node.
fn free_rule_slots(
    maps: &Maps,
    old: &Record,
    memory: &mut Memory,
    wanted: usize,
) -> Result<Vec<u32>> {
    let in_force: SlotSet = old.slots().collect();
    let has = |slot, field| maps.shared_rule_states.load(slot, field) != 0;
    let has_states = |slot: u32| {
        has(slot, offset_of!(abi::RuleStates, current))
            || has(slot, offset_of!(abi::RuleStates, source_nodes))
    };
    let first = abi::limits::IDLE_SLOT + 1;
    let capacity = maps.rule_states.capacity();
    let used = memory.slots_used.max(first);
    let slots: Vec<u32> = (first..capacity)
        .filter(|slot| *slot >= used || (!in_force.contains(*slot) && !has_states(*slot)))
        .take(wanted)
        .collect();
    if slots.len() < wanted {
        return Err(Error::RuleSlots { wanted, free: slots.len(), limit: capacity });
    }
    memory.slots_used = slots.last().map_or(used, |last| used.max(last + 1));
    Ok(slots)
}

/// Fills the slots of new rules, which no packet reads yet. Returns the slots of reused rules, with
/// the values for their states.
fn write_rule_states(
    maps: &Maps,
    replaced: &BTreeSet<String>,
    image: &Image,
) -> Vec<(u32, abi::RuleStates)> {
    let mut staying = Vec::new();
    for (path, rules) in &image.states {
        if replaced.contains(path) {
            for (slot, states) in rules {
                maps.shared_rule_states.set_element(*slot, states);
            }
        } else {
            staying.extend(rules);
        }
    }
    staying
}

/// Implements `set keepcounters`: a rule that was in its rule set before keeps its counters. Among
/// equal rules the first rule's counters count, as in FreeBSD.
fn keep_counters(
    maps: &Maps,
    old: &Record,
    new: &Record,
    replaced: &BTreeSet<String>,
) -> Result<()> {
    for path in replaced {
        let (Some(before), Some(now)) = (old.rule_sets.get(path), new.rule_sets.get(path)) else {
            continue;
        };
        let mut known = HashMap::new();
        for (rule, slot) in meanings(&old.ruleset, path, before) {
            known.entry(rule).or_insert(slot);
        }
        for (rule, slot) in meanings(&new.ruleset, path, now) {
            if let Some(before) = known.get(&rule) {
                maps.rule_stats.set_each(&slot, &maps.rule_stats.get(before)?)?;
            }
        }
    }
    Ok(())
}

/// Returns the meaning of each rule of an anchor, without its position, as a comparable text, with
/// the rule's slot.
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
