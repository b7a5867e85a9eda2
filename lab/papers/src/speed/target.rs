//! The targets: what is compared with what, the bound of each ratio, and the verdict.

use fwlab_results::stats::{Interval, change_interval, median, ratio_interval};
use fwlab_results::summary::paired;
use fwlab_results::{Run, Sample, Table};
use skipstep_samples::ListShape;

use super::cores;
use super::loading::{CARGOES, Cargo, NFT, PFCTL};
use super::lookups;
use super::reloads;
use super::tables;
use super::{
    BRIDGED, FEW_STATES, HIT, IPERF3, MANY_STATES, NEW, RULES, RULES6, STATES, TCP_RR, UDP_RR,
};
use crate::states::{MADE, STATES_EACH};
use crate::study::MEMORY;
use crate::verdict::{SampleKey, middle, ratio, samples, widened};

/// Seed of the bootstrap intervals, so that a file always gives the same table.
const SEED: u64 = 1;

/// The system whose time is subtracted from all others.
const CABLE: &str = "null";

/// The bound of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
    /// No bound: the row shows a limit of another target.
    Seen,
}

/// The way to compute a figure.
enum Figure {
    /// Own time of a system divided by that of another in the same rounds.
    Own { title: &'static str, at: u32, system: &'static str, by: &'static str },
    /// Own time of a system at point `to` divided by that at point `from`. Each is first divided by
    /// the plain router of its rounds.
    Growth { from: (&'static str, u32), to: (&'static str, u32), system: &'static str },
    /// Throughput of a system divided by that of the plain router.
    Through { title: &'static str, system: &'static str },
    /// New states per second of a system divided by those of another.
    Making { system: &'static str, by: &'static str },
    /// Used memory in bytes for each additional state, measured once.
    Memory { system: &'static str },
    /// Load time of pfctl divided by that of nft.
    Loading((Cargo, &'static str, u32)),
    /// Number of frames lost in the worst trial.
    Lost,
    /// Lookup time among a list's rules divided by that of a hash map. The list is named by its
    /// title.
    Lookup(&'static str),
    /// The same ratio for one of the samples.
    Sampled(ListShape),
    /// The largest such ratio of the adversarial samples.
    Adversarial,
    /// The largest ratio of IPv6 to IPv4 lookup times of all samples.
    Longer,
    /// Work of two CPUs at once divided by the work of one.
    Cores([&'static str; 2]),
}

/// A row of the table.
struct Target {
    what: &'static str,
    against: &'static str,
    bound: Bound,
    figure: Figure,
}

/// Returns all targets.
fn targets() -> Vec<Target> {
    use Bound::{AtLeast, AtMost, Seen};
    use Figure::{
        Adversarial, Cores, Growth, Loading, Longer, Lookup, Lost, Making, Memory, Own, Sampled,
        Through,
    };

    let target = |what, against, bound, figure| Target { what, against, bound, figure };
    let hit = |system, by| Own { title: HIT, at: super::FEW_RULES, system, by };
    let bridged = |system| Own { title: BRIDGED, at: super::FEW_RULES, system, by: "bridge" };
    let rules = |system, by| Own { title: RULES, at: 500, system, by };
    let growth =
        |to| Growth { from: (RULES, 20), to: (RULES, to), system: "skipstep-compiled-xdp" };
    let (xdp, tcx) = ("skipstep-states-xdp", "skipstep-states");
    let (rules_xdp, rules_tcx) = ("skipstep-compiled-xdp", "skipstep-compiled");
    let forward = ["state hit, forwarded, XDP", "state hit, forwarded, tcx"];
    let stateless = ["500 rules, no state, XDP", "500 rules, no state, tcx"];
    let table = |way: usize| Own {
        title: tables::TITLE,
        at: tables::ENTRIES,
        system: tables::SYSTEMS[way],
        by: tables::SYSTEMS[2],
    };
    let interval_set = "nftables, an interval set";
    let hash = "one in a hash map";
    let lookup = |list: usize| Lookup(lookups::CLASSBENCH[list].1);
    let one_core = "one core";
    let router = "plain router";
    let conntrack = "nftables, conntrack";
    vec![
        target(forward[0], router, AtMost(0.60), hit(xdp, "router")),
        target(forward[0], "XDP that only routes", AtMost(2.8), hit(xdp, "xdp-route")),
        target(forward[1], router, AtMost(1.20), hit(tcx, "router")),
        target(forward[0], conntrack, AtMost(0.33), hit(xdp, "nft-conntrack")),
        target(forward[1], conntrack, AtMost(0.65), hit(tcx, "nft-conntrack")),
        target("tcx that only routes", conntrack, Seen, hit("tc-route", "nft-conntrack")),
        target(forward[1], "tcx that only routes", Seen, hit(tcx, "tc-route")),
        target("requests over TCP", router, AtLeast(0.97), Through { title: TCP_RR, system: tcx }),
        target("requests over UDP", router, AtLeast(0.97), Through { title: UDP_RR, system: tcx }),
        target(
            "iperf3, offloads on",
            router,
            AtLeast(0.98),
            Through { title: IPERF3, system: tcx },
        ),
        target("500 rules, no state, XDP", "20 rules", AtMost(1.15), growth(500)),
        target("10,000 rules, no state, XDP", "20 rules", AtMost(1.4), growth(10_000)),
        target(
            stateless[0],
            "iptables-legacy, flat",
            AtMost(0.10),
            rules(rules_xdp, "iptables-legacy"),
        ),
        target(stateless[0], "nftables, flat", AtMost(0.10), rules(rules_xdp, "nft-flat")),
        target(stateless[0], "nftables, a verdict map", AtMost(0.50), rules(rules_xdp, "nft-maps")),
        target(
            stateless[1],
            "iptables-legacy, flat",
            AtMost(0.20),
            rules(rules_tcx, "iptables-legacy"),
        ),
        target(stateless[1], "nftables, flat", AtMost(0.20), rules(rules_tcx, "nft-flat")),
        target(stateless[1], "nftables, a verdict map", AtMost(1.05), rules(rules_tcx, "nft-maps")),
        target("lookup alone, ClassBench acl1", hash, AtMost(4.5), lookup(0)),
        target("lookup alone, ClassBench fw1", hash, AtMost(9.0), lookup(1)),
        target("lookup alone, ClassBench ipc1", hash, AtMost(8.0), lookup(2)),
        target("lookup alone, our sample access", hash, Seen, Sampled(ListShape::Access)),
        target("lookup alone, our sample firewall", hash, Seen, Sampled(ListShape::Firewall)),
        target("lookup alone, our sample chain", hash, Seen, Sampled(ListShape::Chain)),
        target("lookup alone, worst adversarial sample", hash, AtMost(24.0), Adversarial),
        target("lookup alone, IPv6, worst sample", "the same over IPv4", AtMost(1.8), Longer),
        target(
            "500 rules, IPv6",
            "the same over IPv4",
            AtMost(1.8),
            Growth { from: (RULES, 500), to: (RULES6, 500), system: rules_xdp },
        ),
        target(
            "state hit, one of 1,000,000, tcx",
            "one of 1,000",
            AtMost(2.5),
            Growth { from: (STATES, FEW_STATES), to: (STATES, MANY_STATES), system: tcx },
        ),
        target(
            "state hit, one of 1,000,000, XDP",
            "one of 1,000",
            AtMost(2.5),
            Growth { from: (STATES, FEW_STATES), to: (STATES, MANY_STATES), system: xdp },
        ),
        target(
            "state hit, one of 1,000,000, tcx",
            conntrack,
            AtMost(0.5),
            Own { title: STATES, at: MANY_STATES, system: tcx, by: "nft-conntrack" },
        ),
        target(
            "state hit, one of 1,000,000, XDP",
            conntrack,
            AtMost(0.5),
            Own { title: STATES, at: MANY_STATES, system: xdp, by: "nft-conntrack" },
        ),
        target(
            "new states a second, UDP, XDP",
            conntrack,
            AtLeast(1.5),
            Making { system: xdp, by: "nft-conntrack" },
        ),
        target(
            "new states a second, UDP, tcx",
            conntrack,
            AtLeast(1.5),
            Making { system: tcx, by: "nft-conntrack" },
        ),
        target("bytes a state", "", AtMost(320.0), Memory { system: tcx }),
        target("table lookup, 1,000,000 addresses, XDP", interval_set, AtMost(0.5), table(1)),
        target("table lookup, 1,000,000 addresses, tcx", interval_set, AtMost(0.5), table(0)),
        target("loading 100,000 rules", "nft -f", AtMost(0.3), Loading(CARGOES[0])),
        target("loading 1,000,000 table entries", "nft -f", AtMost(0.3), Loading(CARGOES[1])),
        target("packets lost in 100 reloads", "", AtMost(0.0), Lost),
        target(
            "bridge, stateful, XDP",
            "plain bridge",
            AtMost(0.80),
            bridged("skipstep-bridge-xdp"),
        ),
        target("bridge, stateful, tcx", "plain bridge", AtMost(1.3), bridged("skipstep-bridge")),
        target("program time, two cores, XDP", one_core, AtLeast(1.8), Cores(cores::XDP)),
        target("program time, two cores, tcx", one_core, AtLeast(1.8), Cores(cores::TCX)),
        target("two cores, headers alone", one_core, Seen, Cores(cores::NOTHING)),
    ]
}

/// Makes the table of the targets.
pub(super) fn table(run: &Run) -> Table {
    let headings = ["What", "Against", "Verdict", "Target", "Measured"];
    let row = |target: &Target| {
        let (bound, digits) = match target.bound {
            Bound::AtMost(most) => (format!("<= {most}"), most),
            Bound::AtLeast(least) => (format!(">= {least}"), least),
            Bound::Seen => ("none".to_owned(), 1.0),
        };
        let mut what = target.what.to_owned();
        let (measured, verdict) = match measure(run, &target.figure) {
            Ok(Measured { interval, of }) => {
                if let Some(kind) = of {
                    what += &format!(": {}", kind.name());
                }
                (written(&interval, digits), target.bound.verdict(&interval).to_owned())
            }
            Err(why) => (String::new(), format!("not measured: {why}")),
        };
        vec![what, target.against.to_owned(), verdict, bound, measured]
    };
    Table {
        title: "Targets; unless noted otherwise, ratios of the time of a packet, less the time of \
                the cable"
            .to_owned(),
        columns: headings.map(str::to_owned).to_vec(),
        names: 3,
        rows: targets().iter().map(row).collect(),
    }
}

/// Formats an interval with the digits that its bound needs.
fn written(interval: &Interval, bound: f64) -> String {
    let Interval { low, middle, high } = interval;
    // bytes and frames are whole numbers
    let digits = if bound >= 100.0 || bound == 0.0 { 0 } else { 2 };
    if low == high {
        return format!("{middle:.digits$}");
    }
    format!("{middle:.digits$} ({low:.digits$} – {high:.digits$})")
}

impl Bound {
    /// Compares the median with the bound. The verdict mentions noise if the bound lies in the
    /// interval.
    fn verdict(self, interval: &Interval) -> &'static str {
        let (met, bound) = match self {
            Bound::AtMost(most) => (interval.middle <= most, most),
            Bound::AtLeast(least) => (interval.middle >= least, least),
            Bound::Seen => return "to compare with",
        };
        let may_be_noise = interval.low < interval.high && interval.contains(bound);
        match (met, may_be_noise) {
            (true, false) => "met",
            (true, true) => "met, within the noise",
            (false, false) => "NOT MET",
            (false, true) => "NOT MET, within the noise",
        }
    }
}

/// A measured figure.
struct Measured {
    interval: Interval,
    /// The sample of the figure, if the figure is the worst of several samples.
    of: Option<ListShape>,
}

impl From<Interval> for Measured {
    fn from(interval: Interval) -> Self {
        Measured { interval, of: None }
    }
}

fn measure(run: &Run, figure: &Figure) -> Result<Measured, String> {
    let at = |title, at: u32, system| SampleKey { title, at: Some(at.into()), system };
    let (title, interval) = match *figure {
        Figure::Own { title, at: count, system, by } => {
            return own_ratio(run, &at(title, count, system), &at(title, count, by));
        }
        Figure::Making { system, by } => {
            return own_ratio(run, &at(NEW, 0, by), &at(NEW, 0, system));
        }
        Figure::Growth { from, to, system } => {
            return own_growth(run, &at(from.0, from.1, system), &at(to.0, to.1, system));
        }
        Figure::Lookup(title) => return lookup(run, title, lookups::INET, lookups::HASH),
        Figure::Sampled(kind) => {
            return lookup(run, &lookups::title(kind), lookups::INET, lookups::HASH);
        }
        Figure::Adversarial => {
            let kinds = ListShape::ALL.into_iter().filter(|kind| kind.is_adversarial());
            return worst(run, kinds, lookups::INET, lookups::HASH);
        }
        Figure::Longer => return worst(run, ListShape::ALL, lookups::INET6, lookups::INET),
        Figure::Cores(ids) => return both_cores(run, ids),
        Figure::Through { title, system } => {
            let key = |system| SampleKey { title, at: None, system };
            (title, ratio(run, &key(system), &key("router")))
        }
        Figure::Memory { system } => {
            let bytes = |states| middle(run, &at(MEMORY, states, system));
            let made = MADE * f64::from((MANY_STATES - FEW_STATES) * STATES_EACH);
            let each =
                bytes(MANY_STATES).zip(bytes(FEW_STATES)).map(|(many, few)| (many - few) / made);
            (STATES, each.map(|value| Interval { low: value, middle: value, high: value }))
        }
        Figure::Loading((_, title, count)) => {
            (title, ratio(run, &at(title, count, PFCTL), &at(title, count, NFT)))
        }
        Figure::Lost => {
            let key = at(reloads::TITLE, reloads::TIMES, reloads::SYSTEM);
            let lost = samples(run, &key).iter().map(|sample| sample.value).reduce(f64::max);
            (key.title, lost.map(|most| Interval { low: most, middle: most, high: most }))
        }
    };
    interval.map(Measured::from).ok_or_else(|| left_out(run, title))
}

/// Returns the reason why a figure was not measured.
fn left_out(run: &Run, title: &str) -> String {
    let said = run.paper.iter().flat_map(|paper| &paper.differences);
    let mut reasons = said.filter_map(|text| {
        text.strip_prefix("left out: ")?.strip_prefix(title)?.strip_prefix(": ")
    });
    let is_there = run.series.iter().any(|series| series.title == title);
    let otherwise = match (is_there, &run.incomplete_because) {
        (true, _) => "a part was left out",
        (false, Some(_)) => "the run ended before it",
        (false, None) => "not selected",
    };
    reasons.next().unwrap_or(otherwise).to_owned()
}

/// Pairs the own times of two places by round. An own time is the measured time minus that of
/// system `null` in the same round.
fn own_pairs(
    run: &Run,
    one: &SampleKey<'_>,
    other: &SampleKey<'_>,
    null: &str,
) -> Result<Vec<(f64, f64)>, String> {
    let (ones, others) = (samples(run, one), samples(run, other));
    let nothing = samples(run, &SampleKey { system: null, ..*one });
    let of = |all: &[&Sample], round| {
        all.iter().find(|sample| sample.round == round).map(|sample| sample.value)
    };
    let pair = |sample: &&Sample| {
        let null = of(&nothing, sample.round)?;
        Some((sample.value - null, of(&others, sample.round)? - null))
    };
    let pairs: Vec<(f64, f64)> = ones.iter().filter_map(pair).collect();
    let [first, second]: [Vec<f64>; 2] =
        [pairs.iter().map(|pair| pair.0).collect(), pairs.iter().map(|pair| pair.1).collect()];
    match (median(&first), median(&second)) {
        (Some(first), Some(second)) if first > 0.0 && second > 0.0 => Ok(pairs),
        (Some(_), _) => Err("the time is not longer than the cable's, within the noise".to_owned()),
        _ => Err(left_out(run, one.title)),
    }
}

fn own_ratio(run: &Run, one: &SampleKey<'_>, other: &SampleKey<'_>) -> Result<Measured, String> {
    let pairs = own_pairs(run, one, other, CABLE)?;
    let ratio = ratio_interval(&pairs, SEED).ok_or_else(|| left_out(run, one.title))?;
    Ok(widened(run, &[one], ratio).into())
}

/// Computes the growth between points of different rounds, relative to the plain router, which
/// shows the machine's speed in those rounds.
fn own_growth(run: &Run, from: &SampleKey<'_>, to: &SampleKey<'_>) -> Result<Measured, String> {
    let beside_router =
        |key: &SampleKey<'_>| own_pairs(run, key, &SampleKey { system: "router", ..*key }, CABLE);
    let change = change_interval(&beside_router(from)?, &beside_router(to)?, SEED)
        .ok_or_else(|| left_out(run, to.title))?;
    Ok(widened(run, &[from, to], change).into())
}

/// Returns the ratio of two lookup times of the same rounds.
fn lookup(run: &Run, title: &str, one: &str, other: &str) -> Result<Measured, String> {
    let key = |system| SampleKey { title, at: Some(lookups::RULES.into()), system };
    let pairs = own_pairs(run, &key(one), &key(other), lookups::NOTHING)?;
    ratio_interval(&pairs, SEED).map(Measured::from).ok_or_else(|| left_out(run, title))
}

/// Returns the largest such ratio of several samples, or an error if a sample was not measured.
fn worst(
    run: &Run,
    kinds: impl IntoIterator<Item = ListShape>,
    one: &str,
    other: &str,
) -> Result<Measured, String> {
    let of = |kind| {
        let measured = lookup(run, &lookups::title(kind), one, other)?;
        Ok(Measured { of: Some(kind), ..measured })
    };
    let all: Vec<Measured> = kinds.into_iter().map(of).collect::<Result<_, String>>()?;
    let middle = |measured: &Measured| measured.interval.middle;
    let most = all.into_iter().max_by(|one, other| middle(one).total_cmp(&middle(other)));
    most.ok_or_else(|| "no sample".to_owned())
}

/// Returns the work of two CPUs at once divided by the work of one alone. The time of an empty run
/// is subtracted, except from itself.
fn both_cores(run: &Run, ids: [&str; 2]) -> Result<Measured, String> {
    let key = |system| SampleKey { title: cores::TITLE, at: Some(cores::CPUS.into()), system };
    let [one, both] = ids.map(key);
    let pairs = match ids == cores::NOTHING {
        true => paired(&samples(run, &one), &samples(run, &both)),
        false => own_pairs(run, &one, &both, cores::NOTHING[0])?,
    };
    let of_each = ratio_interval(&pairs, SEED).ok_or_else(|| left_out(run, cores::TITLE))?;
    let cpus = f64::from(cores::CPUS);
    let Interval { low, middle, high } = of_each;
    Ok(Interval { low: cpus * low, middle: cpus * middle, high: cpus * high }.into())
}

#[cfg(test)]
mod tests {
    use fwlab_results::{Mode, Point};

    use super::*;
    use crate::series::costs;

    fn interval(low: f64, middle: f64, high: f64) -> Interval {
        Interval { low, middle, high }
    }

    #[test]
    fn the_median_decides_and_noise_is_mentioned() {
        let most = Bound::AtMost(0.6);
        assert_eq!(most.verdict(&interval(0.4, 0.5, 0.55)), "met");
        assert_eq!(most.verdict(&interval(0.4, 0.5, 0.7)), "met, within the noise");
        assert_eq!(most.verdict(&interval(0.5, 0.65, 0.7)), "NOT MET, within the noise");
        assert_eq!(most.verdict(&interval(0.61, 0.65, 0.7)), "NOT MET");
        assert_eq!(Bound::AtLeast(1.5).verdict(&interval(1.6, 1.7, 1.8)), "met");
        assert_eq!(Bound::AtLeast(1.5).verdict(&interval(1.0, 1.1, 1.2)), "NOT MET");
        assert_eq!(Bound::Seen.verdict(&interval(0.9, 1.0, 1.1)), "to compare with");
    }

    /// The title of a series, the value of its dimension, and systems with their costs as multiples
    /// of the router.
    type Costs<'c> = (&'c str, u32, &'c [(&'c str, f64)]);

    /// Makes a run whose rounds differ in speed.
    fn run_with(points: &[Costs<'_>]) -> Run {
        let environment = fwlab_results::example::run().environment;
        let mut run = Run::begin(Mode::Cost, environment);
        for &(title, at, systems) in points {
            let load = super::super::load(fwlab_net::family::Family::V4);
            let mut series = costs(title.to_owned(), &load, 0.1, "rules");
            let mut samples = Vec::new();
            for round in 0..8 {
                let slow = 1.0 + f64::from(round % 3) * 0.2;
                samples.push(Sample::new(round, 0, "null", 100.0 * slow));
                for &(system, cost) in systems {
                    samples.push(Sample::new(round, 1, system, (100.0 + 200.0 * cost) * slow));
                }
            }
            series.points.push(Point { at: Some(at.into()), ceiling: None, void: None, samples });
            run.series.push(series);
        }
        run
    }

    #[test]
    fn the_time_of_a_cable_is_subtracted() {
        let systems: &[(&str, f64)] =
            &[("router", 1.0), ("nft-conntrack@20udp", 2.0), ("skipstep-states-xdp@20udp", 0.5)];
        let run = run_with(&[(HIT, 20, systems)]);
        let row = |what, against| row(&run, what, against);
        let xdp = row("state hit, forwarded, XDP", "plain router");
        assert_eq!(xdp[2..], ["met", "<= 0.6", "0.50"]);
        let conntrack = row("state hit, forwarded, XDP", "nftables, conntrack");
        assert_eq!(conntrack[2..], ["met", "<= 0.33", "0.25"]);
        let tcx = row("state hit, forwarded, tcx", "plain router");
        assert_eq!(tcx[2..], ["not measured: a part was left out", "<= 1.2", ""]);
    }

    /// Returns the row of a target.
    fn row(run: &Run, what: &str, against: &str) -> Vec<String> {
        let rows = table(run).rows;
        rows.into_iter().find(|row| row[0].starts_with(what) && row[1] == against).unwrap()
    }

    /// Makes a run whose rounds differ in speed, with times in nanoseconds.
    fn run_of(title: &str, at: u32, costs: &[(&str, f64)]) -> Run {
        let mut run = run_with(&[(title, at, &[])]);
        let samples = &mut run.series[0].points[0].samples;
        samples.clear();
        for round in 0..8 {
            let slow = 1.0 + f64::from(round % 3) * 0.2;
            let sample = |&(system, cost)| Sample::new(round, 0, system, cost * slow);
            samples.extend(costs.iter().map(sample));
        }
        run
    }

    #[test]
    fn a_missing_figure_has_a_reason() {
        let mut run = run_with(&[(HIT, 20, &[])]);
        let why = |run: &Run, what, against| row(run, what, against)[2].clone();
        let (hit, router) = ("state hit, forwarded, tcx", "plain router");
        assert_eq!(why(&run, hit, router), "not measured: a part was left out");
        assert_eq!(why(&run, "requests over TCP", router), "not measured: not selected");
        run.incomplete_because = Some("interrupted".to_owned());
        assert_eq!(why(&run, "requests over TCP", router), "not measured: the run ended before it");
        let said = |title: &str, why: &str| format!("left out: {title}: {why}");
        run.paper = Some(fwlab_results::Paper {
            title: String::new(),
            source: String::new(),
            differences: vec![
                said(cores::TITLE, "needs two CPUs"),
                said(lookups::CLASSBENCH[1].1, "no lists"),
            ],
            tables: Vec::new(),
        });
        assert_eq!(why(&run, "program time", "one core"), "not measured: needs two CPUs");
        let fw1 = why(&run, "lookup alone, ClassBench fw1", "one in a hash map");
        assert_eq!(fw1, "not measured: no lists");
    }

    #[test]
    fn two_cores_do_what_each_does_beside_the_other() {
        let [tcx, xdp, nothing] = [cores::TCX, cores::XDP, cores::NOTHING];
        // 40 ns of each time are the loop that runs the programs
        let costs = [
            (tcx[0], 440.0),
            (tcx[1], 540.0),
            (xdp[0], 240.0),
            (xdp[1], 240.0),
            (nothing[0], 40.0),
            (nothing[1], 50.0),
        ];
        let run = run_of(cores::TITLE, cores::CPUS, &costs);
        let verdict = |what| row(&run, what, "one core")[2..].to_vec();
        assert_eq!(verdict("program time, two cores, tcx"), ["NOT MET", ">= 1.8", "1.60"]);
        assert_eq!(verdict("program time, two cores, XDP"), ["met", ">= 1.8", "2.00"]);
        assert_eq!(verdict("two cores, headers alone"), ["to compare with", "none", "1.60"]);
    }

    #[test]
    fn the_worst_sample_decides_and_is_named() {
        let mut run = run_with(&[]);
        for (kind, inet) in
            ListShape::ALL.into_iter().zip([110.0, 210.0, 310.0, 130.0, 90.0, 450.0, 410.0])
        {
            let costs = [
                (lookups::NOTHING, 10.0),
                (lookups::HASH, 30.0),
                (lookups::INET, inet),
                (lookups::INET6, if kind == ListShape::Wide { 130.0 } else { inet }),
            ];
            run.series.extend(run_of(&lookups::title(kind), lookups::RULES, &costs).series);
        }
        let hash = "one in a hash map";
        let access = row(&run, "lookup alone, our sample access", hash);
        assert_eq!(access[2..], ["to compare with", "none", "5.00"]);
        let adversarial = row(&run, "lookup alone, worst adversarial sample", hash);
        assert_eq!(adversarial[0], "lookup alone, worst adversarial sample: pairs");
        assert_eq!(adversarial[2..], ["met", "<= 24", "22.00"]);
        let longer = row(&run, "lookup alone, IPv6", "the same over IPv4");
        assert_eq!(longer[0], "lookup alone, IPv6, worst sample: wide");
        assert_eq!(longer[2..4], ["met", "<= 1.8"]);
        assert!(longer[4].starts_with("1.50"), "{longer:?}");
        let without = |kind| {
            let mut run = run.clone();
            run.series.retain(|series| series.title != lookups::title(kind));
            row(&run, "lookup alone, worst adversarial sample", hash)[2].clone()
        };
        assert_eq!(
            without(ListShape::Pairs),
            "not measured: not selected",
            "nobody knows the worst"
        );
        assert_eq!(without(ListShape::Access), "met");
    }

    #[test]
    fn a_time_below_the_cables_meets_no_target() {
        let systems: &[(&str, f64)] = &[("router", 1.0), ("skipstep-states-xdp@20udp", -0.1)];
        let rows = table(&run_with(&[(HIT, 20, systems)])).rows;
        assert_eq!(
            rows[0][2],
            "not measured: the time is not longer than the cable's, within the noise"
        );
        assert_eq!(rows[0][4], "");
    }

    #[test]
    fn growth_is_seen_beside_the_router() {
        let system = "skipstep-compiled-xdp";
        let run = run_with(&[
            (RULES, 20, &[("router", 1.0), (system, 0.5)]),
            // the machine ran at half the speed
            (RULES, 500, &[("router", 2.0), (system, 1.1)]),
        ]);
        let growth = Figure::Growth { from: (RULES, 20), to: (RULES, 500), system };
        let ratio = measure(&run, &growth).unwrap().interval;
        assert!((ratio.middle - 1.1).abs() < 1e-9, "{ratio:?}");
    }
}
