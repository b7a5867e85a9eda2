//! Summaries of the samples of a point for each system. A summary has the median, and the ratios to
//! the null firewall and the plain router of the same rounds. Tables, reports and comparisons use
//! them.

use std::collections::BTreeMap;

use crate::stats::{Interval, median_interval, ratio_interval};
use crate::{Counts, Latency, Point, Role, Run, Sample, Series, System};

/// The seed of intervals. It is constant, so that the same file always gives the same report.
const SEED: u64 = 1;

/// A system at a point.
#[derive(Debug, Clone)]
pub struct Row<'a> {
    /// The system.
    pub system: &'a System,
    /// Number of samples.
    pub samples: usize,
    /// Number of repeated trials.
    pub repeats: usize,
    /// Number of doubtful samples.
    pub doubtful: usize,
    /// Median of the values.
    pub median: Interval,
    /// Median of the differences to the null firewall's value of the same round. None for rates,
    /// and without a null firewall.
    pub net: Option<Interval>,
    /// Ratio to the null firewall. None without one.
    pub to_null: Option<Interval>,
    /// Ratio to the plain router or bridge. None without one.
    pub to_plain: Option<Interval>,
    /// Sum of the counts of all samples.
    pub counts: Option<Counts>,
    /// Latencies of all samples.
    pub latency: Option<Latency>,
}

/// A summary of a point.
#[derive(Debug, Clone)]
pub struct Summary<'a> {
    /// The systems, in the order of the run.
    pub rows: Vec<Row<'a>>,
    /// Noise between equal systems: the distance of the placebo's interval from 1, as a share. None
    /// without a placebo. Smaller differences mean nothing.
    pub noise: Option<f64>,
}

/// Summarizes a point of a series of a run.
pub fn summarize<'a>(run: &'a Run, series: &Series, point: &Point) -> Summary<'a> {
    let mut by_system: BTreeMap<&str, Vec<&Sample>> = BTreeMap::new();
    for sample in &point.samples {
        by_system.entry(&sample.system).or_default().push(sample);
    }
    let present = || run.systems.iter().filter(|system| by_system.contains_key(system.id.as_str()));
    let null = present().find(|system| system.role == Role::Null);
    let plain: Vec<&System> =
        present().filter(|system| matches!(system.role, Role::Router | Role::Bridge)).collect();

    let pairs = |system: &System, other: &System| {
        paired(&by_system[system.id.as_str()], &by_system[other.id.as_str()])
    };
    let rows = present().filter_map(|system| {
        let samples = &by_system[system.id.as_str()];
        let values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
        let null = null.filter(|null| null.id != system.id);
        let plain = plain_of(system, &plain);
        let null_pairs = null.map(|null| pairs(system, null));
        Some(Row {
            system,
            samples: samples.len(),
            repeats: samples.iter().map(|sample| sample.repeats.len()).sum(),
            doubtful: samples.iter().filter(|sample| sample.doubtful.is_some()).count(),
            median: median_interval(&values, SEED)?,
            net: null_pairs.as_deref().filter(|_| series.quantity.additive).and_then(net),
            to_null: null_pairs.as_deref().and_then(|pairs| ratio_interval(pairs, SEED)),
            to_plain: plain.and_then(|plain| ratio_interval(&pairs(system, plain), SEED)),
            counts: added(samples),
            latency: merged(samples),
        })
    });
    Summary { rows: rows.collect(), noise: noise(run, point) }
}

/// Returns the largest noise of a placebo at a point, as a share. None if no placebo was measured.
pub fn noise(run: &Run, point: &Point) -> Option<f64> {
    let samples = |id: &str| -> Vec<&Sample> {
        point.samples.iter().filter(|sample| sample.system == id).collect()
    };
    let distances = run.systems.iter().filter_map(|placebo| {
        let pairs = paired(&samples(&placebo.id), &samples(placebo.repeats.as_deref()?));
        ratio_interval(&pairs, SEED).map(|ratio| distance_from_one(&ratio))
    });
    distances.reduce(f64::max)
}

/// Returns the larger distance of the ends of a ratio's interval from 1, as a share.
pub fn distance_from_one(ratio: &Interval) -> f64 {
    f64::max(ratio.high.max(1.0), 1.0 / ratio.low.min(1.0)) - 1.0
}

/// Returns the plain router or bridge to compare a system with, of the same topology if possible.
fn plain_of<'a>(system: &System, plain: &[&'a System]) -> Option<&'a System> {
    let same = plain.iter().find(|other| other.topology == system.topology);
    same.or(plain.first()).copied().filter(|other| other.id != system.id)
}

/// Returns pairs of values from the rounds in which both systems have a sample.
pub fn paired(one: &[&Sample], other: &[&Sample]) -> Vec<(f64, f64)> {
    let others: BTreeMap<u32, f64> = other.iter().map(|s| (s.round, s.value)).collect();
    one.iter().filter_map(|s| Some((s.value, *others.get(&s.round)?))).collect()
}

fn net(pairs: &[(f64, f64)]) -> Option<Interval> {
    let differences: Vec<f64> = pairs.iter().map(|(value, null)| value - null).collect();
    median_interval(&differences, SEED)
}

fn added(samples: &[&Sample]) -> Option<Counts> {
    samples.iter().filter_map(|sample| sample.counts).reduce(Counts::and)
}

fn merged(samples: &[&Sample]) -> Option<Latency> {
    let all: Vec<&Latency> = samples.iter().filter_map(|sample| sample.latency.as_ref()).collect();
    (!all.is_empty()).then(|| Latency::merged(all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn a_point_is_summarized() {
        let run = example::run();
        let series = &run.series[0];
        let summary = summarize(&run, series, &series.points[1]);
        let ids: Vec<&str> = summary.rows.iter().map(|row| row.system.id.as_str()).collect();
        assert_eq!(ids, ["null", "router", "placebo", "nft@100"]);
        let row = &summary.rows[3];
        assert_eq!((row.samples, row.repeats, row.doubtful), (12, 1, 0));
        // 1200 more than the null firewall, within the variation of the samples, at any cost of a
        // round.
        let net = row.net.unwrap();
        assert!((net.middle - 1200.0).abs() < 2.0 && net.high - net.low < 4.0, "{net:?}");
        let ratio = row.to_plain.unwrap();
        assert!((ratio.middle - 1306.0 / 306.0).abs() < 0.05, "{ratio:?}");
        assert_eq!(row.counts.unwrap().received, 999);
        assert_eq!(row.latency.as_ref().unwrap().count(), 999);
        assert!(summary.rows[0].net.is_none() && summary.rows[0].to_null.is_none());
        assert!(summary.rows[1].to_plain.is_none());
        let noise = summary.noise.unwrap();
        assert!(noise > 0.0 && noise < 0.02, "{noise}");
    }

    #[test]
    fn rates_are_not_subtracted_and_rounds_without_a_partner_do_not_count() {
        let mut run = example::run();
        run.series[0].quantity.additive = false;
        run.series[0].points[0].samples.truncate(4 * 3 + 1);
        let summary = summarize(&run, &run.series[0], &run.series[0].points[0]);
        assert!(summary.rows.iter().all(|row| row.net.is_none()));
        assert_eq!(summary.rows[0].samples, 4, "the interrupted round has the null firewall only");
        assert_eq!(summary.rows[3].samples, 3);
        assert!(summary.rows[3].to_null.is_some());
    }

    #[test]
    fn a_distance_is_the_same_both_ways() {
        let ratio = |low, high| Interval { low, middle: 1.0, high };
        assert!((distance_from_one(&ratio(0.5, 1.1)) - 1.0).abs() < 1e-9);
        assert!((distance_from_one(&ratio(0.99, 2.0)) - 1.0).abs() < 1e-9);
        assert!(distance_from_one(&ratio(1.0, 1.0)).abs() < 1e-9);
    }
}
