//! The searches with frames: runs the search of a test, and prints its result.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Arguments;
use crate::search::test::Test;
use crate::search::{
    Conformance, Failure, Setting, TrialRunner, back_to_back, hop_by_hop, latency, loss_rate, mlr,
    recovery, throughput,
};

/// Number of trials of system recovery and of reset.
const RECOVERIES: usize = 3;

/// Runs the search of the test, and appends its result to `text`.
pub(super) fn search(
    runner: &mut TrialRunner,
    setting: &Setting,
    arguments: &Arguments,
    text: &mut String,
) -> Result<(Value, Conformance), Failure> {
    if arguments.test.is_about_connections() {
        return super::connections::search(runner, setting, arguments, text);
    }
    let seconds = arguments.seconds;
    let plan = throughput::Plan { last: seconds, search: seconds.min(10.0), ..Default::default() };
    if arguments.test == Test::LossRate {
        let steps = loss_rate::search(runner, setting, seconds)?;
        for step in &steps {
            let _ = writeln!(
                text,
                "{:>4.0} %  {:>12.0} frames/s  {:>8.4} % lost",
                step.share * 100.0,
                step.rate,
                step.loss * 100.0
            );
        }
        return Ok((json!(steps), loss_rate::conformance(setting, seconds)));
    }
    if arguments.test == Test::HopByHop {
        let impacts = hop_by_hop::search(runner, setting, seconds)?;
        for impact in &impacts {
            let busy =
                impact.busy.map_or("not known".to_owned(), |it| format!("{:.1} %", it * 100.0));
            let _ = writeln!(
                text,
                "{:>4.0} %  {:>12.0} frames/s  {:>8.4} % lost, CPU of the device busy: {busy}",
                impact.share * 100.0,
                impact.rate,
                impact.loss * 100.0
            );
        }
        let conformance = hop_by_hop::conformance(setting, &impacts);
        return Ok((json!(impacts), conformance));
    }
    if arguments.test == Test::Mlr {
        let goals = [mlr::Goal::rfc2544(), mlr::Goal::tst009()].map(|goal| mlr::Goal {
            duration_sum: goal.duration_sum * seconds / goal.final_duration,
            final_duration: seconds,
            ..goal
        });
        let range = mlr::Range {
            least: (setting.most / 10_000.0).max(1.0).round(),
            most: setting.most.floor(),
        };
        let results = mlr::search(runner, range, &goals)?;
        for result in &results {
            let _ = writeln!(text, "{}: {}", result.goal.name, in_words(result));
        }
        return Ok((json!(results), mlr::conformance(setting, &goals)));
    }
    if arguments.test == Test::Reset {
        // fails before the search for the throughput if the device cannot be reset
        runner.reset()?;
    }
    let found = match arguments.throughput {
        Some(rate) => throughput::Throughput { rate, lossy: None, most: setting.most },
        None => throughput::search(runner, setting, &plan)?,
    };
    let throughput = found.rate;
    let _ = writeln!(
        text,
        "throughput {throughput:.0} frames/s, of at most {:.0} offered ({:.2} %), frames of {} \
         bytes",
        setting.most,
        100.0 * throughput / setting.most,
        setting.size
    );
    if throughput == 0.0 && arguments.test != Test::Throughput {
        return Err(Failure::NoThroughput);
    }
    let (result, conformance) = match arguments.test {
        // tests of connections do not come here
        Test::Throughput
        | Test::LossRate
        | Test::HopByHop
        | Test::TcpCapacity
        | Test::TcpRate
        | Test::TcpTearDown
        | Test::TcpIllegal
        | Test::TcpFragments
        | Test::TcpFlood
        | Test::HttpTransfer
        | Test::HttpRate
        | Test::Mlr => {
            return Ok((json!(found), throughput::conformance(setting, &plan)));
        }
        Test::BackToBack => {
            let repeats = 50;
            let bursts = back_to_back::search(runner, setting, throughput, repeats)?;
            match &bursts {
                Some(b) => {
                    let _ = writeln!(
                        text,
                        "bursts of {:.1} frames (minimum {}, maximum {}, deviation {:.1}, \
                         {repeats} repeats, {}); buffer of {:.6} s",
                        b.mean, b.least, b.most, b.deviation, b.algorithm, b.corrected_buffer
                    );
                }
                None => text.push_str("no burst was too long at the highest offered rate\n"),
            }
            (json!(bursts), back_to_back::conformance(setting, repeats))
        }
        Test::Latency => {
            let plan = latency::Plan { rate: throughput, seconds: seconds * 2.0, repeats: 20 };
            let found = latency::search(runner, &plan)?;
            for (name, value) in [
                ("typical", &found.typical),
                ("worst", &found.worst),
                ("variation", &found.variation),
            ] {
                let _ = writeln!(
                    text,
                    "{name:<10} {:>9.2} µs  (1st to 99th percentile of {} trials: {:.2} to {:.2})",
                    value.median / 1e3,
                    found.trials,
                    value.low / 1e3,
                    value.high / 1e3
                );
            }
            (json!(found), latency::conformance(setting, &plan))
        }
        Test::SystemRecovery => {
            let plan = recovery::Plan { throughput, seconds, repeats: RECOVERIES };
            let found = recovery::system_recovery(runner, setting, &plan)?;
            let _ = writeln!(
                text,
                "the loss ended {:.6} s after an overload of {:.0} frames/s, mean of {RECOVERIES} \
                 trials",
                found.seconds, found.overload
            );
            if found.unrecovered > 0 {
                let _ = writeln!(
                    text,
                    "in {} of these trials the loss had not ended: the time is a lower bound",
                    found.unrecovered
                );
            }
            (json!(found), recovery::conformance(setting, &plan, false))
        }
        Test::Reset => {
            let plan = recovery::Plan { throughput, seconds, repeats: RECOVERIES };
            let found = recovery::reset(runner, &plan)?;
            let _ = writeln!(
                text,
                "reset: {}\n\
                 no frame came for {:.6} s around the reset, mean of {RECOVERIES} trials; the \
                 number of lost frames corresponds to {:.6} s",
                found.what, found.seconds, found.seconds_by_loss
            );
            (json!(found), recovery::conformance(setting, &plan, true))
        }
    };
    let conformance = match arguments.throughput {
        Some(_) => {
            conformance.and_but_for("the throughput of the test was given, and not searched for")
        }
        None if seconds < 60.0 => conformance
            .and_but_for("the throughput of the test was found with trials shorter than 60 s"),
        None => conformance,
    };
    Ok((result, conformance))
}

fn in_words(result: &mlr::GoalResult) -> String {
    let throughput = result.conditional_throughput.unwrap_or(0.0);
    match (result.lower, result.upper) {
        (Some(lower), Some(upper)) => {
            format!(
                "conditional throughput {throughput:.0} frames/s, bounds {lower:.0} and {upper:.0}"
            )
        }
        (Some(lower), None) => format!("at least {lower:.0} frames/s, the highest offered rate"),
        (None, Some(upper)) => {
            format!("less than {upper:.0} frames/s, the lowest rate that was tried")
        }
        (None, None) => "no result".to_string(),
    }
}
