//! Hartmeier: throughput, loss and latency by sending rate; the maximum throughput by number of
//! rules and by number of states; and the memory of a state. His model of the cost of rules and
//! states is fitted to the results.

use fwlab_load::raw::extension::Extension;
use fwlab_load::raw::load::{Engine, Load, Sizes, Vary};
use fwlab_net::family::Family;
use fwlab_net::system::System;
use fwlab_net::topology::Topology;
use fwlab_net::transport::Transport::{self, Tcp, Udp};
use fwlab_results::stats::{Interval, median};
use fwlab_results::{Finding, Mode, Run, Sample, Series, Table, summary};

use super::Paper;
use super::series::rates;
use super::states::{DRAWN, Limit, Room};
use super::study::{Block, Extent, MEMORY, PlannedPoint, Study, Work};
use super::text::number;
use super::verdict::{Check, Range, SampleKey, base, change, finding, middle, ratio};

/// The study by Hartmeier.
pub(super) struct Hartmeier;

/// The filters, without states and with states.
const SYSTEMS: [&str; 6] = [
    "iptables-legacy",
    "nft-flat",
    "nft-conntrack",
    "skipstep-linear",
    "skipstep-skip-steps",
    "skipstep-states",
];

/// The filters that keep states.
const KEEPERS: [&str; 2] = ["skipstep-states", "nft-conntrack"];

/// Pairs of filters of the same maker: without states, with states.
const PAIRS: [[&str; 2]; 2] =
    [["skipstep-linear", "skipstep-states"], ["nft-flat", "nft-conntrack"]];

/// Bytes of the smallest TCP frame that has room for a serial number and a timestamp.
const SMALLEST: usize = 76;

/// Frame sizes in bytes, and the frames per second that his 10 Mbit/s link carried at each size
/// (RFC 2544, appendix B). His smallest frame was the smallest of Ethernet, 64 bytes.
const SIZES: [(usize, Option<u32>); 8] = [
    (SMALLEST, None),
    (128, Some(8445)),
    (256, Some(4528)),
    (512, Some(2349)),
    (768, Some(1586)),
    (1024, Some(1197)),
    (1280, Some(961)),
    (1518, Some(812)),
];

/// Sending rates in frames per second.
const RATES: [u32; 6] = [100_000, 200_000, 400_000, 800_000, 1_200_000, 1_600_000];

/// Number of rules in the second experiment, as in his slides.
const RULES: u32 = 100;

/// Bytes of a state according to his slides: 64,000 states with 64 MB of memory.
const STATE: f64 = 1048.6;

/// Titles of the series of maximum throughput.
const BY_RULES: &str = "The most that comes through, by rules";
const BY_STATES: &str = "The most that comes through, by states";

impl Paper for Hartmeier {
    fn name(&self) -> &'static str {
        "hartmeier"
    }

    fn title(&self) -> &'static str {
        "Design and Performance of the OpenBSD Stateful Packet Filter (pf)"
    }

    fn source(&self) -> &'static str {
        "Daniel Hartmeier, USENIX Annual Technical Conference, FREENIX Track, 2002; the graphs of \
         the slides have no numbers"
    }

    fn mode(&self) -> Mode {
        Mode::Queue
    }

    fn differences(&self) -> Vec<&'static str> {
        vec![
            "a virtual link between two CPUs of one machine, where there were two machines and 10 Mbit/s",
            "the smallest frames have 76 bytes, because serial number and time follow the TCP \
             header",
            "the maximum is the received rate while a higher rate is offered; his maximum was the \
             highest rate without loss",
            "his formulas are from a later message (NetBSD tech-net, September 2005): with states \
             M·a·log N + b·K, without M·b·K",
            "a rule counts once for each evaluation of it by a packet: pf evaluates in and out, \
             iptables and nftables once",
        ]
    }

    fn measure(&self, study: &mut Study) -> anyhow::Result<()> {
        let quick = study.extent < Extent::Full;
        let smoke = study.extent == Extent::Smoke;
        if !quick {
            // a trial of frames takes twice as long as the measured time
            study.set_rounds(4);
            study.set_seconds(0.2);
        }
        let sizes: Vec<usize> = match smoke {
            true => vec![SMALLEST, 1518],
            false if quick => vec![SMALLEST, 512, 1518],
            false => SIZES.map(|(size, _)| size).to_vec(),
        };
        let every = |step: usize| RATES.iter().copied().step_by(step).collect::<Vec<_>>();
        let rates = if smoke { every(3) } else { every(if quick { 2 } else { 1 }) };
        let mut blocks = Vec::new();
        for size in sizes {
            blocks.push(sweep(study, size, 0, &[], &rates));
        }
        blocks.push(sweep(study, SMALLEST, RULES, &SYSTEMS, &rates));
        let rules: &[u32] = match (smoke, quick) {
            (true, _) => &[0, 100],
            (_, true) => &[0, 10, 100, 1000],
            _ => &[0, 1, 3, 10, 30, 100, 300, 1000],
        };
        for &count in rules {
            blocks.push(most(study, BY_RULES, count, load(SMALLEST, Tcp, 1), 0, &SYSTEMS));
        }
        // a state for each pair of source address and source port
        let addresses: &[u32] = match (smoke, quick) {
            (true, _) => &[1, 16],
            (_, true) => &[1, 16, 256],
            _ => &[1, 4, 16, 64, 256],
        };
        let _limit = Limit::raise(study, most_states(addresses));
        for &count in addresses {
            let states = count * PORTS;
            let load = load(SMALLEST, Udp, count);
            // DRAWN frames a state, with random sources, create nearly all states
            let warm = u64::from(states * DRAWN);
            let mut made = most(study, BY_STATES, 0, load, warm, &KEEPERS);
            made.1[0].at = Some(f64::from(states));
            if let Some(dimension) = &mut made.1[0].series.dimension {
                dimension.name = "states".to_owned();
            }
            let room =
                move |inner| -> Box<dyn System> { Box::new(Room { inner, connections: states }) };
            made.0.systems = made.0.systems.into_iter().map(room).collect();
            blocks.push(made);
        }
        study.measure(blocks)
    }

    fn tables(&self, run: &Run) -> Vec<Table> {
        let mut tables: Vec<Table> =
            run.series.iter().filter_map(|series| at_rates(run, series)).collect();
        tables.extend(by_count(run, BY_RULES, "Rules"));
        tables.extend(by_count(run, BY_STATES, "States"));
        tables.extend(memory(run));
        tables.extend(model(run));
        tables
    }

    fn findings(&self, run: &Run) -> Vec<Finding> {
        findings(run)
    }
}

/// Number of source ports of the flows.
const PORTS: u32 = 4096;

/// The smallest number of states that is measured.
const FEW: f64 = PORTS as f64;

fn most_states(addresses: &[u32]) -> u32 {
    addresses.iter().max().map_or(0, |most| most * PORTS)
}

/// Makes a load of frames of one size. UDP frames have random sources among `addresses` addresses.
fn load(size: usize, transport: Transport, addresses: u32) -> Load {
    let states = transport == Udp;
    Load {
        engine: Engine::Xdp,
        transport,
        ip: Family::V4,
        extension: Extension::None,
        size: Sizes::one(size),
        sources: if states { Vary::Random(addresses) } else { Vary::Fixed },
        destinations: Vary::Fixed,
        source_ports: if states { Vary::Random(PORTS) } else { Vary::Count(256) },
        destination_ports: Vary::Fixed,
        seed: 1,
    }
}

fn block(study: &mut Study, count: u32, frames: Load, warm: u64, systems: &[&str]) -> Block {
    Block {
        topology: Topology::Router,
        count,
        transport: frames.transport,
        family: Family::V4,
        mtu: 1500,
        systems: study.systems(systems),
        frames: Some(frames),
        warm,
        offloads: false,
    }
}

/// Plans frames of one size at each rate of `at`.
fn sweep(
    study: &mut Study,
    size: usize,
    count: u32,
    systems: &[&str],
    at: &[u32],
) -> (Block, Vec<PlannedPoint>) {
    let load = load(size, Tcp, 1);
    let seconds = study.seconds;
    let filter = if count == 0 { "no filter".to_owned() } else { format!("{count} rules") };
    let cell = |&rate: &u32| PlannedPoint {
        series: rates(format!("{size} bytes, {filter}"), &load, seconds, "rate"),
        at: Some(rate.into()),
        work: Work::Frames { rate: Some(rate.into()), seconds },
    };
    let cells = at.iter().map(cell).collect();
    (block(study, count, load.clone(), 0, systems), cells)
}

/// Plans frames at the highest possible rate.
fn most(
    study: &mut Study,
    title: &str,
    count: u32,
    load: Load,
    warm: u64,
    systems: &[&str],
) -> (Block, Vec<PlannedPoint>) {
    let seconds = study.seconds;
    let cell = PlannedPoint {
        series: rates(title.to_owned(), &load, seconds, "rules"),
        at: Some(count.into()),
        work: Work::Frames { rate: None, seconds },
    };
    (block(study, count, load, warm, systems), vec![cell])
}

/// Makes the table of his graphs of throughput, loss and latency by rate.
fn at_rates(run: &Run, series: &Series) -> Option<Table> {
    series.dimension.as_ref().filter(|dimension| dimension.name == "rate")?;
    let columns = ["Frames/s offered", "System", "came", "lost", "p50", "p99"];
    let mut rows = Vec::new();
    for point in &series.points {
        let summary = summary::summarize(run, series, point);
        for one in summary.rows.iter().filter(|row| row.system.repeats.is_none()) {
            let counts = one.counts.unwrap_or_default();
            let lost = counts.sent.saturating_sub(counts.received) as f64;
            let latency = |share| {
                let ns = one.latency.as_ref().and_then(|latency| latency.quantile(share));
                ns.map_or(String::new(), |ns| format!("{:.1} µs", ns as f64 / 1e3))
            };
            rows.push(vec![
                point.at.map_or(String::new(), number),
                base(&one.system.id).to_owned(),
                number(one.median.middle),
                format!("{:.2} %", 100.0 * lost / counts.sent.max(1) as f64),
                latency(0.5),
                latency(0.99),
            ]);
        }
    }
    let link = SIZES.iter().find(|(size, _)| series.title.starts_with(&format!("{size} ")));
    let link = link.and_then(|(_, frames)| *frames);
    let link = link.map_or(String::new(), |frames| format!(" (2002: the link carried {frames})"));
    let title = format!("Throughput, loss and latency by rate: {}{link}", series.title);
    let columns = columns.map(str::to_owned).to_vec();
    (!rows.is_empty()).then_some(Table { title, columns, names: 2, rows })
}

/// Makes the table of his graphs of maximum throughput by number of rules or states.
fn by_count(run: &Run, title: &str, what: &str) -> Option<Table> {
    let series = run.series.iter().find(|series| series.title == title)?;
    let names: Vec<&str> = names_of(series);
    let mut columns = vec![what.to_owned()];
    columns.extend(names.iter().map(|name| (*name).to_owned()));
    let row = |at: Option<f64>| {
        let cell = |system: &&str| middle(run, &SampleKey { title, at, system });
        let mut row = vec![at.map_or(String::new(), |at| format!("{at:.0}"))];
        row.extend(names.iter().map(|name| cell(name).map_or(String::new(), number)));
        row
    };
    let rows = series.points.iter().map(|point| row(point.at)).collect();
    let title = format!("Frames a second, medians. {title} (2002: a graph without numbers)");
    Some(Table { title, columns, names: 1, rows })
}

/// Returns the names of the systems of a series, without the placebo.
fn names_of(series: &Series) -> Vec<&str> {
    let mut names = Vec::new();
    let mut samples: Vec<&Sample> = series.points.iter().flat_map(|point| &point.samples).collect();
    samples.sort_by_key(|sample| {
        let place = SYSTEMS.iter().position(|name| *name == base(&sample.system));
        place.map_or(0, |place| place + 1)
    });
    for sample in samples {
        let name = base(&sample.system);
        if !names.contains(&name) && !name.ends_with("-again") {
            names.push(name);
        }
    }
    names
}

/// Makes the table of the memory of states.
fn memory(run: &Run) -> Option<Table> {
    let series = run.series.iter().find(|series| series.title == MEMORY)?;
    let mut rows = Vec::new();
    for point in &series.points {
        let states = point.at?;
        let mut row = vec![number(states)];
        for system in KEEPERS {
            let bytes = middle(run, &SampleKey { title: MEMORY, at: point.at, system });
            let cell =
                |bytes: f64| format!("{:.0} MB, {:.0} a connection", bytes / 1e6, bytes / states);
            row.push(bytes.map_or(String::new(), cell));
        }
        rows.push(row);
    }
    let mut columns = vec!["States".to_owned()];
    columns.extend(KEEPERS.map(str::to_owned));
    let title = "Memory of the machine in use with the given number of states, programs included \
                 (2002: 64000 states with 64 MB)";
    (!rows.is_empty()).then(|| Table { title: title.to_owned(), columns, names: 1, rows })
}

/// Returns the points of a series with the nanoseconds per frame, the reciprocal of the maximum
/// throughput.
fn times(run: &Run, title: &str, system: &str) -> Vec<(f64, f64)> {
    let series = run.series.iter().filter(|series| series.title == title);
    let points = series.flat_map(|series| &series.points);
    let time = |at: Option<f64>| {
        let rate = middle(run, &SampleKey { title, at, system }).filter(|&rate| rate > 0.0)?;
        Some((at?, 1e9 / rate))
    };
    points.filter_map(|point| time(point.at)).collect()
}

/// Fits a line and returns its intercept and slope. The slope is the median of the slopes between
/// all pairs of points, so one outlier does not change it.
fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let mut slopes = Vec::new();
    for (index, (x, y)) in points.iter().enumerate() {
        slopes.extend(points[..index].iter().map(|(u, v)| (y - v) / (x - u)));
    }
    let slope = median(&slopes)?;
    let starts: Vec<f64> = points.iter().map(|(x, y)| y - slope * x).collect();
    Some((median(&starts)?, slope))
}

/// Hartmeier's cost model, fitted to one maker's filters. `rule` is his b, and `doubling` his a.
struct Model {
    /// Nanoseconds per rule.
    rule: f64,
    /// Number of hooks at which a packet is evaluated against the rules.
    hooks: usize,
    /// Intercept of the line of states: extra nanoseconds per packet with one state, compared with
    /// no rules.
    state: f64,
    /// Nanoseconds per doubling of the number of states.
    doubling: f64,
}

impl Model {
    fn fit(run: &Run, [without, with]: [&str; 2]) -> Option<Model> {
        let (bare, rule) = line(&times(run, BY_RULES, without))?;
        let states = times(run, BY_STATES, with);
        let states: Vec<_> = states.iter().map(|(count, time)| (count.log2(), *time)).collect();
        let (first, doubling) = line(&states)?;
        let system = run.systems.iter().find(|system| base(&system.id) == without)?;
        Some(Model { rule, hooks: system.hooks.len(), state: first - bare, doubling })
    }

    /// Returns the extra nanoseconds per packet with `states` states, compared with no rules.
    fn lookup(&self, states: f64) -> f64 {
        self.state + self.doubling * states.log2()
    }

    /// Returns the number of rules from which on states are cheaper, for `packets` packets per
    /// connection.
    fn break_even(&self, states: f64, packets: f64) -> f64 {
        (packets * self.lookup(states) / (self.rule * (packets - 1.0))).max(0.0)
    }
}

fn model(run: &Run) -> Option<Table> {
    // the first number of states was measured; the line is unreliable far from its points
    const AT: [(f64, f64); 4] = [(FEW, 10.0), (FEW, 100.0), (1e6, 10.0), (1e6, 100.0)];
    let mut columns: Vec<String> = [
        "Without, with states",
        "b: ns a rule",
        "hooks",
        "b at one hook",
        "a: ns a doubling of states",
    ]
    .map(str::to_owned)
    .to_vec();
    columns.push(format!("ns more with {FEW:.0} states"));
    columns.extend(AT.map(|(states, packets)| format!("K at N={states:.0}, M={packets:.0}")));
    let mut rows = Vec::new();
    for pair in PAIRS {
        let Some(model) = Model::fit(run, pair) else { continue };
        let mut row = vec![
            pair.join(", "),
            number(model.rule),
            model.hooks.to_string(),
            number(model.rule / model.hooks.max(1) as f64),
            number(model.doubling),
            number(model.lookup(FEW)),
        ];
        row.extend(AT.map(|(states, packets)| match model.rule > 0.0 {
            true => number(model.break_even(states, packets)),
            false => "-".to_owned(),
        }));
        rows.push(row);
    }
    let title = "His model fitted: with N states, M packets a connection and K rules, states are cheaper from this K on \
        (2005: from K > 100, M > 50)";
    (!rows.is_empty()).then(|| Table { title: title.to_owned(), columns, names: 1, rows })
}

/// Compares the cost of a rule of two systems, per hook at which a packet is evaluated.
fn at_one_hook(run: &Run, one: &str, other: &str) -> Check {
    let cost = |name: &str| {
        let (_, rule) = line(&times(run, BY_RULES, name))?;
        let system = run.systems.iter().find(|system| base(&system.id) == name)?;
        Some(rule / system.hooks.len().max(1) as f64)
    };
    let ratio = cost(one).zip(cost(other)).map(|(one, other)| one / other);
    let ratio = ratio.map(|middle| Interval { low: middle, middle, high: middle });
    Check { what: format!("ns of a rule at one hook, {one} by {other}"), ratio, range: Range::LESS }
}

fn findings(run: &Run) -> Vec<Finding> {
    let most = |title: &str| {
        let series = run.series.iter().find(|series| series.title == title);
        series.and_then(|series| series.points.iter().filter_map(|point| point.at).reduce(f64::max))
    };
    let first = |title: &str| {
        let series = run.series.iter().find(|series| series.title == title);
        series.and_then(|series| series.points.first()?.at)
    };
    let beside = |at: Option<f64>, [one, other]: [&str; 2]| {
        let key = |system| SampleKey { title: BY_RULES, at, system };
        let what = format!("{one} by {other}, {} rules", at.map_or(0.0, f64::floor));
        Check { what, ratio: ratio(run, &key(one), &key(other)), range: Range::MORE }
    };
    let from_to = |title, system, range| {
        let from = SampleKey { title, at: first(title), system };
        let to = SampleKey { title, at: most(title), system };
        let ends = [from, to].map(|place| place.at.unwrap_or(0.0));
        let what = format!("{system}, {:.0} by {:.0}", ends[1], ends[0]);
        Check { what, ratio: change(run, &from, &to), range }
    };
    // the ratio of log N at both ends
    let doublings = |title| Some((most(title)?.log2(), first(title)?.log2()));
    let logarithm = doublings(BY_STATES).map_or(0.0, |(most, first)| first / most);
    let state = |system| {
        let at = most(MEMORY);
        let bytes = middle(run, &SampleKey { title: MEMORY, at, system });
        let ratio = bytes.zip(at).map(|(bytes, states)| bytes / states / STATE);
        let ratio = ratio.map(|middle| Interval { low: middle, middle, high: middle });
        let what = format!("{system}, bytes of a connection by 1049");
        Check { what, ratio, range: Range(0.0, 1.0) }
    };
    let hundred = Some(f64::from(RULES));
    let all = most(BY_RULES);
    let in_rules = ["iptables-legacy", "nft-flat", "skipstep-linear"];
    vec![
        finding(
            "evaluating rules is expensive",
            "“rule set evaluation is expensive”; throughput falls with every rule",
            in_rules.map(|system| from_to(BY_RULES, system, Range::LESS)).into(),
        ),
        finding(
            "states are cheap: their lookups grow by log N",
            "“binary search tree for states scales with O(log n)”",
            KEEPERS
                .map(|system| from_to(BY_STATES, system, Range(logarithm, f64::INFINITY)))
                .into(),
        ),
        finding(
            "filtering with states is faster than without",
            "“it actually increases performance”, with 100 rules and more",
            PAIRS
                .iter()
                .flat_map(|&[without, with]| [hundred, all].map(|at| beside(at, [with, without])))
                .collect(),
        ),
        finding(
            "iptables is the fastest without states",
            "second hand: “iptables perform the best for stateless rules”",
            vec![beside(hundred, ["iptables-legacy", "skipstep-linear"])],
        ),
        finding(
            "iptables is the fastest, too, if a rule counts once for each evaluation",
            "the criticism of the talk: pf evaluates twice what iptables evaluates once",
            vec![at_one_hook(run, "iptables-legacy", "skipstep-linear")],
        ),
        finding(
            "pf is the fastest with states",
            "second hand: “pf performs the best when using stateful filtering”",
            vec![beside(hundred, ["skipstep-states", "nft-conntrack"])],
        ),
        finding(
            "a state takes no more than a kilobyte",
            "64000 states with 64 MB of memory, without tuning",
            KEEPERS.map(state).into(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_outlier_does_not_change_a_line() {
        let points: Vec<_> = (0..7).map(|x| (f64::from(x), 10.0 + 3.0 * f64::from(x))).collect();
        assert_eq!(line(&points), Some((10.0, 3.0)));
        let mut bad = points.clone();
        bad[3].1 = 900.0;
        let (start, slope) = line(&bad).unwrap();
        assert!((start - 10.0).abs() < 1.0 && (slope - 3.0).abs() < 0.5, "{start} {slope}");
        assert_eq!(line(&points[..1]), None);
    }

    #[test]
    fn the_break_even_is_where_both_cost_the_same() {
        let model = Model { rule: 20.0, hooks: 2, state: 50.0, doubling: 5.0 };
        let (states, packets) = (1e5, 40.0);
        let rules = model.break_even(states, packets);
        let lookup = 50.0 + 5.0 * states.log2();
        let with = packets * lookup + 20.0 * rules;
        assert!((with - packets * 20.0 * rules).abs() < 1e-6);
        assert_eq!(Model { state: -500.0, ..model }.break_even(states, packets), 0.0);
    }

    #[test]
    fn systems_are_known() {
        for name in SYSTEMS.iter().chain(&KEEPERS).chain(PAIRS.iter().flatten()) {
            assert!(fwlab_net::system::named(name).is_ok(), "{name}");
        }
    }
}
