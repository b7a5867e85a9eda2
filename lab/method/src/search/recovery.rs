//! System recovery and reset (RFC 2544 sections 26.5 and 26.6): the time to normal forwarding after
//! an overload and after a reset. RFC 6201 lists the kinds of resets, and derives their time from
//! the lost frames too.

use serde::Serialize;

use super::{Besides, Conformance, Failure, Gap, Order, Phase, Setting, TrialRunner};

/// The overload, as a share of the throughput. The relief is half of the overload.
const TOO_MUCH: f64 = 1.1;

/// The last share of a trial. A loss within it means that the device has not recovered.
const END: f64 = 0.1;

/// The plan of a recovery or reset test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Plan {
    /// The throughput, in frames a second.
    pub throughput: f64,
    /// Seconds before the change of the rate and after it; or length of a trial with a reset in its
    /// middle.
    pub seconds: f64,
    /// Number of trials. The result is their mean.
    pub repeats: usize,
}

/// The result of the system recovery test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recovery {
    /// Frames a second of the overload.
    pub overload: f64,
    /// Frames a second after the overload.
    pub relief: f64,
    /// Frames that each trial lost, at both rates.
    pub lost: Vec<u64>,
    /// Seconds of each trial from the change of the rate to the last lost frame.
    pub times: Vec<f64>,
    /// Mean of the times.
    pub seconds: f64,
    /// Number of trials with losses up to the end. Their real times are longer than `times` has.
    pub unrecovered: usize,
}

/// Sends 110 % of the throughput, then half of that. Measures how long frames are still lost after
/// the change: 0 if none is.
///
/// # Errors
/// Fails if a trial fails.
pub fn system_recovery(
    runner: &mut TrialRunner,
    setting: &Setting,
    plan: &Plan,
) -> Result<Recovery, Failure> {
    let overload = (plan.throughput * TOO_MUCH).min(setting.most);
    let relief = overload / 2.0;
    let phases = [overload, relief].map(|rate| Phase { rate, seconds: plan.seconds });
    let (mut lost, mut times) = (Vec::new(), Vec::new());
    for _ in 0..plan.repeats {
        let (_, trial) = runner.run(&Order { phases: &phases, besides: Besides::Nothing })?;
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

/// The result of the reset test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reset {
    /// A description of the reset.
    pub what: String,
    /// Frames a second.
    pub rate: f64,
    /// Frames that each trial lost.
    pub lost: Vec<u64>,
    /// Seconds of each trial between the frames before and after the longest gap; 0 if no frame was
    /// lost.
    pub times: Vec<f64>,
    /// Mean of the times.
    pub seconds: f64,
    /// Seconds in which as many frames are sent as were lost; mean of the trials (RFC 6201).
    pub seconds_by_loss: f64,
}

/// Resets the device in the middle of trials at its throughput, and measures how long no frame
/// comes.
///
/// # Errors
/// Fails if a trial fails, if the device cannot be reset, or if no frame comes after a reset.
pub fn reset(runner: &mut TrialRunner, plan: &Plan) -> Result<Reset, Failure> {
    let what = runner.reset()?.to_owned();
    let phases = [Phase { rate: plan.throughput, seconds: plan.seconds }];
    let (mut lost, mut times) = (Vec::new(), Vec::new());
    for _ in 0..plan.repeats {
        let order = Order { phases: &phases, besides: Besides::Reset(plan.seconds / 2.0) };
        let (_, trial) = runner.run(&order)?;
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

/// Returns the deviations from sections 26.5 and 26.6.
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
