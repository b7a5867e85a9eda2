//! `fwlab compare`: the changes from one run to another, and which of them are noise.
//!
//! The comparison uses the ratio of each system to the plain router of the same rounds, or to the
//! null firewall without a router. So a machine that was busier during the second run does not
//! change the result.

mod comparable;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use serde::Serialize;

use crate::stats::{Interval, change_interval, mann_whitney};
use crate::summary::{self, paired};
use crate::{Better, Point, Role, Run, Sample, Series, System};

/// The seed of intervals. It is constant, so that the same files always have the same result.
const SEED: u64 = 1;

/// The exit status if something got worse.
const WORSE: u8 = 1;

/// The exit status if the runs cannot be compared.
const NOT_COMPARABLE: u8 = 2;

/// The flags of `fwlab compare`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Result file of the earlier run
    before: PathBuf,
    /// Result file of the later run
    after: PathBuf,
    /// Print the comparison as JSON
    #[arg(long, conflicts_with = "picture")]
    json: bool,
    /// Print a plot of both runs' samples below each row, as ministat does
    #[arg(long)]
    picture: bool,
}

/// The comparison of two runs.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// Time of the earlier run.
    pub before: String,
    /// Time of the later run.
    pub after: String,
    /// The caveat of the mode.
    pub warning: &'static str,
    /// Differences that may explain the result.
    pub notes: Vec<String>,
    /// The systems at each point that both runs have.
    pub cells: Vec<ComparedSystem>,
}

/// The comparison of one system at one point.
#[derive(Debug, Serialize)]
pub struct ComparedSystem {
    /// Title of the series.
    pub series: String,
    /// Unit of the values.
    pub unit: String,
    /// Name and value of the dimension.
    pub at: Option<(String, f64)>,
    /// Id of the system.
    pub system: String,
    /// Name of the system.
    pub label: String,
    /// Median of the earlier run.
    pub before: f64,
    /// Median of the later run.
    pub after: f64,
    /// Id of the system to which both ratios refer. None if there is no such system.
    pub reference: Option<String>,
    /// Ratio of the later median to the earlier one, each relative to its reference.
    pub change: Interval,
    /// Probability of such a difference in ranks if nothing changed.
    pub p: f64,
    /// The larger noise of the two runs, as a share. None if a run has no placebo.
    pub noise: Option<f64>,
    /// True if the configuration changed.
    pub configuration_differs: bool,
    /// The verdict on the change.
    pub verdict: Verdict,
    /// The compared samples: values divided by the reference's of the same round, earlier and
    /// later.
    #[serde(skip)]
    pub quotients: [Vec<f64>; 2],
}

/// A verdict on a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The change is an improvement.
    Better,
    /// The change is a deterioration.
    Worse,
    /// The change is within the noise.
    Noise,
}

/// Reads two result files, and prints their differences.
///
/// # Errors
/// Fails if a file cannot be read or is no result.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let read = |path: &PathBuf| Run::read(path).with_context(|| path.display().to_string());
    let (before, after) = (read(&arguments.before)?, read(&arguments.after)?);
    let comparison = match compare(&before, &after) {
        Ok(comparison) => comparison,
        Err(reasons) => {
            for reason in reasons {
                eprintln!("fwlab: the runs cannot be compared: {reason}");
            }
            return Ok(ExitCode::from(NOT_COMPARABLE));
        }
    };
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&comparison)?);
    } else {
        print!("{}", text::comparison_text(&comparison));
        if arguments.picture {
            print!("{}", text::pictures(&comparison));
        }
    }
    let worse = comparison.cells.iter().any(|cell| cell.verdict == Verdict::Worse);
    Ok(if worse { ExitCode::from(WORSE) } else { ExitCode::SUCCESS })
}

/// Compares two runs.
///
/// # Errors
/// Fails with all reasons for which the runs cannot be compared.
pub fn compare(before: &Run, after: &Run) -> Result<Comparison, Vec<String>> {
    comparable::check(before, after)?;
    let mut notes = comparable::notes(before, after);
    let mut cells = Vec::new();
    for earlier in &before.series {
        let Some(later) = after.series.iter().find(|later| later.title == earlier.title) else {
            continue;
        };
        for earlier_point in &earlier.points {
            let Some(later_point) = later.points.iter().find(|later| later.at == earlier_point.at)
            else {
                continue;
            };
            if let Some(why) = earlier_point.void.as_ref().or(later_point.void.as_ref()) {
                notes.push(format!("{}: left out: {why}", point_name(earlier, earlier_point)));
                continue;
            }
            cells.extend(compare_point(
                [before, after],
                [earlier, later],
                [earlier_point, later_point],
            ));
        }
    }
    if cells.is_empty() {
        return Err(vec![
            "they have no measurement in common: measure the same points in both".to_string(),
        ]);
    }
    if cells.iter().any(|cell| cell.noise.is_none()) {
        notes.push("some points have no placebo, so their noise is unknown".to_string());
    }
    notes.dedup();
    let warning = before.mode.warning();
    Ok(Comparison {
        before: before.started.clone(),
        after: after.started.clone(),
        warning,
        notes,
        cells,
    })
}

fn point_name(series: &Series, point: &Point) -> String {
    match (&series.dimension, point.at) {
        (Some(dimension), Some(at)) => format!("{}, {} {at}", series.title, dimension.name),
        _ => series.title.clone(),
    }
}

/// Compares every system that both points have. Each pair is the earlier and the later one.
fn compare_point(
    runs: [&Run; 2],
    series: [&Series; 2],
    points: [&Point; 2],
) -> Vec<ComparedSystem> {
    let noise = [0, 1].map(|i| summary::noise(runs[i], points[i]));
    let noise = noise[0].zip(noise[1]).map(|(one, other)| f64::max(one, other));
    let cell = |earlier: &System| {
        let later = runs[1].systems.iter().find(|later| later.id == earlier.id)?;
        let reference = reference(earlier, runs, points);
        let pairs = points.map(|point| ratios(point, &earlier.id, reference));
        let change = change_interval(&pairs[0], &pairs[1], SEED)?;
        let quotients = pairs.each_ref().map(|pairs| -> Vec<f64> {
            pairs.iter().map(|(value, reference)| value / reference).collect()
        });
        let median = |point: &Point| crate::stats::median(&values(point, &earlier.id));
        Some(ComparedSystem {
            series: series[0].title.clone(),
            unit: series[0].quantity.unit.clone(),
            at: series[0].dimension.as_ref().map(|d| d.name.clone()).zip(points[0].at),
            system: earlier.id.clone(),
            label: earlier.label.clone(),
            before: median(points[0])?,
            after: median(points[1])?,
            reference: reference.map(str::to_string),
            p: mann_whitney(&quotients[0], &quotients[1])?.p,
            noise,
            configuration_differs: earlier.sha256 != later.sha256,
            verdict: judge(change, noise.unwrap_or(0.0), series[0].quantity.better),
            change,
            quotients,
        })
    };
    runs[0].systems.iter().filter_map(cell).collect()
}

/// Returns the verdict on a change. A change counts if its interval excludes 1, and if it is larger
/// than the noise between equal systems.
fn judge(change: Interval, noise: f64, better: Better) -> Verdict {
    let size = f64::max(change.middle, 1.0 / change.middle) - 1.0;
    if change.contains(1.0) || size <= noise {
        return Verdict::Noise;
    }
    match better {
        Better::Lower if change.middle < 1.0 => Verdict::Better,
        Better::Higher if change.middle > 1.0 => Verdict::Better,
        _ => Verdict::Worse,
    }
}

/// Returns the id of the system to compare `system` with. Both points must have samples of it.
fn reference<'a>(system: &System, runs: [&'a Run; 2], points: [&Point; 2]) -> Option<&'a str> {
    let measured = |id: &str| points.iter().all(|point| !values(point, id).is_empty());
    let known = |role: fn(Role) -> bool| {
        let mut found = runs[0].systems.iter().filter(|one| role(one.role) && measured(&one.id));
        let first = found.clone().next();
        found.find(|one| one.topology == system.topology).or(first)
    };
    let reference = match system.role {
        Role::Null => None,
        Role::Router | Role::Bridge => known(|role| role == Role::Null),
        Role::Placebo | Role::Subject => known(|role| matches!(role, Role::Router | Role::Bridge))
            .or_else(|| known(|role| role == Role::Null)),
    };
    reference.map(|system| system.id.as_str())
}

fn samples<'a>(point: &'a Point, id: &str) -> Vec<&'a Sample> {
    point.samples.iter().filter(|sample| sample.system == id).collect()
}

fn values(point: &Point, id: &str) -> Vec<f64> {
    samples(point, id).iter().map(|sample| sample.value).collect()
}

/// Returns values with the reference's of the same round, or with 1 if there is no reference.
fn ratios(point: &Point, id: &str, reference: Option<&str>) -> Vec<(f64, f64)> {
    match reference {
        Some(reference) => paired(&samples(point, id), &samples(point, reference)),
        None => values(point, id).into_iter().map(|value| (value, 1.0)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mode, example, sha256};

    fn scaled(factor: f64, which: &str) -> Run {
        let mut run = example::run();
        for point in &mut run.series[0].points {
            for sample in point.samples.iter_mut().filter(|sample| sample.system == which) {
                sample.value *= factor;
            }
        }
        run
    }

    fn verdict(comparison: &Comparison, system: &str) -> Verdict {
        comparison.cells.iter().find(|cell| cell.system == system).unwrap().verdict
    }

    #[test]
    fn a_run_is_as_fast_as_itself() {
        let comparison = compare(&example::run(), &example::run()).unwrap();
        assert!(comparison.cells.iter().all(|cell| cell.verdict == Verdict::Noise));
        assert!(comparison.cells.iter().all(|cell| cell.p > 0.9));
        assert_eq!(comparison.cells.len(), 3 * 4);
    }

    #[test]
    fn only_real_changes_are_found() {
        let comparison = compare(&example::run(), &scaled(0.8, "nft@100")).unwrap();
        assert_eq!(verdict(&comparison, "nft@100"), Verdict::Better);
        assert_eq!(verdict(&comparison, "nft@1000"), Verdict::Noise);
        assert_eq!(verdict(&comparison, "placebo"), Verdict::Noise);
        let cell = comparison.cells.iter().find(|cell| cell.system == "nft@100").unwrap();
        assert!((cell.change.middle - 0.8).abs() < 1e-9 && cell.p < 0.001, "{cell:?}");
        assert_eq!(cell.reference.as_deref(), Some("router"));
        let comparison = compare(&scaled(0.8, "nft@100"), &example::run()).unwrap();
        assert_eq!(verdict(&comparison, "nft@100"), Verdict::Worse);
    }

    #[test]
    fn more_of_a_rate_is_better() {
        let rates = |mut run: Run| {
            run.series[0].quantity.better = Better::Higher;
            run
        };
        let comparison = compare(&rates(example::run()), &rates(scaled(1.3, "nft@100"))).unwrap();
        assert_eq!(verdict(&comparison, "nft@100"), Verdict::Better);
    }

    #[test]
    fn a_machine_that_is_slower_as_a_whole_is_no_change_of_a_firewall() {
        let mut slower = example::run();
        for sample in slower.series[0].points.iter_mut().flat_map(|point| &mut point.samples) {
            sample.value *= 1.5;
        }
        let comparison = compare(&example::run(), &slower).unwrap();
        assert_eq!(verdict(&comparison, "nft@100"), Verdict::Noise);
        assert_eq!(verdict(&comparison, "null"), Verdict::Worse, "it is said where it belongs");
    }

    #[test]
    fn changes_within_the_placebos_noise_do_not_count() {
        let surely = Interval { low: 0.985, middle: 0.99, high: 0.995 };
        assert_eq!(judge(surely, 0.005, Better::Lower), Verdict::Better);
        assert_eq!(judge(surely, 0.02, Better::Lower), Verdict::Noise);
        let perhaps = Interval { low: 0.8, middle: 0.9, high: 1.01 };
        assert_eq!(judge(perhaps, 0.0, Better::Lower), Verdict::Noise);
    }

    #[track_caller]
    fn refused(change: impl FnOnce(&mut Run), why: &str) {
        let mut other = example::run();
        change(&mut other);
        assert_eq!(compare(&example::run(), &other).unwrap_err(), [why]);
    }

    #[test]
    fn runs_that_cannot_be_compared_are_refused() {
        refused(|run| run.mode = Mode::Queue, "mode: cost before, queue after");
        refused(
            |run| run.environment.cpu.model = "Slow".to_string(),
            "processor: Fast Processor before, Slow after",
        );
        refused(
            |run| run.agents[0].environment.cpu.model = "Slow".to_string(),
            "the client's processor: Fast Processor before, Slow after",
        );
        refused(|run| run.agents.clear(), "agents: 1 before, 0 after");
        refused(
            |run| run.series[0].load.size = Some(1518),
            "Cost of a packet by number of rules: load, size: 64 before, 1518 after",
        );
        refused(
            |run| run.series[0].quantity.unit = "us".to_string(),
            "Cost of a packet by number of rules: quantity, unit: \"ns\" before, \"us\" after",
        );
        refused(
            |run| {
                run.topologies[0].offloads.insert("tx-checksumming".to_string(), true);
            },
            "topology router: offloads: tx-checksumming false before, true after",
        );
        refused(
            |run| run.series.clear(),
            "they have no measurement in common: measure the same points in both",
        );
    }

    #[test]
    fn differences_of_machines_are_noted() {
        let mut other = example::run();
        other.environment.kernel = "6.19".to_string();
        other.complete = false;
        other.incomplete_because = Some("interrupted".to_string());
        other.series[0].points[2].void = Some("above 80 % of the ceiling".to_string());
        other.series[0].points[0].samples.retain(|sample| sample.system != "placebo");
        let nft = other.systems.iter_mut().find(|system| system.id == "nft@100").unwrap();
        nft.configuration = "another".to_string();
        nft.sha256 = sha256("another");
        let comparison = compare(&example::run(), &other).unwrap();
        let printed = text::comparison_text(&comparison);
        for expected in [
            "kernel: 6.18.1 #1 SMP before, 6.19 after",
            "the later run is not complete: interrupted",
            "rules 1000: left out: above 80 % of the ceiling",
            "some points have no placebo",
            "both runs are of the same boot",
            "another configuration",
        ] {
            assert!(printed.contains(expected), "{expected}\n{printed}");
        }
        assert!(comparison.cells.iter().all(|cell| cell.system != "nft@1000"));
    }

    #[test]
    fn the_text_is_a_table() {
        let comparison = compare(&example::run(), &scaled(0.8, "nft@100")).unwrap();
        let printed = text::comparison_text(&comparison);
        let line = printed.lines().find(|line| line.contains("better")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[..3], ["100", "nftables", "flat"], "{printed}");
        assert!(line.contains("0.800") && line.contains("better"), "{printed}");
        assert!(printed.contains("not RFC 2544 throughput"), "{printed}");
        let drawn = text::pictures(&comparison);
        assert!(drawn.contains("\nCost of a packet by number of rules, rules 100, nftables flat\nx before\n+ after\n"), "{drawn}");
        assert_eq!(drawn.matches("x before").count(), comparison.cells.len());
        let json = serde_json::to_value(&comparison).unwrap();
        assert_eq!(json["cells"][7]["verdict"], "better", "{json:#}");
    }
}
