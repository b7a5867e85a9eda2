//! Latency: RFC 2544 section 26.2, one tagged frame of each trial at the throughput; and RFC 8219
//! section 7.2, typical and worst of many. Here every frame of the trial carries its time, so the
//! typical latency of a trial is its median, and the worst its 99.9th percentile.

use serde::Serialize;

use super::{Bench, Conformance, Failure, Setting};
use crate::results::Latency;
use crate::stats::{median, quantile};

/// Fewer frames say nothing of the 99.9th percentile (RFC 8219 wants 500).
const LEAST_FRAMES: u64 = 500;

/// How it is measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Plan {
    /// Frames a second: the throughput, or what is found is a delay and no latency.
    pub rate: f64,
    /// Seconds of a trial.
    pub seconds: f64,
    /// Trials.
    pub repeats: usize,
}

/// A value of every trial, put together: median, and the 1st and 99th percentile of the trials.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Typical {
    /// Median of the trials, in nanoseconds.
    pub median: f64,
    /// 1st percentile of the trials.
    pub low: f64,
    /// 99th percentile of the trials.
    pub high: f64,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Found {
    /// How it was measured.
    pub plan: Plan,
    /// Trials that had enough frames.
    pub trials: usize,
    /// RFC 8219: typical latency.
    pub typical: Typical,
    /// RFC 8219: worst case latency.
    pub worst: Typical,
    /// RFC 8219: variation, from the shortest time to the 99.9th percentile.
    pub variation: Typical,
    /// All times of all trials.
    pub all: Latency,
}

/// Runs the trials.
///
/// # Errors
/// A trial failed, or hardly a frame came.
pub fn search(bench: &mut Bench, plan: &Plan) -> Result<Found, Failure> {
    let mut trials = Vec::new();
    for _ in 0..plan.repeats {
        let (_, trial) = bench.steady(plan.rate, plan.seconds)?;
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
        (Some(typical), Some(worst), Some(variation)) => Ok(Found {
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

/// What is missing to claim RFC 8219 section 7.2.
pub fn conformance(setting: &Setting, plan: &Plan) -> Conformance {
    Conformance::but_for(vec![
        setting.missing_wire(),
        (plan.seconds < 120.0).then_some("trials are shorter than 120 s (section 7.2)"),
        (plan.repeats < 20).then_some("fewer than 20 repeats (section 7.2)"),
        Some("frames of the first 60 s are counted too (section 7.2)"),
        setting.missing_waits(),
    ])
}
