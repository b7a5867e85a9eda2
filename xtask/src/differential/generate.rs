//! Makes a case: a rule set that all evaluators take, and steps that come about while the model
//! plays along. What the model did is expected of the others.

use fastrand::Rng;
use skipstep_pfconf::{Context as RulesContext, Kind, Loaded, Rejected};
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

/// Steps of one case.
const STEPS: usize = 240;

/// Tables of one rule set: a third of what the data plane under test has slots for, as each may
/// need a second one while it is replaced.
const MOST_TABLES: usize = 85;

/// A case and how the model fared.
pub struct Generated {
    /// With everything expected that the model did.
    pub case: Case,
    pub ruleset: Ruleset,
    /// What the packets met.
    pub coverage: Coverage,
    /// What the model said when it gave up.
    pub panic: Option<String>,
}

/// Case `number` of a seed; `text` makes its rules.
pub fn generate(
    seed: u64,
    number: u64,
    host: &Host,
    text: fn(&mut Rng, &mut Pool) -> String,
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
            .or_else(|| reloads.step(&mut rng, &mut traffic.pool, &player.ruleset, &player.host));
        let action = match change {
            Some(action) => action,
            None => traffic.step(&mut rng, before, player.now),
        };
        if !is_possible(&action, before.map(|(action, _)| action), &player.host) {
            continue;
        }
        let step = Step { line: 0, action: action.clone() };
        let event = match catching(|| player.act(&action)) {
            Ok(Ok(event)) => event,
            // a limiter that is busy
            Ok(Err(_)) if matches!(action, Action::Load(..)) => continue,
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
        coverage.host_changes += u64::from(matches!(action, Action::Host(_)));
        match (event, &mut last) {
            (Event::Packet(observation), _) => {
                coverage.count(&observation);
                last = Some((action, observation));
            }
            // the states seen last stay of use, but the packet cannot go on any more
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

/// Draws the rules of case `number` of a seed.
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

/// Whether the data plane under test does the same with the rules as the model: their tables have
/// room there, beside those of the rules before them, and pools choose from none that packets fill,
/// of which the data plane's list is userland's.
pub fn is_comparable(ruleset: &Ruleset, host: &Host) -> bool {
    skipstep_classifier::tables(ruleset, host).is_ok_and(|tables| {
        tables.len() <= MOST_TABLES && !tables.iter().any(|table| table.pooled && table.filled)
    })
}

/// Takes the rules out of a case that are refused, so that one of them is not the end of many.
/// Lines that begin or end an anchor stay.
pub fn without_mistakes(case: &mut Case, anchor: &str, host: &Host) -> Option<Ruleset> {
    loop {
        let rejected = match read(case, anchor, host) {
            Ok(loaded) => return Some(loaded.ruleset),
            Err(rejected) => rejected,
        };
        let wrong = rejected.diagnostics.into_iter().filter(|found| found.kind == Kind::Error);
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

/// Removes a line that is a rule; whether it is.
fn remove_rule(text: &mut String, line: usize) -> bool {
    let mut lines: Vec<&str> = text.lines().collect();
    let is_rule = lines.get(line).is_some_and(|text| !text.ends_with('{') && *text != "}");
    if is_rule {
        lines.remove(line);
        *text = lines.join("\n") + "\n";
    }
    is_rule
}

/// Reads the rules of a case into an anchor, the main rule set if it is empty.
pub fn read(case: &Case, anchor: &str, host: &Host) -> Result<Loaded, Rejected> {
    with_context(case, host, |context| {
        skipstep_pfconf::load(&case.rules.text, &RulesContext { anchor, ..context })
    })
}

/// What loads the rules of a case, and knows its files.
pub fn with_context<T>(case: &Case, host: &Host, load: impl FnOnce(RulesContext) -> T) -> T {
    let read_file = |wanted: &str| {
        let file = case.files.iter().find(|(name, _)| name == wanted);
        file.map(|(_, text)| text.clone()).ok_or(std::io::ErrorKind::NotFound.into())
    };
    load(RulesContext { read_file: &read_file, random: &|| 0, ..RulesContext::new(host) })
}

/// The tags that rules set or look for.
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

/// The rule set of a case, unless it is wrong, and those that are loaded later.
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
