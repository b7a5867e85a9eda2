//! Back-to-back frames (RFC 2544 section 26.4, updated by RFC 9004): the longest burst at the
//! link's rate without loss. It gives the size of the device's buffer.

use serde::Serialize;

use super::{Conformance, Failure, Setting, TrialRunner};

/// The longest burst to try, in seconds.
const LONGEST: f64 = 30.0;

/// The result of a search for the longest burst.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BackToBack {
    /// The name of the search algorithm, which the RFC requires in a report.
    pub algorithm: &'static str,
    /// The longest burst of each repeat, in frames.
    pub bursts: Vec<u64>,
    /// Mean of the bursts, in frames.
    pub mean: f64,
    /// Shortest of the bursts, in frames.
    pub least: u64,
    /// Longest of the bursts, in frames.
    pub most: u64,
    /// Standard deviation of the bursts, in frames.
    pub deviation: f64,
    /// Seconds that a burst of the mean length lasts.
    pub implied_buffer: f64,
    /// `implied_buffer` without the frames that the device forwards during the burst; in seconds.
    pub corrected_buffer: f64,
}

/// Searches `repeats` times. `throughput` is the device's for this size, in frames a second.
/// Returns None if it is `setting.most`, because then no burst is too long.
///
/// # Errors
/// Fails if a trial fails.
pub fn search(
    runner: &mut TrialRunner,
    setting: &Setting,
    throughput: f64,
    repeats: usize,
) -> Result<Option<BackToBack>, Failure> {
    if throughput >= setting.most {
        return Ok(None);
    }
    let bursts = (0..repeats)
        .map(|_| longest_burst(runner, setting.most))
        .collect::<Result<Vec<u64>, Failure>>()?;
    let count = bursts.len().max(1) as f64;
    let mean = bursts.iter().sum::<u64>() as f64 / count;
    let variance = bursts.iter().map(|burst| (*burst as f64 - mean).powi(2)).sum::<f64>()
        / (count - 1.0).max(1.0);
    let implied_buffer = mean / setting.most;
    Ok(Some(BackToBack {
        algorithm: "binary search with loss verification",
        mean,
        least: bursts.iter().copied().min().unwrap_or(0),
        most: bursts.iter().copied().max().unwrap_or(0),
        deviation: variance.sqrt(),
        implied_buffer,
        corrected_buffer: implied_buffer * (1.0 - throughput / setting.most),
        bursts,
    }))
}

/// Searches for the longest burst without loss, in frames. A lossy burst is sent once more, because
/// a single loss may be an accident.
fn longest_burst(runner: &mut TrialRunner, rate: f64) -> Result<u64, Failure> {
    let mut whole = 0;
    let mut lossy = (rate * LONGEST) as u64 + 1;
    while lossy - whole > 1 {
        let frames = whole + (lossy - whole) / 2;
        let seconds = frames as f64 / rate;
        let lost = runner.steady(rate, seconds)?.0.loss > 0.0
            && runner.steady(rate, seconds)?.0.loss > 0.0;
        if lost {
            lossy = frames;
        } else {
            whole = frames;
        }
    }
    Ok(whole)
}

/// Returns the deviations from the RFCs.
pub fn conformance(setting: &Setting, repeats: usize) -> Conformance {
    Conformance::but_for(vec![
        setting.missing_wire(),
        (repeats < 50).then_some("fewer than 50 repeats (section 26.4)"),
        setting.missing_waits(),
        setting.missing_variety(),
    ])
}
