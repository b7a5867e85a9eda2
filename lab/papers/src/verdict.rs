//! Verdicts on the findings of a paper: ratios with their intervals, compared with the range that a
//! finding predicts.

use fwlab_results::stats::{Interval, change_interval, median, ratio_interval};
use fwlab_results::summary::{self, paired};
use fwlab_results::{Finding, Mode, Point, Run, Sample, Verdict};

/// Seed of the bootstrap intervals, so that a file always gives the same verdicts.
const SEED: u64 = 1;

/// Tolerance of "equal". If the placebo differs by more, intervals are widened by its difference.
const EQUAL: f64 = 0.1;

/// One system at one point of a series.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleKey<'p> {
    /// Title of the series.
    pub title: &'p str,
    /// Value of the series' dimension.
    pub at: Option<f64>,
    /// Name of the system.
    pub system: &'p str,
}

/// Returns the name of a system without the suffixes of rules and block.
pub(crate) fn base(id: &str) -> &str {
    id.split(['@', '/']).next().unwrap_or(id)
}

/// Returns all samples of a system at a point.
pub(crate) fn samples<'r>(run: &'r Run, key: &SampleKey<'_>) -> Vec<&'r Sample> {
    let all = points(run, key).flat_map(|point| &point.samples);
    all.filter(|sample| base(&sample.system) == key.system).collect()
}

/// Returns all values of a system at a point.
pub(crate) fn values(run: &Run, key: &SampleKey<'_>) -> Vec<f64> {
    samples(run, key).iter().map(|sample| sample.value).collect()
}

/// Returns the median of a system at a point.
pub(crate) fn middle(run: &Run, key: &SampleKey<'_>) -> Option<f64> {
    median(&values(run, key))
}

/// Returns the ratio of two systems that were measured in the same rounds.
pub(crate) fn ratio(run: &Run, one: &SampleKey<'_>, other: &SampleKey<'_>) -> Option<Interval> {
    let ratio = ratio_interval(&paired(&samples(run, one), &samples(run, other)), SEED)?;
    Some(widened(run, &[one], ratio))
}

/// Returns the ratio of two systems or points of different rounds. Each is first divided by the
/// cable of its own rounds, or by the plain router if there is no cable.
pub(crate) fn change(run: &Run, from: &SampleKey<'_>, to: &SampleKey<'_>) -> Option<Interval> {
    let beside_cable = |key: &SampleKey<'_>| {
        let reference = if run.mode == Mode::Cost { "null" } else { "router" };
        let reference = SampleKey { system: reference, ..*key };
        paired(&samples(run, key), &samples(run, &reference))
    };
    let change = change_interval(&beside_cable(from), &beside_cable(to), SEED)?;
    Some(widened(run, &[from, to], change))
}

/// Returns all points of a series at a value of its dimension.
fn points<'r>(run: &'r Run, key: &SampleKey<'_>) -> impl Iterator<Item = &'r Point> {
    let (title, at) = (key.title.to_owned(), key.at);
    let series = run.series.iter().filter(move |series| series.title == title);
    series.flat_map(|series| &series.points).filter(move |point| point.at == at)
}

/// Returns an interval, widened by the noise at these points if the noise exceeds the tolerance.
/// The noise is the difference between systems that should be equal.
pub(crate) fn widened(run: &Run, keys: &[&SampleKey<'_>], interval: Interval) -> Interval {
    let points = keys.iter().flat_map(|key| points(run, key));
    let noise = points.filter_map(|point| summary::noise(run, point)).fold(0.0, f64::max);
    match noise > EQUAL {
        true => Interval {
            low: interval.low / (1.0 + noise),
            high: interval.high * (1.0 + noise),
            ..interval
        },
        false => interval,
    }
}

/// The range of a ratio, both ends included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range(pub f64, pub f64);

impl Range {
    /// Equal within the tolerance.
    pub(crate) const EQUAL: Range = Range(1.0 / (1.0 + EQUAL), 1.0 + EQUAL);
    /// Smaller by more than the tolerance.
    pub(crate) const LESS: Range = Range(0.0, 1.0 / (1.0 + EQUAL));
    /// Larger by more than the tolerance.
    pub(crate) const MORE: Range = Range(1.0 + EQUAL, f64::INFINITY);

    fn judge(self, interval: &Interval) -> Verdict {
        if interval.high < self.0 || interval.low > self.1 {
            Verdict::Fails
        } else if interval.low >= self.0 && interval.high <= self.1 {
            Verdict::Holds
        } else {
            Verdict::Undecided
        }
    }
}

/// A ratio that a finding predicts.
pub(crate) struct Check {
    /// Description of the ratio.
    pub what: String,
    /// The ratio, or None if it was not measured.
    pub ratio: Option<Interval>,
    /// The range of the ratio if the finding holds.
    pub range: Range,
}

/// Makes a finding. It holds if all its checks hold, and fails if one of them fails.
pub(crate) fn finding(claim: &str, source: &str, checks: Vec<Check>) -> Finding {
    let mut verdicts = Vec::new();
    let mut evidence = Vec::new();
    for Check { what, ratio, range } in &checks {
        let Some(ratio) = ratio else { continue };
        verdicts.push(range.judge(ratio));
        let Interval { low, middle, high } = ratio;
        evidence.push(format!("{what}: × {middle:.2} ({low:.2} – {high:.2})"));
    }
    let verdict = if verdicts.contains(&Verdict::Fails) {
        Verdict::Fails
    } else if verdicts.is_empty() || verdicts.contains(&Verdict::Undecided) {
        Verdict::Undecided
    } else {
        Verdict::Holds
    };
    let evidence =
        if evidence.is_empty() { "not measured".to_owned() } else { evidence.join("; ") };
    Finding { claim: claim.to_owned(), source: source.to_owned(), verdict, evidence }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(low: f64, high: f64, range: Range) -> Check {
        let ratio = Some(Interval { low, middle: (low + high) / 2.0, high });
        Check { what: "x".to_owned(), ratio, range }
    }

    #[test]
    fn a_finding_holds_if_all_its_ratios_lie_where_they_should() {
        let verdict = |checks| finding("", "", checks).verdict;
        let (equal, less) = (Range::EQUAL, Range::LESS);
        assert_eq!(verdict(vec![check(0.95, 1.08, equal)]), Verdict::Holds);
        assert_eq!(verdict(vec![check(0.85, 1.08, equal)]), Verdict::Undecided);
        assert_eq!(verdict(vec![check(0.80, 0.90, equal)]), Verdict::Fails);
        assert_eq!(verdict(vec![check(0.80, 0.90, less)]), Verdict::Holds);
        assert_eq!(verdict(vec![check(1.15, 1.20, Range::MORE)]), Verdict::Holds);
        let mixed = vec![check(0.80, 0.90, less), check(0.85, 1.08, equal)];
        assert_eq!(verdict(mixed), Verdict::Undecided);
        let mixed = vec![check(0.85, 1.08, equal), check(0.98, 1.04, less)];
        assert_eq!(verdict(mixed), Verdict::Fails);
        assert_eq!(finding("", "", Vec::new()).evidence, "not measured");
    }

    #[test]
    fn noise_of_the_placebo_widens_intervals() {
        let mut run = fwlab_results::example::run();
        let title = "Cost of a packet by number of rules";
        let at = run.series[0].points[0].at;
        let key = |system| SampleKey { title, at, system };
        let quiet = ratio(&run, &key("placebo"), &key("router")).unwrap();
        assert!(quiet.high < 1.01, "{quiet:?}");
        for sample in &mut run.series[0].points[0].samples {
            if sample.system == "placebo" {
                sample.value *= 1.5;
            }
        }
        let noisy = ratio(&run, &key("placebo"), &key("router")).unwrap();
        assert!(noisy.low < 1.05 && noisy.middle > 1.45 && noisy.high > 2.2, "{noisy:?}");
    }

    #[test]
    fn samples_are_found_by_name_and_compared_with_the_cable() {
        let run = fwlab_results::example::run();
        let title = "Cost of a packet by number of rules";
        let key = |at, system| SampleKey { title, at: Some(at), system };
        assert_eq!(base("nft-flat@500tcp/bridge"), "nft-flat");
        assert_eq!(base("null/inet6"), "null");
        let (first, last) = (run.series[0].points[0].at, run.series[0].points.last().unwrap().at);
        let (first, last) = (first.unwrap(), last.unwrap());
        let id = &run.series[0].points[0].samples[3].system;
        let same = change(&run, &key(first, "router"), &key(last, "router")).unwrap();
        assert!((same.middle - 1.0).abs() < 0.01, "{same:?}");
        assert!(ratio(&run, &key(first, base(id)), &key(first, "null")).unwrap().low > 1.0);
        assert!(ratio(&run, &key(first, "none"), &key(first, "null")).is_none());
    }
}
