//! The commit of a rule set in three steps. The first step prepares the new generation beside the
//! one in force. [`switch_generation`] commits: it stores the new generation in one word of
//! `status`. A loader that is killed before this store leaves the previous rule set whole, and one
//! killed after it the new rule set. The caller holds the instance's lock.
//!
//! Packets that entered before the commit may read the previous rule set for a moment. [`settle`]
//! waits for them and then releases the previous rule set. Until then nothing may be written beside
//! the new rule set.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem::offset_of;
use std::thread;

use skipstep_abi as abi;
use skipstep_abi::limits::{COPIES, FINGERPRINTS, copy_of};
use skipstep_classifier::table_expansion::TableExpansions;
use skipstep_classifier::{Image, SkipLists, Slots};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{LegacyRule, Next, Rule, Ruleset, TableName};

use crate::error::{Context, Error, Result};
use crate::kept_rules::{KeptRules, NO_NUMBER};
use crate::object::Maps;
use crate::record::{
    InForce, Load, Memory, Record, RuleSetRecord, SlotSet, TableRecord, visible_slot,
};
use crate::rule_home::{self, RuleHome, Rules};
use crate::table_slots::{self, ReplacedContents};
use crate::unchanged::Meanings;
use crate::{forget, interfaces, limiter, nodes, orphans, pool, table_expansion, trial};

/// The rule sets in the maps that a load must not change.
#[derive(Clone, Copy)]
pub struct Earlier<'a> {
    /// The rule set in force.
    pub in_force: &'a Record,
    /// The rule set before a load on trial, if the rules in force are on trial.
    pub kept: Option<&'a Record>,
}

impl<'a> Earlier<'a> {
    /// Returns the rule sets that a load without a trial must not change.
    pub fn in_force(in_force: &'a Record) -> Self {
        Earlier { in_force, kept: None }
    }

    /// Returns the records of both rule sets.
    pub(crate) fn records(self) -> impl Iterator<Item = &'a Record> {
        std::iter::once(self.in_force).chain(self.kept)
    }

    /// Returns the slots of the rules of both rule sets.
    pub(crate) fn slots(self) -> SlotSet {
        self.records().flat_map(Record::slots).collect()
    }

    /// Returns the number of the next generation: a higher number, whose copy has no readers.
    fn next_generation(self) -> u32 {
        let read: Vec<u32> = self.records().map(|record| copy_of(record.generation)).collect();
        let copy = (0..COPIES).find(|copy| !read.contains(copy)).unwrap_or_default();
        generation_in(copy, self.in_force.generation)
    }

    /// Returns the operands of `set skip on` for each copy, when `new` stands beside these rule
    /// sets.
    fn skip_lists<'b>(self, new: &'b Record) -> SkipLists<'b>
    where
        'a: 'b,
    {
        let mut lists = SkipLists::default();
        for record in self.records().chain([new]) {
            lists[copy_of(record.generation) as usize] = &record.ruleset.options.skip;
        }
        lists
    }
}

/// Returns the lowest number of a generation in `copy` that is above `generation`.
pub(crate) fn generation_in(copy: u32, generation: u32) -> u32 {
    let same_row = generation - copy_of(generation) + copy;
    if same_row > generation { same_row } else { same_row.wrapping_add(COPIES) }
}

/// A rule set with slots beside the rule set in force. [`write()`] is the next step.
pub struct Placed {
    /// Paths of the anchors whose rule sets are new.
    replaced: BTreeSet<String>,
    /// Contents of tables that are unused after the commit.
    outdated: ReplacedContents,
    /// The networks of tables that are expanded in trees.
    expansions: TableExpansions,
}

/// A rule set that has been written, with the work that remains after the commit.
pub struct Prepared {
    /// Contents of tables that are unused after the commit.
    outdated: ReplacedContents,
    /// The map of the new rules; `None` if no packet can read the previous rules.
    rules: Option<Rules>,
    /// True if the main rule set was loaded.
    main: bool,
    /// Slots of reused rules, with the values for their states after the commit.
    staying: Vec<(u32, abi::RuleStates)>,
}

/// Finds slots for a rule set and writes its tables, beside the `earlier` rule sets. Returns the
/// record of the new rule set, too.
///
/// # Errors
/// Fails if the rules cannot be compiled, if slots run out, or if a map cannot be read or written.
pub fn assign_slots(
    maps: &Maps,
    earlier: Earlier,
    memory: &mut Memory,
    next: Next,
    host: &Host,
) -> Result<(Record, Placed)> {
    let ruleset = &next.ruleset;
    skipstep_classifier::image::check_rules(ruleset)?;
    let named: Vec<&Ruleset> =
        earlier.records().map(|record| &record.ruleset).chain([ruleset]).collect();
    forget::make_room(maps, &mut memory.names, host, &named)?;
    let generation = earlier.next_generation();
    let (mut tables, own_addresses, outdated) =
        table_slots::tables(maps, earlier, memory, &next, host)?;
    let rule_sets = assign_rule_slots(maps, earlier, memory, &next)?;
    let orphans = orphans::rules(maps, earlier.in_force, &all_slots(&rule_sets).collect());
    orphans::fill(maps, memory, &orphans, &mut tables)?;
    table_expansion::mark(ruleset, memory.planner, &mut tables);
    let expansions = table_expansion::networks(&tables);
    let groups = skipstep_classifier::groups(ruleset, host);
    let Next { ruleset, replaced, .. } = next;
    let mut record =
        Record { generation, ruleset, rule_sets, tables, own_addresses, orphans, groups };
    record.describe_tables();
    Ok((record, Placed { replaced, outdated, expansions }))
}

/// Writes the rules of a placed rule set. Does not read the contents of its tables.
///
/// # Errors
/// Fails if the rules cannot be compiled, or if a map cannot be read or written.
pub fn write(
    maps: &Maps,
    home: &RuleHome,
    earlier: Earlier,
    memory: &mut Memory,
    (new, placed): (&Record, Placed),
    host: &Host,
) -> Result<Prepared> {
    let previous = earlier.in_force;
    let Record { generation, ruleset, rule_sets, tables, .. } = new;
    let Placed { replaced, outdated, expansions } = placed;
    let slots = Slots {
        rules: rule_sets.iter().map(|(path, set)| (path.clone(), set.slots.clone())).collect(),
        legacy_rules: rule_sets
            .iter()
            .map(|(path, set)| (path.clone(), set.legacy_slots.clone()))
            .collect(),
        tables: tables
            .keys()
            .filter_map(|name| Some((name.clone(), visible_slot(tables, name)?)))
            .collect(),
        expansions,
    };
    let fresh = rule_sets.iter().filter(|(path, _)| replaced.contains(*path));
    let fresh: Vec<u32> = fresh.flat_map(|(_, set)| set.all_slots()).collect();
    let meanings = Meanings::for_record(new, &slots.expansions);
    let unchanged =
        memory.in_force.unchanged(maps, previous.generation, (new, &replaced), &meanings);
    let (names, planner) = (&mut memory.names, memory.planner);
    let counters = &maps.rule_stats;
    // the kernel clears counters while this thread compiles
    let (cleared, image) = beside(
        || counters.clear_many(&fresh),
        || skipstep_classifier::compile(ruleset, host, &slots, names, planner, &unchanged),
    )?;
    cleared?;
    let mut image = image?;
    memory.in_force =
        InForce::new(*generation, &meanings, std::mem::take(&mut image.compiled_sets));
    image.config.hostid = ruleset.options.hostid.unwrap_or(memory.hostid);
    pool::write(maps, &earlier.slots(), &image)?;
    let staying = write_rule_states(maps, &replaced, &image);
    if let Some(kept) = earlier.kept {
        trial::mark_rules(maps, kept, new, replaced.iter());
    }
    if ruleset.options.keep_counters {
        keep_counters(maps, previous, new, &replaced)?;
    }
    let rules = home.write(maps, *generation, &image.rules)?;
    nodes::write(maps, *generation, &image.nodes)?;
    maps.configs.set(&copy_of(*generation), &image.config)?;
    let first = copy_of(*generation) * FINGERPRINTS;
    let places: Vec<u32> = (first..).take(image.fingerprints.len()).collect();
    maps.fingerprints.set_many(&places, &image.fingerprints)?;
    limiter::write(maps, earlier, new, &image)?;
    interfaces::write(maps, home, previous.generation, memory, host, earlier.skip_lists(new))?;
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

/// Commits a prepared rule set: stores its generation, which makes the rule set valid. Returns
/// false, and changes nothing, if the previous rule set was on trial and the trial has just failed.
#[must_use]
pub fn switch_generation(maps: &Maps, earlier: Earlier, new: &Record) -> bool {
    let generation = offset_of!(abi::Status, generation);
    let (before, now) = (earlier.in_force.generation, new.generation);
    let is_switched = maps.shared_status.replace(0, generation, before, now);
    if is_switched {
        limiter::retire(maps, earlier, new);
    }
    is_switched
}

/// Releases the previous rule set, after its last reader. As long as the new rule set is on trial,
/// all that the rule sets before it use stays.
///
/// # Errors
/// Fails if a map cannot be read or written.
pub fn settle(maps: &Maps, earlier: Earlier, new: &Record, prepared: &Prepared) -> Result<()> {
    let previous = earlier.in_force;
    if let Some(rules) = &prepared.rules {
        rule_home::wait_for_readers(maps, new.generation, rules)?;
    }
    limiter::finish(maps, earlier, new, prepared.main);
    let kept = earlier.kept.map(|kept| KeptRules::new(maps, kept, new));
    let kept = kept.as_ref();
    forget_numbers(maps, previous, new, kept);
    orphans::follow_tables(maps, new, kept);
    for (slot, states) in &prepared.staying {
        for (place, table) in states.tables.iter().enumerate() {
            KeptRules::set_table(kept, maps, *slot, place, table.slot);
        }
        KeptRules::set_overload(kept, maps, *slot, states.overload_table);
    }
    if kept.is_some() || places(&previous.tables) != places(&new.tables) {
        pool::follow_tables(maps, new, kept)?;
    }
    if let Some(kept) = kept {
        kept.begin(maps, new);
        // the end of the trial releases what neither rule set uses
        return table_slots::count_entries(maps, new);
    }
    pool::release(maps, &previous.tables, &new.tables)?;
    table_slots::release(maps, &prepared.outdated, &new.tables)?;
    table_slots::count_entries(maps, new)
}

/// Takes the numbers from the rules that only the previous rule set has. The rules that a trial
/// keeps have no number in the rule set on trial only.
pub(crate) fn forget_numbers(
    maps: &Maps,
    previous: &Record,
    new: &Record,
    kept: Option<&KeptRules>,
) {
    let in_force: SlotSet = new.slots().collect();
    let is_gone = |slot: &u32| !in_force.contains(*slot) && !KeptRules::has(kept, *slot);
    for slot in previous.slots().filter(is_gone) {
        maps.shared_rule_states.store(slot, offset_of!(abi::RuleStates, number), NO_NUMBER);
    }
}

/// Returns the slots of tables by name, with true for each table that can be looked up.
fn places(tables: &BTreeMap<TableName, TableRecord>) -> Vec<(&TableName, u32, bool)> {
    tables.iter().map(|(name, table)| (name, table.slot, table.active)).collect()
}

/// Applies a change of the host to the rules in force: interfaces that appeared, vanished or
/// changed groups, and addresses.
///
/// # Errors
/// Fails if a map cannot be read or written.
pub fn follow_host(
    maps: &Maps,
    home: &RuleHome,
    memory: &mut Memory,
    record: &mut Record,
    kept: Option<&Record>,
    host: &Host,
) -> Result<()> {
    let named: Vec<&Ruleset> =
        std::iter::once(&*record).chain(kept).map(|record| &record.ruleset).collect();
    forget::make_room(maps, &mut memory.names, host, &named)?;
    let skip = Earlier { in_force: record, kept }.skip_lists(record);
    interfaces::write(maps, home, record.generation, memory, host, skip)?;
    if let Some(kept) = kept {
        table_slots::follow_addresses_of_kept(maps, memory, record, kept, host)?;
    }
    table_slots::follow_addresses(maps, memory, record, host)
}

/// True if a name in the rules has changed its meaning since they were compiled: a group has
/// appeared, or an interface has the name that a group had.
pub fn is_outdated(record: &Record, host: &Host) -> bool {
    let now = skipstep_classifier::groups(&record.ruleset, host);
    !now.is_subset(&record.groups)
        || record.groups.iter().any(|name| host.interface(name).is_some())
}

/// Returns the slots of all rules.
fn all_slots(rule_sets: &BTreeMap<String, RuleSetRecord>) -> impl Iterator<Item = u32> {
    rule_sets.values().flat_map(RuleSetRecord::all_slots)
}

/// Returns the records of the next rule sets, with slots for those that are new.
fn assign_rule_slots(
    maps: &Maps,
    earlier: Earlier,
    memory: &mut Memory,
    next: &Next,
) -> Result<BTreeMap<String, RuleSetRecord>> {
    let previous = earlier.in_force;
    let paths = next.ruleset.anchors.keys().map(String::as_str);
    let (new, staying): (Vec<&str>, Vec<&str>) =
        std::iter::once("").chain(paths).partition(|path| next.replaces(path));
    let mut rule_sets: BTreeMap<String, RuleSetRecord> = staying
        .into_iter()
        .filter_map(|path| Some((path.to_owned(), previous.rule_sets.get(path)?.clone())))
        .collect();
    if let Some(path) = &next.untranslated
        && let Some(set) = rule_sets.get_mut(path)
    {
        let mut kinds = previous.ruleset.legacy_rules_of(path).iter().map(|legacy| legacy.kind);
        set.legacy_slots.retain(|_| kinds.next().is_some_and(|kind| !kind.translates()));
    }
    let lengths =
        |path: &str| (next.ruleset.rules_of(path).len(), next.ruleset.legacy_rules_of(path).len());
    let wanted = new.iter().map(|path| lengths(path)).map(|(rules, legacy)| rules + legacy).sum();
    let mut free = free_rule_slots(maps, earlier, memory, wanted)?.into_iter();
    for path in new {
        let (rules, legacy) = lengths(path);
        let slots = free.by_ref().take(rules).collect();
        let legacy_slots = free.by_ref().take(legacy).collect();
        rule_sets.insert(path.to_owned(), RuleSetRecord { slots, legacy_slots, load: Load::now() });
    }
    Ok(rule_sets)
}

/// Returns `wanted` free slots of rules: slots that neither the earlier rule sets nor a state or a
/// source node uses.
fn free_rule_slots(
    maps: &Maps,
    earlier: Earlier,
    memory: &mut Memory,
    wanted: usize,
) -> Result<Vec<u32>> {
    let in_force = earlier.slots();
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
    previous: &Record,
    new: &Record,
    replaced: &BTreeSet<String>,
) -> Result<()> {
    for path in replaced {
        let (Some(before), Some(now)) = (previous.rule_sets.get(path), new.rule_sets.get(path))
        else {
            continue;
        };
        let mut known = HashMap::new();
        for (rule, slot) in meanings(&previous.ruleset, path, before) {
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
pub(crate) fn meanings(ruleset: &Ruleset, path: &str, set: &RuleSetRecord) -> Vec<(String, u32)> {
    let nowhere = |rule: &Rule| Rule { number: 0, line: 0, file: None, ..rule.clone() };
    let filter = ruleset.rules_of(path).iter().zip(&set.slots);
    let filter = filter.map(|(rule, slot)| (format!("{:?}", nowhere(rule)), *slot));
    let legacy = ruleset.legacy_rules_of(path).iter().zip(&set.legacy_slots);
    let legacy = legacy.map(|(legacy, slot)| {
        let legacy = LegacyRule { rule: nowhere(&legacy.rule), ..legacy.clone() };
        (format!("{legacy:?}"), *slot)
    });
    filter.chain(legacy).collect()
}
