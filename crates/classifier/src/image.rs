//! Compilation of a whole rule set to an image.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use skipstep_abi as abi;
use skipstep_abi::config::{fast_forward, old_list, reassemble, syncookies, unattached};
use skipstep_abi::limits::{IDLE_SLOT, MAX_RULES, MAX_STEPS};
use skipstep_abi::rule::rule_flags;
use skipstep_abi::verdict::evaluator;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::skip::skip_steps;
use skipstep_ruleset::{
    AnchorCall, Evaluator, FastForward, LegacyList, Options, Rule, Ruleset, Syncookies, TableName,
    Unattached,
};

use crate::rule::Compiler;
use crate::slots::Slots;
use crate::superblock::AllTrees;
use crate::unchanged::{CompiledSet, Unchanged};
use crate::{Error, Names, Planner};

/// Lists evaluated for a packet: three of legacy rules, then the filter rules.
const LISTS_OF_A_PACKET: u32 = 4;

/// A compiled rule set, ready to be written to the kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    /// Path of each anchor with the indexes of its filter rules; the main rule set is first.
    pub rule_sets: Vec<(String, Range<usize>)>,
    /// Rules with their skip steps: the main rule set, the anchors, the lists of legacy rules in
    /// the same order, and the default rule.
    pub rules: Vec<abi::Rule>,
    /// Slot and state settings of each rule, by anchor path. Unchanged rule sets have no entry,
    /// because the kernel has their settings.
    pub states: BTreeMap<String, Vec<(u32, abi::RuleStates)>>,
    /// Pools of the rules, except those of unchanged rule sets.
    pub pools: Vec<(abi::PoolKey, abi::Pool)>,
    /// Members of the pools that are lists.
    pub pool_members: Vec<(abi::PoolMemberKey, abi::PoolMember)>,
    /// Limiters, each with its index in the map.
    pub limiters: Vec<(u32, abi::Limiter)>,
    /// Fingerprints of operating systems, in the order of lookup.
    pub fingerprints: Vec<abi::Fingerprint>,
    /// Nodes of all trees.
    pub nodes: Vec<abi::Node>,
    /// Position of each rule set and of its trees, by anchor path.
    pub compiled_sets: BTreeMap<String, CompiledSet>,
    /// Most nodes that one search reads.
    pub longest_search: u32,
    /// Settings of the data plane.
    pub config: abi::Config,
}

/// Checks the numbers of rules and anchors. Called before slots are assigned.
///
/// # Errors
/// Fails if the rule set has more rules than the data plane has room for, or more anchors than its
/// limit.
pub fn check_rules(ruleset: &Ruleset) -> Result<(), Error> {
    let rules = ruleset.every_rule().count();
    if rules > MAX_RULES as usize {
        return Err(Error::Rules { rules, limit: MAX_RULES });
    }
    let (anchors, limit) = (count_anchors(ruleset), ruleset.options.limits.anchors);
    if anchors > limit as usize {
        return Err(Error::Anchors { anchors, limit });
    }
    Ok(())
}

/// Returns the number of anchors: with contents, called by rules, and their parents.
fn count_anchors(ruleset: &Ruleset) -> usize {
    let called = ruleset.every_rule().filter_map(|(_, rule)| rule.anchor.as_ref());
    let named = called.map(|call| &call.path).chain(ruleset.anchors.keys());
    let mut paths = BTreeSet::new();
    for path in named {
        let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
        paths.extend(ends.map(|end| &path[..end]).filter(|path| !path.is_empty()));
    }
    paths.len()
}

/// Compiles a rule set to an image. `slots` has a slot for every rule and every table. Rule sets in
/// `unchanged` are copied.
///
/// # Errors
/// Fails if the rule set exceeds a limit of the data plane, or if a rule uses a table without a
/// slot. Also fails if a name is too long or cannot get a number.
///
/// ```
/// use skipstep_classifier::{Names, Planner, Slots, Unchanged, compile};
/// use skipstep_ruleset::interface::{Host, Interface};
///
/// let em0 = Interface { name: "em0".into(), index: 1, ..Interface::default() };
/// let host = Host { interfaces: vec![em0], routes: vec![] };
/// let rules = "block\npass in on em0 proto tcp to port 22";
/// let ruleset =
///     skipstep_pfconf::load(rules, &skipstep_pfconf::Context::new(&host)).unwrap().ruleset;
///
/// // the loader assigns a slot to each rule of the main rule set
/// let slots = Slots { rules: [(String::new(), vec![1, 2])].into(), ..Slots::default() };
/// let (mut names, unchanged) = (Names::default(), Unchanged::default());
/// let image =
///     compile(&ruleset, &host, &slots, &mut names, Planner::default(), &unchanged).unwrap();
/// assert_eq!(image.rules.len(), 3); // the last one is the default rule
/// assert_eq!(names.interfaces.get("em0"), Some(1));
/// ```
pub fn compile(
    ruleset: &Ruleset,
    host: &Host,
    slots: &Slots,
    names: &mut Names,
    planner: Planner,
    unchanged: &Unchanged,
) -> Result<Image, Error> {
    check_rules(ruleset)?;
    let groups = crate::interfaces::groups(ruleset, host);
    let is_group = |name: &str| groups.contains(name);
    for queue in &ruleset.queues {
        names.queues.number(&queue.name).map_err(|error| error.on_line(queue.line))?;
    }
    let mut image = Image {
        rule_sets: Vec::new(),
        rules: Vec::new(),
        states: BTreeMap::new(),
        pools: Vec::new(),
        pool_members: Vec::new(),
        limiters: Vec::new(),
        fingerprints: Vec::new(),
        config: abi::Config::default(),
        nodes: Vec::new(),
        compiled_sets: BTreeMap::new(),
        longest_search: 0,
    };
    let mut lists =
        Lists { ruleset, slots, names, is_group: &is_group, unchanged, image: &mut image };
    lists.add(None)?;
    let mut old = [abi::RuleRange::default(); old_list::LISTS];
    for list in LegacyList::ALL {
        old[list_index(list)] = lists.add(Some(list))?;
    }
    let default_rule = image.rules.len() as u32;
    image.rules.push(default_of(default_rule));
    let config = config(ruleset, &image, host, names)?;
    let limiters = ruleset.limiters.iter().map(|each| crate::limiter::limiter(each, slots));
    image.limiters = limiters.collect();
    let (fingerprints, unknown_systems) = crate::fingerprint::fingerprints(ruleset)?;
    let main = image.rule_sets[0].1.len() as u32;
    // Empty lists are skipped.
    let walked: u32 = old.iter().map(|list| list.end - list.first).sum();
    let walked = if walked > 0 { walked + LISTS_OF_A_PACKET } else { 0 };
    let sets = &image.rule_sets;
    let all_trees = match ruleset.options.evaluator {
        Evaluator::Compiled => crate::superblock::build_trees(
            &mut image.rules,
            sets,
            planner,
            &slots.expansions,
            unchanged,
        ),
        _ => AllTrees::unsearched(sets),
    };
    let legacy = longest_legacy_walk(&old);
    let filter = crate::superblock::longest_walk(&all_trees, &image.rules, &ruleset.options);
    let calls = image.rules.iter().any(|rule| rule.flags & rule_flags::ANCHOR != 0);
    let filter_rules = &image.rules[..old[0].first as usize];
    image.config = abi::Config {
        rules: main,
        steps: match calls {
            true => MAX_STEPS.max(image.rules.len() as u32 + walked + all_trees.steps),
            false => main + walked + all_trees.steps,
        },
        default_rule,
        superblock: if main > 0 { image.rules[0].superblock } else { 0 },
        fast_path: u32::from(crate::fast_path::may_evaluate(&ruleset.options, &old, filter_rules)),
        old,
        fingerprints: fingerprints.len() as u32,
        unknown_systems,
        longest_walk: legacy + filter,
        ..config
    };
    image.fingerprints = fingerprints;
    (image.nodes, image.longest_search) = (all_trees.nodes, all_trees.longest);
    image.compiled_sets = all_trees.sets;
    Ok(image)
}

/// Returns the most legacy rules that one packet may be evaluated against, of either direction.
fn longest_legacy_walk(old: &[abi::RuleRange; old_list::LISTS]) -> u32 {
    let of = |lists: [usize; 2]| lists.map(|list| old[list].end - old[list].first).iter().sum();
    let (inbound, outbound): (u32, u32) =
        (of([old_list::RDR, old_list::BINAT_IN]), of([old_list::BINAT_OUT, old_list::NAT]));
    of([old_list::SCRUB; 2]) / 2 + inbound.max(outbound)
}

/// Returns the index of a list in the configuration.
fn list_index(list: LegacyList) -> usize {
    match list {
        LegacyList::Nat => old_list::NAT,
        LegacyList::Rdr => old_list::RDR,
        LegacyList::BinatOut => old_list::BINAT_OUT,
        LegacyList::BinatIn => old_list::BINAT_IN,
        LegacyList::Scrub => old_list::SCRUB,
    }
}

/// Returns the default rule. It passes, and keeps no state unless a legacy rule has translated. It
/// has no number.
fn default_of(index: u32) -> abi::Rule {
    let skip = [index + 1; abi::rule::SKIP_MAX];
    abi::Rule { skip, number: u32::MAX, slot: IDLE_SLOT, ..abi::Rule::default() }
}

/// The builder of the array of rules: appends one list of rules after the other.
struct Lists<'a> {
    ruleset: &'a Ruleset,
    slots: &'a Slots,
    names: &'a mut Names,
    is_group: &'a dyn Fn(&str) -> bool,
    unchanged: &'a Unchanged,
    image: &'a mut Image,
}

impl Lists<'_> {
    /// Appends the filter rules, or a list of legacy rules: those of the main rule set, then those
    /// of the anchors. Returns the indexes of the main rule set's rules.
    fn add(&mut self, list: Option<LegacyList>) -> Result<abi::RuleRange, Error> {
        let start = self.image.rules.len();
        let sets = layout(self.ruleset, list, start);
        let end = sets.last().map_or(start, |(_, place)| place.end);
        // One more for the default rule.
        self.image.rules.reserve(end - start + 1);
        let called = |call: &AnchorCall| called(call, &sets);
        let mut compiler = Compiler {
            slots: self.slots,
            names: self.names,
            is_group: self.is_group,
            called: &called,
        };
        for (path, place) in &sets {
            if list.is_none()
                && let Some(unchanged) = self.unchanged.rules(path, place.start)
            {
                let rules = self.ruleset.rules_of(path).iter().zip(unchanged);
                self.image.rules.extend(rules.map(|(rule, unchanged)| {
                    let called = rule.anchor.as_deref().map_or(0..0, called);
                    let (call_first, call_end) = (called.start as u32, called.end as u32);
                    abi::Rule { call_first, call_end, ..unchanged }
                }));
                continue;
            }
            let (rules, slots) = contents(self.ruleset, self.slots, list, path);
            let leaves = leaving_fragments(self.ruleset, self.slots, path);
            let mut states = Vec::with_capacity(rules.len());
            let steps = skip_steps(&rules);
            for ((rule, step), slot) in rules.iter().zip(steps).zip(slots) {
                let skip = step.map(|index| place.start as u32 + index);
                let compiled = compiler.rule(rule, path, skip, slot);
                let mut compiled = compiled.map_err(|error| error.on_line(rule.line))?;
                let kind = list.map(LegacyList::kind);
                let pools = crate::pool::pools(rule, kind, path, self.slots, compiler.names, slot);
                let pools = pools.map_err(|error| error.on_line(rule.line))?;
                compiled.set_end = place.end as u32;
                let os = rule.os.as_deref();
                compiled.os = os.map_or(0, |name| crate::fingerprint::number(self.ruleset, name));
                if let Some(list) = list {
                    compiled.action = crate::rule::old_action(list, rule);
                    compiled.leave_fragments = u8::from(leaves.contains(&slot));
                }
                self.image.pools.extend(pools.pools);
                self.image.pool_members.extend(pools.members);
                let table = overload_table(self.slots, rule, path);
                let of_rule = crate::rule::states(rule, &compiled, table);
                if list.is_none() {
                    compiled.fast_path = crate::fast_path::fast_path_parts(&compiled, &of_rule);
                }
                let old = if list.is_some() { compiled.action.into() } else { 0 };
                states.push((slot, abi::RuleStates { old, ..of_rule }));
                self.image.rules.push(compiled);
            }
            // The second list of `binat` has the same rules as the first.
            if !states.is_empty() && list != Some(LegacyList::BinatIn) {
                let of_set = self.image.states.entry(path.clone()).or_default();
                if of_set.is_empty() {
                    // Move, not copy: many rules make many megabytes.
                    *of_set = states;
                } else {
                    of_set.append(&mut states);
                }
            }
        }
        let main = sets[0].1.clone();
        if list.is_none() {
            self.image.rule_sets = sets;
        }
        Ok(abi::RuleRange { first: main.start as u32, end: main.end as u32 })
    }
}

/// Returns the slot of the table that a rule of an anchor adds sources to.
fn overload_table(slots: &Slots, rule: &Rule, path: &str) -> Option<u32> {
    let overload = rule.state.as_ref()?.overload.as_ref()?;
    slots.tables.get(&TableName::new(path, &overload.table)).copied()
}

/// Returns the rules of an anchor in a list, with their slots.
fn contents<'a>(
    ruleset: &'a Ruleset,
    slots: &Slots,
    list: Option<LegacyList>,
    path: &str,
) -> (Cow<'a, [Rule]>, Vec<u32>) {
    let of = |slots: &BTreeMap<String, Vec<u32>>| slots.get(path).cloned().unwrap_or_default();
    let Some(list) = list else {
        return (ruleset.rules_of(path).into(), of(&slots.rules));
    };
    let all = ruleset.legacy_rules_of(path).iter().zip(of(&slots.legacy_rules));
    let those = all.filter(|(old, _)| old.kind == list.kind());
    let (rules, slots): (Vec<Rule>, _) = those.map(|(old, slot)| (old.seen_in(list), slot)).unzip();
    (rules.into(), slots)
}

/// Returns the slots of an anchor's `scrub` rules that do not reassemble fragments.
fn leaving_fragments(ruleset: &Ruleset, slots: &Slots, path: &str) -> BTreeSet<u32> {
    let slots = slots.legacy_rules.get(path).into_iter().flatten();
    let all = ruleset.legacy_rules_of(path).iter().zip(slots);
    all.filter(|(old, _)| old.leave_fragments).map(|(_, slot)| *slot).collect()
}

/// Returns the rule sets with the indexes of their rules: the main rule set, then the anchors. The
/// children of an anchor are neighbours, sorted by name, so a wildcard call is one range of rules.
fn layout(
    ruleset: &Ruleset,
    list: Option<LegacyList>,
    start: usize,
) -> Vec<(String, Range<usize>)> {
    let mut paths: Vec<&str> = ruleset.anchors.keys().map(String::as_str).collect();
    paths.sort_by_key(|path| path.rsplit_once('/').unwrap_or(("", path)));
    let length = |path| match list {
        None => ruleset.rules_of(path).len(),
        Some(list) => {
            ruleset.legacy_rules_of(path).iter().filter(|old| old.kind == list.kind()).count()
        }
    };
    let mut end = start;
    let sets = std::iter::once("").chain(paths).map(|path| {
        let start = end;
        end += length(path);
        (path.to_owned(), start..end)
    });
    sets.collect()
}

/// Returns the indexes of the rules that an anchor call evaluates.
fn called(call: &AnchorCall, rule_sets: &[(String, Range<usize>)]) -> Range<usize> {
    let means = |path: &str| match call.wildcard {
        false => path == call.path,
        true => !path.is_empty() && path.rsplit_once('/').unwrap_or(("", path)).0 == call.path,
    };
    let mut meant = rule_sets.iter().filter(|(path, _)| means(path)).map(|(_, place)| place);
    let first = meant.next().cloned().unwrap_or(0..0);
    let end = meant.next_back().map_or(first.end, |last| last.end);
    first.start..end
}

fn reassemble(options: &Options, rules: &[abi::Rule]) -> u32 {
    let by_rule = rules.iter().any(|rule| rule.leave_fragments != 0);
    let wants = |wanted, flag| if wanted { flag } else { 0 };
    wants(options.reassemble, reassemble::YES)
        | wants(options.reassemble_no_df, reassemble::NO_DF)
        | wants(by_rule, reassemble::BY_RULE)
}

/// Compiles the settings (`set`) of the rule set.
fn config(
    ruleset: &Ruleset,
    image: &Image,
    host: &Host,
    names: &mut Names,
) -> Result<abi::Config, Error> {
    let options = &ruleset.options;
    // pfctl computes the counters of a group as the sum over its members.
    let loginterface = match &options.loginterface {
        Some(name) if host.interface(name).is_some() => names.interfaces.number(name)?,
        _ => 0,
    };
    Ok(abi::Config {
        evaluator: match options.evaluator {
            Evaluator::Linear => evaluator::LINEAR,
            Evaluator::SkipSteps => evaluator::SKIP_STEPS,
            Evaluator::Compiled => evaluator::COMPILED,
        },
        fast_forward: match options.fast_forward {
            FastForward::No => fast_forward::NO,
            FastForward::Auto => fast_forward::AUTO,
            FastForward::Yes => fast_forward::YES,
        },
        unattached: match options.unattached {
            Unattached::Block => unattached::BLOCK,
            Unattached::Pass => unattached::PASS,
        },
        limit_states: options.limits.states,
        reassemble: reassemble(options, &image.rules),
        loginterface,
        hostid: options.hostid.unwrap_or(0),
        limit_src_nodes: options.limits.src_nodes,
        limit_table_entries: options.limits.table_entries,
        syncookies: match options.syncookies {
            Syncookies::Never => syncookies::NEVER,
            Syncookies::Always => syncookies::ALWAYS,
            Syncookies::Adaptive { .. } => syncookies::ADAPTIVE,
        },
        syncookies_start: options.syncookie_marks().start,
        syncookies_end: options.syncookie_marks().end,
        timeouts: options.timeouts.0,
        sctp_ports: u32::from(ruleset.names_sctp_ports()),
        ..abi::Config::default()
    })
}
