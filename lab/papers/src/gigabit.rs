//! A FreeBSD PF firewall on gigabit Ethernet: throughput to a server, from it, and in both
//! directions. IPv6 and jumbo frames are measured, too, which the author could not do.

use std::process::Command;

use fwlab_net::family::Family;
use fwlab_net::host::Host;
use fwlab_net::rules::Rules;
use fwlab_net::system::{self, System, skipstep};
use fwlab_net::topology::Topology;
use fwlab_net::traffic::TrafficKind;
use fwlab_net::transport::Transport::Tcp;
use fwlab_results::{Finding, Role, Run, Table};

use super::Paper;
use super::series::{series, talk};
use super::study::{Block, Extent, PlannedPoint, Study, Work};
use super::text::number;
use super::verdict::{Check, Range, SampleKey, change, finding, ratio, values};

/// The study of the gigabit firewall.
pub(super) struct Gigabit;

/// Number of rules. The author's rules are not known.
const RULES: u32 = 100;

/// Bits in a kilobyte of netstrain.
const KILOBYTE: f64 = 8.0 * 1024.0;

/// The loads of netstrain.
const LOADS: [(&str, TrafficKind); 3] =
    [("send", TrafficKind::Send), ("recv", TrafficKind::Receive), ("both", TrafficKind::Both)];

/// Networks: name, family, MTU in bytes.
const NETWORKS: [(&str, Family, u32); 4] = [
    ("IPv4", Family::V4, 1500),
    ("IPv6", Family::V6, 1500),
    ("IPv4, jumbo frames", Family::V4, 9000),
    ("IPv6, jumbo frames", Family::V6, 9000),
];

/// The table under "Results", in K/s: setup, the system here, and three runs each of sending,
/// receiving and both. The two directions of "both" are added.
const FIGURES: [(&str, &str, [[f64; 3]; 3]); 4] = [
    (
        "1: a cable",
        "null",
        [[52794.4, 52608.8, 52856.3], [58682.9, 58348.4, 58715.9], [74291.8, 74379.4, 74401.1]],
    ),
    (
        "2: a switch",
        "bridge",
        [[49478.6, 49927.7, 49316.6], [55902.9, 56253.6, 55852.5], [73258.8, 72837.1, 71793.5]],
    ),
    (
        "3a: a router, its filter off",
        "skipstep-off",
        [[28130.0, 28031.0, 28135.5], [27274.5, 28296.1, 28064.6], [32326.6, 31918.1, 31933.0]],
    ),
    (
        "3b: its filter on",
        "skipstep-states",
        [[28002.9, 28913.8, 28161.3], [26571.0, 26243.2, 26847.5], [33307.9, 33285.8, 33094.2]],
    ),
];

/// Systems that the paper lacks, shown beside its own.
const OTHERS: [(&str, &str); 3] = [
    ("a router without a filter", "router"),
    ("nftables, conntrack", "nft-conntrack"),
    ("iptables, no states", "iptables-legacy"),
];

/// skipstep with all its rules, disabled by `pfctl -d`.
struct Off;

impl System for Off {
    fn name(&self) -> &'static str {
        "skipstep-off"
    }

    fn label(&self) -> &'static str {
        "skipstep, loaded and switched off"
    }

    fn role(&self) -> Role {
        Role::Router
    }

    fn programs(&self) -> Vec<String> {
        on().map_or(Vec::new(), |on| on.programs())
    }

    fn configuration(&self, rules: &Rules) -> String {
        on().map_or(String::new(), |on| on.configuration(rules))
    }

    fn hooks(&self, _: Topology) -> Vec<String> {
        Vec::new()
    }

    fn install(&self, device: &Host, rules: &Rules, configuration: &str) -> anyhow::Result<()> {
        on().map_err(anyhow::Error::msg)?.install(device, rules, configuration)?;
        device.run(Command::new(skipstep::pfctl()).args(["-q", "-d"]), "").map(drop)
    }
}

/// Returns the same system, enabled.
fn on() -> Result<Box<dyn System>, String> {
    system::named("skipstep-states")
}

impl Paper for Gigabit {
    fn name(&self) -> &'static str {
        "gigabit"
    }

    fn title(&self) -> &'static str {
        "FreeBSD PF firewall using gigabit Ethernet"
    }

    fn source(&self) -> &'static str {
        "an experiment for DKUUG, the Danish Unix User Group, security6.net, 2006"
    }

    fn differences(&self) -> Vec<&'static str> {
        vec![
            "hosts of one machine on one CPU, where there were three machines and gigabit Ethernet",
            "fwlab's own sockets send and count, where there was netstrain; its runs took 15 to 20 s",
            "the rules of the experiment are unknown: here 100 rules block a port each, with states",
            "a Linux bridge takes the place of the switch",
            "IPv6 and jumbo frames are measured, too, as the author wished",
        ]
    }

    fn measure(&self, study: &mut Study) -> anyhow::Result<()> {
        let networks = match study.extent {
            Extent::Smoke => &NETWORKS[..2],
            Extent::Quick => &NETWORKS[..3],
            Extent::Full => &NETWORKS[..],
        };
        let mut blocks = Vec::new();
        for &(network, family, mtu) in networks {
            let mut systems: Vec<Box<dyn System>> = study.systems(&["bridge", "skipstep-states"]);
            if systems.iter().any(|system| system.name() == "skipstep-states") {
                systems.push(Box::new(Off));
            }
            systems.extend(study.systems(&["nft-conntrack", "iptables-legacy"]));
            let topology = Topology::Router;
            let block = Block {
                topology,
                count: RULES,
                transport: Tcp,
                family,
                mtu,
                systems,
                frames: None,
                warm: 0,
                offloads: false,
            };
            let cell = |&(load, kind): &(&str, TrafficKind)| {
                let talk = talk(kind, Tcp, family, 0, study.seconds);
                PlannedPoint {
                    series: series(title(load, network), &talk, None),
                    at: None,
                    work: Work::Talk(talk),
                }
            };
            blocks.push((block, LOADS.iter().map(cell).collect()));
        }
        study.measure(blocks)
    }

    fn tables(&self, run: &Run) -> Vec<Table> {
        NETWORKS.iter().filter_map(|(network, ..)| table(run, network)).collect()
    }

    fn findings(&self, run: &Run) -> Vec<Finding> {
        findings(run)
    }
}

fn title(load: &str, network: &str) -> String {
    format!("{load}, {network}")
}

/// Makes the table of a network. A cell has the first three rounds, because the paper had three
/// runs.
fn table(run: &Run, network: &str) -> Option<Table> {
    let theirs = FIGURES.iter().map(|&(setup, system, figures)| (setup, system, Some(figures)));
    let ours = OTHERS.iter().map(|&(setup, system)| (setup, system, None));
    // the paper measured IPv4 with ordinary frames only
    let has_figures = network == NETWORKS[0].0;
    let mut rows = Vec::new();
    for (setup, system, figures) in theirs.chain(ours) {
        let mut row = vec![setup.to_owned()];
        let mut is_measured = false;
        for (load, (name, _)) in LOADS.iter().enumerate() {
            let title = title(name, network);
            let values = values(run, &SampleKey { title: &title, at: None, system });
            let ours = values.iter().map(|megabits| megabits * 1e6 / KILOBYTE);
            if has_figures {
                row.push(figures.map_or(String::new(), |figures| listed(figures[load])));
            }
            is_measured |= !values.is_empty();
            row.push(listed(ours.take(3)));
        }
        if is_measured {
            rows.push(row);
        }
    }
    let mut columns = vec!["Setup".to_owned()];
    for (name, _) in LOADS {
        columns.extend(has_figures.then(|| format!("2006: {name}")));
        columns.push(name.to_owned());
    }
    let title = format!("K/s, three runs, {network} (both: the directions added)");
    (!rows.is_empty()).then_some(Table { title, columns, names: 1, rows })
}

fn listed(values: impl IntoIterator<Item = f64>) -> String {
    values.into_iter().map(number).collect::<Vec<_>>().join(" ")
}

fn findings(run: &Run) -> Vec<Finding> {
    let loads = LOADS.map(|(load, _)| load);
    let beside = |network: &str, [one, other]: [&str; 2], range: Range| -> Vec<Check> {
        let check = |load: &str| {
            let title = title(load, network);
            let key = |system| SampleKey { title: &title, at: None, system };
            let ratio = ratio(run, &key(one), &key(other));
            Check { what: format!("{one} by {other}, {load}"), ratio, range }
        };
        loads.iter().map(|load| check(load)).collect()
    };
    // each network is compared with its own cable, so that the cable's gain does not count
    let between = |networks: [&str; 2], range: Range| -> Vec<Check> {
        let check = |load: &str| {
            let titles = networks.map(|network| title(load, network));
            let [from, to] = [&titles[0], &titles[1]].map(|title| SampleKey {
                title,
                at: None,
                system: "skipstep-states",
            });
            let what = format!("skipstep-states by the cable, {load}");
            Check { what, ratio: change(run, &from, &to), range }
        };
        loads.iter().map(|load| check(load)).collect()
    };
    let [ipv4, ipv6, jumbo, _] = NETWORKS.map(|(network, ..)| network);
    let measured = |network: &str| {
        let title = title(loads[0], network);
        run.series.iter().any(|series| series.title == title)
    };
    let mut all = vec![
        finding(
            "a switch takes little: less than a tenth",
            "send 52794 over a cable, 49479 through a switch",
            beside(ipv4, ["bridge", "null"], Range(0.9, f64::INFINITY)),
        ),
        finding(
            "a router halves the throughput",
            "send 52794 over a cable, 28130 through the router with its filter off",
            beside(ipv4, ["skipstep-off", "null"], Range(0.35, 0.65)),
        ),
        finding(
            "its filter costs a tenth at most",
            "filter off and on: send 28130 and 28003, recv 27275 and 26571",
            beside(ipv4, ["skipstep-states", "skipstep-off"], Range(0.9, f64::INFINITY)),
        ),
    ];
    if measured(ipv6) {
        all.push(finding(
            "wished for: with IPv6 the firewall takes no larger share than with IPv4",
            "not measured, “various problems”",
            between([ipv4, ipv6], Range(Range::EQUAL.0, f64::INFINITY)),
        ));
    }
    if measured(jumbo) {
        all.push(finding(
            "wished for: with jumbo frames the firewall takes a smaller share",
            "not measured, because the laptop did not support them",
            between([ipv4, jumbo], Range::MORE),
        ));
    }
    all
}
