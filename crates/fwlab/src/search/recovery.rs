//! System recovery and reset, RFC 2544 sections 26.5 and 26.6: how long it takes until everything
//! goes as before, after too much and after a reset. RFC 6201 says more of resets: which there are,
//! and that their time follows from the frames that were lost as well.

use serde::Serialize;

use super::{Bench, Besides, Conformance, Failure, Gap, Order, Phase, Setting};

/// Of the throughput: too much, and then half of that.
const TOO_MUCH: f64 = 1.1;

/// Who loses something in this last share of a trial has not recovered within it.
const END: f64 = 0.1;

/// How either is measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Plan {
    /// The throughput, in frames a second.
    pub throughput: f64,
    /// Seconds before the rate changes, and after; or of a trial with a reset in its middle.
    pub seconds: f64,
    /// Trials, whose mean is the result.
    pub repeats: usize,
}

/// What system recovery came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recovery {
    /// Frames a second that were too much.
    pub overload: f64,
    /// Frames a second after that.
    pub relief: f64,
    /// Frames that each trial lost, at either rate.
    pub lost: Vec<u64>,
    /// Seconds of each trial from the change of the rate to the last frame that was lost.
    pub times: Vec<f64>,
    /// Their mean.
    pub seconds: f64,
    /// Trials that still lost something when they ended: the time is longer than what stands here.
    pub unrecovered: usize,
}

/// Sends 110 % of the throughput, then half of that, and says how long something was still lost
/// then: nothing, if nothing was.
///
/// # Errors
/// A trial failed.
pub fn system_recovery(
    bench: &mut Bench,
    setting: &Setting,
    plan: &Plan,
) -> Result<Recovery, Failure> {
    let overload = (plan.throughput * TOO_MUCH).min(setting.most);
    let relief = overload / 2.0;
    let phases = [overload, relief].map(|rate| Phase { rate, seconds: plan.seconds });
    let (mut lost, mut times) = (Vec::new(), Vec::new());
    for _ in 0..plan.repeats {
        let (_, trial) = bench.run(&Order { phases: &phases, besides: Besides::Nothing })?;
        lost.push(trial.sent - trial.received);
        times.push(trial.last_loss.unwrap_or(0.0));
    }
    let late = plan.seconds * (1.0 - END);
    Ok(Recovery {
        overload,
        relief,
        lost,
        seconds: mean(&times),
        unrecovered: times.iter().filter(|&&seconds| seconds > late).count(),
        times,
    })
}

/// What resets came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reset {
    /// What was done.
    pub what: String,
    /// Frames a second.
    pub rate: f64,
    /// Frames that each trial lost.
    pub lost: Vec<u64>,
    /// Seconds of each trial between the frames before and after the longest row of missing ones; 0
    /// if nothing was lost.
    pub times: Vec<f64>,
    /// Their mean.
    pub seconds: f64,
    /// Seconds in which as many frames are sent as were lost, mean of the trials (RFC 6201).
    pub seconds_by_loss: f64,
}

/// Resets the device in the middle of trials at its throughput and says how long nothing came.
///
/// # Errors
/// A trial failed, there is nothing to reset, or no frame came after the reset.
pub fn reset(bench: &mut Bench, plan: &Plan) -> Result<Reset, Failure> {
    let what = bench.reset()?.to_owned();
    let phases = [Phase { rate: plan.throughput, seconds: plan.seconds }];
    let (mut lost, mut times) = (Vec::new(), Vec::new());
    for _ in 0..plan.repeats {
        let order = Order { phases: &phases, besides: Besides::Reset(plan.seconds / 2.0) };
        let (_, trial) = bench.run(&order)?;
        if matches!(trial.gap, Some(Gap { ended: false, time, .. }) if time.as_secs_f64() > plan.seconds * END)
        {
            return Err(Failure::Away);
        }
        lost.push(trial.sent - trial.received);
        times.push(trial.gap.map_or(0.0, |gap| gap.time.as_secs_f64()));
    }
    let all_lost: u64 = lost.iter().sum();
    Ok(Reset {
        what,
        rate: plan.throughput,
        seconds: mean(&times),
        seconds_by_loss: all_lost as f64 / (plan.throughput * plan.repeats.max(1) as f64),
        lost,
        times,
    })
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len().max(1) as f64
}

/// What is missing to claim sections 26.5 and 26.6.
pub fn conformance(setting: &Setting, plan: &Plan, resets: bool) -> Conformance {
    Conformance::but_for(vec![
        setting.missing_wire(),
        (!resets && plan.seconds < 60.0)
            .then_some("shorter than 60 s before the change (section 26.5)"),
        resets.then_some(
            "a software reset only, no hardware reset and no power interruption (section 26.6)",
        ),
        (resets && setting.size > setting.smallest())
            .then_some("other frames than the smallest of the medium (section 26.6)"),
        (plan.repeats < 2).then_some("one repeat (section 26.5)"),
        setting.missing_waits(),
        setting.missing_variety(),
    ])
}
