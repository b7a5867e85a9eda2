//! `xtask differential`: random rule sets and packets, on which model and BPF programs must agree.
//!
//! The model plays first and what it did is expected of the others, everything of it: verdict,
//! rule, reasons, states, bytes, log, counters. A disagreement is shrunk to the fewest steps and
//! rules that still show it and written as a scenario file.

mod anchors;
mod coverage;
mod optimizer;
mod packets;
mod pool;
mod routing;
mod rules;
mod shrink;
mod translation;

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use fastrand::Rng;
use skipstep_pfconf::Context as RulesContext;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::support::refusals;
use skipstep_ruleset::{Direction, Rule, Ruleset, Timeout, Timeouts};
use skipstep_scenario::case::{Action, Case, File, Rules, Step};
use skipstep_scenario::expect::Out;
use skipstep_scenario::observe::Observation;
use skipstep_scenario::run::{self, Event, Finding, Player, Stop};
use skipstep_scenario::{Engine, Model, host};

use self::coverage::Coverage;
use self::packets::Traffic;
use self::pool::Pool;
use crate::catch::catching;
use crate::engines::Choice;

#[derive(clap::Args)]
pub struct Arguments {
    /// How many packets at least
    #[arg(long, default_value_t = 200_000)]
    packets: u64,
    /// Where the random sequence begins; the same seed makes the same cases
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Compare the model with this evaluator
    #[arg(long, value_enum, default_value = "all")]
    engine: Choice,
    /// Compare the model before and after the rule set optimizer instead
    #[arg(long, conflicts_with_all = ["engine", "jobs"])]
    optimizer: bool,
    /// Threads
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Disagreements to look for before stopping
    #[arg(long, value_name = "N", default_value_t = 1)]
    failures: usize,
    /// Where disagreements are written as scenario files
    #[arg(long, value_name = "DIR", default_value = "target/differential")]
    output: PathBuf,
}

/// Why locking cannot fail.
const UNPOISONED: &str = "no thread panics with the lock";

/// Steps of one case.
const STEPS: usize = 120;

/// A case on which two evaluators disagree.
struct Disagreement {
    number: u64,
    engine: String,
    case: Case,
    differences: Vec<String>,
}

pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if arguments.optimizer {
        return optimizer::run(&arguments);
    }
    let choices = arguments.engine.available()?;
    let jobs = arguments
        .jobs
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let cases = AtomicU64::new(0);
    let covered = Mutex::new(Coverage::default());
    let found = Mutex::new(0);
    let host = host::standard();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs)
            .map(|_| {
                scope.spawn(|| -> anyhow::Result<()> {
                    let mut engines = choices
                        .iter()
                        .map(|choice| choice.start())
                        .collect::<Result<Vec<_>, _>>()?;
                    while covered.lock().expect(UNPOISONED).packets < arguments.packets {
                        let number = cases.fetch_add(1, Ordering::Relaxed);
                        let (case, coverage) =
                            generate(arguments.seed, number, &host, rules::text)?;
                        covered.lock().expect(UNPOISONED).add(&coverage);
                        let disagreement = compare(number, &case, &host, &mut engines)?;
                        let mut found = found.lock().expect(UNPOISONED);
                        if let Some(disagreement) = disagreement {
                            report(&disagreement, &arguments)?;
                            *found += 1;
                        }
                        if *found >= arguments.failures {
                            return Ok(());
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("workers catch panics"))
    })?;
    let found = found.into_inner().expect(UNPOISONED);
    let names: Vec<&str> = choices.iter().map(|choice| choice.name()).collect();
    let covered = covered.into_inner().expect(UNPOISONED);
    println!("differential: {covered}");
    println!(
        "differential: seed {}, {} cases, {} packets on {}: {} disagreements",
        arguments.seed,
        cases.into_inner(),
        covered.packets,
        names.join(", "),
        found
    );
    Ok(if found == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Case `number` of a seed, without expectations, and what its packets met.
fn generate(
    seed: u64,
    number: u64,
    host: &Host,
    text: fn(&mut Rng, &mut Pool) -> String,
) -> anyhow::Result<(Case, Coverage)> {
    let mut rng = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number);
    let (rules, ruleset, pool) = loop {
        let mut pool = Pool::new();
        let text = text(&mut rng, &mut pool);
        if let Ok(ruleset) = load(&text, host) {
            break (text, ruleset, pool);
        }
    };
    let mut model = Model::new();
    let mut player = Player::load(&mut model, &ruleset, host).map_err(anyhow::Error::msg)?;
    let mut traffic = Traffic::new(&pool, tags(&ruleset));
    let mut case = Case {
        title: Some(format!("seed {seed} case {number}")),
        rules: Rules { text: rules, lines: Vec::new() },
        steps: Vec::new(),
    };
    let mut last: Option<(Action, Box<Observation>)> = None;
    let mut coverage = Coverage::default();
    for _ in 0..STEPS {
        let before = last.as_ref().map(|(action, observation)| (action, observation.as_ref()));
        let action = traffic.step(&mut rng, before, player.now);
        case.steps.push(Step { line: 0, action: action.clone() });
        match catching(|| player.act(&action)) {
            Ok(Ok(Event::Packet(observation))) => {
                coverage.count(&observation);
                last = Some((action, observation));
            }
            Ok(Ok(_)) => {
                // the states seen last stay of use, but the packet cannot go on any more
                if let Some((before, _)) = &mut last {
                    *before = action;
                }
            }
            // the comparison will meet the same panic and report it
            Ok(Err(_)) | Err(_) => break,
        }
    }
    Ok((case, coverage))
}

/// Leaves out of the expectations the addresses of ICMP errors where skipstep deliberately
/// answers from another address than pf: with the destination of the packet instead of an own
/// address if Linux would refuse its own address as a source (an answer to this host itself), or
/// if the kernel does not say which own address is right (link-local and broadcast addresses).
fn loosen(case: &mut Case, host: &Host) {
    let mut previous = None;
    for step in &mut case.steps {
        let (outbound, bytes, expected) = match &mut step.action {
            Action::Packet(arrival, expected) => {
                let bytes = arrival.packet.bytes();
                // on its way out it is what the way in made of it
                previous = match &expected.out {
                    Some(Out::Bytes(out)) => Some(out.clone()),
                    _ => Some(bytes.clone()),
                };
                (arrival.direction == Direction::Out, bytes, expected)
            }
            Action::Forward(_, expected) => match previous.clone() {
                Some(bytes) => (true, bytes, expected),
                None => continue,
            },
            _ => continue,
        };
        let special = addresses(&bytes).is_none_or(|(source, destination)| {
            outbound && is_own(host, source)
                || is_special(host, source)
                || is_special(host, destination)
        });
        if special && let Some(replies) = &mut expected.replies {
            replies.iter_mut().for_each(|reply| *reply = reply.without_addresses());
        }
    }
}

/// Source and destination of an IP packet.
fn addresses(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    let part = |range: std::ops::Range<usize>| packet.get(range);
    match packet.first()? >> 4 {
        4 => {
            let address = |range| Some(IpAddr::from(<[u8; 4]>::try_from(part(range)?).ok()?));
            Some((address(12..16)?, address(16..20)?))
        }
        6 => {
            let address = |range| Some(IpAddr::from(<[u8; 16]>::try_from(part(range)?).ok()?));
            Some((address(8..24)?, address(24..40)?))
        }
        _ => None,
    }
}

fn is_own(host: &Host, address: IpAddr) -> bool {
    let mut own = host.interfaces.iter().flat_map(|interface| &interface.addresses);
    own.any(|own| own.net.addr() == address)
}

/// Whether an address is link-local, multicast, or the first or last of an own network.
fn is_special(host: &Host, address: IpAddr) -> bool {
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.segments()[0] & 0xff80 == 0xfe80,
    };
    let mut own = host.interfaces.iter().flat_map(|interface| &interface.addresses);
    let edge = own.any(|own| own.net.network() == address || own.net.broadcast() == address);
    link_local || address.is_multicast() || edge
}

/// The tags that rules set or look for.
fn tags(ruleset: &Ruleset) -> Vec<String> {
    let mut tags: Vec<String> = Vec::new();
    for (_, rule) in ruleset.all_rules() {
        tags.extend(rule.tag.clone());
        tags.extend(rule.tagged.as_ref().map(|tagged| tagged.value.clone()));
    }
    tags.sort();
    tags.dedup();
    tags
}

/// Whether a packet carries a tag that no rule knows, as may happen when rules were left out. The
/// data plane has no such tags, so that means nothing.
fn carries_unknown_tag(case: &Case, ruleset: &Ruleset) -> bool {
    let known = tags(ruleset);
    case.steps.iter().any(|step| match &step.action {
        Action::Packet(arrival, _) => arrival.tag.as_ref().is_some_and(|tag| !known.contains(tag)),
        _ => false,
    })
}

/// The rule set, unless it is wrong, has together what is not built together, or may end states
/// where nobody can compare them.
fn load(text: &str, host: &Host) -> Result<Ruleset, ()> {
    let ruleset = skipstep_pfconf::load(text, &RulesContext::new(host)).map_err(|_| ())?.ruleset;
    match refusals(&ruleset).is_empty() && !ends_states_in_between(&ruleset) {
        true => Ok(ruleset),
        false => Err(()),
    }
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

/// Plays a case on all engines. The first that disagrees with the model is told, with the case
/// shrunk.
fn compare(
    number: u64,
    case: &Case,
    host: &Host,
    engines: &mut [Box<dyn Engine>],
) -> anyhow::Result<Option<Disagreement>> {
    for engine in engines {
        if let Some((cut, _)) = disagreement(case, host, engine.as_mut()) {
            let shrunk =
                shrink::smallest(&cut, |case| disagreement(case, host, engine.as_mut()).is_some());
            let (case, differences) = disagreement(&shrunk, host, engine.as_mut())
                .context("a disagreement does not come back when it is played again")?;
            return Ok(Some(Disagreement {
                number,
                engine: engine.name().to_owned(),
                case,
                differences,
            }));
        }
    }
    Ok(None)
}

/// How an engine's play of a case differs from the model's: the case with the model's results
/// expected, up to the first difference, and that difference.
fn disagreement(case: &Case, host: &Host, engine: &mut dyn Engine) -> Option<(Case, Vec<String>)> {
    let ruleset = load(&case.rules.text, host).ok()?;
    if carries_unknown_tag(case, &ruleset) {
        return None;
    }
    let mut recorded = match catching(|| run::record(case, &ruleset, host, &mut Model::new())) {
        Ok(Ok(recorded)) => recorded,
        Ok(Err(_)) => return None,
        Err(panic) => return Some((case.clone(), vec![format!("the model: {panic}")])),
    };
    loosen(&mut recorded, host);
    match catching(|| run::play(&recorded, &ruleset, host, engine, Stop::AtFirst)) {
        Ok(Ok(findings)) => {
            let Finding { step, differences, .. } = findings.into_iter().next()?;
            let mut case = recorded;
            case.steps.truncate(step + 1);
            Some((case, differences))
        }
        Ok(Err(error)) | Err(error) => Some((recorded, vec![error])),
    }
}

fn report(disagreement: &Disagreement, arguments: &Arguments) -> anyhow::Result<()> {
    let Disagreement { number, engine, case, differences } = disagreement;
    let text = File { host: None, cases: vec![case.clone()] }.to_string();
    std::fs::create_dir_all(&arguments.output)
        .with_context(|| format!("make {}", arguments.output.display()))?;
    let path = arguments.output.join(format!("seed-{}-case-{number}.{engine}.scn", arguments.seed));
    std::fs::write(&path, &text).with_context(|| format!("write {}", path.display()))?;
    println!("{engine} and the model disagree; in {}:\n{text}", path.display());
    for difference in differences {
        println!("  {difference}");
    }
    println!("rerun: xtask scenarios --engine {engine} {}\n", path.display());
    Ok(())
}
