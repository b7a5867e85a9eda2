//! Adamo and Tablò: transactions per second by number and protocol of rules, through a router and
//! through a bridge.

use fwlab_net::family::Family;
use fwlab_net::topology::Topology;
use fwlab_net::traffic::TrafficKind;
use fwlab_net::transport::Transport::{self, Tcp, Udp};
use fwlab_results::{Finding, Role, Run, Table};

use super::Paper;
use super::series::{series, talk};
use super::study::{Block, Extent, PlannedPoint, Study, Work};
use super::text::number;
use super::verdict::{Check, Range, SampleKey, base, change, finding, middle, ratio, values};

/// The study by Adamo and Tablò.
pub(super) struct AdamoTablo;

/// The systems that are compared with the paper's, in the order of the table.
const SYSTEMS: [&str; 7] = [
    "iptables-legacy",
    "iptables-legacy-jumps",
    "nft-flat",
    "nft-maps",
    "skipstep-linear",
    "skipstep-skip-steps",
    "skipstep-compiled",
];

/// The systems that evaluate every rule of a list.
const LISTS: [&str; 3] = ["iptables-legacy", "nft-flat", "skipstep-linear"];

/// The paper's loads: name, protocol, bytes of request and of response.
const LOADS: [(&str, Transport, usize); 4] =
    [("TCP 1024", Tcp, 1024), ("TCP 512", Tcp, 512), ("TCP 256", Tcp, 256), ("UDP 64", Udp, 64)];

/// The paper's rule sets: number and protocol of the rules.
const RULES: [(u32, Transport); 5] = [(0, Tcp), (20, Tcp), (100, Tcp), (500, Tcp), (500, Udp)];

/// Transactions per second without a firewall, by load. Source: the table in the section "Test
/// Results".
const DIRECT: [f64; 4] = [4030.80, 6465.25, 9286.02, 16020.07];

/// Transactions per second behind a firewall, by rule set and load. The columns are Linux as a
/// bridge, OpenBSD as a bridge, Linux as a router, OpenBSD as a router.
const FIGURES: [[[f64; 4]; 4]; 5] = [
    [
        [2112.32, 2026.62, 2120.23, 2019.17],
        [3395.63, 3039.21, 3430.71, 3039.69],
        [4909.81, 4059.98, 4999.73, 4057.27],
        [8216.58, 6089.54, 8477.04, 6089.47],
    ],
    [
        [2087.24, 1997.71, 2111.53, 1740.22],
        [3340.86, 3040.66, 3394.70, 2514.19],
        [4784.87, 4047.71, 4941.71, 3900.61],
        [8050.35, 6081.69, 8347.05, 6075.76],
    ],
    [
        [2093.16, 1739.71, 2062.29, 1739.69],
        [3346.76, 2541.19, 3278.08, 2433.69],
        [4800.57, 4023.15, 4685.83, 3116.01],
        [7981.62, 6082.07, 7705.79, 6078.91],
    ],
    [
        [1765.26, 1353.53, 1744.48, 1351.02],
        [2586.16, 1766.63, 2534.05, 1739.72],
        [3383.04, 2424.07, 3300.93, 2050.06],
        [4809.77, 6076.46, 4590.34, 6079.87],
    ],
    [
        [1876.84, 2021.07, 1834.17, 1744.79],
        [2827.54, 3036.42, 2733.80, 3031.48],
        [3803.13, 4058.83, 3642.47, 4038.15],
        [5532.02, 3039.65, 4966.07, 3030.77],
    ],
];

impl Paper for AdamoTablo {
    fn name(&self) -> &'static str {
        "adamo-tablo"
    }

    fn title(&self) -> &'static str {
        "Linux vs. OpenBSD: A Firewall Performance Test"
    }

    fn source(&self) -> &'static str {
        "Massimiliano Adamo and Mauro Tablò, ;login:, December 2005"
    }

    fn differences(&self) -> Vec<&'static str> {
        vec![
            "three hosts of one machine on one CPU, where they had three machines and 100 Mbit/s cables",
            "fwlab's own sockets send and answer requests, where they had netperf; their trials \
             took 120 s",
            "every round includes the cable and the plain router or bridge, in a new random order",
            "without rules, the firewall is loaded with an empty rule set, where they had no \
             firewall",
        ]
    }

    fn measure(&self, study: &mut Study) -> anyhow::Result<()> {
        if study.extent == Extent::Full {
            // each of 40 measurements has ten systems
            study.set_seconds(0.2);
        }
        let (topologies, loads, rules) = match study.extent {
            Extent::Smoke => {
                (&[Topology::Router][..], &LOADS[2..], vec![RULES[0], RULES[3], RULES[4]])
            }
            Extent::Quick => (
                &[Topology::Router, Topology::Bridge][..],
                &LOADS[..],
                vec![RULES[0], RULES[2], RULES[3], RULES[4]],
            ),
            Extent::Full => (&[Topology::Router, Topology::Bridge][..], &LOADS[..], RULES.to_vec()),
        };
        let mut blocks = Vec::new();
        for &topology in topologies {
            for &(count, transport) in &rules {
                let systems = study.systems(&SYSTEMS);
                let family = Family::V4;
                let block = Block {
                    topology,
                    count,
                    transport,
                    family,
                    mtu: 1500,
                    systems,
                    frames: None,
                    warm: 0,
                    offloads: false,
                };
                let cell = |&(load, protocol, size): &(&str, Transport, usize)| {
                    let talk = talk(TrafficKind::Rr, protocol, family, size, study.seconds);
                    let title = title(load, topology, transport);
                    PlannedPoint {
                        series: series(title, &talk, Some("rules")),
                        at: Some(f64::from(count)),
                        work: Work::Talk(talk),
                    }
                };
                blocks.push((block, loads.iter().map(cell).collect()));
            }
        }
        study.measure(blocks)
    }

    fn tables(&self, run: &Run) -> Vec<Table> {
        [Topology::Router, Topology::Bridge].into_iter().filter_map(|at| table(run, at)).collect()
    }

    fn findings(&self, run: &Run) -> Vec<Finding> {
        findings(run)
    }
}

/// Returns the title of a series: a load through a topology under rules of a protocol.
fn title(load: &str, topology: Topology, rules: Transport) -> String {
    let rules = if rules == Tcp { "TCP" } else { "UDP" };
    format!("{load}, {topology}, {rules} rules")
}

/// Makes the paper's table for a topology. The paper's figures are the worst of three; the cells
/// here have the worst value, with the median in parentheses.
fn table(run: &Run, topology: Topology) -> Option<Table> {
    let plain = if topology == Topology::Bridge { "bridge" } else { "router" };
    let mut systems = vec!["null", plain];
    let measured = |name: &str| run.systems.iter().any(|system| base(&system.id) == name);
    systems.extend(SYSTEMS.into_iter().filter(|name| measured(name)));
    let mut columns =
        ["Rules", "Load", "2005: direct", "2005: iptables", "2005: PF"].map(str::to_owned).to_vec();
    columns.extend(systems.iter().map(|&name| name.to_owned()));
    let mut rows = Vec::new();
    for (rules, &(count, transport)) in RULES.iter().enumerate() {
        for (load, &(name, ..)) in LOADS.iter().enumerate() {
            let title = title(name, topology, transport);
            let cells: Vec<String> = systems
                .iter()
                .map(|system| {
                    let key = SampleKey { title: &title, at: Some(f64::from(count)), system };
                    let worst = values(run, &key).into_iter().reduce(f64::min);
                    let both = worst.zip(middle(run, &key));
                    both.map_or(String::new(), |(worst, middle)| {
                        format!("{} ({})", number(worst), number(middle))
                    })
                })
                .collect();
            if cells.iter().all(String::is_empty) {
                continue;
            }
            let theirs = FIGURES[rules][load];
            let theirs = if topology == Topology::Bridge { &theirs[..2] } else { &theirs[2..] };
            let kind = if transport == Tcp { "TCP" } else { "UDP" };
            let rules = if count == 0 { "none".to_owned() } else { format!("{count} {kind}") };
            let mut row = vec![rules, name.to_owned(), number(DIRECT[load])];
            row.extend(theirs.iter().map(|&figure| number(figure)));
            row.extend(cells);
            rows.push(row);
        }
    }
    let title = format!("Transactions a second, {topology}: the worst of all rounds (the median)");
    (!rows.is_empty()).then_some(Table { title, columns, names: 2, rows })
}

/// The run that the findings are checked against.
struct RunChecks<'r> {
    run: &'r Run,
}

impl RunChecks<'_> {
    /// Compares a load under `count` rules of a protocol with the same load under no rules, for one
    /// system.
    fn left(
        &self,
        load: &str,
        topology: Topology,
        (count, rules): (u32, Transport),
        system: &str,
        range: Range,
    ) -> Check {
        let (before, after) = (title(load, topology, Tcp), title(load, topology, rules));
        let from = SampleKey { title: &before, at: Some(0.0), system };
        let to = SampleKey { title: &after, at: Some(f64::from(count)), system };
        Check { what: format!("{system}, {load}"), ratio: change(self.run, &from, &to), range }
    }

    /// Compares two systems in the same rounds.
    fn beside(
        &self,
        load: &str,
        topology: Topology,
        (count, rules): (u32, Transport),
        [one, other]: [&str; 2],
        range: Range,
    ) -> Check {
        let title = title(load, topology, rules);
        let key = |system| SampleKey { title: &title, at: Some(f64::from(count)), system };
        let ratio = ratio(self.run, &key(one), &key(other));
        Check { what: format!("{one} by {other}, {load}"), ratio, range }
    }
}

fn findings(run: &Run) -> Vec<Finding> {
    use Topology::{Bridge, Router};

    let asked = RunChecks { run };
    let (equal, less, more) = (Range::EQUAL, Range::LESS, Range::MORE);
    let loads = LOADS.map(|(load, ..)| load);
    let none = RULES[0];
    let (tcp, udp) = (RULES[3], RULES[4]);
    let has_bridge = run.systems.iter().any(|system| system.role == Role::Bridge);

    let halves = |topology: Topology, plain| {
        loads.map(|load| asked.beside(load, topology, none, [plain, "null"], Range(0.4, 0.6)))
    };
    let mut hop: Vec<Check> = halves(Router, "router").into();
    hop.extend(halves(Bridge, "bridge"));
    let mut all = vec![
        finding(
            "a host in between halves the number of transactions",
            "UDP 64: 16020 direct, 8477 through a Linux router, 8217 through a bridge",
            hop,
        ),
        finding(
            "a list slows with every rule, whatever the protocol of packets and rules",
            "iptables, router, 500 TCP rules: UDP 64 from 8477 to 4590, TCP 256 from 5000 to 3301",
            LISTS
                .iter()
                .flat_map(|list| {
                    ["TCP 256", "UDP 64"].map(|load| asked.left(load, Router, tcp, list, less))
                })
                .collect(),
        ),
        finding(
            "with skip steps, TCP rules do not slow UDP",
            "PF, router, 500 TCP rules: UDP 64 from 6089 to 6080",
            vec![asked.left("UDP 64", Router, tcp, "skipstep-skip-steps", equal)],
        ),
        finding(
            "with skip steps, UDP rules do not slow TCP",
            "PF, bridge, 500 UDP rules: TCP 256 from 4060 to 4059",
            loads[..3]
                .iter()
                .map(|load| asked.left(load, Router, udp, "skipstep-skip-steps", equal))
                .collect(),
        ),
        finding(
            "rules of the packets' own protocol slow skip steps too",
            "PF, router: TCP 256 under 500 TCP rules from 4057 to 2050, UDP 64 under 500 UDP rules from 6089 to 3031",
            vec![
                asked.left("TCP 256", Router, tcp, "skipstep-skip-steps", less),
                asked.left("UDP 64", Router, udp, "skipstep-skip-steps", less),
            ],
        ),
        finding(
            "iptables is faster than PF if the rules have the packets' protocol",
            "500 TCP rules, router, TCP 256: iptables 3301, PF 2050",
            vec![asked.beside(
                "TCP 256",
                Router,
                tcp,
                ["iptables-legacy", "skipstep-skip-steps"],
                more,
            )],
        ),
        finding(
            "PF is faster than iptables if the rules have another protocol",
            "500 TCP rules, router, UDP 64: PF 6080, iptables 4590",
            vec![asked.beside(
                "UDP 64",
                Router,
                tcp,
                ["skipstep-skip-steps", "iptables-legacy"],
                more,
            )],
        ),
        finding(
            "a jump by protocol helps iptables as skip steps help PF",
            "advised at the end, not measured",
            vec![asked.beside(
                "UDP 64",
                Router,
                tcp,
                ["iptables-legacy-jumps", "iptables-legacy"],
                more,
            )],
        ),
    ];
    if has_bridge {
        all.extend(bridges(&asked));
    }
    all
}

/// Compares a bridge with a router. Each is first compared with the cable of its own rounds.
fn bridges(asked: &RunChecks<'_>) -> [Finding; 2] {
    let compare = |load: &str, rules: (u32, Transport), [bridge, router]: [&str; 2], range| {
        let at = Some(f64::from(rules.0));
        let titles = [Topology::Router, Topology::Bridge].map(|at| title(load, at, rules.1));
        let from = SampleKey { title: &titles[0], at, system: router };
        let to = SampleKey { title: &titles[1], at, system: bridge };
        let ratio = change(asked.run, &from, &to);
        let name = if bridge == router { bridge.to_owned() } else { "no filter".to_owned() };
        Check { what: format!("{name}, {load}, {} rules", rules.0), ratio, range }
    };
    let equal = Range::EQUAL;
    [
        finding(
            "Linux is equally fast as a bridge and as a router",
            "UDP 64: 8217 as a bridge, 8477 as a router; with 500 TCP rules 4810 and 4590",
            vec![
                compare("UDP 64", RULES[0], ["bridge", "router"], equal),
                compare("UDP 64", RULES[3], ["iptables-legacy"; 2], equal),
            ],
        ),
        finding(
            "PF filters more as a bridge than as a router",
            "TCP 256 under 500 TCP rules: 2424 as a bridge, 2050 as a router",
            vec![compare("TCP 256", RULES[3], ["skipstep-skip-steps"; 2], Range::MORE)],
        ),
    ]
}
