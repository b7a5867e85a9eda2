//! Generation of a case: a rule set that all evaluators accept, and steps that are drawn while the
//! model plays them. The model's results become the expectations for other evaluators.

use fastrand::Rng;
use skipstep_pfconf::{Context as RulesContext, Loaded, Rejected, Severity};
use skipstep_ruleset::Ruleset;
use skipstep_ruleset::interface::Host;
use skipstep_scenario::Model;
use skipstep_scenario::case::{Action, Case, Rules, Step};
use skipstep_scenario::observe::Observation;
use skipstep_scenario::run::{Event, Player, Recorder};

use super::coverage::Coverage;
use super::host_changes::{HostChanges, is_possible};
use super::packets::Traffic;
use super::pool::Pool;
use super::reloads::Reloads;
use crate::catch::catching;

/// Number of steps of a case.
const STEPS: usize = 240;

/// Number of tables of a rule set at most: a third of the slots of the tested data plane. A table
/// may need a second slot while it is replaced.
const MOST_TABLES: usize = 85;

/// A generated case, with the model's results.
pub struct Generated {
    /// The steps, with the model's results as expectations.
    pub case: Case,
    pub ruleset: Ruleset,
    /// Counts of what happened to the packets.
    pub coverage: Coverage,
    /// The message of the model's panic, if it panicked.
    pub panic: Option<String>,
}

/// Generates case `number` of a seed; `text` draws its rules. Loads of rules are also put on trial,
/// confirmed and reverted.
///
/// # Errors
/// Fails if the model refuses the rules or a step.
pub fn generate(
    (seed, number): (u64, u64),
    host: &Host,
    text: fn(&mut Rng, &mut Pool) -> String,
    trials: bool,
) -> anyhow::Result<Generated> {
    let (mut rng, mut case, ruleset, pool) = draw(seed, number, host, text);
    let mut reloads = Reloads::new(&mut rng, &case, text);
    let host_changes = HostChanges::new(&mut rng, host);
    let files = case.files.clone();
    let mut model = Model::new();
    let mut player =
        Player::load(&mut model, &files, &ruleset, host).map_err(anyhow::Error::msg)?;
    let mut traffic = Traffic::new(pool, &ruleset);
    let mut recorder = Recorder::default();
    let mut last: Option<(Action, Box<Observation>)> = None;
    let mut coverage = Coverage::default();
    for _ in 0..STEPS {
        let before = last.as_ref().map(|(action, observation)| (action, observation.as_ref()));
        let change = host_changes
            .step(&mut rng, &player.host)
            .or_else(|| {
                let on_trial = player.is_on_trial();
                trials.then(|| reloads.trial(&mut rng, &player.ruleset, on_trial)).flatten()
            })
            .or_else(|| reloads.step(&mut rng, &mut traffic.pool, &player.ruleset, &player.host));
        let action = match change {
            Some(action) => action,
            None => traffic.step(&mut rng, before, player.now),
        };
        if !is_possible(&action, before.map(|(action, _)| action), &player.host) {
            continue;
        }
        let step = Step { line: 0, action: action.clone() };
        let was_on_trial = player.is_on_trial();
        let event = match catching(|| player.act(&action)) {
            Ok(Ok(event)) => event,
            // the load would change a limiter that is in use, or other rules are on trial
            Ok(Err(_)) if matches!(action, Action::Load(..) | Action::Flush(_)) => continue,
            Ok(Err(reason)) => anyhow::bail!("seed {seed} case {number}: {reason}"),
            Err(panic) => {
                case.steps = recorder.into_steps();
                case.steps.push(step);
                return Ok(Generated { case, ruleset, coverage, panic: Some(panic) });
            }
        };
        recorder.note(&step, &event);
        if matches!(action, Action::Load(..) | Action::Flush(_)) {
            reloads.done(&action);
            traffic.learn(&player.ruleset);
            coverage.reloads += 1;
        }
        if was_on_trial && !player.is_on_trial() {
            traffic.learn(&player.ruleset);
            coverage.trials += 1;
        }
        coverage.host_changes += u64::from(matches!(action, Action::Host(_)));
        match (event, &mut last) {
            (Event::Packet(observation), _) => {
                coverage.count(&observation);
                last = Some((action, observation));
            }
            // the states seen last are still useful, but the packet can no longer be forwarded
            (_, Some((before, _))) => *before = action,
            _ => {}
        }
    }
    case.steps = recorder.finish(&mut player);
    Ok(Generated { case, ruleset, coverage, panic: None })
}

/// Returns the random sequence of case `number` of a seed.
pub fn rng_of(seed: u64, number: u64) -> Rng {
    Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number)
}

/// Draws the rules of case `number` of a seed until they are accepted. Returns the random sequence
/// with them.
pub fn draw(
    seed: u64,
    number: u64,
    host: &Host,
    text: fn(&mut Rng, &mut Pool) -> String,
) -> (Rng, Case, Ruleset, Pool) {
    let mut rng = rng_of(seed, number);
    loop {
        let mut pool = Pool::new();
        let rules = Rules { text: text(&mut rng, &mut pool), lines: Vec::new() };
        let title = Some(format!("seed {seed} case {number}"));
        let mut case = Case { title, rules, files: pool.files.clone(), steps: Vec::new() };
        let ruleset = without_mistakes(&mut case, "", host);
        if let Some(ruleset) = ruleset.filter(|ruleset| is_comparable(ruleset, host)) {
            return (rng, case, ruleset, pool);
        }
    }
}

/// Returns true if the data plane under test can do the same as the model. The tables must fit
/// beside those of the previous rules. No pool may choose from a table that packets fill, because
/// only userland writes the list that a pool chooses from.
pub fn is_comparable(ruleset: &Ruleset, host: &Host) -> bool {
    skipstep_classifier::tables(ruleset, host).is_ok_and(|tables| {
        tables.len() <= MOST_TABLES && !tables.iter().any(|table| table.pooled && table.filled)
    })
}

/// Removes refused rules from a case, so that one of them does not cost many others. Lines that
/// begin or end an anchor stay. Returns `None` if the case stays refused.
pub fn without_mistakes(case: &mut Case, anchor: &str, host: &Host) -> Option<Ruleset> {
    loop {
        let rejected = match read(case, anchor, host) {
            Ok(loaded) => return Some(loaded.ruleset),
            Err(rejected) => rejected,
        };
        let wrong = rejected.diagnostics.into_iter().filter(|found| found.kind == Severity::Error);
        let mut wrong: Vec<(String, u32)> =
            wrong.map(|found| (found.file, found.line)).filter(|(_, line)| *line > 0).collect();
        wrong.sort_unstable();
        wrong.dedup();
        let mut removed = false;
        for (file, line) in wrong.into_iter().rev() {
            let file = case.files.iter_mut().find(|(name, _)| *name == file);
            let text = file.map_or(&mut case.rules.text, |(_, text)| text);
            removed |= remove_rule(text, line as usize - 1);
        }
        if !removed {
            return None;
        }
    }
}

/// Removes a line if it is a rule, and returns true then.
fn remove_rule(text: &mut String, line: usize) -> bool {
    let mut lines: Vec<&str> = text.lines().collect();
    let is_rule = lines.get(line).is_some_and(|text| !text.ends_with('{') && *text != "}");
    if is_rule {
        lines.remove(line);
        *text = lines.join("\n") + "\n";
    }
    is_rule
}

/// Parses the rules of a case for an anchor, or for the main rule set if `anchor` is empty.
///
/// # Errors
/// Fails with the diagnostics if the rules are refused.
pub fn read(case: &Case, anchor: &str, host: &Host) -> Result<Loaded, Rejected> {
    with_context(case, host, |context| {
        skipstep_pfconf::load(&case.rules.text, &RulesContext { anchor, ..context })
    })
}

/// Calls `load` with a context that knows the files of the case.
pub fn with_context<T>(case: &Case, host: &Host, load: impl FnOnce(RulesContext) -> T) -> T {
    let read_file = |wanted: &str| {
        let file = case.files.iter().find(|(name, _)| name == wanted);
        file.map(|(_, text)| text.clone()).ok_or(std::io::ErrorKind::NotFound.into())
    };
    load(RulesContext { read_file: &read_file, random: &|| 0, ..RulesContext::new(host) })
}

/// Returns the tags that rules set or match.
pub fn tags(ruleset: &Ruleset) -> Vec<String> {
    let mut tags: Vec<String> = Vec::new();
    for (_, rule) in ruleset.every_rule() {
        tags.extend(rule.tag.clone());
        tags.extend(rule.tagged.as_ref().map(|tagged| tagged.value.clone()));
    }
    tags.sort();
    tags.dedup();
    tags
}

/// Parses the rule set of a case, and those that its steps load. Returns `None` if one is refused.
pub fn load(case: &Case, host: &Host) -> Option<(Ruleset, Vec<Ruleset>)> {
    let ruleset = read(case, "", host).ok()?.ruleset;
    let mut later = Vec::new();
    let mut host = host.clone();
    for step in &case.steps {
        if let Action::Host(change) = &step.action {
            host = change.applied(&host).ok()?;
        }
        if let Action::Load(path, rules) = &step.action {
            let case = Case { rules: rules.clone(), files: case.files.clone(), ..Case::default() };
            later.push(read(&case, path, &host).ok()?.ruleset);
        }
    }
    Some((ruleset, later))
}
