//! The report on a workload for people.

use std::collections::BTreeMap;
use std::fmt::Write;

use fwlab_results::report::Table;
use fwlab_results::stats::quantile;

use super::execute::{Ending, Executed, WorkloadResult};

/// Largest number of failures that are shown singly.
const SHOWN: usize = 10;

/// Returns the report on a workload of `commands` commands.
pub(super) fn text(outcome: &WorkloadResult, commands: u64) -> String {
    let mut by_line: BTreeMap<(usize, &[String]), Vec<&Executed>> = BTreeMap::new();
    for one in &outcome.executed {
        by_line.entry((one.line, &one.command)).or_default().push(one);
    }
    let mut table = Table::new(&[
        "line#",
        "runs#",
        "failed#",
        "least#",
        "median#",
        "most#",
        "command (seconds)",
    ]);
    for ((line, command), all) in &by_line {
        let times: Vec<f64> = all.iter().map(|one| one.seconds).collect();
        let time = |share| format!("{:.6}", quantile(&times, share).unwrap_or(0.0));
        let failed = all.iter().filter(|one| !one.ending.is_success()).count();
        table.rows.push(vec![
            line.to_string(),
            all.len().to_string(),
            failed.to_string(),
            time(0.0),
            time(0.5),
            time(1.0),
            command.join(" "),
        ]);
    }
    let mut out = table.text();
    let failed: Vec<&Executed> =
        outcome.executed.iter().filter(|one| !one.ending.is_success()).collect();
    for one in failed.iter().take(SHOWN) {
        let why = match &one.ending {
            Ending::Exit(status) => format!("exit status {status}"),
            Ending::Signal(name) => format!("ended by {name}"),
            Ending::NotStarted(why) => format!("could not be started: {why}"),
        };
        let _ = writeln!(
            out,
            "line {}, at {:.6}: {}: {why}",
            one.line,
            one.start,
            one.command.join(" ")
        );
    }
    if failed.len() > SHOWN {
        let _ = writeln!(out, "and {} more failures", failed.len() - SHOWN);
    }
    let late = outcome.executed.iter().map(|one| one.late).fold(0.0, f64::max);
    if late > 0.0 {
        let _ = writeln!(out, "commands after gaps started at most {late:.6} s late");
    }
    let done = outcome.executed.len();
    let rate = if outcome.seconds > 0.0 { done as f64 / outcome.seconds } else { 0.0 };
    let _ = writeln!(
        out,
        "{done} of {commands} commands, {} failed, {:.6} s, {rate:.2} a second",
        failed.len(),
        outcome.seconds
    );
    if outcome.interrupted {
        out.push_str("interrupted: running commands were ended, later commands were not started\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_counts_and_names_what_failed() {
        let executed = |seconds, ending| Executed {
            command: vec!["ls".to_string(), "-l".to_string()],
            line: 3,
            start: 0.25,
            late: 0.0,
            seconds,
            ending,
        };
        let outcome = WorkloadResult {
            seconds: 2.0,
            interrupted: true,
            executed: vec![
                executed(0.5, Ending::Exit(0)),
                executed(1.5, Ending::Exit(2)),
                executed(1.0, Ending::Signal("SIGTERM".to_string())),
                executed(0.0, Ending::NotStarted("not there".to_string())),
            ],
        };
        let expected = "\
line  runs  failed     least    median      most  command (seconds)
   3     4       3  0.000000  0.750000  1.500000  ls -l
line 3, at 0.250000: ls -l: exit status 2
line 3, at 0.250000: ls -l: ended by SIGTERM
line 3, at 0.250000: ls -l: could not be started: not there
4 of 9 commands, 3 failed, 2.000000 s, 2.00 a second
interrupted: running commands were ended, later commands were not started
";
        assert_eq!(text(&outcome, 9), expected);
    }
}
