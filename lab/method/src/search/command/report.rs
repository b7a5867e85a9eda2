//! The report of a search, and its printed form.

use std::fmt::Write as _;
use std::io::IsTerminal;

use fwlab_results::{Environment, Mode};
use serde::Serialize;
use serde_json::Value;

use super::Arguments;
use super::search::Search;
use crate::search::test::{FrameTest, Test};
use crate::search::{Conformance, Failure, Measurer, Record, Setting, TrialRunner};

/// The report of a search with one kind of frames, or with connections.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub test: Test,
    pub device: String,
    /// The mode. None for a simulated device.
    pub mode: Option<Mode>,
    pub system: Option<fwlab_results::System>,
    pub environment: Option<Environment>,
    pub setting: Setting,
    pub complete: bool,
    pub incomplete_because: Option<String>,
    pub conformance: Conformance,
    /// The conformance that a simulated device's result would have on a virtual link.
    pub on_a_virtual_link: Option<Conformance>,
    /// Seconds that the search took, by the device's clock.
    pub seconds: f64,
    pub result: Value,
    pub trials: Vec<Record>,
    /// The result as text for people.
    #[serde(skip)]
    pub text: String,
}

impl Report {
    /// Runs a search, and returns its report.
    pub fn from_search(
        arguments: &Arguments,
        measurer: &mut dyn Measurer,
        setting: Setting,
        device: String,
    ) -> Report {
        let mut runner = TrialRunner::new(measurer, setting.waits);
        // A simulated device takes no time, so there is no progress to print.
        if arguments.simulate.is_none() && std::io::stderr().is_terminal() {
            runner.listener = Some(print_trial);
        }
        let text = String::new();
        let mut search = Search { runner: &mut runner, setting: &setting, arguments, text };
        let found = search.run();
        let text = search.text;
        let trials = runner.records;
        let (result, conformance, failure) = match found {
            Ok((result, conformance)) => (result, conformance, None),
            Err(failure) => (Value::Null, no_result(), Some(failure)),
        };
        // tests of connections, of hop-by-hop options and MLRsearch do not claim RFC 5180
        let is_of_a_family = match arguments.test {
            Test::Frames(test) => matches!(test, FrameTest::Throughput | FrameTest::LossRate),
            Test::FramesAtThroughput(_) => true,
            Test::Connections(_) | Test::ConnectionsAtRate(_) => false,
        };
        let conformance = if failure.is_none() && is_of_a_family {
            setting.over_ip6(conformance)
        } else {
            conformance
        };
        Report {
            conformance,
            result,
            trials,
            text,
            ..Report::without(arguments, setting, device, failure)
        }
    }

    /// Makes a report without a result.
    fn without(
        arguments: &Arguments,
        setting: Setting,
        device: String,
        failure: Option<Failure>,
    ) -> Report {
        Report {
            test: arguments.test,
            device,
            mode: None,
            system: None,
            environment: None,
            setting,
            complete: failure.is_none(),
            incomplete_because: failure.map(|failure| failure.to_string()),
            conformance: no_result(),
            on_a_virtual_link: None,
            seconds: 0.0,
            result: Value::Null,
            trials: Vec::new(),
            text: String::new(),
        }
    }

    /// Makes the report of a search that could not begin.
    pub fn not_begun(
        arguments: &Arguments,
        setting: Setting,
        device: String,
        why: &anyhow::Error,
    ) -> Report {
        let report = Report::without(arguments, setting, device, None);
        Report { complete: false, incomplete_because: Some(format!("{why:#}")), ..report }
    }
}

fn no_result() -> Conformance {
    Conformance::Not("there is no result".to_owned())
}

/// Prints a trial as progress. The number of later trials is unknown.
fn print_trial(number: usize, record: &Record) {
    eprintln!(
        "trial {number}: {:.0} a second for {:.3} s, {:.4} % lost",
        record.rate,
        record.seconds,
        record.loss * 100.0
    );
}

/// Prints the reports as text or JSON. JSON is one object for a single report, and a list for
/// several.
///
/// # Errors
/// Fails if a report cannot be serialized.
pub(super) fn print(reports: &[Report], json: bool) -> anyhow::Result<()> {
    match reports {
        _ if !json => reports.iter().for_each(|report| print!("{}", text(report))),
        [one] => println!("{}", serde_json::to_string_pretty(one)?),
        several => println!("{}", serde_json::to_string_pretty(several)?),
    }
    Ok(())
}

fn text(report: &Report) -> String {
    let mut out = match report.mode {
        Some(mode) => {
            // the warning of mode queue holds for virtual interfaces too
            let warning = match mode {
                Mode::Wire if !report.setting.wire => Mode::Queue.warning(),
                mode => mode.warning(),
            };
            format!("{}\nmode {}: {warning}\n", report.device, mode.name())
        }
        None => format!("{}; no figure describes a real device\n", report.device),
    };
    out.push_str(&report.text);
    if let Some(why) = &report.incomplete_because {
        let _ = writeln!(out, "no result: {why}");
    }
    let mut claim = |what: &str, conformance: &Conformance| match conformance {
        Conformance::Conforms => out.push_str("conforms\n"),
        Conformance::Partial(missing) => {
            for point in missing {
                let _ = writeln!(out, "{what}: {point}");
            }
        }
        Conformance::Not(why) => {
            let _ = writeln!(out, "conforms: no, {why}");
        }
    };
    claim("partial", &report.conformance);
    if let Some(other) = report.on_a_virtual_link.as_ref().filter(|_| report.complete) {
        claim("on a virtual link partial", other);
    }
    let took = if report.mode.is_some() { "took" } else { "would have taken" };
    let _ = writeln!(
        out,
        "{} trials {took} {:.0} s, including pauses",
        report.trials.len(),
        report.seconds
    );
    out
}
