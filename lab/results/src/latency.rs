//! Latencies of frames as a histogram, because histograms can be added up, and percentiles cannot.

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of significant digits of each time.
const DIGITS: u8 = 3;

/// Latencies in nanoseconds, from the time a frame was due.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// The buckets, in ascending order of time.
    pub buckets: Vec<Bucket>,
}

/// A latency, and how often it occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bucket {
    /// Nanoseconds, with three significant digits.
    pub ns: u64,
    /// Number of frames with this latency.
    pub count: u64,
}

impl Latency {
    /// Makes a histogram of times in nanoseconds with their counts, in any order.
    pub fn from_times(times: impl IntoIterator<Item = (u64, u64)>) -> Latency {
        let mut histogram = empty();
        for (ns, count) in times {
            histogram.saturating_record_n(ns, count);
        }
        let buckets = histogram.iter_recorded();
        let buckets =
            buckets.map(|b| Bucket { ns: b.value_iterated_to(), count: b.count_at_value() });
        Latency { buckets: buckets.collect() }
    }

    /// Adds histograms up.
    pub fn merged<'a>(all: impl IntoIterator<Item = &'a Latency>) -> Latency {
        Latency::from_times(
            all.into_iter().flat_map(|one| one.buckets.iter().map(|b| (b.ns, b.count))),
        )
    }

    /// Returns the number of times in the histogram.
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, bucket| sum.saturating_add(bucket.count))
    }

    /// Returns the time in nanoseconds that a share of all times (0 to 1) does not exceed. None if
    /// the histogram is empty.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let mut histogram = empty();
        for bucket in &self.buckets {
            histogram.saturating_record_n(bucket.ns, bucket.count);
        }
        (!histogram.is_empty()).then(|| histogram.value_at_quantile(share))
    }

    /// Returns the shortest and the longest time in nanoseconds. None if the histogram is empty.
    pub fn range(&self) -> Option<(u64, u64)> {
        Some((self.buckets.first()?.ns, self.buckets.last()?.ns))
    }
}

fn empty() -> Histogram<u64> {
    // The library accepts these constant bounds: up to an hour, which no latency exceeds.
    Histogram::new_with_bounds(1, 3_600_000_000_000, DIGITS).expect("bounds of a histogram")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_known_times() {
        let latency = Latency::from_times((1..=1000).map(|ns| (ns, 1)));
        assert_eq!(latency.count(), 1000);
        assert_eq!(latency.quantile(0.5), Some(500));
        assert_eq!(latency.quantile(0.99), Some(990));
        assert_eq!(latency.quantile(1.0), Some(1000));
        assert_eq!(latency.range(), Some((1, 1000)));
        assert_eq!(Latency::default().quantile(0.5), None);
    }

    #[test]
    fn merging_is_not_averaging() {
        let fast = Latency::from_times([(100, 99)]);
        let slow = Latency::from_times([(900, 1)]);
        let both = Latency::merged([&fast, &slow]);
        assert_eq!(both, Latency::from_times([(900, 1), (100, 99)]));
        assert_eq!(both.quantile(0.5), Some(100));
        assert_eq!(both.quantile(1.0), Some(900));
        // A histogram that was written and read can be merged again.
        assert_eq!(Latency::merged([&both, &both]).count(), 200);
        assert_eq!(Latency::merged([&both]), both);
    }

    #[test]
    fn large_times_keep_three_digits() {
        let latency = Latency::from_times([(123_456_789, 1), (7_200_000_000_000, 1)]);
        let shortest = latency.quantile(0.25).unwrap();
        assert!(shortest.abs_diff(123_456_789) < 123_456, "{shortest}");
        assert_eq!(latency.count(), 2, "what exceeds an hour counts as one");
    }
}
