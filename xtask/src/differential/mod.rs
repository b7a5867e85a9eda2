//! `xtask differential`: random rule sets and packets, on which model and BPF programs must agree.
//!
//! The model plays first, and all of its results become expectations: verdict, rule, reasons,
//! states, bytes, log, counters. A disagreement is shrunk to the fewest steps and rules that still
//! show it, and written as a scenario file.

mod anchors;
mod answers;
mod appliance;
mod changes;
mod compare;
mod conversation;
mod coverage;
mod generate;
mod host_changes;
mod legacy;
mod limiters;
mod malformed;
mod network;
mod optimizer;
mod packets;
mod pool;
mod progress;
mod quotes;
pub mod read_back;
mod reloads;
mod routing;
mod rules;
mod shrink;
mod systems;
mod tcp;
mod translation;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;

use anyhow::Context;
use skipstep_scenario::case::{Case, File};
use skipstep_scenario::host;

use self::progress::Progress;
use crate::engines::Choice;

#[derive(clap::Args)]
pub struct Arguments {
    /// Minimum number of packets
    #[arg(long, default_value_t = 200_000)]
    packets: u64,
    /// Seed of the random sequence; the same seed gives the same cases
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Form of the random rule sets
    #[arg(long, value_enum, default_value = "random")]
    rules: appliance::Drawn,
    /// Evaluator to compare with the model
    #[arg(long, value_enum, default_value = "all")]
    engine: Choice,
    /// Play each case on one evaluator, and the next case on the next evaluator: three times as
    /// many cases in the same time
    #[arg(long)]
    in_turn: bool,
    /// Give all tables of the evaluator bpf-compiled an index; changes of tables become slow
    #[arg(long)]
    index_tables: bool,
    /// Compare the model before and after the rule set optimizer instead
    #[arg(long, conflicts_with_all = ["engine", "in_turn", "index_tables", "jobs", "resume"])]
    optimizer: bool,
    /// File of cases that --optimizer wrote, to play instead of random cases
    #[arg(long, value_name = "FILE", requires = "optimizer")]
    again: Option<PathBuf>,
    /// Number of threads
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Number of disagreements after which the test stops
    #[arg(long, value_name = "N", default_value_t = 1)]
    failures: usize,
    /// File that stores the progress of a seed; the test continues from there
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Directory for the scenario files of disagreements
    #[arg(long, value_name = "DIR", default_value = "target/differential")]
    output: PathBuf,
}

/// The reason why a lock is never poisoned.
const UNPOISONED: &str = "no thread panics with the lock";

/// A case on which two evaluators disagree.
struct Disagreement {
    number: u64,
    engine: String,
    case: Case,
    differences: Vec<String>,
}

/// Plays random cases until the packets or the disagreements of the arguments are reached.
///
/// # Errors
/// Fails if an evaluator cannot start, if the model refuses a case, or if a file cannot be written.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if arguments.optimizer {
        return optimizer::run(&arguments);
    }
    let mut choices = arguments.engine.available()?;
    if choices.len() > 1 {
        // the others are compared with the model's results
        choices.retain(|choice| *choice != Choice::Model);
    }
    let jobs = arguments
        .jobs
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let progress = Mutex::new(Progress::begin(arguments.seed, arguments.resume.as_deref())?);
    let host = host::standard();
    let start = |choice: &Choice| match arguments.index_tables {
        true => choice.start(),
        false => choice.start_without_indexes(),
    };
    let worker = || -> anyhow::Result<()> {
        let mut engines = choices.iter().map(start).collect::<Result<Vec<_>, _>>()?;
        loop {
            let number = {
                let mut progress = progress.lock().expect(UNPOISONED);
                let enough = progress.packets() >= arguments.packets;
                if enough || progress.disagreements() >= arguments.failures {
                    return Ok(());
                }
                progress.next_case()
            };
            let text = arguments.rules.text();
            let generated = generate::generate((arguments.seed, number), &host, text, true)?;
            let coverage = generated.coverage;
            let turn = number as usize % engines.len();
            let asked =
                if arguments.in_turn { &mut engines[turn..=turn] } else { &mut engines[..] };
            let disagreement = compare::compare(number, generated, &host, asked);
            if let Some(disagreement) = &disagreement {
                report(disagreement, &arguments)?;
            }
            progress.lock().expect(UNPOISONED).done(number, &coverage, disagreement.is_some())?;
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("workers catch panics"))
    })?;
    let names: Vec<&str> = choices.iter().map(|choice| choice.name()).collect();
    let progress = progress.into_inner().expect(UNPOISONED);
    let turns = if arguments.in_turn { " in turn" } else { "" };
    println!("{}", progress.total(&format!("{}{turns}", names.join(", ")))?);
    Ok(if progress.disagreements() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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
    let again = match arguments.optimizer {
        true => "differential --optimizer --again".to_owned(),
        false => format!("scenarios --engine {engine}"),
    };
    println!("rerun: xtask {again} {}\n", path.display());
    Ok(())
}
