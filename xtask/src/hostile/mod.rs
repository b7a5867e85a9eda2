//! `xtask hostile`: states of every kind, and thousands of hostile packets. Many have the states'
//! addresses and ports; enough of them exhaust everything that is limited. Afterwards:
//!
//! - The valid traffic of each state passes both ways and arrives unchanged.
//! - Every packet is counted in exactly one place.
//! - The kernel has logged no error.

mod attack;
mod flow;
mod kernel_log;
mod ledger;
mod segment;

use std::process::ExitCode;

use anyhow::{bail, ensure};
use fastrand::Rng;
use skipstep_model::{Draw, Verdict};
use skipstep_pfconf::Context as RulesContext;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Reason, Ruleset};
use skipstep_scenario::Engine;
use skipstep_scenario::host;

use self::ledger::Ledger;
use crate::engines::Choice;

/// Rules with every treatment of packets by states, and with low limits.
const RULES: &str = include_str!("rules.conf");

/// Reasons that must have dropped a packet, each for an exhausted limit.
const EXHAUSTED: [Reason; 5] =
    [Reason::Memory, Reason::Translate, Reason::SrcLimit, Reason::StateLimit, Reason::Fragment];

/// Number of further clients of each server before the hostile packets: more than the ports,
/// limiter entries and source nodes that the rules allow.
const CROWD: usize = 10;

#[derive(clap::Args)]
pub struct Arguments {
    /// Number of hostile packets
    #[arg(long, default_value_t = 10_000)]
    packets: u32,
    /// Seed of the random sequence
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Evaluator to use
    #[arg(long, value_enum, default_value = "all")]
    engine: Choice,
}

/// The result of a hostile packet.
type Judged = (Verdict, Vec<Reason>);

/// Plays the test on the chosen evaluators, always with the model first.
///
/// # Errors
/// Fails if an evaluator differs from the model, if a check fails, or if an evaluator cannot start.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let host = host::standard();
    let ruleset = match skipstep_pfconf::load(RULES, &RulesContext::new(&host)) {
        Ok(loaded) => loaded.ruleset,
        Err(rejected) => bail!("{:?}", rejected.diagnostics),
    };
    let kernel_log = kernel_log::Reader::open()?;
    let referee = play(Choice::Model.start()?.as_mut(), &ruleset, &host, &arguments)?;
    let mut names = vec!["model"];
    for choice in arguments.engine.available()?.into_iter().filter(|one| *one != Choice::Model) {
        let judged = play(choice.start()?.as_mut(), &ruleset, &host, &arguments)?;
        for (number, (found, expected)) in judged.iter().zip(&referee).enumerate() {
            let name = choice.name();
            ensure!(found == expected, "packet {number}: {name} {found:?}, model {expected:?}");
        }
        names.push(choice.name());
    }
    // the packets are one test, and the kernel's log is another
    let (passed_tests, skipped_tests) = match kernel_log {
        Some(log) => log.ensure_silence().map(|()| (2, 0))?,
        None => (1, 1),
    };
    let passed = referee.iter().filter(|(verdict, _)| *verdict == Verdict::Pass).count();
    println!(
        "hostile: seed {}, {} packets, {passed} of which may pass; {} flows go on, on {}\n\
         {passed_tests} passed, 0 failed, {skipped_tests} skipped",
        arguments.seed,
        referee.len(),
        flow::all().len(),
        names.join(", ")
    );
    Ok(ExitCode::SUCCESS)
}

/// Plays valid traffic, hostile packets, and valid traffic. Returns the results of the hostile
/// packets.
fn play(
    engine: &mut dyn Engine,
    ruleset: &Ruleset,
    host: &Host,
    arguments: &Arguments,
) -> anyhow::Result<Vec<Judged>> {
    let name = engine.name().to_owned();
    engine.load(ruleset, host).map_err(anyhow::Error::msg)?;
    engine.set_random(Draw::Sequence(0x1000_0000));
    let mut ledger = Ledger::new(engine);
    let mut flows = flow::all();
    for flow in &mut flows {
        flow.open(&mut ledger)?;
        flow.talk(&mut ledger)?;
    }
    let mut rng = Rng::with_seed(arguments.seed);
    let mut judged = Vec::new();
    let crowd = flows.iter().flat_map(|flow| std::iter::repeat_n(flow, CROWD));
    let mut packets: Vec<_> = crowd.map(|flow| attack::newcomer(&mut rng, flow)).collect();
    packets.extend((0..arguments.packets).map(|_| attack::packet(&mut rng, &flows)));
    for packet in packets {
        let fate = ledger.play(&packet);
        judged.push((fate.verdict, fate.counted));
    }
    for flow in &mut flows {
        for _ in 0..3 {
            flow.talk(&mut ledger)?;
        }
    }
    ledger.close(ruleset, host).map_err(|problem| problem.context(name))?;
    for reason in EXHAUSTED {
        let happened = judged.iter().any(|(_, counted)| counted.contains(&reason));
        ensure!(happened, "nothing was dropped for {}", reason.name());
    }
    Ok(judged)
}
