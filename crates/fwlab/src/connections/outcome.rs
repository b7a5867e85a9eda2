//! What became of calls in a few figures, as many for a million of them as for one: what a search
//! wants to know, and what an agent says.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Answers;
use crate::results::Latency;

/// Times of connection establishment, or of what was to be timed instead, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// The shortest.
    pub least: u64,
    /// Their mean.
    pub mean: f64,
    /// The longest.
    pub most: u64,
    /// All of them together.
    pub total: u64,
}

/// How long something took each time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// How often it was done.
    pub count: u64,
    /// In short.
    pub summary: Setup,
    /// How long how often.
    pub latency: Latency,
}

impl Times {
    /// Of all times in nanoseconds.
    pub fn of(all: &[u64]) -> Times {
        let total = all.iter().fold(0, |sum: u64, &time| sum.saturating_add(time));
        let summary = Setup {
            least: all.iter().copied().min().unwrap_or_default(),
            mean: total as f64 / all.len().max(1) as f64,
            most: all.iter().copied().max().unwrap_or_default(),
            total,
        };
        let latency = Latency::of(all.iter().map(|&time| (time, 1)));
        Times { count: all.len() as u64, summary, latency }
    }
}

/// What became of calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// Attempts that are allowed.
    pub attempted: u64,
    /// Those that became connections.
    pub established: u64,
    /// Those of them that got all their pages.
    pub served: u64,
    /// Attempts that a rule forbids.
    pub forbidden: u64,
    /// From when the first attempt was made to when the last was.
    pub took: Duration,
    /// From when the first was closed to when the last was.
    pub closing: Duration,
    /// How long there was something to do.
    pub busy: Duration,
    /// From each allowed attempt until its connection was there.
    pub setup: Times,
    /// From each request until its page was there.
    pub fetched: Times,
    /// From when each connection was closed by its client until the server had done the same.
    pub closed: Times,
}

impl From<&Answers> for Outcome {
    fn from(answers: &Answers) -> Outcome {
        let &Answers { attempted, established, served, forbidden, took, closing, busy, .. } =
            answers;
        let [setup, fetched, closed] =
            [&answers.setup, &answers.fetched, &answers.closed].map(|all| Times::of(all));
        Outcome {
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
    fn times_are_told_in_short() {
        let times = Times::of(&[10, 20, 60]);
        assert_eq!(times.summary, Setup { least: 10, mean: 30.0, most: 60, total: 90 });
        assert_eq!((times.count, times.latency.count()), (3, 3));
        assert_eq!(Times::of(&[]), Times::default());
        assert_eq!(Times::of(&[u64::MAX, 1]).summary.total, u64::MAX);
    }

    #[test]
    fn what_became_of_a_million_is_no_longer_than_a_message() {
        let mut random = fastrand::Rng::with_seed(1);
        // most are quick, and some take as long as anything does
        let mut all: Vec<u64> = (0..1_000_000).map(|_| random.u64(1..900_000_000)).collect();
        all.extend((0..42).flat_map(|octave| (0..2048).map(move |part| (1 << octave) + part)));
        let answers =
            Answers { setup: all.clone(), fetched: all.clone(), closed: all, ..Answers::default() };
        let outcome = Outcome::from(&answers);
        let text = serde_json::to_vec(&outcome).unwrap();
        assert!(text.len() < crate::agent::LONGEST, "{} bytes", text.len());
        assert_eq!(serde_json::from_slice::<Outcome>(&text).unwrap().setup.count, 1_086_016);
    }
}
