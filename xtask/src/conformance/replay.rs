//! Replay of vectors on several evaluators in several threads.

use skipstep_pfconf::{Context, Diagnostic, Dialect};
use skipstep_ruleset::Ruleset;
use skipstep_ruleset::interface::Host;
use skipstep_scenario::case::{Action, Case, File};
use skipstep_scenario::run::{self, Stop};
use skipstep_scenario::{Engine, host};

use super::workers::share_out;
use super::{convert, vector};
use crate::catch::catching;
use crate::engines::Choice;

/// The result of a vector on one evaluator.
pub enum Played {
    /// The evaluator did the same as pf.
    Equal,
    /// The evaluator did not do the same as pf.
    Different(Difference),
    /// The vector needs a feature that only the model has.
    NotBuilt,
}

/// A difference between an evaluator and pf.
pub struct Difference {
    /// The vector's id.
    pub id: String,
    /// A description of the first difference.
    pub text: String,
    /// The vector up to the difference as a scenario file.
    pub scenario: Option<String>,
}

/// Replays every vector, in any order. The results are in the order of `lines`. Each thread creates
/// its evaluators once, because the kernel takes five seconds to verify the programs of one.
///
/// # Errors
/// Fails if an evaluator cannot start, or if a line is not a vector.
pub fn all(lines: &[String], choices: &[Choice], jobs: usize) -> anyhow::Result<Vec<Vec<Played>>> {
    let host = host::standard();
    let start = |_| choices.iter().map(|choice| choice.start()).collect::<Result<Vec<_>, _>>();
    share_out(lines, jobs, start, |engines, line| vector(line, engines, &host))
}

fn vector(line: &str, engines: &mut [Box<dyn Engine>], host: &Host) -> anyhow::Result<Vec<Played>> {
    let vector: vector::Vector = serde_json::from_str(line)?;
    let context = Context { dialect: Dialect::OpenBsd, ..Context::new(host) };
    let ruleset = match load(&vector.rules, &context) {
        Ok(ruleset) => ruleset,
        Err(text) => {
            let difference = || {
                Played::Different(Difference {
                    id: vector.id.clone(),
                    text: format!("{}: {text}", vector.id),
                    scenario: None,
                })
            };
            return Ok(engines.iter().map(|_| difference()).collect());
        }
    };
    let case = convert::case(&vector)?;
    let play = |engine: &mut Box<dyn Engine>| play(&case, &ruleset, host, engine.as_mut());
    Ok(engines.iter_mut().map(play).collect())
}

/// Parses the rules of a vector.
///
/// # Errors
/// Fails with the messages if the rules are refused, or with the message of a panic.
pub fn load(rules: &str, context: &Context) -> Result<Ruleset, String> {
    match catching(|| skipstep_pfconf::load(rules, context))? {
        Ok(loaded) => Ok(loaded.ruleset),
        Err(rejected) => {
            let lines: Vec<String> = rejected.diagnostics.iter().map(Diagnostic::explain).collect();
            Err(format!("rules refused\n{}", lines.join("\n")))
        }
    }
}

fn play(case: &Case, ruleset: &Ruleset, host: &Host, engine: &mut dyn Engine) -> Played {
    let id = case.title.clone().unwrap_or_default();
    let played = catching(|| run::play(case, ruleset, host, engine, Stop::AtFirst))
        .and_then(|findings| findings);
    match played.map(|findings| findings.into_iter().next()) {
        Ok(None) => Played::Equal,
        Ok(Some(finding)) => Played::Different(Difference {
            text: format!(
                "{id}: {}\n{}",
                describe(case, finding.step),
                finding.differences.join("\n")
            ),
            scenario: Some(up_to(case, finding.step)),
            id,
        }),
        Err(error) => Played::Different(Difference {
            text: format!("{id}: {error}"),
            scenario: Some(File { host: None, cases: vec![case.clone()] }.to_string()),
            id,
        }),
    }
}

/// Describes the packet of a step, with its number in the case.
fn describe(case: &Case, step: usize) -> String {
    let what = match &case.steps[step].action {
        Action::Packet(arrival, _) => format!(
            "{} {}: {}",
            if arrival.direction == skipstep_ruleset::Direction::In { "in" } else { "out" },
            arrival.interface,
            skipstep_wire::print::line(&arrival.packet.bytes())
        ),
        Action::Forward(interface, _) => format!("forward out {interface}"),
        other => other.to_string().chars().take(100).collect(),
    };
    let packets = case.steps[..=step]
        .iter()
        .filter(|step| matches!(step.action, Action::Packet(..) | Action::Forward(..)));
    format!("packet {}: {what}", packets.count())
}

/// Formats the case up to a step as a scenario file.
fn up_to(case: &Case, step: usize) -> String {
    let mut case = case.clone();
    case.steps.truncate(step + 1);
    File { host: None, cases: vec![case] }.to_string()
}
