//! The searches with frames: runs the search of a test, and prints its result.

use std::fmt::Write as _;

use serde_json::json;

use super::search::{Found, Search};
use crate::search::test::{FrameTest, FrameTestAtThroughput};
use crate::search::throughput::{self, Throughput};
use crate::search::{Failure, back_to_back, hop_by_hop, latency, loss_rate, mlr, recovery};

/// Number of trials of system recovery and of reset.
const RECOVERIES: usize = 3;

/// Number of bursts of the test back-to-back, and of trials of the test latency.
const BURSTS: usize = 50;
const LATENCIES: usize = 20;

/// Runs a test that needs no known throughput.
pub(super) fn search(search: &mut Search, test: FrameTest) -> Found {
    match test {
        FrameTest::Throughput => {
            let found = find_throughput(search)?;
            Ok((json!(found), throughput::conformance(search.setting, &search.plan())))
        }
        FrameTest::LossRate => loss_rate(search),
        FrameTest::HopByHop => hop_by_hop(search),
        FrameTest::Mlr => mlr(search),
    }
}

/// Runs a test at the throughput, which is searched for first if it is not given.
pub(super) fn at_throughput(search: &mut Search, test: FrameTestAtThroughput) -> Found {
    if test == FrameTestAtThroughput::Reset {
        // fails before the search for the throughput if the device cannot be reset
        search.runner.reset()?;
    }
    let given = search.arguments.throughput;
    let throughput = match given {
        Some(rate) => {
            let most = search.setting.most;
            print_throughput(search, &Throughput { rate, lossy: None, most });
            rate
        }
        None => find_throughput(search)?.rate,
    };
    if throughput == 0.0 {
        return Err(Failure::NoThroughput);
    }
    let (result, conformance) = match test {
        FrameTestAtThroughput::BackToBack => back_to_back(search, throughput)?,
        FrameTestAtThroughput::Latency => latency(search, throughput)?,
        FrameTestAtThroughput::SystemRecovery => system_recovery(search, throughput)?,
        FrameTestAtThroughput::Reset => reset(search, throughput)?,
    };
    let conformance = match given {
        Some(_) => {
            conformance.and_but_for("the throughput of the test was given, and not searched for")
        }
        None if search.arguments.seconds < 60.0 => conformance
            .and_but_for("the throughput of the test was found with trials shorter than 60 s"),
        None => conformance,
    };
    Ok((result, conformance))
}

fn find_throughput(search: &mut Search) -> Result<Throughput, Failure> {
    let plan = search.plan();
    let found = throughput::search(search.runner, search.setting, &plan)?;
    print_throughput(search, &found);
    Ok(found)
}

fn print_throughput(search: &mut Search, found: &Throughput) {
    let _ = writeln!(
        search.text,
        "throughput {:.0} frames/s, of at most {:.0} offered ({:.2} %), frames of {} bytes",
        found.rate,
        search.setting.most,
        100.0 * found.rate / search.setting.most,
        search.setting.size
    );
}

fn loss_rate(search: &mut Search) -> Found {
    let seconds = search.arguments.seconds;
    let steps = loss_rate::search(search.runner, search.setting, seconds)?;
    for step in &steps {
        let _ = writeln!(
            search.text,
            "{:>4.0} %  {:>12.0} frames/s  {:>8.4} % lost",
            step.share * 100.0,
            step.rate,
            step.loss * 100.0
        );
    }
    Ok((json!(steps), loss_rate::conformance(search.setting, seconds)))
}

fn hop_by_hop(search: &mut Search) -> Found {
    let seconds = search.arguments.seconds;
    let impacts = hop_by_hop::search(search.runner, search.setting, seconds)?;
    for impact in &impacts {
        let busy = impact.busy.map_or("not known".to_owned(), |it| format!("{:.1} %", it * 100.0));
        let _ = writeln!(
            search.text,
            "{:>4.0} %  {:>12.0} frames/s  {:>8.4} % lost, CPU of the device busy: {busy}",
            impact.share * 100.0,
            impact.rate,
            impact.loss * 100.0
        );
    }
    let conformance = hop_by_hop::conformance(search.setting, &impacts);
    Ok((json!(impacts), conformance))
}

fn mlr(search: &mut Search) -> Found {
    let (seconds, most) = (search.arguments.seconds, search.setting.most);
    let goals = [mlr::Goal::rfc2544(), mlr::Goal::tst009()].map(|goal| mlr::Goal {
        duration_sum: goal.duration_sum * seconds / goal.final_duration,
        final_duration: seconds,
        ..goal
    });
    let range = mlr::Range { least: (most / 10_000.0).max(1.0).round(), most: most.floor() };
    let results = mlr::search(search.runner, range, &goals)?;
    for result in &results {
        let _ = writeln!(search.text, "{}: {}", result.goal.name, in_words(result));
    }
    Ok((json!(results), mlr::conformance(search.setting, &goals)))
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

fn back_to_back(search: &mut Search, throughput: f64) -> Found {
    let bursts = back_to_back::search(search.runner, search.setting, throughput, BURSTS)?;
    match &bursts {
        Some(b) => {
            let _ = writeln!(
                search.text,
                "bursts of {:.1} frames (minimum {}, maximum {}, deviation {:.1}, {BURSTS} \
                 repeats, {}); buffer of {:.6} s",
                b.mean, b.least, b.most, b.deviation, b.algorithm, b.corrected_buffer
            );
        }
        None => search.text.push_str("no burst was too long at the highest offered rate\n"),
    }
    Ok((json!(bursts), back_to_back::conformance(search.setting, BURSTS)))
}

fn latency(search: &mut Search, throughput: f64) -> Found {
    let seconds = search.arguments.seconds * 2.0;
    let plan = latency::Plan { rate: throughput, seconds, repeats: LATENCIES };
    let found = latency::search(search.runner, &plan)?;
    for (name, value) in
        [("typical", &found.typical), ("worst", &found.worst), ("variation", &found.variation)]
    {
        let _ = writeln!(
            search.text,
            "{name:<10} {:>9.2} µs  (1st to 99th percentile of {} trials: {:.2} to {:.2})",
            value.median / 1e3,
            found.trials,
            value.low / 1e3,
            value.high / 1e3
        );
    }
    Ok((json!(found), latency::conformance(search.setting, &plan)))
}

fn system_recovery(search: &mut Search, throughput: f64) -> Found {
    let seconds = search.arguments.seconds;
    let plan = recovery::Plan { throughput, seconds, repeats: RECOVERIES };
    let found = recovery::system_recovery(search.runner, search.setting, &plan)?;
    let _ = writeln!(
        search.text,
        "the loss ended {:.6} s after an overload of {:.0} frames/s, mean of {RECOVERIES} trials",
        found.seconds, found.overload
    );
    if found.unrecovered > 0 {
        let _ = writeln!(
            search.text,
            "in {} of these trials the loss had not ended: the time is a lower bound",
            found.unrecovered
        );
    }
    Ok((json!(found), recovery::conformance(search.setting, &plan, false)))
}

fn reset(search: &mut Search, throughput: f64) -> Found {
    let seconds = search.arguments.seconds;
    let plan = recovery::Plan { throughput, seconds, repeats: RECOVERIES };
    let found = recovery::reset(search.runner, &plan)?;
    let _ = writeln!(
        search.text,
        "reset: {}\n\
         no frame came for {:.6} s around the reset, mean of {RECOVERIES} trials; the number of \
         lost frames corresponds to {:.6} s",
        found.what, found.seconds, found.seconds_by_loss
    );
    Ok((json!(found), recovery::conformance(search.setting, &plan, true)))
}
