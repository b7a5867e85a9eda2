//! System recovery and reset, RFC 2544 sections 26.5 and 26.6: how long it takes until everything goes as
//! before, after too much and after a reset.

use serde::Serialize;

use super::{Bench, Conformance, Failure, Order, Phase, Setting};

/// Of the throughput: too much, and then half of that.
const TOO_MUCH: f64 = 1.1;

/// Sends 110 % of the throughput for `seconds`, then half of that, and says how long something was still
/// lost then: nothing, if nothing was.
///
/// # Errors
/// A trial failed.
pub fn system_recovery(
    bench: &mut Bench,
    setting: &Setting,
    throughput: f64,
    seconds: f64,
) -> Result<Recovery, Failure> {
    let overload = (throughput * TOO_MUCH).min(setting.most);
    let phases = [
        Phase { rate: overload, seconds },
        Phase { rate: overload / 2.0, seconds: seconds.min(60.0) },
    ];
    let (_, trial) = bench.run(&Order { phases: &phases, reset: None })?;
    Ok(Recovery { overload, seconds: trial.last_loss.unwrap_or(0.0) })
}

/// Resets the device in the middle of a trial at its throughput and says how long nothing came.
///
/// # Errors
/// A trial failed.
pub fn reset(bench: &mut Bench, throughput: f64, seconds: f64) -> Result<Recovery, Failure> {
    let phases = [Phase { rate: throughput, seconds }];
    let (_, trial) = bench.run(&Order { phases: &phases, reset: Some(seconds / 2.0) })?;
    Ok(Recovery { overload: throughput, seconds: trial.longest_gap })
}

/// The result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recovery {
    /// Frames a second before.
    pub overload: f64,
    /// Seconds until all went as before.
    pub seconds: f64,
}

/// What is missing to claim the RFC.
pub fn conformance(setting: &Setting, seconds: f64) -> Conformance {
    Conformance::but_for(vec![
        setting.missing_wire(),
        (seconds < 60.0).then_some("shorter than 60 s before the change (section 26.5)"),
        Some("one repeat (sections 26.5, 26.6)"),
        setting.missing_waits(),
        Setting::missing_sizes(),
    ])
}
