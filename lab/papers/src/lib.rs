//! `fwlab paper`: repeats published measurements. A paper is a plan of measurements, its own table
//! beside the figures of today, and a verdict on each of its findings. docs/reference/fwlab.md
//! lists the differences between each repetition and its original.
//!
//! A paper uses the rounds and testbeds of fwlab-method. [`speed`] is such a study, too: skipstep's
//! own performance targets beside the measured figures.

mod adamo_tablo;
mod freebsd_openbsd;
mod gigabit;
mod hartmeier;
mod molitor;
mod series;
pub mod speed;
mod states;
mod study;
mod text;
mod verdict;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use clap::ValueEnum;
use fwlab_load::seconds;
use fwlab_net::interrupt::{Interrupt, Interrupted};
use fwlab_net::{environment, host};
use fwlab_results::{Finding, Mode, Run, Table, report};

use study::{Extent, Study};

/// The papers of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PaperChoice {
    /// Adamo and Tablò: request and response by number of rules, through a router and a bridge
    AdamoTablo,
    /// Hartmeier: throughput, loss and latency, by rules and by states
    Hartmeier,
    /// Molitor: pings, FTP sessions and bulk transfers through a filter and a proxy
    Molitor,
    /// PF on FreeBSD and on OpenBSD: idle CPU time of the firewall under FTP and iperf
    FreebsdOpenbsd,
    /// a PF firewall on gigabit Ethernet: throughput in one direction, the other, and both
    Gigabit,
    /// all papers, one after the other
    All,
}

/// Arguments of `fwlab paper`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Paper to repeat
    #[arg(value_enum)]
    paper: PaperChoice,
    #[command(flatten)]
    options: StudyOptions,
}

/// The extent of the measurement, the systems, and the folder of the result.
#[derive(Debug, Clone, clap::Args)]
pub struct StudyOptions {
    /// Run only the cells that exercise the code; the figures mean nothing
    #[arg(long, conflicts_with_all = ["quick", "full"])]
    smoke: bool,
    /// Run fewer cells and short trials, but test every finding; this is the default
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Run every cell, with longer trials and more rounds
    #[arg(long)]
    full: bool,
    /// Number of rounds, 1 to 10000; each round measures every system once
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: Option<u32>,
    /// Duration of a trial in seconds, 0.01 to 3600
    #[arg(long, value_parser = seconds)]
    seconds: Option<f64>,
    /// Systems to measure, by default all that are installed and support the load
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    systems: Vec<String>,
    /// Folder for the result file and the report
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// A paper, or another study that is measured, tabled and judged like a paper.
pub(crate) trait Paper {
    /// Returns the name on the command line.
    fn name(&self) -> &'static str;

    /// Returns the title.
    fn title(&self) -> &'static str;

    /// Returns the authors and the place of publication.
    fn source(&self) -> &'static str;

    /// Returns the way in which clients, firewall and servers share the machine.
    fn mode(&self) -> Mode {
        Mode::Cost
    }

    /// Returns the permanent differences between this repetition and the original.
    fn differences(&self) -> Vec<&'static str>;

    /// Measures the plan. The results are stored in the study, also after an error.
    ///
    /// # Errors
    /// Fails if the plan cannot be measured on this machine, or if a signal arrives.
    fn measure(&self, study: &mut Study) -> anyhow::Result<()>;

    /// Returns the paper's tables with the results of a run.
    fn tables(&self, run: &Run) -> Vec<Table>;

    /// Returns the paper's findings, each with the verdict of a run.
    fn findings(&self, run: &Run) -> Vec<Finding>;
}

fn all() -> Vec<Box<dyn Paper>> {
    vec![
        Box::new(adamo_tablo::AdamoTablo),
        Box::new(hartmeier::Hartmeier),
        Box::new(molitor::Molitor),
        Box::new(freebsd_openbsd::FreebsdOpenbsd),
        Box::new(gigabit::Gigabit),
    ]
}

/// Repeats papers, prints their tables and writes the results. An interrupted paper is printed and
/// written, too.
///
/// # Errors
/// Fails if a paper cannot be repeated on this machine, if a file cannot be written, or if a signal
/// arrives.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let interrupt = arguments.options.begin("paper")?;
    let mut failed = Vec::new();
    for paper in all() {
        let wanted = arguments.paper == PaperChoice::All
            || arguments.paper.to_possible_value().is_some_and(|w| w.get_name() == paper.name());
        if !wanted {
            continue;
        }
        match repeat(&*paper, &arguments.options, &interrupt) {
            Err(error) if error.is::<Interrupted>() || arguments.paper != PaperChoice::All => {
                return Err(error);
            }
            Err(error) => {
                eprintln!("fwlab: {}: {error:#}", paper.name());
                failed.push(paper.name());
            }
            Ok(()) => {}
        }
    }
    if !failed.is_empty() {
        bail!("not repeated: {}", failed.join(", "));
    }
    Ok(())
}

/// Runs a study that is not in the list of papers.
///
/// # Errors
/// Fails if it cannot be measured on this machine, or if a signal arrives.
pub(crate) fn run_alone(paper: &dyn Paper, options: &StudyOptions) -> anyhow::Result<()> {
    let interrupt = options.begin(paper.name())?;
    repeat(paper, options, &interrupt)
}

fn repeat(paper: &dyn Paper, options: &StudyOptions, interrupt: &Interrupt) -> anyhow::Result<()> {
    let watch = fwlab_results::Watch::begin();
    let mut run = Run::begin(paper.mode(), environment::here());
    let mut differences: Vec<String> = paper.differences().into_iter().map(str::to_owned).collect();
    differences.push(options.extent().words().to_owned());
    run.paper = Some(fwlab_results::Paper {
        title: paper.title().to_owned(),
        source: paper.source().to_owned(),
        differences,
        tables: Vec::new(),
    });
    let file = options.out.as_ref().map(|folder| folder.join(format!("{}.json", paper.name())));
    let mut study = Study::new(run, watch, options, file, interrupt)?;
    let outcome = interrupt.or_interrupted(paper.measure(&mut study));
    let mut run = study.end(&outcome);
    if run.series.is_empty() {
        return outcome;
    }
    let tables = paper.tables(&run);
    run.findings = paper.findings(&run);
    if let Some(paper) = &mut run.paper {
        paper.tables = tables;
    }
    print!("{}", text::run_text(&run));
    if let Some(folder) = &options.out {
        let file = |end: &str| folder.join(format!("{}.{end}", paper.name()));
        run.write(&file("json")).with_context(|| file("json").display().to_string())?;
        let runs = std::slice::from_ref(&run);
        for (end, text) in [("html", report::html(runs)), ("md", report::markdown(runs))] {
            fs::write(file(end), text).with_context(|| file(end).display().to_string())?;
        }
    }
    outcome
}

impl StudyOptions {
    /// Checks the arguments and rights, makes the folder, and removes the hosts of killed runs.
    fn begin(&self, command: &str) -> anyhow::Result<Interrupt> {
        ensure!(
            nix::unistd::geteuid().is_root(),
            "{command}: must run as root, to make network namespaces"
        );
        for name in &self.systems {
            fwlab_net::system::named(name).map_err(anyhow::Error::msg)?;
        }
        if let Some(folder) = &self.out {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        let interrupt = Interrupt::watch()?;
        host::sweep()?;
        Ok(interrupt)
    }

    fn extent(&self) -> Extent {
        match (self.smoke, self.full) {
            (true, _) => Extent::Smoke,
            (_, true) => Extent::Full,
            _ => Extent::Quick,
        }
    }
}
