//! Loading a rule set in one piece: everything new is written beside what is in force, then one
//! word, the generation in `status`, turns the page. Killed before that, a loader leaves the old
//! rule set whole; killed after, the new one. Whoever calls holds the instance's lock.
//!
//! Packets that began before the page was turned may go on reading the old one for a moment. What
//! they see is let go of by [`settle`], which waits for them; until then nothing may be written
//! beside the new one.

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

/// A rule set that has its place beside the one in force, and is to be written there.
pub(crate) struct Placed {
    /// Paths of the rule sets that are new.
    replaced: BTreeSet<String>,
    /// Contents of tables that nobody sees once it is in force.
    outdated: Replaced,
    /// The networks of tables that are spread.
    spread: Spread,
}

/// What is left to do for a rule set that was written, once it is in force.
pub(crate) struct Prepared {
    /// Contents of tables that nobody sees once it is in force.
    outdated: Replaced,
    /// The map of its rules, if packets may read the old ones.
    rules: Option<Rules>,
    /// The main rule set was loaded.
    main: bool,
    /// Rules that stay, and what their states are to know of them from now on.
    staying: Vec<(u32, abi::RuleStates)>,
}

/// Finds slots for a rule set beside the one in force, which `old` describes, and writes its
/// tables. Returns what to remember of it, too.
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

/// Writes the rules of a rule set that has its place. What is in its tables is not looked at any
/// more.
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
    // the kernel clears counters while we compile
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

/// Does one thing in a thread of its own while the other is done in this one.
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

/// Puts a prepared rule set in force.
pub(crate) fn flip(maps: &Maps, old: &Record, new: &Record) {
    maps.shared_status.store(0, offset_of!(abi::Status, generation), new.generation);
    limiter::retire(maps, &old.ruleset, &new.ruleset);
}

/// Lets go of the old rule set, once nobody reads it.
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

/// The slots of tables by name, and whether these are looked into.
fn places(tables: &BTreeMap<TableName, TableRecord>) -> Vec<(&TableName, u32, bool)> {
    tables.iter().map(|(name, table)| (name, table.slot, table.active)).collect()
}

/// The host has changed while rules stay: interfaces that came, went or changed groups, and
/// addresses.
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

/// Whether a name in the rules means something else than when they were compiled: a group that has
/// come, or an interface that is called as a group was.
pub(crate) fn is_outdated(record: &Record, host: &Host) -> bool {
    let now = skipstep_classifier::groups(&record.ruleset, host);
    !now.is_subset(&record.groups)
        || record.groups.iter().any(|name| host.interface(name).is_some())
}

/// The operands of `set skip on`, those in force and those to come, as even and odd generations
/// see them.
fn skip_lists(generation: u32, [old, new]: [&[String]; 2]) -> [&[String]; 2] {
    if generation & 1 == 0 { [new, old] } else { [old, new] }
}

/// The slots of all rules.
fn slots(rule_sets: &BTreeMap<String, RuleSetRecord>) -> SlotSet {
    rule_sets.values().flat_map(RuleSetRecord::all_slots).collect()
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

/// Fills the slots of new rules, which nobody else looks at yet. Returns what is to be known of
/// those that stay.
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

/// `set keepcounters`: a rule that was in its rule set before goes on counting where it was. Of
/// rules that are equal the first one's counters are taken, as FreeBSD does.
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
