//! Throughput (RFC 2544 section 26.1): the highest rate without loss.

use serde::Serialize;

use super::{Conformance, Failure, Setting, TrialRunner};

/// The parameters of the search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Plan {
    /// Seconds of the searching trials.
    pub search: f64,
    /// Seconds of the deciding trial.
    pub last: f64,
    /// Resolution of the rate, as a share of the highest rate.
    pub resolution: f64,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan { search: 10.0, last: 60.0, resolution: 0.001 }
    }
}

/// The result, with the further values of section 26.1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Throughput {
    /// Highest rate without loss, in frames or connections a second; 0 if there is none.
    pub rate: f64,
    /// The lowest rate with losses. None if `most` is the limit.
    pub lossy: Option<f64>,
    /// The highest rate on offer, in frames or connections a second: `Setting::most`.
    pub most: f64,
}

/// Searches by bisection with short trials. A long trial decides: if it has losses, the search goes
/// on below.
///
/// # Errors
/// Fails if a trial fails, or if no frame comes through.
pub fn search(
    runner: &mut TrialRunner,
    setting: &Setting,
    plan: &Plan,
) -> Result<Throughput, Failure> {
    let step = setting.most * plan.resolution;
    let mut lossless = 0.0;
    let mut lossy: Option<f64> = None;
    loop {
        let rate = match lossy {
            None => setting.most,
            Some(lossy) => (lossless + lossy) / 2.0,
        };
        if runner.steady(rate, plan.search)?.0.loss > 0.0 {
            lossy = Some(rate);
        } else {
            lossless = rate;
        }
        let width = lossy.map_or(0.0, |lossy| lossy - lossless);
        if width > step {
            continue;
        }
        // Every rate above one step had losses, so there is no rate to confirm.
        if lossless == 0.0 {
            return nothing_below(runner, setting, lossy);
        }
        if plan.last <= plan.search || runner.steady(lossless, plan.last)?.0.loss == 0.0 {
            return Ok(Throughput { rate: lossless, lossy, most: setting.most });
        }
        lossy = Some(lossless);
        lossless = 0.0;
    }
}

/// Returns the result 0, or an error if the device dropped all frames of all trials.
fn nothing_below(
    runner: &TrialRunner,
    setting: &Setting,
    lossy: Option<f64>,
) -> Result<Throughput, Failure> {
    if runner.records.iter().all(|record| record.received == 0) {
        return Err(Failure::Nothing(lossy.unwrap_or(setting.most)));
    }
    Ok(Throughput { rate: 0.0, lossy, most: setting.most })
}

/// Returns the deviations from the RFC.
pub fn conformance(setting: &Setting, plan: &Plan) -> Conformance {
    Conformance::but_for(vec![
        setting.missing_wire(),
        (plan.last < 60.0).then_some("the trial that decides is shorter than 60 s (section 24)"),
        setting.missing_waits(),
        setting.missing_variety(),
    ])
}
