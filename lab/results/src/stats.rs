//! Statistics of samples: medians, confidence intervals, and tests of a difference between two
//! sets.
//!
//! No function assumes a normal distribution: on a shared machine samples have a long tail to the
//! slow side.

mod mann_whitney;
mod picture;

pub use mann_whitney::{RankTest, mann_whitney};
pub use picture::picture;

/// The number of bootstrap draws for an interval.
const DRAWS: usize = 4000;

/// A value with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Interval {
    /// The lower end, inclusive.
    pub low: f64,
    /// The statistic of the samples themselves.
    pub middle: f64,
    /// The upper end, inclusive.
    pub high: f64,
}

impl Interval {
    /// Returns true if the value lies in the interval.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// Returns the value below which a share (0 to 1) of the samples lies. Interpolates between two
/// samples. None if there are no samples.
pub fn quantile(samples: &[f64], share: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    quantile_of(&mut sorted, share)
}

/// Returns the median. None if there are no samples.
pub fn median(samples: &[f64]) -> Option<f64> {
    quantile(samples, 0.5)
}

/// Returns a quantile of the samples, and sorts them.
fn quantile_of(samples: &mut [f64], share: f64) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    let place = samples.len().checked_sub(1)? as f64 * share.clamp(0.0, 1.0);
    let (below, above) = (samples[place.floor() as usize], samples[place.ceil() as usize]);
    Some(below + (above - below) * place.fract())
}

/// Returns the median and its interval. None if there are no samples.
pub fn median_interval(samples: &[f64], seed: u64) -> Option<Interval> {
    bootstrap([samples.len()], seed, |[drawn]| {
        let mut values: Vec<f64> = drawn.iter().map(|&index| samples[index]).collect();
        quantile_of(&mut values, 0.5)
    })
}

/// Returns the median of the numerators divided by the median of the denominators. The two values
/// of a pair are from the same round. The bootstrap draws pairs, so a slow round does not widen the
/// interval. None if there are no pairs.
pub fn ratio_interval(pairs: &[(f64, f64)], seed: u64) -> Option<Interval> {
    bootstrap([pairs.len()], seed, |[drawn]| ratio_of_medians(pairs, drawn))
}

/// Returns the ratio of the medians of `after`, divided by the ratio of the medians of `before`.
/// The pairs of the two sets are independent of each other.
pub fn change_interval(before: &[(f64, f64)], after: &[(f64, f64)], seed: u64) -> Option<Interval> {
    bootstrap([before.len(), after.len()], seed, |[drawn_before, drawn_after]| {
        Some(ratio_of_medians(after, drawn_after)? / ratio_of_medians(before, drawn_before)?)
    })
}

fn ratio_of_medians(pairs: &[(f64, f64)], drawn: &[usize]) -> Option<f64> {
    let median = |side: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = drawn.iter().map(|&index| side(&pairs[index])).collect();
        quantile_of(&mut values, 0.5)
    };
    Some(median(|pair| pair.0)? / median(|pair| pair.1)?)
}

/// Returns the statistic of the samples, with its 95 % bootstrap interval: as many samples are
/// drawn from each set as it has, with repetition.
fn bootstrap<const SETS: usize>(
    sizes: [usize; SETS],
    seed: u64,
    statistic: impl Fn([&[usize]; SETS]) -> Option<f64>,
) -> Option<Interval> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut drawn = sizes.map(|size| (0..size).collect::<Vec<usize>>());
    let middle =
        statistic(drawn.each_ref().map(Vec::as_slice)).filter(|value| value.is_finite())?;
    let mut values = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        for (set, size) in drawn.iter_mut().zip(sizes) {
            set.fill_with(|| random.usize(..size));
        }
        values.push(statistic(drawn.each_ref().map(Vec::as_slice))?);
    }
    let low = quantile_of(&mut values, 0.025)?;
    let high = quantile_of(&mut values, 0.975)?;
    Some(Interval { low, middle, high })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_of_known_samples() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        // Type 7, the default of R.
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.25), Some(2.0));
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0], 0.9), Some(3.7));
    }

    #[test]
    fn rounds_that_were_slow_as_a_whole_do_not_matter_to_a_ratio() {
        let pairs: Vec<(f64, f64)> =
            (1..=15).map(|round| (f64::from(round) * 20.0, f64::from(round) * 10.0)).collect();
        let ratio = ratio_interval(&pairs, 1).unwrap();
        assert_eq!((ratio.low, ratio.middle, ratio.high), (2.0, 2.0, 2.0));
        let alone: Vec<f64> = pairs.iter().map(|pair| pair.0).collect();
        let median = median_interval(&alone, 1).unwrap();
        assert!(median.low < 140.0 && median.middle == 160.0 && median.high > 180.0, "{median:?}");
    }

    #[test]
    fn the_interval_of_a_median_is_about_what_theory_says() {
        // For the 101 samples 0…100, the 95 % interval of the median is from the 41st to the 61st.
        let samples: Vec<f64> = (0..101).map(f64::from).collect();
        let interval = median_interval(&samples, 7).unwrap();
        assert!((38.0..=43.0).contains(&interval.low), "{interval:?}");
        assert!((57.0..=62.0).contains(&interval.high), "{interval:?}");
    }

    /// Checks that the interval contains the true value in about 95 of 100 experiments.
    #[test]
    fn the_truth_is_mostly_in_the_interval() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut inside = 0;
        for seed in 0..60 {
            let pairs: Vec<(f64, f64)> = (0..15)
                .map(|_| {
                    let round = 100.0 + 50.0 * random.f64();
                    (round * 1.5 + random.f64() - 0.5, round + random.f64() - 0.5)
                })
                .collect();
            inside += usize::from(ratio_interval(&pairs, seed).unwrap().contains(1.5));
        }
        assert!(inside >= 50, "{inside} of 60");
    }

    #[test]
    fn empty_sets_have_no_statistics() {
        assert_eq!(median_interval(&[], 1), None);
        assert_eq!(ratio_interval(&[], 1), None);
        assert_eq!(ratio_interval(&[(1.0, 0.0)], 1), None);
        assert_eq!(change_interval(&[(1.0, 1.0)], &[], 1), None);
    }

    #[test]
    fn a_change_is_that_of_ratios() {
        let run = |factor: f64| -> Vec<(f64, f64)> {
            (0..12).map(|i| (factor * (10.0 + f64::from(i)), 10.0 + f64::from(i))).collect()
        };
        let change = change_interval(&run(2.0), &run(3.0), 1).unwrap();
        assert!((change.low - 1.5).abs() < 1e-9 && (change.high - 1.5).abs() < 1e-9, "{change:?}");
    }

    fn samples() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(0.1..1e6_f64, 1..30)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        #[test]
        fn quantiles_lie_among_samples_and_rise(samples in samples(), a in 0.0..1.0, b in 0.0..1.0) {
            let low = quantile(&samples, f64::min(a, b)).unwrap();
            let high = quantile(&samples, f64::max(a, b)).unwrap();
            prop_assert!(low <= high);
            let least = samples.iter().copied().fold(f64::INFINITY, f64::min);
            let most = samples.iter().copied().fold(0.0, f64::max);
            prop_assert!(least <= low && high <= most);
        }

        #[test]
        fn an_interval_holds_its_middle_and_lies_among_samples(samples in samples(), seed: u64) {
            let interval = median_interval(&samples, seed).unwrap();
            prop_assert!(interval.contains(interval.middle), "{interval:?}");
            prop_assert!(quantile(&samples, 0.0).unwrap() <= interval.low);
            prop_assert!(interval.high <= quantile(&samples, 1.0).unwrap());
            prop_assert_eq!(Some(interval), median_interval(&samples, seed));
        }

        #[test]
        fn a_ratio_does_not_depend_on_the_unit(samples in samples(), factor in 0.01..100.0_f64) {
            let pairs = |unit: f64| -> Vec<_> {
                samples.iter().map(|&x| (x * unit, (x + 1.0) * unit)).collect()
            };
            let one = ratio_interval(&pairs(1.0), 5).unwrap();
            let other = ratio_interval(&pairs(factor), 5).unwrap();
            for (one, other) in [(one.low, other.low), (one.middle, other.middle), (one.high, other.high)] {
                prop_assert!((one / other - 1.0).abs() < 1e-9);
            }
        }
    }
}
