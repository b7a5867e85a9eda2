//! Tests of each search on devices with known behaviour.

use super::simulated::{Curve, Simulated};
use super::*;

const MOST: f64 = 2e6;
const SETTING: Setting = Setting {
    wire: false,
    foreign: false,
    size: 64,
    ip6: false,
    extension: Extension::None,
    networks: 1,
    learns: true,
    variety: Variety { sizes: false, networks: false, extensions: false, rules: false, nat: false },
    most: MOST,
    waits: Waits::STANDARD,
};

/// Returns the result of a search, its trials, and the seconds they would have taken.
fn on<T>(
    curve: Curve,
    search: impl FnOnce(&mut TrialRunner) -> Result<T, Failure>,
) -> (Result<T, Failure>, Vec<Record>, f64) {
    let mut device = Simulated::new(curve, 1);
    let mut runner = TrialRunner::new(&mut device, SETTING.waits);
    let found = search(&mut runner);
    let records = runner.records;
    (found, records, device.clock)
}

fn throughput_of(curve: Curve) -> (Result<throughput::Throughput, Failure>, Vec<Record>) {
    let (found, records, _) =
        on(curve, |runner| throughput::search(runner, &SETTING, &throughput::Plan::default()));
    (found, records)
}

#[test]
fn the_listener_is_called_for_each_trial() {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    static HEARD: AtomicUsize = AtomicUsize::new(0);
    let mut device = Simulated::new(Curve::Knee(1e6), 1);
    let mut runner = TrialRunner::new(&mut device, Waits::NONE);
    runner.listener = Some(|number, record| {
        assert_eq!((number, record.rate), (HEARD.fetch_add(1, Relaxed) + 1, 1000.0));
    });
    for _ in 0..3 {
        runner.steady(1000.0, 1.0).unwrap();
    }
    assert_eq!(HEARD.load(Relaxed), 3);
}

#[test]
fn throughput_is_found_as_exactly_as_asked_for() {
    for capacity in [31_000.0, 777_000.0, 1_999_000.0] {
        for curve in [Curve::Knee(capacity), Curve::Slope(capacity)] {
            let (found, records) = throughput_of(curve);
            let found = found.unwrap();
            assert!(found.rate > capacity - MOST * 0.001, "{curve:?} {found:?}");
            // The buffer holds frames that a trial of 60 s counts as forwarded.
            assert!(found.rate <= capacity + 1000.0 / 60.0 + 1.0, "{curve:?} {found:?}");
            assert!(found.lossy.unwrap() > found.rate, "{found:?}");
            let last = records.last().unwrap();
            assert_eq!((last.seconds, last.loss), (60.0, 0.0), "a long trial decides");
        }
    }
}

#[test]
fn a_device_faster_than_the_link_ends_the_search_at_once() {
    let (found, records) = throughput_of(Curve::Knee(5e6));
    assert_eq!(found.unwrap(), throughput::Throughput { rate: MOST, lossy: None, most: MOST });
    assert_eq!(records.len(), 2);
}

#[test]
fn a_device_that_drops_everything_is_told_apart_from_a_slow_one() {
    let (found, _) = throughput_of(Curve::Drop);
    assert!(matches!(found, Err(Failure::Nothing(_))), "{found:?}");
    let (found, records) = throughput_of(Curve::Knee(500.0));
    assert_eq!(found.unwrap().rate, 0.0);
    assert!(records.iter().all(|record| record.loss > 0.0));
}

#[test]
fn a_reflecting_or_dead_device_ends_each_search_and_keeps_its_trials() {
    let plan = latency::Plan { rate: 1e5, seconds: 1.0, repeats: 5 };
    let range = mlr::Range { least: 100.0, most: MOST };
    type Search<'a> = Box<dyn Fn(&mut TrialRunner) -> Result<(), Failure> + 'a>;
    let searches: [Search; 5] = [
        Box::new(|runner| {
            throughput::search(runner, &SETTING, &throughput::Plan::default()).map(drop)
        }),
        Box::new(|runner| loss_rate::search(runner, &SETTING, 60.0).map(drop)),
        Box::new(|runner| back_to_back::search(runner, &SETTING, 1e6, 50).map(drop)),
        Box::new(|runner| latency::search(runner, &plan).map(drop)),
        Box::new(|runner| mlr::search(runner, range, &[mlr::Goal::rfc2544()]).map(drop)),
    ];
    for search in searches {
        let (found, records, _) = on(Curve::Reflect, &search);
        assert!(matches!(found, Err(Failure::Reflected { .. })), "{found:?}");
        assert!(records.is_empty());
        let (found, records, _) = on(Curve::Die(2), &search);
        assert_eq!(
            found.unwrap_err().to_string(),
            "trial 2 failed: the device does not answer any more"
        );
        assert_eq!(records.len(), 1);
    }
}

#[test]
fn the_ladder_ends_after_two_clean_steps() {
    let (found, _, _) = on(Curve::Slope(1.3e6), |runner| loss_rate::search(runner, &SETTING, 60.0));
    let steps = found.unwrap();
    let shares: Vec<f64> = steps.iter().map(|step| step.share).collect();
    assert_eq!(shares, [1.0, 0.9, 0.8, 0.7, 0.6, 0.5]);
    // The rate is 0.7 million above the start; all is lost 11.7 million above.
    assert!((steps[0].loss - 0.7 / 11.7).abs() < 1e-6, "{steps:?}");
    assert!(steps[3].loss > 0.0 && steps[4].loss == 0.0);
    let (found, _, _) = on(Curve::Drop, |runner| loss_rate::search(runner, &SETTING, 60.0));
    assert_eq!(found.unwrap().len(), 10, "it never gets clean");
    let (found, _, _) = on(Curve::Knee(MOST), |runner| loss_rate::search(runner, &SETTING, 60.0));
    assert_eq!(found.unwrap().len(), 2);
}

#[test]
fn bursts_tell_the_buffer() {
    let (found, _, _) =
        on(Curve::Knee(1e6), |runner| back_to_back::search(runner, &SETTING, 1e6, 3));
    let found = found.unwrap().unwrap();
    // The buffer has 1000 frames, and half of the arriving frames are forwarded meanwhile: 2000
    // fit.
    assert!((1995.0..=2005.0).contains(&found.mean), "{found:?}");
    assert_eq!((found.bursts.len(), found.least, found.most), (3, found.most, found.least));
    assert_eq!(found.deviation, 0.0);
    assert!((found.corrected_buffer * MOST - 1000.0).abs() < 5.0, "{found:?}");
    let (found, records, _) =
        on(Curve::Knee(5e6), |runner| back_to_back::search(runner, &SETTING, MOST, 3));
    assert_eq!(found.unwrap(), None);
    assert!(records.is_empty());
}

#[test]
fn latency_grows_with_the_rate() {
    let at = |rate: f64| {
        let plan = latency::Plan { rate, seconds: 1.0, repeats: 20 };
        on(Curve::Knee(1e6), |runner| latency::search(runner, &plan)).0.unwrap()
    };
    let (idle, busy) = (at(1e4), at(9e5));
    assert_eq!(idle.trials, 20);
    assert!((idle.typical.median - 10_000.0).abs() < 100.0, "{:?}", idle.typical);
    // The median of an exponential wait is ln 2 times its mean.
    let expected = 10_000.0 * (1.0 + 0.1 * 9.0 * std::f64::consts::LN_2);
    assert!((busy.typical.median / expected - 1.0).abs() < 0.01, "{:?}", busy.typical);
    assert!(busy.worst.median > busy.typical.median);
    assert!(busy.variation.median < busy.worst.median);
    assert_eq!(busy.all.count(), 20 * 900_000);
    let plan = latency::Plan { rate: 1e5, seconds: 1.0, repeats: 2 };
    let (found, _, _) = on(Curve::Drop, |runner| latency::search(runner, &plan));
    assert!(matches!(found, Err(Failure::Nothing(_))));
}

fn recovery_plan(throughput: f64, seconds: f64) -> recovery::Plan {
    recovery::Plan { throughput, seconds, repeats: 3 }
}

#[test]
fn recovery_and_reset() {
    let plan = recovery_plan(1e6, 60.0);
    let (found, records, _) =
        on(Curve::Knee(1e6), |runner| recovery::system_recovery(runner, &SETTING, &plan));
    let found = found.unwrap();
    assert!((found.overload - 1.1e6).abs() < 1.0);
    assert_eq!((found.seconds, found.times, found.unrecovered), (0.125, vec![0.125; 3], 0));
    // 110 % for a minute, less the frames in the buffer
    assert_eq!(found.lost, [6_000_000 - 1000; 3]);
    assert_eq!(records[0].intended, 66_000_000 + 33_000_000);
    let plan = recovery_plan(MOST, 60.0);
    let (found, _, _) =
        on(Curve::Knee(5e6), |runner| recovery::system_recovery(runner, &SETTING, &plan));
    let found = found.unwrap();
    assert_eq!((found.seconds, found.lost), (0.0, vec![0; 3]), "there was never too much");
    let plan = recovery_plan(1e5, 10.0);
    let (found, _, _) = on(Curve::Knee(1e6), |runner| recovery::reset(runner, &plan));
    let found = found.unwrap();
    assert_eq!((found.seconds, found.seconds_by_loss), (0.25, 0.25));
}

/// A device with altered trials.
struct Altered(fn(&mut Trial), Option<&'static str>);

impl Measurer for Altered {
    fn trial(&mut self, order: &Order) -> anyhow::Result<Trial> {
        let mut trial = Simulated::new(Curve::Knee(1e6), 1).trial(order)?;
        (self.0)(&mut trial);
        Ok(trial)
    }

    fn wait(&mut self, _: f64) {}

    fn reset(&self) -> Option<&str> {
        self.1
    }
}

#[test]
fn a_device_that_does_not_come_back_has_no_recovery() {
    let plan = recovery_plan(1e6, 1.0);
    let mut device = Altered(|trial| trial.last_loss = Some(0.95), None);
    let mut runner = TrialRunner::new(&mut device, Waits::NONE);
    let found = recovery::system_recovery(&mut runner, &SETTING, &plan).unwrap();
    assert_eq!(found.unrecovered, 3);
    assert!(matches!(recovery::reset(&mut runner, &plan), Err(Failure::NoReset)));

    let away = |trial: &mut Trial| {
        let time = std::time::Duration::from_millis(500);
        trial.gap = Some(Gap { frames: 1, time, ended: false });
    };
    let mut device = Altered(away, Some("gone"));
    let mut runner = TrialRunner::new(&mut device, Waits::NONE);
    assert!(matches!(recovery::reset(&mut runner, &plan), Err(Failure::Away)));
}

fn mlr_of(curve: Curve, goals: &[mlr::Goal]) -> (Vec<mlr::GoalResult>, Vec<Record>, f64) {
    let range = mlr::Range { least: 100.0, most: MOST };
    let (found, records, clock) = on(curve, |runner| mlr::search(runner, range, goals));
    (found.unwrap(), records, clock)
}

#[test]
fn mlr_finds_bounds_as_close_as_the_goal_wants() {
    let goals = [mlr::Goal::rfc2544(), mlr::Goal::tst009()];
    for capacity in [3_333.0, 450_000.0, 1_000_000.0, 1_995_000.0] {
        for curve in [Curve::Knee(capacity), Curve::Slope(capacity)] {
            let (results, _, _) = mlr_of(curve, &goals);
            for result in results {
                let (lower, upper) = (result.lower.unwrap(), result.upper.unwrap());
                let slack = 1000.0 / 60.0 + 1.0;
                assert!(lower <= capacity + slack && upper > capacity, "{curve:?} {result:?}");
                assert!(upper - lower <= 0.005 * upper + 1.0, "{curve:?} {result:?}");
                assert_eq!(result.conditional_throughput, Some(lower));
            }
        }
    }
}

#[test]
fn mlr_says_when_the_most_or_the_least_is_the_limit() {
    let goals = [mlr::Goal::rfc2544()];
    let (results, records, _) = mlr_of(Curve::Knee(5e6), &goals);
    assert_eq!((results[0].lower, results[0].upper), (Some(MOST), None));
    assert!(records.len() <= 4, "{}", records.len());
    let (results, _, _) = mlr_of(Curve::Knee(3.0), &goals);
    assert_eq!(results[0].lower, None);
    assert_eq!(results[0].conditional_throughput, None);
    let range = mlr::Range { least: 100.0, most: MOST };
    let (found, _, _) = on(Curve::Drop, |runner| mlr::search(runner, range, &goals));
    assert!(matches!(found, Err(Failure::Nothing(_))), "{found:?}");
}

/// Checks the purpose of the RFC: random losses drive a search without tolerance away from the
/// device's capacity, to another value each time. A search that lets half of the trials exceed the
/// loss ratio stays there.
#[test]
fn chance_does_not_take_a_tolerant_goal_away() {
    let goals = [mlr::Goal::rfc2544(), mlr::Goal::tst009()];
    let range = mlr::Range { least: 100.0, most: MOST };
    let mut shares = [0.0; 2];
    for seed in 0..20 {
        let mut device = Simulated::new(Curve::Noise(1e6), seed);
        let results =
            mlr::search(&mut TrialRunner::new(&mut device, SETTING.waits), range, &goals).unwrap();
        for (share, result) in shares.iter_mut().zip(results) {
            *share += result.lower.unwrap_or(0.0) / 1e6 / 20.0;
        }
    }
    let [strict, tolerant] = shares;
    assert!(tolerant > 0.97, "{tolerant}");
    assert!(1.0 - strict > 2.0 * (1.0 - tolerant), "{strict} {tolerant}");
}

#[test]
fn short_trials_save_time() {
    let (_, records, clock) = mlr_of(Curve::Slope(450_000.0), &[mlr::Goal::rfc2544()]);
    let long = records.iter().filter(|record| record.seconds >= 60.0).count();
    let by_halves = (1.0 / 0.005_f64).log2().ceil();
    assert!((1..=4).contains(&long), "{long} of {}", records.len());
    assert!(clock < by_halves * 69.0 * 1.5, "{clock}");
}

#[test]
fn hop_by_hop_options_are_sent_at_three_rates_and_keep_the_device_busy() {
    let (found, records, _) =
        on(Curve::Knee(5e5), |runner| hop_by_hop::search(runner, &SETTING, 60.0));
    let found = found.unwrap();
    let rates: Vec<f64> = found.iter().map(|impact| impact.rate).collect();
    assert_eq!(rates, [MOST * 0.01, MOST * 0.1, MOST * 0.5]);
    let busy: Vec<f64> = found.iter().filter_map(|impact| impact.busy).collect();
    assert_eq!(busy, [0.04, 0.4, 1.0]);
    assert!(found[1].loss == 0.0 && found[2].loss > 0.49, "{found:?}");
    assert_eq!(records.len(), 3);
}

#[test]
fn a_capacity_is_found_as_exactly_as_it_should_be() {
    for most in [1u32, 10, 3_333, 9_999, 10_000, 12_000] {
        let (found, records, _) =
            on(Curve::Knee(f64::from(most)), |runner| tcp::capacity(runner, 10_000, 1000.0));
        let found = found.unwrap();
        let least = u64::from(most).min(10_000);
        assert!(found.connections <= least && found.connections + 50 >= least, "{found:?}");
        assert_eq!(found.refused.is_none(), most >= 10_000, "{found:?}");
        assert!(found.refused.is_none_or(|refused| refused > found.connections));
        assert!(records.len() <= 20, "{}", records.len());
    }
    let (found, records, _) = on(Curve::Drop, |runner| tcp::capacity(runner, 10_000, 1000.0));
    assert!(matches!(found, Err(Failure::NoConnection)), "{found:?}");
    assert_eq!(records[0].loss, 1.0);
}

#[test]
fn connections_a_second_are_found_as_a_throughput_is() {
    let plan = throughput::Plan::default();
    let (found, records, _) =
        on(Curve::Knee(7e5), |runner| tcp::setup_rate(runner, &SETTING, &plan));
    let found = found.unwrap().found;
    assert!((7e5 - MOST * 0.001..=7e5 + 20.0).contains(&found.rate), "{found:?}");
    assert_eq!(records.last().unwrap().loss, 0.0);
    let (found, _, _) = on(Curve::Drop, |runner| tcp::setup_rate(runner, &SETTING, &plan));
    assert!(matches!(found, Err(Failure::NoConnection)), "{found:?}");
}

#[test]
fn forbidden_connections_that_get_through_are_told_and_are_no_losses() {
    for (curve, leaks) in [(Curve::Knee(1e6), false), (Curve::Reflect, true)] {
        let (found, records, _) = on(curve, |runner| tcp::illegal(runner, 1000.0, 1.0));
        let found = found.unwrap();
        let forbidden: Vec<u64> = found.iter().map(|one| one.forbidden).collect();
        assert_eq!(forbidden, [0, 100, 500, 900]);
        for one in &found {
            assert_eq!((one.attempted, one.served), (1000 - one.forbidden, 1000 - one.forbidden));
            assert_eq!(one.leaked, if leaks { one.forbidden } else { 0 });
        }
        assert!(records.iter().all(|record| record.loss == 0.0), "{records:?}");
    }
}

#[test]
fn connections_are_torn_down_as_fast_as_the_device_can() {
    // the buffer of 1000 counts as torn down within the trial of 100,000
    for capacity in [2e5, 1.5e6] {
        let (found, _, _) =
            on(Curve::Knee(capacity), |runner| tcp::tear_down(runner, &SETTING, 100_000, 1000.0));
        let found = found.unwrap();
        let range = capacity - MOST * 0.005..capacity * 1.02;
        assert!(range.contains(&found.rate), "{found:?}");
        assert!(found.too_fast.unwrap() > found.rate);
    }
    let (found, records, _) =
        on(Curve::Knee(5e6), |runner| tcp::tear_down(runner, &SETTING, 1000, 1000.0));
    assert_eq!((found.unwrap().rate, records.len()), (MOST, 1));
    let (found, _, _) = on(Curve::Drop, |runner| tcp::tear_down(runner, &SETTING, 1000, 1000.0));
    assert!(matches!(found, Err(Failure::NoConnection)), "{found:?}");
}

#[test]
fn fragments_beside_connections_are_counted_apart() {
    for (curve, came) in [(Curve::Knee(1e6), 1.0), (Curve::Drop, 0.0)] {
        let (found, _, _) = on(curve, |runner| tcp::fragments(runner, 1000.0, 2.0));
        let found = found.unwrap();
        let sent: Vec<u64> = found.iter().map(|one| one.datagrams.sent).collect();
        assert_eq!(sent, [0, 200, 2000, 20_000]);
        for one in &found {
            assert_eq!(one.datagrams.received as f64, one.datagrams.sent as f64 * came);
            assert_eq!((one.attempted, one.served as f64), (2000, 2000.0 * came));
        }
    }
}

#[test]
fn results_say_how_far_they_are_a_standards() {
    let wire = Setting { wire: true, ..SETTING };
    let over = |ip6| Setting { ip6, ..wire }.over_ip6(Conformance::Conforms);
    assert_eq!(over(false), Conformance::Conforms);
    assert!(
        matches!(over(true), Conformance::Partial(points) if points[0].starts_with("RFC 5180"))
    );
    let chain = Setting { extension: Extension::Chain, ip6: true, ..wire };
    let Conformance::Partial(missing) = chain.over_ip6(Conformance::Conforms) else { panic!() };
    assert!(missing[0].contains("only traffic with the extension headers chain"), "{missing:?}");
    assert_eq!(chain.smallest(), 124);
    let goals = [mlr::Goal::rfc2544(), mlr::Goal::tst009()];
    assert_eq!(mlr::conformance(&wire, &goals), Conformance::Conforms);
    let Conformance::Partial(missing) = mlr::conformance(&SETTING, &goals[..1]) else { panic!() };
    assert_eq!(
        missing,
        ["the link is virtual", "no goal is as strict as that of TST 009 with 60 s trials"]
    );
    let hasty = Waits { before: 0.0, after: 0.1, rest: 0.0 };
    let hasty = Setting { waits: hasty, ..wire };
    let plan = throughput::Plan { last: 1.0, ..Default::default() };
    let Conformance::Partial(missing) = throughput::conformance(&hasty, &plan) else { panic!() };
    assert_eq!(missing.len(), 3, "{missing:?}");
    let plan = throughput::Plan::default();
    let all =
        Setting { variety: Variety { sizes: true, networks: true, ..Variety::default() }, ..wire };
    assert_eq!(throughput::conformance(&all, &plan), Conformance::Conforms);
    for less in [
        Setting { wire: false, ..all },
        Setting { learns: false, ..all },
        Setting { variety: Variety { networks: false, ..all.variety }, ..all },
        Setting { variety: Variety { sizes: false, ..all.variety }, ..all },
    ] {
        let conformance = throughput::conformance(&less, &plan);
        assert!(
            matches!(&conformance, Conformance::Partial(points) if points.len() == 1),
            "{conformance:?}"
        );
    }
    // RFC 2544 section 9: 64 bytes on 10 Mbit/s are 14880 frames a second.
    assert_eq!(Setting::line_rate(1e7, 64).floor(), 14_880.0);
    assert_eq!(Setting::line_rate(1e7, 1518).floor(), 812.0);
}
