//! Makes a case: a rule set that all evaluators take, and steps that come about while the model plays
//! along. What the model did is expected of the others.

use fastrand::Rng;
use skipstep_pfconf::{Context as RulesContext, Kind, Loaded, Rejected};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::support::refusals;
use skipstep_ruleset::{Rule, Ruleset, Timeout, Timeouts};
use skipstep_scenario::Model;
use skipstep_scenario::case::{Action, Case, Rules, Step};
use skipstep_scenario::observe::Observation;
use skipstep_scenario::run::{Event, Player, Recorder};

use super::coverage::Coverage;
use super::packets::Traffic;
use super::pool::Pool;
use crate::catch::catching;

/// Steps of one case.
const STEPS: usize = 240;

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
    let mut rng = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number);
    let (mut case, ruleset, pool) = loop {
        let mut pool = Pool::new();
        let rules = Rules { text: text(&mut rng, &mut pool), lines: Vec::new() };
        let title = Some(format!("seed {seed} case {number}"));
        let mut case = Case { title, rules, files: pool.files.clone(), steps: Vec::new() };
        if let Some(ruleset) = without_mistakes(&mut case, host)
            && is_comparable(&ruleset)
        {
            break (case, ruleset, pool);
        }
    };
    let mut model = Model::new();
    let mut player = Player::load(&mut model, &ruleset, host).map_err(anyhow::Error::msg)?;
    let mut traffic = Traffic::new(&pool, &ruleset);
    let mut recorder = Recorder::default();
    let mut last: Option<(Action, Box<Observation>)> = None;
    let mut coverage = Coverage::default();
    for _ in 0..STEPS {
        let before = last.as_ref().map(|(action, observation)| (action, observation.as_ref()));
        let action = traffic.step(&mut rng, before, player.now);
        let step = Step { line: 0, action: action.clone() };
        let event = match catching(|| player.act(&action)) {
            Ok(Ok(event)) => event,
            Ok(Err(reason)) => anyhow::bail!("seed {seed} case {number}: {reason}"),
            Err(panic) => {
                case.steps = recorder.into_steps();
                case.steps.push(step);
                return Ok(Generated { case, ruleset, coverage, panic: Some(panic) });
            }
        };
        recorder.note(&step, &event);
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
    case.steps = recorder.finish(&ruleset, host, player.observer.engine());
    Ok(Generated { case, ruleset, coverage, panic: None })
}

/// Takes the rules out of a case that are refused, so that one of them is not the end of many. Lines that
/// begin or end an anchor stay.
fn without_mistakes(case: &mut Case, host: &Host) -> Option<Ruleset> {
    loop {
        let rejected = match read(case, host) {
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

fn read(case: &Case, host: &Host) -> Result<Loaded, Rejected> {
    with_context(case, host, |context| skipstep_pfconf::load(&case.rules.text, &context))
}

/// What loads the rules of a case, and knows its files.
pub fn with_context<T>(case: &Case, host: &Host, load: impl FnOnce(RulesContext) -> T) -> T {
    let read_file = |wanted: &str| {
        let file = case.files.iter().find(|(name, _)| name == wanted);
        file.map(|(_, text)| text.clone()).ok_or(std::io::ErrorKind::NotFound.into())
    };
    load(RulesContext { read_file: &read_file, ..RulesContext::new(host) })
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

/// The rule set of a case, unless it is wrong or not to be compared.
pub fn load(case: &Case, host: &Host) -> Option<Ruleset> {
    let ruleset = read(case, host).ok()?.ruleset;
    is_comparable(&ruleset).then_some(ruleset)
}

/// Whether a rule set has nothing together that is not built together, and ends no states where
/// nobody can compare them.
fn is_comparable(ruleset: &Ruleset) -> bool {
    refusals(ruleset).is_empty() && !ends_states_in_between(ruleset)
}

/// Whether the state of a packet may end others by their number before the packet is filtered once
/// more, where it is routed to. The model finds those until its purge, as pf; the data plane, which
/// needs no purge, does not.
fn ends_states_in_between(ruleset: &Ruleset) -> bool {
    let crowds = |rule: &Rule| {
        let own = |(class, _): &(Timeout, u32)| *class == Timeout::AdaptiveStart;
        rule.state.as_ref().is_some_and(|s| s.max.is_some() || s.timeouts.iter().any(own))
    };
    let options = &ruleset.options.timeouts;
    let usual = Timeouts::default().get(Timeout::AdaptiveStart);
    let crowded = options.get(Timeout::AdaptiveStart) != usual
        || ruleset.all_rules().any(|(_, rule)| crowds(rule));
    crowded && ruleset.all_rules().any(|(_, rule)| rule.route.is_some())
}
