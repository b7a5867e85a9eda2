//! Frame loss rate (RFC 2544 section 26.3): the loss at 100 %, 90 %, … of the link's rate.

use serde::Serialize;

use super::{Conformance, Failure, Setting, TrialRunner};

/// A step of the search.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// Share of the highest rate on offer, from 0 to 1.
    pub share: f64,
    /// Offered frames a second.
    pub rate: f64,
    /// Share of the frames that was lost, from 0 to 1.
    pub loss: f64,
}

/// Lowers the rate in steps of 10 %, until two steps in a row have no loss.
///
/// # Errors
/// Fails if a trial fails.
pub fn search(
    runner: &mut TrialRunner,
    setting: &Setting,
    seconds: f64,
) -> Result<Vec<Step>, Failure> {
    let mut steps: Vec<Step> = Vec::new();
    for tenths in (1..=10).rev() {
        let share = f64::from(tenths) / 10.0;
        let rate = setting.most * share;
        let loss = runner.steady(rate, seconds)?.0.loss;
        let clean = loss == 0.0 && steps.last().is_some_and(|step| step.loss == 0.0);
        steps.push(Step { share, rate, loss });
        if clean {
            break;
        }
    }
    Ok(steps)
}

/// Returns the deviations from the RFC.
pub fn conformance(setting: &Setting, seconds: f64) -> Conformance {
    Conformance::but_for(vec![
        setting.missing_wire(),
        (seconds < 60.0).then_some("trials are shorter than 60 s (section 24)"),
        setting.missing_waits(),
        setting.missing_variety(),
    ])
}
