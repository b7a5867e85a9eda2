//! `xtask conformance`: replays recorded packets of OpenBSD's pf on the evaluators.

mod convert;
mod printed;
mod replay;
mod shows;
mod vector;
mod workers;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

use self::replay::{Difference, Played};
use crate::engines::Choice;

/// Names of the vector files.
const FILES: &[&str] = &[
    printed::FILE,
    "basic",
    "rules",
    "tcp",
    "udp_icmp",
    "ipv6",
    "normalize",
    "limits",
    "anchors_match_tags",
    "translate",
    "nat64",
    shows::FILE,
];

#[derive(clap::Args)]
pub struct Arguments {
    /// Directory of the vectors
    #[arg(long, value_name = "DIR", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/vectors"))]
    vectors: PathBuf,
    /// Files to replay, named without .jsonl.gz; by default all
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    file: Vec<String>,
    /// Evaluator to use
    #[arg(long, value_enum, default_value = "all")]
    engine: Choice,
    /// Id of the only vector to replay
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Maximum number of vectors of each file, from its beginning
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Maximum number of vectors of each file, spread evenly
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// Number of threads
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Maximum number of differences to print for each file and evaluator
    #[arg(long, value_name = "N", default_value_t = 3)]
    show: usize,
    /// Directory for the scenario files of differences
    #[arg(long, value_name = "DIR", default_value = "target/conformance")]
    output: PathBuf,
}

/// Results of a file's vectors on one evaluator.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: Vec<Difference>,
    not_built: usize,
}

/// Replays the selected vectors and prints the results. Succeeds without vectors.
///
/// # Errors
/// Fails if a file cannot be read, or if an evaluator cannot start.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if !arguments.vectors.is_dir() {
        println!("skipped: no conformance vectors in {}", arguments.vectors.display());
        return Ok(ExitCode::SUCCESS);
    }
    let jobs = arguments
        .jobs
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let choices = arguments.engine.available()?;
    let named: Vec<&str> = arguments.file.iter().map(String::as_str).collect();
    let files = if named.is_empty() { FILES } else { &named[..] };
    let mut total = Total::default();
    // vectors of several files are replayed together; `names` has the file of each
    let (mut names, mut vectors) = (Vec::new(), Vec::new());
    for name in files {
        let path = arguments.vectors.join(format!("{name}.jsonl.gz"));
        let lines = select(vector::lines(&path)?, &arguments);
        if *name != shows::FILE {
            let tally = printed::compare(&lines)?;
            show_printed(name, &tally, arguments.show);
            total.passed += tally.equal;
            total.failed += tally.differences.len();
            total.skipped += tally.other_host;
        }
        match *name {
            printed::FILE => (),
            shows::FILE => {
                let played = shows::all(&lines, &arguments.vectors, &choices, jobs)?;
                total.add(name, &tallies(&choices, played), &arguments)?;
            }
            _ => {
                names.extend(lines.iter().map(|_| *name));
                vectors.extend(lines);
            }
        }
    }
    let mut played = replay::all(&vectors, &choices, jobs)?.into_iter();
    for file in names.chunk_by(|a, b| a == b) {
        let played = played.by_ref().take(file.len());
        total.add(file[0], &tallies(&choices, played), &arguments)?;
    }
    let Total { passed, failed, skipped } = total;
    println!("conformance: {passed} passed, {failed} failed, {skipped} vectors skipped");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Results of all files and evaluators.
#[derive(Default)]
struct Total {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Total {
    /// Prints the results of a file, and counts them.
    fn add(
        &mut self,
        file: &str,
        tallies: &[(Choice, Tally)],
        arguments: &Arguments,
    ) -> anyhow::Result<()> {
        print!("{file:<20}");
        for (choice, tally) in tallies {
            print!(" {} {}/{} ", choice.name(), tally.passed, tally.passed + tally.failed.len());
            if tally.not_built != 0 {
                print!("(and {} not built) ", tally.not_built);
            }
            self.passed += tally.passed;
            self.failed += tally.failed.len();
        }
        println!();
        self.skipped += tallies.iter().map(|(_, tally)| tally.not_built).max().unwrap_or(0);
        for (choice, tally) in tallies {
            show(choice.name(), tally, arguments)?;
        }
        Ok(())
    }
}

/// Counts the results of a file's vectors for each evaluator.
fn tallies(
    choices: &[Choice],
    played: impl IntoIterator<Item = Vec<Played>>,
) -> Vec<(Choice, Tally)> {
    let mut tallies: Vec<_> = choices.iter().map(|choice| (*choice, Tally::default())).collect();
    for results in played {
        for ((_, tally), result) in tallies.iter_mut().zip(results) {
            match result {
                Played::Equal => tally.passed += 1,
                Played::Different(difference) => tally.failed.push(difference),
                Played::NotBuilt => tally.not_built += 1,
            }
        }
    }
    tallies
}

/// Prints the number of rule sets of a file that print as recorded, and the first differences.
fn show_printed(file: &str, tally: &printed::Tally, most: usize) {
    let printed::Tally { equal, other_host, differences } = tally;
    let skipped = if *other_host == 0 { "" } else { " skipped 1, which is of another host" };
    println!("{file:<20} pfctl {equal}/{} {skipped}", equal + differences.len());
    for difference in differences.iter().take(most) {
        println!("  {}", difference.trim_end().replace('\n', "\n      "));
    }
}

/// Selects the vectors that the arguments name.
fn select(lines: Vec<String>, arguments: &Arguments) -> Vec<String> {
    let wanted = arguments.id.as_ref().map(|id| format!("{{\"id\":\"{id}\","));
    let mut lines: Vec<String> = lines
        .into_iter()
        .filter(|line| wanted.as_ref().is_none_or(|wanted| line.starts_with(wanted)))
        .collect();
    if let Some(limit) = arguments.limit {
        lines.truncate(limit);
    }
    match arguments.sample {
        Some(count) if count < lines.len() && count > 0 => {
            let step = lines.len() as f64 / count as f64;
            let chosen: Vec<usize> = (0..count).map(|i| (i as f64 * step) as usize).collect();
            chosen.into_iter().map(|place| std::mem::take(&mut lines[place])).collect()
        }
        _ => lines,
    }
}

/// Prints the first differences and writes them as scenario files.
fn show(engine: &str, tally: &Tally, arguments: &Arguments) -> anyhow::Result<()> {
    for difference in tally.failed.iter().take(arguments.show) {
        println!("  {engine}: {}", difference.text.trim_end().replace('\n', "\n      "));
        if let Some(scenario) = &difference.scenario {
            std::fs::create_dir_all(&arguments.output)
                .with_context(|| format!("make {}", arguments.output.display()))?;
            let path = arguments.output.join(format!("{}.{engine}.scn", difference.id));
            std::fs::write(&path, scenario).with_context(|| format!("write {}", path.display()))?;
            println!("      rerun: xtask scenarios --engine {engine} {}", path.display());
        }
    }
    Ok(())
}
