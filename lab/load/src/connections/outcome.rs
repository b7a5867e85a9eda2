//! The summary of a plan of connections. Its size does not depend on the number of connections, so
//! an agent can send it in a message.

use std::time::Duration;

use fwlab_results::Latency;
use serde::{Deserialize, Serialize};

use super::Answers;

/// Summary of durations in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// The shortest duration.
    pub least: u64,
    /// The mean duration.
    pub mean: f64,
    /// The longest duration.
    pub most: u64,
    /// The sum of all durations.
    pub total: u64,
}

/// The distribution of a repeated event's durations.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// Number of events.
    pub count: u64,
    /// Minimum, mean, maximum and sum.
    pub summary: Setup,
    /// Histogram of the durations.
    pub latency: Latency,
}

impl Times {
    /// Summarizes durations in nanoseconds.
    pub fn from_nanoseconds(all: &[u64]) -> Times {
        let total = all.iter().fold(0, |sum: u64, &time| sum.saturating_add(time));
        let summary = Setup {
            least: all.iter().copied().min().unwrap_or_default(),
            mean: total as f64 / all.len().max(1) as f64,
            most: all.iter().copied().max().unwrap_or_default(),
            total,
        };
        let latency = Latency::from_times(all.iter().map(|&time| (time, 1)));
        Times { count: all.len() as u64, summary, latency }
    }
}

/// The summary of [`Answers`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallSummary {
    /// Attempts to the allowed ports.
    pub attempted: u64,
    /// Allowed attempts that became connections.
    pub established: u64,
    /// Connections that received all their pages.
    pub served: u64,
    /// Attempts to the forbidden port.
    pub forbidden: u64,
    /// Time from the first attempt to the last.
    pub took: Duration,
    /// Time from the first close to the last.
    pub closing: Duration,
    /// Total time without the time in which the client thread slept.
    pub busy: Duration,
    /// Times from each allowed attempt to its established connection.
    pub setup: Times,
    /// Times from each request to the last byte of its page.
    pub fetched: Times,
    /// Times from each close by the client to the close by the server.
    pub closed: Times,
}

impl From<&Answers> for CallSummary {
    fn from(answers: &Answers) -> CallSummary {
        let &Answers { attempted, established, served, forbidden, took, closing, busy, .. } =
            answers;
        let [setup, fetched, closed] = [&answers.setup, &answers.fetched, &answers.closed]
            .map(|all| Times::from_nanoseconds(all));
        CallSummary {
            attempted,
            established,
            served,
            forbidden,
            took,
            closing,
            busy,
            setup,
            fetched,
            closed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_summarized() {
        let times = Times::from_nanoseconds(&[10, 20, 60]);
        assert_eq!(times.summary, Setup { least: 10, mean: 30.0, most: 60, total: 90 });
        assert_eq!((times.count, times.latency.count()), (3, 3));
        assert_eq!(Times::from_nanoseconds(&[]), Times::default());
        assert_eq!(Times::from_nanoseconds(&[u64::MAX, 1]).summary.total, u64::MAX);
    }
}
