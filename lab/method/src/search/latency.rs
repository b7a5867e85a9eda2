//! Latency (RFC 2544 section 26.2 and RFC 8219 section 7.2). RFC 2544 tags one frame of each trial
//! at the throughput. RFC 8219 has typical and worst values of many frames. Here every frame
//! carries its time: the typical latency of a trial is its median, and the worst its 99.9th
//! percentile.

use fwlab_results::Latency;
use fwlab_results::stats::{median, quantile};
use serde::Serialize;

use super::{Conformance, Failure, Setting, TrialRunner};

/// The fewest frames that give a 99.9th percentile (RFC 8219 requires 500).
const LEAST_FRAMES: u64 = 500;

/// The plan of a latency measurement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Plan {
    /// Frames a second: the throughput. Above the throughput, the result would be the delay of a
    /// queue.
    pub rate: f64,
    /// Length of a trial in seconds.
    pub seconds: f64,
    /// Number of trials.
    pub repeats: usize,
}

/// A value of all trials combined, in nanoseconds: median, and 1st and 99th percentile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Typical {
    /// Median of the trials, in nanoseconds.
    pub median: f64,
    /// 1st percentile of the trials, in nanoseconds.
    pub low: f64,
    /// 99th percentile of the trials, in nanoseconds.
    pub high: f64,
}

/// The result of a latency measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencyResult {
    /// The plan.
    pub plan: Plan,
    /// Number of trials with enough frames.
    pub trials: usize,
    /// Typical latency of RFC 8219: the median of a trial.
    pub typical: Typical,
    /// Worst case latency of RFC 8219: the 99.9th percentile of a trial.
    pub worst: Typical,
    /// Delay variation of RFC 8219: the 99.9th percentile less the shortest latency.
    pub variation: Typical,
    /// The latencies of all trials.
    pub all: Latency,
}

/// Does the trials.
///
/// # Errors
/// Fails if a trial fails, or if no trial has 500 frames.
pub fn search(runner: &mut TrialRunner, plan: &Plan) -> Result<LatencyResult, Failure> {
    let mut trials = Vec::new();
    for _ in 0..plan.repeats {
        let (_, trial) = runner.steady(plan.rate, plan.seconds)?;
        if trial.latency.count() >= LEAST_FRAMES {
            trials.push(trial.latency);
        }
    }
    let of = |value: &dyn Fn(&Latency) -> Option<u64>| -> Option<Typical> {
        let values: Vec<f64> = trials.iter().filter_map(value).map(|ns| ns as f64).collect();
        Some(Typical {
            median: median(&values)?,
            low: quantile(&values, 0.01)?,
            high: quantile(&values, 0.99)?,
        })
    };
    let typical = of(&|latency| latency.quantile(0.5));
    let worst = of(&|latency| latency.quantile(0.999));
    let variation =
        of(&|latency| Some(latency.quantile(0.999)?.saturating_sub(latency.range()?.0)));
    match (typical, worst, variation) {
        (Some(typical), Some(worst), Some(variation)) => Ok(LatencyResult {
            plan: *plan,
            trials: trials.len(),
            typical,
            worst,
            variation,
            all: Latency::merged(&trials),
        }),
        _ => Err(Failure::Nothing(plan.rate)),
    }
}

/// Returns the deviations from RFC 8219 section 7.2.
pub fn conformance(setting: &Setting, plan: &Plan) -> Conformance {
    Conformance::but_for(vec![
        setting.missing_wire(),
        (plan.seconds < 120.0).then_some("trials are shorter than 120 s (section 7.2)"),
        (plan.repeats < 20).then_some("fewer than 20 repeats (section 7.2)"),
        Some("frames of the first 60 s are counted too (section 7.2)"),
        setting.missing_waits(),
    ])
}
