//! The image of a whole rule set.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use skipstep_abi as abi;
use skipstep_abi::config::{reassemble, syncookies};
use skipstep_abi::limits::{MAX_RULES, MAX_STEPS};
use skipstep_abi::rule::rule_flags;
use skipstep_abi::verdict::evaluator;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::skip::skip_steps;
use skipstep_ruleset::support::refusals;
use skipstep_ruleset::{AnchorCall, Evaluator, Options, Ruleset, Syncookies, TableName};

use crate::rule::Compiler;
use crate::{Error, Names};

/// Where the loader has made room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slots {
    /// Statistics slots of the rules of each rule set, in order, by the path of its anchor.
    pub rules: BTreeMap<String, Vec<u32>>,
    /// Slot of every table and dynamic address that [`crate::tables`] gave. A table that its anchor
    /// has not defined has the slot of the one in the main rule set.
    pub tables: BTreeMap<TableName, u32>,
}

/// A rule set as the kernel walks it.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    /// Which of the rules belong to which anchor: path and place.
    pub rule_sets: Vec<(String, Range<usize>)>,
    /// Rules with their skip steps: the main rule set, then the anchors.
    pub rules: Vec<abi::Rule>,
    /// What is kept for the states of each rule, in the same order.
    pub states: Vec<abi::RuleStates>,
    /// Pools of the rules.
    pub pools: Vec<(abi::PoolKey, abi::Pool)>,
    /// Limiters, with the place of each in the map: its kind and its number.
    pub limiters: Vec<(u32, abi::Limiter)>,
    /// Settings.
    pub config: abi::Config,
}

/// Checks that the data plane can do what the rules say and holds their number, before slots are
/// looked for.
pub fn check_rules(ruleset: &Ruleset) -> Result<(), Error> {
    if let Some(refusal) = refusals(ruleset).into_iter().next() {
        return Err(Error::NotBuilt { refusal });
    }
    let rules = ruleset.all_rules().count();
    if rules > MAX_RULES as usize {
        return Err(Error::Rules { rules, limit: MAX_RULES });
    }
    let (anchors, limit) = (count_anchors(ruleset), ruleset.options.limits.anchors);
    if anchors > limit as usize {
        return Err(Error::Anchors { anchors, limit });
    }
    Ok(())
}

/// How many anchors there are: those with contents, those that rules call, and those on the way.
fn count_anchors(ruleset: &Ruleset) -> usize {
    let called = ruleset.all_rules().filter_map(|(_, rule)| rule.anchor.as_ref());
    let named = called.map(|call| &call.path).chain(ruleset.anchors.keys());
    let mut paths = BTreeSet::new();
    for path in named {
        let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
        paths.extend(ends.map(|end| &path[..end]).filter(|path| !path.is_empty()));
    }
    paths.len()
}

/// Makes the image. `slots` has one for every rule and every table.
pub fn compile(
    ruleset: &Ruleset,
    host: &Host,
    slots: &Slots,
    names: &mut Names,
) -> Result<Image, Error> {
    check_rules(ruleset)?;
    let is_group =
        |name: &str| host.interface(name).is_none() && host.interfaces.iter().any(|i| i.is(name));
    for queue in &ruleset.queues {
        names.queues.number(&queue.name).map_err(|error| error.on_line(queue.line))?;
    }
    let (mut rules, mut states, mut pools) = (Vec::new(), Vec::new(), Vec::new());
    let rule_sets = layout(ruleset);
    let called = |call: &AnchorCall| called(call, &rule_sets);
    let tables = &slots.tables;
    let mut compiler = Compiler { slots, names, is_group: &is_group, called: &called };
    for (path, place) in &rule_sets {
        let set = ruleset.rules_of(path);
        let steps = skip_steps(set);
        let slots = slots.rules.get(path).map_or(&[][..], Vec::as_slice);
        for ((rule, step), slot) in set.iter().zip(steps).zip(slots) {
            let skip = step.map(|index| place.start as u32 + index);
            let compiled = compiler.rule(rule, path, skip, *slot);
            let mut compiled = compiled.map_err(|error| error.on_line(rule.line))?;
            compiled.set_end = place.end as u32;
            let overload = rule.state.as_ref().and_then(|options| options.overload.as_ref());
            let table = overload.map(|overload| TableName::new(path, &overload.table));
            let table = table.and_then(|name| tables.get(&name).copied());
            states.push(crate::rule::states(rule, &compiled, table));
            let of_rule = crate::pool::pools(rule, path, compiler.slots, *slot);
            pools.extend(of_rule.map_err(|error| error.on_line(rule.line))?);
            rules.push(compiled);
        }
    }
    let main = rule_sets[0].1.len();
    let config = config(&ruleset.options, &rules, main, host, names)?;
    let limiters = ruleset.limiters.iter().map(|each| crate::limiter::limiter(each, slots));
    Ok(Image { config, limiters: limiters.collect(), pools, states, rules, rule_sets })
}

/// Where the rules of each rule set stand: the main rule set, then the anchors. Those below one
/// anchor stand together in the order of their names, so that a wildcard means one stretch of rules.
fn layout(ruleset: &Ruleset) -> Vec<(String, Range<usize>)> {
    let mut paths: Vec<&str> = ruleset.anchors.keys().map(String::as_str).collect();
    paths.sort_by_key(|path| path.rsplit_once('/').unwrap_or(("", path)));
    let mut end = 0;
    let sets = std::iter::once("").chain(paths).map(|path| {
        let start = end;
        end += ruleset.rules_of(path).len();
        (path.to_owned(), start..end)
    });
    sets.collect()
}

/// The stretch of rules that a call means.
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

fn reassemble(options: &Options) -> u32 {
    match (options.reassemble, options.reassemble_no_df) {
        (false, _) => 0,
        (true, false) => reassemble::YES,
        (true, true) => reassemble::YES | reassemble::NO_DF,
    }
}

fn config(
    options: &Options,
    rules: &[abi::Rule],
    main: usize,
    host: &Host,
    names: &mut Names,
) -> Result<abi::Config, Error> {
    // the counters of a group are the sum over its members, which pfctl makes
    let loginterface = match &options.loginterface {
        Some(name) if host.interface(name).is_some() => names.interfaces.number(name)?,
        _ => 0,
    };
    let any = |flag| rules.iter().any(|rule| rule.flags & flag != 0);
    let calls = any(rule_flags::ANCHOR);
    Ok(abi::Config {
        rules: main as u32,
        steps: if calls { MAX_STEPS } else { main as u32 },
        evaluator: match options.evaluator {
            Evaluator::Linear => evaluator::LINEAR,
            Evaluator::SkipSteps => evaluator::SKIP_STEPS,
        },
        limit_states: options.limits.states,
        reassemble: reassemble(options),
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
        if_bound_states: u32::from(any(rule_flags::IF_BOUND)),
        timeouts: options.timeouts.0,
    })
}
