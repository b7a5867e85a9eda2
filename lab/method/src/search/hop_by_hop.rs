//! Hop-by-hop options (RFC 5180 section 5.3). Every router has to process them, so the test
//! measures their effect on the device, and not a throughput.

use serde::Serialize;

use super::{Conformance, Failure, Setting, TrialRunner};

/// The offered rates, as shares of the highest one.
const SHARES: [f64; 3] = [0.01, 0.1, 0.5];

/// The effect of one offered rate on the device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Impact {
    /// Share of the highest rate on offer, from 0 to 1.
    pub share: f64,
    /// Offered frames a second.
    pub rate: f64,
    /// Share of the frames that was lost, from 0 to 1.
    pub loss: f64,
    /// Share of the time that the device's CPU was busy. None if fwlab has no access to the device.
    pub busy: Option<f64>,
}

/// Sends frames with the options at 1, 10 and 50 % of the highest rate on offer.
///
/// # Errors
/// Fails if a trial fails.
pub fn search(
    runner: &mut TrialRunner,
    setting: &Setting,
    seconds: f64,
) -> Result<Vec<Impact>, Failure> {
    let at = |share: f64| {
        let rate = setting.most * share;
        let (record, trial) = runner.steady(rate, seconds)?;
        Ok(Impact { share, rate, loss: record.loss, busy: trial.busy })
    };
    SHARES.into_iter().map(at).collect()
}

/// Returns the deviations from that part of the section.
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
