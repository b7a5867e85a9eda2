//! Conversion of a search to a result file for `fwlab report` and `fwlab compare`. The file has the
//! result, loss and latency by rate, and the conformance to a standard.

use std::cmp::Ordering;

use fwlab_results::{
    Better, Counts, Dimension, Finding, Load, Point, Quantity, Run, Sample, Series, Verdict,
};
use serde_json::Value;

use super::test::{ConnectionTest, FrameTest, FrameTestAtThroughput, Test};
use super::{Conformance, Record};

/// The result of a search.
pub(super) struct SearchResult<'f> {
    pub test: Test,
    pub conformance: &'f Conformance,
    pub result: &'f Value,
    pub trials: &'f [Record],
    /// The kind of frames or filter in titles. None if the run has only one kind.
    pub kind: Option<String>,
}

impl SearchResult<'_> {
    /// Appends the result to a run. `system` is the id of the system in samples.
    pub(super) fn write(&self, run: &mut Run, system: &str, load: &Load) {
        let mut series = self.values(system, load);
        // a search between two machines has no latencies
        let timed = self.trials.iter().filter(|trial| trial.latency.count() > 0);
        let loss = self.by_rate("Loss by rate", ("loss", "%"), load, self.trials, |trial| {
            Sample::new(0, 0, system, trial.loss * 100.0)
        });
        let latency = self.by_rate("Latency by rate", ("latency", "ns"), load, timed, |trial| {
            let median = trial.latency.quantile(0.5).unwrap_or_default();
            let sample = Sample::new(0, 0, system, median as f64);
            Sample { latency: Some(trial.latency.clone()), ..sample }
        });
        series.push(loss);
        series.extend(Some(latency).filter(|latency| !latency.points.is_empty()));
        if let Some(kind) = &self.kind {
            series.iter_mut().for_each(|one| one.title = format!("{}, {kind}", one.title));
        }
        run.series.extend(series);
        run.findings.push(self.finding());
    }

    /// Returns the results of the search as series with one value each.
    fn values(&self, system: &str, load: &Load) -> Vec<Series> {
        let at = |title: &str, pointer: &str, unit: &str| {
            let value = self.result.pointer(pointer)?.as_f64()?;
            let better = if ["ns", "s"].contains(&unit) { Better::Lower } else { Better::Higher };
            let samples = vec![Sample::new(0, 0, system, value)];
            Some(Series {
                title: title.to_owned(),
                load: load.clone(),
                quantity: quantity(title, unit, better),
                dimension: None,
                points: vec![Point { at: None, ceiling: None, void: None, samples }],
            })
        };
        let all = match self.test {
            Test::Frames(test) => match test {
                FrameTest::Throughput => vec![at("throughput", "/rate", "frames/s")],
                FrameTest::Mlr => ["/0", "/1"]
                    .map(|goal| {
                        let name = self.result.pointer(&format!("{goal}/goal/name"))?.as_str()?;
                        let title = format!("conditional throughput, {name}");
                        at(&title, &format!("{goal}/conditional_throughput"), "frames/s")
                    })
                    .to_vec(),
                FrameTest::LossRate | FrameTest::HopByHop => Vec::new(),
            },
            Test::FramesAtThroughput(test) => match test {
                FrameTestAtThroughput::BackToBack => {
                    vec![at("longest burst without loss", "/mean", "frames")]
                }
                FrameTestAtThroughput::Latency => vec![
                    at("typical latency", "/typical/median", "ns"),
                    at("worst latency", "/worst/median", "ns"),
                ],
                FrameTestAtThroughput::SystemRecovery => {
                    vec![at("system recovery", "/seconds", "s")]
                }
                FrameTestAtThroughput::Reset => {
                    vec![at("time without frames around a reset", "/seconds", "s")]
                }
            },
            Test::Connections(test) => match test {
                ConnectionTest::TcpCapacity => {
                    vec![at("connections at once", "/connections", "connections")]
                }
                ConnectionTest::TcpRate => {
                    vec![at("connections made without a failure", "/rate", "1/s")]
                }
                ConnectionTest::TcpTearDown => vec![at("connections torn down", "/rate", "1/s")],
                ConnectionTest::HttpRate => {
                    vec![at("pages fetched without a failure", "/rate", "1/s")]
                }
                ConnectionTest::HttpTransfer => Vec::new(),
            },
            Test::ConnectionsAtRate(_) => Vec::new(),
        };
        all.into_iter().flatten().collect()
    }

    /// Returns a series of trials with a point for each rate.
    fn by_rate<'t>(
        &self,
        title: &str,
        (name, unit): (&str, &str),
        load: &Load,
        trials: impl IntoIterator<Item = &'t Record>,
        sample: impl Fn(&Record) -> Sample,
    ) -> Series {
        let connections = self.test.is_about_connections();
        let unit_of_rate = if connections { "attempts/s" } else { "frames/s" };
        let mut trials: Vec<_> = trials.into_iter().collect();
        trials.sort_by(|one, other| one.rate.total_cmp(&other.rate));
        let mut points: Vec<Point> = Vec::new();
        for trial in trials {
            if points.last().is_none_or(|point| point.at != Some(trial.rate)) {
                let at = Some(trial.rate);
                points.push(Point { at, ceiling: None, void: None, samples: Vec::new() });
            }
            let Some(point) = points.last_mut() else { continue };
            let counts =
                Counts { sent: trial.intended, received: trial.received, ..Counts::default() };
            let round = point.samples.len() as u32;
            point.samples.push(Sample { round, counts: Some(counts), ..sample(trial) });
        }
        Series {
            title: title.to_owned(),
            load: load.clone(),
            quantity: quantity(name, unit, Better::Lower),
            dimension: Some(Dimension { name: "rate".to_owned(), unit: unit_of_rate.to_owned() }),
            points,
        }
    }

    fn finding(&self) -> Finding {
        let (verdict, evidence) = match self.conformance {
            Conformance::Conforms => (Verdict::Holds, "in every point".to_owned()),
            Conformance::Partial(missing) => {
                (Verdict::Fails, format!("partial: {}", missing.join("; ")))
            }
            Conformance::Not(why) => (Verdict::Fails, why.clone()),
        };
        let standard = self.test.standard();
        Finding {
            claim: match &self.kind {
                None => format!("the test follows {standard}"),
                Some(kind) => format!("the test follows {standard}, with {kind}"),
            },
            source: standard.to_owned(),
            verdict,
            evidence,
        }
    }
}

/// Appends series by frame size to a run, made of its results for single sizes.
pub(super) fn by_size(run: &mut Run) {
    let mut all: Vec<Series> = Vec::new();
    for series in run.series.iter().filter(|series| series.dimension.is_none()) {
        let (Some(size), [point]) = (series.load.size, &series.points[..]) else { continue };
        let title = series.title.replace(&format!("frames of {size} bytes"), "by frame size");
        let point = Point { at: Some(size as f64), ..point.clone() };
        match all.iter_mut().find(|one| one.title == title) {
            Some(one) => one.points.push(point),
            None => all.push(Series {
                title,
                load: Load { size: None, ..series.load.clone() },
                dimension: Some(Dimension { name: "size".to_owned(), unit: "bytes".to_owned() }),
                points: vec![point],
                ..series.clone()
            }),
        }
    }
    for series in &mut all {
        series
            .points
            .sort_by(|one, other| one.at.partial_cmp(&other.at).unwrap_or(Ordering::Equal));
    }
    run.series.extend(all.into_iter().filter(|series| series.points.len() > 1));
}

fn quantity(name: &str, unit: &str, better: Better) -> Quantity {
    Quantity { name: name.to_owned(), unit: unit.to_owned(), better, additive: false }
}

#[cfg(test)]
mod tests {
    use fwlab_results::{Latency, System, example};

    use super::*;
    use serde_json::json;

    fn trial(rate: f64, received: u64) -> Record {
        Record {
            rate,
            seconds: 1.0,
            intended: 100,
            received,
            loss: (100 - received) as f64 / 100.0,
            latency: Latency::from_times([(1000, received)]),
        }
    }

    #[test]
    fn trials_of_a_rate_are_one_point_and_the_file_can_be_read() {
        let trials = [trial(500.0, 80), trial(100.0, 100), trial(500.0, 0), trial(300.0, 100)];
        let found = SearchResult {
            test: Test::Frames(FrameTest::Throughput),
            conformance: &Conformance::Partial(vec!["the link is virtual".to_owned()]),
            result: &json!({"rate": 300.0}),
            trials: &trials,
            kind: None,
        };
        let mut run = example::run();
        run.series.clear();
        run.systems = vec![System { topology: "router".into(), ..run.systems[1].clone() }];
        found.write(&mut run, "router", &Load::default());
        let run = Run::parse(&serde_json::to_string(&run).unwrap()).unwrap();
        let [value, loss, latency] = &run.series[..] else { panic!("{:?}", run.series) };
        assert_eq!(value.points[0].samples[0].value, 300.0);
        let points = |series: &Series| -> Vec<(f64, Vec<f64>)> {
            let values = |point: &Point| point.samples.iter().map(|sample| sample.value).collect();
            series.points.iter().map(|point| (point.at.unwrap(), values(point))).collect()
        };
        assert_eq!(
            points(loss),
            [(100.0, vec![0.0]), (300.0, vec![0.0]), (500.0, vec![20.0, 100.0])]
        );
        assert_eq!(points(latency).len(), 3, "a trial without a frame has no latency");
        assert_eq!(points(latency)[2].1.len(), 1);
        let finding = run.findings.last().unwrap();
        assert_eq!(
            (finding.verdict, &finding.evidence[..]),
            (Verdict::Fails, "partial: the link is virtual")
        );
    }

    #[test]
    fn results_of_several_kinds_have_distinct_titles() {
        let mut run = example::run();
        run.series.clear();
        for size in [64, 128] {
            let kind = Some(format!("frames of {size} bytes"));
            let (trials, result) = ([trial(500.0, 80)], json!({"rate": 300.0}));
            let conformance = &Conformance::Conforms;
            let found = SearchResult {
                test: Test::Frames(FrameTest::Throughput),
                conformance,
                result: &result,
                trials: &trials,
                kind,
            };
            found.write(&mut run, "router", &Load::default());
        }
        let titles: Vec<&str> = run.series.iter().map(|series| &series.title[..]).collect();
        assert_eq!(titles.len(), 6);
        assert_eq!(titles[0], "throughput, frames of 64 bytes");
        assert_eq!(titles[4], "Loss by rate, frames of 128 bytes");
        for (series, size) in run.series.iter_mut().zip([64, 64, 64, 128, 128, 128]) {
            series.load.size = Some(size);
        }
        by_size(&mut run);
        let [.., plotted] = &run.series[..] else { panic!() };
        assert_eq!((run.series.len(), &plotted.title[..]), (7, "throughput, by frame size"));
        let points = plotted.points.iter().map(|point| (point.at, point.samples[0].value));
        assert_eq!(points.collect::<Vec<_>>(), [(Some(64.0), 300.0), (Some(128.0), 300.0)]);
    }

    #[test]
    fn every_goal_has_a_value() {
        let goal =
            |name, value: f64| json!({"goal": {"name": name}, "conditional_throughput": value});
        let found = SearchResult {
            test: Test::Frames(FrameTest::Mlr),
            conformance: &Conformance::Conforms,
            result: &json!([goal("RFC 2544", 1.0), goal("TST 009", 2.0)]),
            trials: &[],
            kind: None,
        };
        let values = found.values("x", &Load::default());
        assert_eq!(values.len(), 2);
        assert_eq!(values[1].title, "conditional throughput, TST 009");
    }
}
