//! Hop-by-hop options, RFC 5180 section 5.3: every router on the way has to look at them, so what
//! is of interest is not how many such frames go through a device, but what they do to it.

use serde::Serialize;

use super::{Bench, Conformance, Failure, Setting};

/// Shares of the link's rate.
const SHARES: [f64; 3] = [0.01, 0.1, 0.5];

/// What a share of the link's rate does to a device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Impact {
    /// Share of the link's rate.
    pub share: f64,
    /// Frames a second.
    pub rate: f64,
    /// Share that was lost.
    pub loss: f64,
    /// Share of its time that the device's CPU was busy; none if the device is not ours to look
    /// into.
    pub busy: Option<f64>,
}

/// Sends frames with the options at 1, 10 and 50 % of the link's rate.
///
/// # Errors
/// A trial failed.
pub fn search(bench: &mut Bench, setting: &Setting, seconds: f64) -> Result<Vec<Impact>, Failure> {
    let at = |share: f64| {
        let rate = setting.most * share;
        let (record, trial) = bench.steady(rate, seconds)?;
        Ok(Impact { share, rate, loss: record.loss, busy: trial.busy })
    };
    SHARES.into_iter().map(at).collect()
}

/// What is missing to claim that part of the section.
pub fn conformance(setting: &Setting, impacts: &[Impact]) -> Conformance {
    let unseen = impacts.iter().any(|impact| impact.busy.is_none());
    Conformance::but_for(vec![
        setting.missing_wire(),
        unseen.then_some("the device's resources are not monitored (section 5.3)"),
        Some("of the device's resources only its CPU is monitored (section 5.3)")
            .filter(|_| !unseen),
        setting.missing_waits(),
        Some("one frame size; section 5.1 asks for several"),
    ])
}
