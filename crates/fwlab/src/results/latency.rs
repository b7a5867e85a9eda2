//! How long frames took, as a histogram: it can be added to others, which percentiles cannot.

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Three digits are kept of each time.
const DIGITS: u8 = 3;

/// Times in nanoseconds, from when a frame was to be sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Which times came how often, ascending.
    pub buckets: Vec<Bucket>,
}

/// A time and how often it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bucket {
    /// Nanoseconds; times that differ in the fourth digit share a bucket.
    pub ns: u64,
    /// How often.
    pub count: u64,
}

impl Latency {
    /// Of times with how often they came, in any order.
    pub fn of(times: impl IntoIterator<Item = (u64, u64)>) -> Latency {
        let mut histogram = empty();
        for (ns, count) in times {
            histogram.saturating_record_n(ns, count);
        }
        let buckets = histogram.iter_recorded();
        let buckets =
            buckets.map(|b| Bucket { ns: b.value_iterated_to(), count: b.count_at_value() });
        Latency { buckets: buckets.collect() }
    }

    /// All times of several.
    pub fn merged<'a>(all: impl IntoIterator<Item = &'a Latency>) -> Latency {
        Latency::of(all.into_iter().flat_map(|one| one.buckets.iter().map(|b| (b.ns, b.count))))
    }

    /// How many times it holds.
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, bucket| sum.saturating_add(bucket.count))
    }

    /// The time in nanoseconds that a share of all (0 to 1) do not exceed, if there are any.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let mut histogram = empty();
        for bucket in &self.buckets {
            histogram.saturating_record_n(bucket.ns, bucket.count);
        }
        (!histogram.is_empty()).then(|| histogram.value_at_quantile(share))
    }

    /// Shortest and longest, if there are any.
    pub fn range(&self) -> Option<(u64, u64)> {
        Some((self.buckets.first()?.ns, self.buckets.last()?.ns))
    }
}

fn empty() -> Histogram<u64> {
    // The bounds are constants that the library takes: up to an hour, which nothing exceeds.
    Histogram::new_with_bounds(1, 3_600_000_000_000, DIGITS).expect("bounds of a histogram")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_known_times() {
        let latency = Latency::of((1..=1000).map(|ns| (ns, 1)));
        assert_eq!(latency.count(), 1000);
        assert_eq!(latency.quantile(0.5), Some(500));
        assert_eq!(latency.quantile(0.99), Some(990));
        assert_eq!(latency.quantile(1.0), Some(1000));
        assert_eq!(latency.range(), Some((1, 1000)));
        assert_eq!(Latency::default().quantile(0.5), None);
    }

    #[test]
    fn merging_is_not_averaging() {
        let fast = Latency::of([(100, 99)]);
        let slow = Latency::of([(900, 1)]);
        let both = Latency::merged([&fast, &slow]);
        assert_eq!(both, Latency::of([(900, 1), (100, 99)]));
        assert_eq!(both.quantile(0.5), Some(100));
        assert_eq!(both.quantile(1.0), Some(900));
        // What has been written and read can be merged again.
        assert_eq!(Latency::merged([&both, &both]).count(), 200);
        assert_eq!(Latency::merged([&both]), both);
    }

    #[test]
    fn large_times_keep_three_digits() {
        let latency = Latency::of([(123_456_789, 1), (7_200_000_000_000, 1)]);
        let shortest = latency.quantile(0.25).unwrap();
        assert!(shortest.abs_diff(123_456_789) < 123_456, "{shortest}");
        assert_eq!(latency.count(), 2, "what exceeds an hour counts as one");
    }
}
