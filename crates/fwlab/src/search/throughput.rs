//! Throughput, RFC 2544 section 26.1: the highest rate at which nothing is lost.

use serde::Serialize;

use super::{Bench, Conformance, Failure, Setting};

/// How the search goes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Plan {
    /// Seconds of the trials that search.
    pub search: f64,
    /// Seconds of the trial that decides.
    pub last: f64,
    /// How exactly the rate is found, as a share of the most.
    pub resolution: f64,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan { search: 10.0, last: 60.0, resolution: 0.001 }
    }
}

/// The result, with what section 26.1 wants beside it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Throughput {
    /// Frames a second without loss.
    pub rate: f64,
    /// The lowest rate at which something was lost; none if the link is the limit.
    pub lossy: Option<f64>,
    /// What the link would carry.
    pub most: f64,
}

/// Searches by halves, with short trials; a long one decides, and if something is lost in that, the
/// search goes on below.
///
/// # Errors
/// A trial failed, or nothing comes through.
pub fn search(bench: &mut Bench, setting: &Setting, plan: &Plan) -> Result<Throughput, Failure> {
    let step = setting.most * plan.resolution;
    let mut lossless = 0.0;
    let mut lossy: Option<f64> = None;
    loop {
        let rate = match lossy {
            None => setting.most,
            Some(lossy) => (lossless + lossy) / 2.0,
        };
        if bench.steady(rate, plan.search)?.0.loss > 0.0 {
            lossy = Some(rate);
        } else {
            lossless = rate;
        }
        let width = lossy.map_or(0.0, |lossy| lossy - lossless);
        if width > step {
            continue;
        }
        // Everything between nothing and a step was lost: no rate is left to decide about.
        if lossless == 0.0 {
            return nothing_below(bench, setting, lossy);
        }
        if plan.last <= plan.search || bench.steady(lossless, plan.last)?.0.loss == 0.0 {
            return Ok(Throughput { rate: lossless, lossy, most: setting.most });
        }
        lossy = Some(lossless);
        lossless = 0.0;
    }
}

/// Not even the lowest rate went without loss; a device that drops everything is told apart.
fn nothing_below(
    bench: &Bench,
    setting: &Setting,
    lossy: Option<f64>,
) -> Result<Throughput, Failure> {
    if bench.records.iter().all(|record| record.received == 0) {
        return Err(Failure::Nothing(lossy.unwrap_or(setting.most)));
    }
    Ok(Throughput { rate: 0.0, lossy, most: setting.most })
}

/// What is missing to claim the RFC.
pub fn conformance(setting: &Setting, plan: &Plan) -> Conformance {
    Conformance::but_for(vec![
        setting.missing_wire(),
        (plan.last < 60.0).then_some("the trial that decides is shorter than 60 s (section 24)"),
        setting.missing_waits(),
        setting.missing_variety(),
    ])
}
