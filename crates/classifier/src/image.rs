//! The image of a whole rule set.

use std::collections::BTreeMap;

use skipstep_abi as abi;
use skipstep_abi::config::reassemble;
use skipstep_abi::limits::MAX_RULES;
use skipstep_abi::verdict::evaluator;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::skip::skip_steps;
use skipstep_ruleset::support::refusals;
use skipstep_ruleset::{Evaluator, Options, Ruleset};

use crate::rule::{Compiler, states};
use crate::{Error, Names};

/// Where the loader has made room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slots {
    /// Statistics slot of every rule, in order.
    pub rules: Vec<u32>,
    /// Slot of every table and dynamic address that [`crate::tables`] gave, by name.
    pub tables: BTreeMap<String, u32>,
}

/// A rule set as the kernel walks it.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    /// Rules with their skip steps.
    pub rules: Vec<abi::Rule>,
    /// What is kept for the states of each rule, in the same order.
    pub states: Vec<abi::RuleStates>,
    /// Settings.
    pub config: abi::Config,
}

/// Checks that the data plane can do what the rules say and holds their number, before slots are
/// looked for.
pub fn check_rules(ruleset: &Ruleset) -> Result<(), Error> {
    if let Some(refusal) = refusals(ruleset).into_iter().next() {
        return Err(Error::NotBuilt { refusal });
    }
    let rules = ruleset.rules.len();
    if rules > MAX_RULES as usize {
        return Err(Error::Rules { rules, limit: MAX_RULES });
    }
    Ok(())
}

/// Makes the image. `slots.rules` has a slot for every rule and `slots.tables` one for every table.
pub fn compile(
    ruleset: &Ruleset,
    host: &Host,
    slots: &Slots,
    names: &mut Names,
) -> Result<Image, Error> {
    check_rules(ruleset)?;
    let is_group =
        |name: &str| host.interface(name).is_none() && host.interfaces.iter().any(|i| i.is(name));
    let mut compiler = Compiler { slots, names, is_group: &is_group };
    let mut rules = Vec::with_capacity(ruleset.rules.len());
    let steps = skip_steps(&ruleset.rules);
    for ((rule, skip), slot) in ruleset.rules.iter().zip(steps).zip(&slots.rules) {
        rules.push(compiler.rule(rule, skip, *slot).map_err(|error| error.on_line(rule.line))?);
    }
    Ok(Image {
        config: config(&ruleset.options, &rules, host, names)?,
        states: ruleset
            .rules
            .iter()
            .zip(&rules)
            .map(|(rule, compiled)| states(rule, compiled))
            .collect(),
        rules,
    })
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
    host: &Host,
    names: &mut Names,
) -> Result<abi::Config, Error> {
    // the counters of a group are the sum over its members, which pfctl makes
    let loginterface = match &options.loginterface {
        Some(name) if host.interface(name).is_some() => names.interfaces.number(name)?,
        _ => 0,
    };
    let if_bound = rules.iter().any(|rule| rule.flags & abi::rule::rule_flags::IF_BOUND != 0);
    Ok(abi::Config {
        rules: rules.len() as u32,
        evaluator: match options.evaluator {
            Evaluator::Linear => evaluator::LINEAR,
            Evaluator::SkipSteps => evaluator::SKIP_STEPS,
        },
        limit_states: options.limits.states,
        reassemble: reassemble(options),
        loginterface,
        hostid: options.hostid.unwrap_or(0),
        if_bound_states: u32::from(if_bound),
        timeouts: options.timeouts.0,
        pad: 0,
    })
}
