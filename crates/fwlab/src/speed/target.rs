//! The targets: what is to be how fast against what, and what was measured of it.

use super::loading::{CARGOES, Cargo, NFT, PFCTL};
use super::reloads;
use super::tables;
use super::{
    BRIDGED, FEW_STATES, HIT, IPERF3, MANY_STATES, NEW, RULES, RULES6, STATES, TCP_RR, UDP_RR,
};
use crate::paper::states::{MADE, STATES_EACH};
use crate::paper::study::MEMORY;
use crate::paper::verdict::{Place, middle, ratio, samples, widened};
use crate::results::{Run, Sample, Table};
use crate::stats::{Interval, change_interval, median, ratio_interval};

/// Intervals are drawn with this seed, so that the same file always gives the same table.
const SEED: u64 = 1;

/// Why there is no figure of what was to be measured.
const LEFT_OUT: &str = "some of it was left out";

/// What a ratio is to be.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
    /// Nothing: it shows what another target can come to.
    Seen,
}

/// How a figure is got.
enum Figure {
    /// Own time of one system by another's, of the same rounds.
    Own { title: &'static str, at: u32, system: &'static str, by: &'static str },
    /// The same of one at two points, each beside the plain router of its rounds.
    Growth { from: (&'static str, u32), to: (&'static str, u32), system: &'static str },
    /// What gets through one system by what gets through the plain router.
    Through { title: &'static str, system: &'static str },
    /// New states a second of one system by another's.
    Making { system: &'static str, by: &'static str },
    /// Bytes that are missing of the machine's memory for each state that there is more, seen once.
    Memory { system: &'static str },
    /// Time in which pfctl loads what nft loads in the other.
    Loading((Cargo, &'static str, u32)),
    /// Frames that were lost in the worst trial.
    Lost,
    /// Not measured, and why.
    Missing(&'static str),
}

/// A row.
struct Target {
    what: &'static str,
    against: &'static str,
    bound: Bound,
    figure: Figure,
}

/// All of them.
fn targets() -> Vec<Target> {
    use Bound::{AtLeast, AtMost, Seen};
    use Figure::{Growth, Loading, Lost, Making, Memory, Missing, Own, Through};

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
        target(
            "lookup alone, 100,000 rules of each family",
            "one lookup in a hash map",
            AtMost(4.5),
            Missing("xtask bench --lookup measures it"),
        ),
        target(
            "lookup alone, adversarial sets",
            "one lookup in a hash map",
            AtMost(24.0),
            Missing("xtask bench --lookup measures it"),
        ),
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
        target(
            "program time, two cores at once",
            "one core",
            AtLeast(1.8),
            Missing("not built into fwlab speed"),
        ),
    ]
}

/// The table.
pub(super) fn table(run: &Run) -> Table {
    let headings = ["What", "Against", "Verdict", "Target", "Measured"];
    let row = |target: &Target| {
        let (bound, digits) = match target.bound {
            Bound::AtMost(most) => (format!("<= {most}"), most),
            Bound::AtLeast(least) => (format!(">= {least}"), least),
            Bound::Seen => ("none".to_owned(), 1.0),
        };
        let (measured, verdict) = match measure(run, &target.figure) {
            Ok(interval) => {
                (written(&interval, digits), target.bound.verdict(&interval).to_owned())
            }
            Err(why) => (String::new(), format!("not measured: {why}")),
        };
        vec![target.what.to_owned(), target.against.to_owned(), verdict, bound, measured]
    };
    Table {
        title: "Targets; ratios of what a packet costs in each system, beyond a cable, where nothing else is said"
            .to_owned(),
        columns: headings.map(str::to_owned).to_vec(),
        names: 3,
        rows: targets().iter().map(row).collect(),
    }
}

/// With digits that a bound of this size needs.
fn written(interval: &Interval, bound: f64) -> String {
    let Interval { low, middle, high } = interval;
    // numbers of bytes and frames are whole
    let digits = if bound >= 100.0 || bound == 0.0 { 0 } else { 2 };
    if low == high {
        return format!("{middle:.digits$}");
    }
    format!("{middle:.digits$} ({low:.digits$} – {high:.digits$})")
}

impl Bound {
    /// The median decides; where the bound lies in the interval, if there is one, that is said.
    fn verdict(self, interval: &Interval) -> &'static str {
        let (met, bound) = match self {
            Bound::AtMost(most) => (interval.middle <= most, most),
            Bound::AtLeast(least) => (interval.middle >= least, least),
            Bound::Seen => return "to compare with",
        };
        let may_be_noise = interval.low < interval.high && interval.contains(bound);
        match (met, may_be_noise) {
            (true, false) => "met",
            (true, true) => "met, but not beyond noise",
            (false, false) => "NOT MET",
            (false, true) => "NOT MET, but not beyond noise",
        }
    }
}

fn measure(run: &Run, figure: &Figure) -> Result<Interval, String> {
    let at = |title, at: u32, system| Place { title, at: Some(at.into()), system };
    let interval = match *figure {
        Figure::Own { title, at: count, system, by } => {
            return own_ratio(run, &at(title, count, system), &at(title, count, by));
        }
        Figure::Making { system, by } => {
            return own_ratio(run, &at(NEW, 0, by), &at(NEW, 0, system));
        }
        Figure::Growth { from, to, system } => {
            return own_growth(run, &at(from.0, from.1, system), &at(to.0, to.1, system));
        }
        Figure::Through { title, system } => {
            let place = |system| Place { title, at: None, system };
            ratio(run, &place(system), &place("router"))
        }
        Figure::Memory { system } => {
            let bytes = |states| middle(run, &at(MEMORY, states, system));
            let made = MADE * f64::from((MANY_STATES - FEW_STATES) * STATES_EACH);
            let each =
                bytes(MANY_STATES).zip(bytes(FEW_STATES)).map(|(many, few)| (many - few) / made);
            each.map(|value| Interval { low: value, middle: value, high: value })
        }
        Figure::Loading((_, title, count)) => {
            ratio(run, &at(title, count, PFCTL), &at(title, count, NFT))
        }
        Figure::Lost => {
            let place = at(reloads::TITLE, reloads::TIMES, reloads::SYSTEM);
            let lost = samples(run, &place).iter().map(|sample| sample.value).reduce(f64::max);
            lost.map(|most| Interval { low: most, middle: most, high: most })
        }
        Figure::Missing(why) => return Err(why.to_owned()),
    };
    interval.ok_or_else(|| LEFT_OUT.to_owned())
}

/// Own times by round of a place and of another system beside it.
fn own_pairs(run: &Run, one: &Place<'_>, other: &Place<'_>) -> Result<Vec<(f64, f64)>, String> {
    let (ones, others) = (samples(run, one), samples(run, other));
    let nothing = samples(run, &Place { system: "null", ..*one });
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
        (Some(_), _) => Err("no more than a cable costs, among so much noise".to_owned()),
        _ => Err(LEFT_OUT.to_owned()),
    }
}

fn own_ratio(run: &Run, one: &Place<'_>, other: &Place<'_>) -> Result<Interval, String> {
    let ratio = ratio_interval(&own_pairs(run, one, other)?, SEED).ok_or(LEFT_OUT)?;
    Ok(widened(run, &[one], ratio))
}

/// The points were not measured in the same rounds: the plain router of each says how fast the machine was then.
fn own_growth(run: &Run, from: &Place<'_>, to: &Place<'_>) -> Result<Interval, String> {
    let beside_router =
        |place: &Place<'_>| own_pairs(run, place, &Place { system: "router", ..*place });
    let change =
        change_interval(&beside_router(from)?, &beside_router(to)?, SEED).ok_or(LEFT_OUT)?;
    Ok(widened(run, &[from, to], change))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::series::costs;
    use crate::results::{Mode, Point};

    fn interval(low: f64, middle: f64, high: f64) -> Interval {
        Interval { low, middle, high }
    }

    #[test]
    fn the_median_decides_and_noise_is_said() {
        let most = Bound::AtMost(0.6);
        assert_eq!(most.verdict(&interval(0.4, 0.5, 0.55)), "met");
        assert_eq!(most.verdict(&interval(0.4, 0.5, 0.7)), "met, but not beyond noise");
        assert_eq!(most.verdict(&interval(0.5, 0.65, 0.7)), "NOT MET, but not beyond noise");
        assert_eq!(most.verdict(&interval(0.61, 0.65, 0.7)), "NOT MET");
        assert_eq!(Bound::AtLeast(1.5).verdict(&interval(1.6, 1.7, 1.8)), "met");
        assert_eq!(Bound::AtLeast(1.5).verdict(&interval(1.0, 1.1, 1.2)), "NOT MET");
        assert_eq!(Bound::Seen.verdict(&interval(0.9, 1.0, 1.1)), "to compare with");
    }

    /// A series, where in it, and systems with what they cost, in routers.
    type Costs<'c> = (&'c str, u32, &'c [(&'c str, f64)]);

    /// Rounds in which everything is slower or faster, and systems that cost so many times the router.
    fn run_with(points: &[Costs<'_>]) -> Run {
        let environment = crate::results::example::run().environment;
        let mut run = Run::begin(Mode::Cost, environment);
        for &(title, at, systems) in points {
            let load = super::super::load(crate::topology::Family::V4);
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
    fn what_a_cable_costs_is_taken_off() {
        let systems: &[(&str, f64)] =
            &[("router", 1.0), ("nft-conntrack@20udp", 2.0), ("skipstep-states-xdp@20udp", 0.5)];
        let run = run_with(&[(HIT, 20, systems)]);
        let rows = table(&run).rows;
        let row = |what: &str, against: &str| {
            rows.iter().find(|row| row[0] == what && row[1] == against).unwrap().clone()
        };
        let xdp = row("state hit, forwarded, XDP", "plain router");
        assert_eq!(xdp[2..], ["met", "<= 0.6", "0.50"]);
        let conntrack = row("state hit, forwarded, XDP", "nftables, conntrack");
        assert_eq!(conntrack[2..], ["met", "<= 0.33", "0.25"]);
        let tcx = row("state hit, forwarded, tcx", "plain router");
        assert_eq!(tcx[2..], ["not measured: some of it was left out", "<= 1.2", ""]);
    }

    #[test]
    fn less_than_a_cable_meets_nothing() {
        let systems: &[(&str, f64)] = &[("router", 1.0), ("skipstep-states-xdp@20udp", -0.1)];
        let rows = table(&run_with(&[(HIT, 20, systems)])).rows;
        assert_eq!(rows[0][2], "not measured: no more than a cable costs, among so much noise");
        assert_eq!(rows[0][4], "");
    }

    #[test]
    fn growth_is_seen_beside_the_router() {
        let system = "skipstep-compiled-xdp";
        let run = run_with(&[
            (RULES, 20, &[("router", 1.0), (system, 0.5)]),
            // the machine was half as fast then
            (RULES, 500, &[("router", 2.0), (system, 1.1)]),
        ]);
        let growth = Figure::Growth { from: (RULES, 20), to: (RULES, 500), system };
        let ratio = measure(&run, &growth).unwrap();
        assert!((ratio.middle - 1.1).abs() < 1e-9, "{ratio:?}");
    }
}
