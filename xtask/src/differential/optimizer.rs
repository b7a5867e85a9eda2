//! `xtask differential --optimizer`: the model with a rule set as written, and with the optimizer's
//! result, on the same packets. All results must be equal.
//!
//! Rule numbers may differ, and so may the number of log records of `match log` rules. Rules have
//! no `log (matches)`, which shows both, and no `once` and `max-pkt-rate`
//! (docs/reference/linux.md).

mod alike;

use std::collections::HashSet;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use fastrand::Rng;
use skipstep_model::{Carried, Decision, Verdict};
use skipstep_pfconf::Context;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Action, AutomaticTables, Counted, Optimization, Reason, Rule, Ruleset};
use skipstep_scenario::case::Case;
use skipstep_scenario::observe::Observation;
use skipstep_scenario::run::{Event, Player};
use skipstep_scenario::{Model, host, parse};
use skipstep_views::StateView;

use super::coverage::Coverage;
use super::generate::{Generated, generate, with_context};
use super::{Arguments, Disagreement, report, shrink};
use crate::catch::catching;

/// Plays cases until the packets or the disagreements of the arguments are reached.
///
/// # Errors
/// Fails if the model refuses a case, or if a file cannot be written.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let host = host::standard();
    if let Some(path) = &arguments.again {
        return again(path, &host);
    }
    let mut covered = Coverage::default();
    let mut effect = Effect::default();
    let (mut number, mut found) = (0, 0);
    while covered.packets < arguments.packets && found < arguments.failures {
        let Generated { case, coverage, .. } =
            generate((arguments.seed, number), &host, alike::text, false)?;
        covered.add(&coverage);
        for level in [Optimization::Basic, Optimization::Profile] {
            if let Some(before) = load(&case, Optimization::None, &host)
                && let Some(after) = load(&case, level, &host)
            {
                effect.count(&before, &after);
            }
            if difference(&case, level, &host).is_none() {
                continue;
            }
            let shows = |case: &Case| difference(case, level, &host).is_some();
            let mut case = shrink::smallest(&case, shows);
            let Some((step, text)) = difference(&case, level, &host) else { continue };
            case.steps.truncate(step + 1);
            let engine = format!("optimizer-{level:?}").to_lowercase();
            report(&Disagreement { number, engine, case, differences: vec![text] }, arguments)?;
            found += 1;
        }
        number += 1;
    }
    println!("differential: {covered}");
    println!(
        "differential: seed {}, {number} rule sets, {} packets, before and after the optimizer \
         ({effect}): {found} disagreements",
        arguments.seed, covered.packets
    );
    Ok(if found == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Plays the cases of a file, and prints their differences.
fn again(path: &Path, host: &Host) -> anyhow::Result<ExitCode> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(|| format!("read {name}"))?;
    let mut found = 0;
    for case in parse::file(&text, &name)?.cases {
        for level in [Optimization::Basic, Optimization::Profile] {
            if let Some((step, text)) = difference(&case, level, host) {
                println!("{name}: {level:?}: after step {}:\n  {text}", step + 1);
                found += 1;
            }
        }
    }
    println!("differential: before and after the optimizer: {found} disagreements");
    Ok(if found == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Counts of the optimizer's changes, which show an optimizer that does nothing.
#[derive(Default)]
struct Effect {
    rules_before: usize,
    rules_after: usize,
    tables_made: usize,
    moved: usize,
}

impl Effect {
    fn count(&mut self, before: &Ruleset, after: &Ruleset) {
        self.rules_before += before.rules.len();
        self.rules_after += after.rules.len();
        self.tables_made += after.tables.len() - before.tables.len();
        let lines: Vec<u32> = after.rules.iter().map(|rule| rule.line).collect();
        self.moved += usize::from(!lines.is_sorted());
    }
}

impl std::fmt::Display for Effect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Effect { rules_before, rules_after, tables_made, moved } = self;
        write!(
            f,
            "{rules_before} rules became {rules_after}, {tables_made} tables, {moved} times in \
             another order"
        )
    }
}

/// Parses the rule set of a case; `None` if it is refused.
fn load(case: &Case, level: Optimization, host: &Host) -> Option<Ruleset> {
    let text = &case.rules.text;
    with_context(case, host, |context| {
        let written = skipstep_pfconf::load(text, &context).ok()?.ruleset.rules;
        let profile = |_: &str| counters(text, &written);
        // as in pfctl: automatic tables of later loads have other names
        let automatic_tables = AutomaticTables::for_loading(1);
        let context =
            Context { optimization: Some(level), profile: &profile, automatic_tables, ..context };
        Some(skipstep_pfconf::load(text, &context).ok()?.ruleset)
    })
}

/// Draws packet counters of the rules, always the same for the same text.
fn counters(text: &str, rules: &[Rule]) -> Vec<Counted> {
    let mut rng = Rng::with_seed(text.len() as u64);
    let counted = |rule: &Rule| Counted { rule: rule.clone(), packets: rng.u64(..5) };
    rules.iter().map(counted).collect()
}

/// Returns the first step with different results, and a description of the difference.
fn difference(case: &Case, level: Optimization, host: &Host) -> Option<(usize, String)> {
    let before = load(case, Optimization::None, host)?;
    let after = load(case, level, host)?;
    let played = catching(|| play(case, &before, &after, host));
    played.unwrap_or_else(|panic| Some((case.steps.len().saturating_sub(1), panic)))
}

fn play(case: &Case, before: &Ruleset, after: &Ruleset, host: &Host) -> Option<(usize, String)> {
    let (mut first, mut second) = (Model::new(), Model::new());
    let mut plain = Player::load(&mut first, &case.files, before, host).ok()?;
    let mut optimized = match Player::load(&mut second, &case.files, after, host) {
        Ok(player) => player,
        Err(error) => return Some((0, format!("optimized rules are refused: {error}"))),
    };
    for (index, step) in case.steps.iter().enumerate() {
        let (plain, optimized) = (plain.act(&step.action), optimized.act(&step.action));
        let (plain, optimized) = (plain.map(outcome), optimized.map(outcome));
        if too_much(&plain) {
            return None;
        }
        if plain != optimized {
            return Some((index, format!("before: {plain:?}\n  after:  {optimized:?}")));
        }
    }
    None
}

/// The results of a step, without rule numbers.
#[derive(Debug, PartialEq)]
enum StepResult {
    Nothing,
    Ended(Vec<u32>),
    Packet(Box<Effects>),
}

/// Returns true if the packet matched more `match` rules than an evaluator can store. Fewer rules
/// may pass a packet that more rules drop.
fn too_much(outcome: &Result<StepResult, String>) -> bool {
    // a dropped fragment has another reason
    matches!(outcome, Ok(StepResult::Packet(effects)) if effects.counted.contains(&Reason::Memory))
}

/// The results of a packet.
#[derive(Debug, PartialEq)]
struct Effects {
    verdict: Verdict,
    default: bool,
    reason: Reason,
    counted: Vec<Reason>,
    out: Option<Vec<u8>>,
    replies: Vec<Vec<u8>>,
    carried: Carried,
    /// Actions and logs of the records.
    log: HashSet<(Action, u8)>,
    expired: Vec<u32>,
    created: Vec<u32>,
    removed: Vec<u32>,
    states: Arc<Vec<(u32, StateView)>>,
}

fn outcome(event: Event) -> StepResult {
    match event {
        Event::Packet(observation) => StepResult::Packet(Box::new(effects(*observation))),
        Event::Time(ended) => StepResult::Ended(ended),
        _ => StepResult::Nothing,
    }
}

fn effects(observation: Observation) -> Effects {
    let Observation { fate, expired, created, removed, mut states, .. } = observation;
    for (_, state) in Arc::make_mut(&mut states) {
        (state.rule, state.anchor_rule) = (None, None);
    }
    Effects {
        verdict: fate.verdict,
        default: matches!(fate.decision, Decision::None | Decision::Default),
        reason: fate.reason,
        counted: fate.counted,
        out: fate.out,
        replies: fate.replies,
        carried: fate.carried,
        log: fate.log.iter().map(|record| (record.action, record.to)).collect(),
        expired,
        created,
        removed,
        states,
    }
}
