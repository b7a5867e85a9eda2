//! Molitor: round trips of datagrams, FTP sessions and bulk transfers, sequential and parallel,
//! from workload files like his. The traffic crosses a cable, a filtering bridge with his own
//! rules, and an application proxy.

mod future;

use std::process::Command;

use fwlab_load::sockets::Talk;
use fwlab_net::family::Family;
use fwlab_net::host::Host;
use fwlab_net::rules::Rules;
use fwlab_net::system::{self, System, skipstep};
use fwlab_net::topology::Topology;
use fwlab_net::traffic::{self, ServerAddress, TrafficKind};
use fwlab_net::transport::Transport::{Tcp, Udp};
use fwlab_results::{Better, Finding, Quantity, Run, Series, Table};

use super::Paper;
use super::series::{series, talk};
use super::study::{Block, Extent, PlannedPoint, Study, Work};
use super::text::number;
use super::verdict::{Check, Range, SampleKey, finding, middle, ratio};

/// The study by Molitor.
pub(super) struct Molitor;

/// His tests: seconds of the workloads, milliseconds of the pings. The columns are no firewall, the
/// filter, and ftp-gw.
const FIGURES: [(&str, [Option<f64>; 3]); 6] = [
    ("Ping (8 bytes), ms", [Some(3.1), Some(5.3), None]),
    ("Ping (1000 bytes), ms", [Some(5.3), Some(11.8), None]),
    ("Sequential FTP sessions, s", [Some(41.3), Some(41.3), Some(77.8)]),
    ("Parallel FTP sessions, s", [Some(13.2), Some(11.4), Some(17.9)]),
    ("Sequential FTP bulk transfer, s", [Some(29.8), Some(57.5), Some(112.8)]),
    ("Parallel FTP bulk transfer, s", [Some(20.6), Some(44.2), Some(88.5)]),
];

/// The same tests here: the series, and the factor to the unit of the table.
const TESTS: [(&str, f64); 6] = [
    ("Ping, 8 bytes", 1e-6),
    ("Ping, 1000 bytes", 1e-6),
    (SEQUENTIAL, 1.0),
    (PARALLEL, 1.0),
    (BULK, 1.0),
    (PARALLEL_BULK, 1.0),
];

const SEQUENTIAL: &str = "FTP sessions, one after the other";
const PARALLEL: &str = "FTP sessions, 6 at once";
const BULK: &str = "FTP bulk transfers, one after the other";
const PARALLEL_BULK: &str = "FTP bulk transfers, 3 at once";
const SWEET: &str = "24 FTP sessions by how many at once";
const SHOVEL: &str = "FTP bulk transfers by the proxy's buffer";

/// Numbers of parallel sessions in the search for the sweet spot.
const AT_ONCE: [u32; 5] = [1, 2, 4, 6, 8];

/// Bytes of his two files: about the size of his password file, and of vmunix.
const SMALL: u32 = 1000;
const LARGE: u32 = 1_700_000;

/// Number of sessions in the sequential test, and in the parallel test.
const SESSIONS: f64 = 30.0;

/// His appendix C as an example of this project: docs/reference/pcf.md.
const RULES: &str = include_str!("../../../examples/ftp-server.pcf");

/// Addresses and interfaces of the example, and their replacements in the lab.
const NAMES: [(&str, &str); 4] = [
    ("198.51.100.5", "198.18.0.2"),
    ("192.0.2.10", "198.19.0.2"),
    ("cli0", "lan0"),
    ("srv0", "wan0"),
];

/// A bridge with his rules.
struct Filter;

impl System for Filter {
    fn name(&self) -> &'static str {
        "pcf"
    }

    fn label(&self) -> &'static str {
        "skipstep with the paper's rules, by pfctl import pcf"
    }

    fn programs(&self) -> Vec<String> {
        skipstep::programs()
    }

    fn configuration(&self, _: &Rules) -> String {
        NAMES.iter().fold(RULES.to_owned(), |text, (old, new)| text.replace(old, new))
    }

    fn hooks(&self, _: Topology) -> Vec<String> {
        skipstep::hooks()
    }

    fn install(&self, device: &Host, _: &Rules, configuration: &str) -> anyhow::Result<()> {
        let mut import = Command::new(skipstep::pfctl());
        let rules = device.run(import.args(["import", "pcf", "-"]), configuration)?;
        skipstep::load(device, &rules)
    }

    fn closed(&self, _: Topology) -> Option<u16> {
        Some(traffic::HTTP)
    }
}

/// ftp-gw with another buffer size.
struct Buffer {
    name: &'static str,
    word: &'static str,
}

/// The buffer sizes. 2K was the default at his time, and he chose 16K.
const BUFFERS: [Buffer; 5] = [
    Buffer { name: "ftp-gw-2K", word: "2K" },
    Buffer { name: "ftp-gw-4K", word: "4K" },
    Buffer { name: "ftp-gw-16K", word: "16K" },
    Buffer { name: "ftp-gw-64K", word: "64K" },
    Buffer { name: "ftp-gw-256K", word: "256K" },
];

impl Buffer {
    fn inner(&self) -> Result<Box<dyn System>, String> {
        system::named("ftp-gw")
    }
}

impl System for Buffer {
    fn name(&self) -> &'static str {
        self.name
    }

    fn label(&self) -> &'static str {
        self.name
    }

    fn topology(&self, _: Topology) -> Topology {
        Topology::Proxy
    }

    fn server_address(&self) -> ServerAddress {
        ServerAddress::Named
    }

    fn programs(&self) -> Vec<String> {
        self.inner().map_or(Vec::new(), |inner| inner.programs())
    }

    fn configuration(&self, rules: &Rules) -> String {
        let text = self.inner().map_or(String::new(), |inner| inner.configuration(rules));
        format!("shovel = \"{}\"\n{text}", self.word)
    }

    fn hooks(&self, topology: Topology) -> Vec<String> {
        self.inner().map_or(Vec::new(), |inner| inner.hooks(topology))
    }

    fn install(&self, device: &Host, rules: &Rules, configuration: &str) -> anyhow::Result<()> {
        self.inner().map_err(anyhow::Error::msg)?.install(device, rules, configuration)
    }
}

impl Paper for Molitor {
    fn name(&self) -> &'static str {
        "molitor"
    }

    fn title(&self) -> &'static str {
        "Measuring Firewall Performance"
    }

    fn source(&self) -> &'static str {
        "Andrew Molitor, Network Systems Corporation, 1995"
    }

    fn differences(&self) -> Vec<&'static str> {
        vec![
            "hosts of one machine, where there were two Suns, a 386SX and 10 Mbit/s",
            "fwlab's own FTP server and client, and the client is a command of the workload file; \
             data connections are active, as his rules require, but passive through the proxy",
            "ftp-gw is skipstep's, not that of the TIS toolkit",
            "rounds of ftp-gw include a cable and a router, other rounds a cable and a bridge",
            "with two CPUs, the workload's commands have one, and server and firewall the other; \
             all other programs share one",
            "for his future directions, filters with 100 rules and states replace his rules, which \
             pass FTP only",
        ]
    }

    fn measure(&self, study: &mut Study) -> anyhow::Result<()> {
        let smoke = study.extent == Extent::Smoke;
        if study.extent == Extent::Full {
            study.set_rounds(10);
        }
        let pings = [8, 1000].map(|size| {
            let talk = talk(TrafficKind::Ping, Udp, Family::V4, size, study.seconds);
            let title = format!("Ping, {size} bytes");
            PlannedPoint { series: series(title, &talk, None), at: None, work: Work::Talk(talk) }
        });
        let mut behind_bridge = pings.to_vec();
        behind_bridge.extend(tests(true));
        let mut behind_proxy = tests(false);
        if !smoke {
            for at_once in AT_ONCE {
                behind_bridge.push(sweet(true, at_once));
                behind_proxy.push(sweet(false, at_once));
            }
        }
        behind_proxy.extend(future::cells(study, false));
        let beyond = future::cells(study, true);
        let filters = study.systems(&future::FILTERS);
        let mut filter: Vec<Box<dyn System>> = Vec::new();
        match system::missing(&Filter) {
            Some(program) => study.leave_out(&format!("pcf: no such program: {program}")),
            None => filter.push(Box::new(Filter)),
        }
        let gateway = study.systems(&["ftp-gw"]);
        let buffers: Vec<Box<dyn System>> = match gateway.is_empty() {
            true => Vec::new(),
            false => BUFFERS.into_iter().map(|one| -> Box<dyn System> { Box::new(one) }).collect(),
        };
        let block = |topology, systems| Block {
            topology,
            count: 0,
            transport: Tcp,
            family: Family::V4,
            mtu: 1500,
            systems,
            frames: None,
            warm: 0,
            offloads: false,
        };
        let mut blocks = vec![
            (block(Topology::Bridge, filter), behind_bridge),
            (block(Topology::Router, gateway), behind_proxy),
            (Block { count: future::RULES, ..block(Topology::Router, filters) }, beyond),
        ];
        if !smoke && !buffers.is_empty() {
            let file = workload(1, 10, false, LARGE);
            blocks.push((block(Topology::Router, buffers), vec![cell(SHOVEL, file, None)]));
        }
        study.measure(blocks)
    }

    fn tables(&self, run: &Run) -> Vec<Table> {
        let tables = [theirs(run), derived(run), sweet_spot(run), buffers(run), future::table(run)];
        tables.into_iter().flatten().collect()
    }

    fn findings(&self, run: &Run) -> Vec<Finding> {
        findings(run)
    }
}

/// Writes a workload file of `at_once` parallel jobs, each of `each` sequential sessions.
fn workload(at_once: u32, each: u32, active: bool, bytes: u32) -> String {
    let active = if active { " --active" } else { "" };
    let ftp = format!("fwlab ftp SERVER --user USER --file {bytes} --sessions 1{active}");
    format!("parallel {at_once} {{\n\tsequential {each} {{\n\t\tcommand \"{ftp}\"\n\t}}\n}}\n")
}

/// Returns the title of a series. A series beside the proxy has another title, because its rounds
/// have other systems.
fn titled(title: &str, bridge: bool) -> String {
    if bridge { title.to_owned() } else { format!("{title}, beside a proxy") }
}

fn cell(title: &str, file: String, at: Option<f64>) -> PlannedPoint {
    let active = true;
    let talk = Talk { active, ..talk(TrafficKind::Ftp, Tcp, Family::V4, SMALL as usize, 0.0) };
    let dimension = at.map(|_| "at once");
    let mut series = series(title.to_owned(), &talk, dimension);
    series.load.kind = "workload".to_owned();
    series.load.details = file.clone();
    series.quantity = Quantity {
        name: "time of the workload".to_owned(),
        unit: "s".to_owned(),
        better: Better::Lower,
        additive: true,
    };
    PlannedPoint { series, at, work: Work::Workload { file, talk } }
}

/// Plans his four workloads.
fn tests(bridge: bool) -> Vec<PlannedPoint> {
    let cell = |title, at_once, each, bytes| {
        cell(&titled(title, bridge), workload(at_once, each, bridge, bytes), None)
    };
    vec![
        cell(SEQUENTIAL, 1, 30, SMALL),
        cell(PARALLEL, 6, 5, SMALL),
        cell(BULK, 1, 10, LARGE),
        cell(PARALLEL_BULK, 3, 3, LARGE),
    ]
}

fn sweet(bridge: bool, at_once: u32) -> PlannedPoint {
    let file = workload(at_once, 24 / at_once, bridge, SMALL);
    cell(&titled(SWEET, bridge), file, Some(at_once.into()))
}

/// Returns a median, for ftp-gw from the rounds beside the proxy.
fn median(run: &Run, title: &str, at: Option<f64>, system: &str) -> Option<f64> {
    let title = titled(title, system != "ftp-gw");
    middle(run, &SampleKey { title: &title, at, system })
}

/// Makes the table of his results.
fn theirs(run: &Run) -> Option<Table> {
    let mut rows = Vec::new();
    for ((test, figures), (title, factor)) in FIGURES.into_iter().zip(TESTS) {
        let mut row = vec![test.to_owned()];
        for (figure, system) in figures.into_iter().zip(["null", "pcf", "ftp-gw"]) {
            row.push(figure.map_or("-".to_owned(), number));
            let here = median(run, title, None, system).map(|value| value * factor);
            row.push(here.map_or("-".to_owned(), |value| format!("{value:.3}")));
        }
        let bridge = median(run, title, None, "bridge").map(|value| value * factor);
        row.push(bridge.map_or("-".to_owned(), |value| format!("{value:.3}")));
        rows.push(row);
    }
    let columns = [
        "Test",
        "1995: null",
        "null",
        "1995: filter",
        "filter",
        "1995: ftp-gw",
        "ftp-gw",
        "bridge",
    ];
    Some(Table {
        title: "30 sessions, 10 and 9 bulk transfers: medians".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        names: 1,
        rows,
    })
}

/// Returns the shortest mean time of a session in seconds, and the number of parallel sessions that
/// achieves it. The number is one if parallel sessions gain nothing.
fn best(run: &Run, system: &str) -> Option<(f64, f64)> {
    let searched = AT_ONCE.iter().filter_map(|&at_once| {
        let at = f64::from(at_once);
        Some((median(run, SWEET, Some(at), system)? / 24.0, at))
    });
    let his = [(SEQUENTIAL, 1.0), (PARALLEL, 6.0)].into_iter().filter_map(|(title, at_once)| {
        median(run, title, None, system).map(|seconds| (seconds / SESSIONS, at_once))
    });
    searched.chain(his).min_by(|a, b| a.0.total_cmp(&b.0))
}

/// Makes the table of latency, service time and queueing time of a session, as he defines them.
fn derived(run: &Run) -> Option<Table> {
    let mut rows = Vec::new();
    for (system, [sequential, parallel, count]) in
        [("null", [41.3, 13.2, 30.0]), ("pcf", [41.3, 11.4, 30.0]), ("ftp-gw", [77.8, 17.9, 32.0])]
    {
        let latency = median(run, SEQUENTIAL, None, system).map(|seconds| seconds / SESSIONS);
        let Some((latency, (service, at_once))) = latency.zip(best(run, system)) else { continue };
        let (then, served) = (sequential / SESSIONS, parallel / count);
        rows.push(vec![
            system.to_owned(),
            number(then * 1e3),
            number(latency * 1e3),
            number(served * 1e3),
            number(service * 1e3),
            number((then - served) * 1e3),
            number((latency - service) * 1e3),
            format!("{at_once:.0}"),
        ]);
    }
    let columns = [
        "Milliseconds a session",
        "1995: latency",
        "latency",
        "1995: service",
        "service",
        "1995: queueing",
        "queueing",
        "best at once",
    ];
    (!rows.is_empty()).then(|| Table {
        title: "Service time is the inverse of the throughput; queueing time is the rest of the \
                latency"
            .to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        names: 1,
        rows,
    })
}

fn sweet_spot(run: &Run) -> Option<Table> {
    let systems = ["null", "bridge", "pcf", "ftp-gw"];
    let row = |&at_once: &u32| {
        let at = f64::from(at_once);
        let rate = |system: &str| median(run, SWEET, Some(at), system).map(|time| 24.0 / time);
        let mut row = vec![at_once.to_string()];
        row.extend(systems.map(|system| rate(system).map_or("-".to_owned(), number)));
        row
    };
    let measured = run.series.iter().any(|series: &Series| series.title.starts_with(SWEET));
    let mut columns = vec!["At once".to_owned()];
    columns.extend(systems.map(str::to_owned));
    measured.then(|| Table {
        title: "Sessions a second by number of simultaneous sessions (1995: 6 were best over a \
                cable, 8 through the proxy)"
            .to_owned(),
        columns,
        names: 1,
        rows: AT_ONCE.iter().map(row).collect(),
    })
}

fn buffers(run: &Run) -> Option<Table> {
    let row = |buffer: &Buffer| {
        let key = SampleKey { title: SHOVEL, at: None, system: buffer.name };
        let rate = 10.0 * f64::from(LARGE) / 1024.0 / middle(run, &key)?;
        let then = match buffer.word {
            "2K" => "160",
            "16K" => "200",
            _ => "",
        };
        Some(vec![buffer.word.to_owned(), then.to_owned(), number(rate)])
    };
    let rows: Vec<Vec<String>> = BUFFERS.iter().filter_map(row).collect();
    (!rows.is_empty()).then(|| Table {
        title: "Kilobytes a second of bulk transfers by the proxy's buffer (appendix B)".to_owned(),
        columns: ["Buffer", "1995: KB/s", "KB/s"].map(str::to_owned).to_vec(),
        names: 1,
        rows,
    })
}

fn findings(run: &Run) -> Vec<Finding> {
    let beside = |title: &str, [one, other]: [&str; 2], range| {
        let titles = titled(title, one != "ftp-gw");
        let key = |system| SampleKey { title: &titles, at: None, system };
        let ratio = ratio(run, &key(one), &key(other));
        Check { what: format!("time of {one} by {other}, {title}"), ratio, range }
    };
    let sweet = |system: &str| {
        let title = titled(SWEET, system != "ftp-gw");
        let times = AT_ONCE.map(|at_once| {
            let at = Some(f64::from(at_once));
            middle(run, &SampleKey { title: &title, at, system })
        });
        let first = times[0];
        let best = times.into_iter().flatten().reduce(f64::min);
        let ratio = first.zip(best).map(|(first, best)| first / best);
        let ratio = ratio.map(|middle| fwlab_results::stats::Interval {
            low: middle,
            middle,
            high: middle,
        });
        let what = format!("one session at a time by the best, {system}");
        Check { what, ratio, range: Range::MORE }
    };
    let filter = ["pcf", "null"];
    let proxy = ["ftp-gw", "null"];
    let mut all = vec![
        finding(
            "packets take longer through the filter",
            "Ping: 8 bytes 3.1 and 5.3 ms, 1000 bytes 5.3 and 11.8 ms",
            ["Ping, 8 bytes", "Ping, 1000 bytes"]
                .map(|title| beside(title, filter, Range::MORE))
                .into(),
        ),
        finding(
            "FTP sessions are unaffected by packet filtering",
            "30 sessions: 41.3 and 41.3 s one after the other, 13.2 and 11.4 s at once",
            [SEQUENTIAL, PARALLEL].map(|title| beside(title, filter, Range::EQUAL)).into(),
        ),
        finding(
            "a proxy doubles the time of a session",
            "30 sessions: 41.3 and 77.8 s",
            vec![beside(SEQUENTIAL, proxy, Range(1.5, 2.5))],
        ),
        finding(
            "the filter halves bulk transfers",
            "10 transfers 29.8 and 57.5 s, 9 at once 20.6 and 44.2 s",
            [BULK, PARALLEL_BULK].map(|title| beside(title, filter, Range(1.7, 2.6))).into(),
        ),
        finding(
            "the proxy cuts bulk transfers to a fifth",
            "9 transfers at once: 20.6 and 88.5 s",
            [BULK, PARALLEL_BULK].map(|title| beside(title, proxy, Range(3.5, 6.0))).into(),
        ),
    ];
    if run.series.iter().any(|series| series.title == SHOVEL) {
        all.push(finding(
            "a larger buffer makes the proxy faster: a quarter from 2K to 16K",
            "160 KB/s with 2K, 200 KB/s with 16K",
            vec![Check {
                what: "time with 2K by that with 16K".to_owned(),
                ratio: {
                    let key = |system| SampleKey { title: SHOVEL, at: None, system };
                    ratio(run, &key("ftp-gw-2K"), &key("ftp-gw-16K"))
                },
                range: Range::MORE,
            }],
        ));
    }
    if run.series.iter().any(|series| series.title.starts_with(SWEET)) {
        all.push(finding(
            "several simultaneous sessions are faster than one",
            "6 at once were best over a cable, 8 through the proxy",
            vec![sweet("null"), sweet("ftp-gw")],
        ));
    }
    all.extend(future::findings(run));
    all
}

#[cfg(test)]
mod tests {
    use fwlab_load::workload;
    use fwlab_net::topology::End;

    use super::*;

    #[test]
    fn workloads_are_as_his() {
        for (file, commands) in [
            (super::workload(1, 30, true, SMALL), 30),
            (super::workload(6, 5, false, SMALL), 30),
            (super::workload(3, 3, true, LARGE), 9),
        ] {
            assert_eq!(workload::parse(&file).unwrap().commands(), commands, "{file}");
        }
    }

    #[test]
    fn his_rules_have_the_names_of_the_network() {
        let rules = Rules {
            count: 0,
            transport: Tcp,
            family: Family::V4,
            to: End::Server,
            topology: Topology::Bridge,
        };
        let text = Filter.configuration(&rules);
        for (old, new) in NAMES {
            assert!(!text.contains(old) && text.contains(new), "{old}");
        }
        assert!(text.contains("tcp_dp in (0..19, 22..65535) fail;"));
    }
}
