//! A made-up run for tests: three systems, a placebo, and several numbers of rules.

use std::collections::BTreeMap;

use crate::{
    Agent, Better, Counts, Cpu, Dimension, Environment, Finding, Latency, Load, Mode, Paper, Point,
    Quantity, Repeat, Role, Run, SCHEMA_VERSION, Sample, Series, System, Table, Topology, Verdict,
};

/// Number of rounds of each point.
pub const ROUNDS: u32 = 12;

/// Returns the run.
pub fn run() -> Run {
    let text = |text: &str| text.to_string();
    let mut systems = vec![
        System::new("null", "nothing", Role::Null, "router", String::new()),
        System::new("router", "Linux router", Role::Router, "router", text("ip_forward=1\n")),
        System::new(
            "placebo",
            "Linux router again",
            Role::Placebo,
            "router",
            text("ip_forward=1\n"),
        ),
    ];
    systems[2].repeats = Some(text("router"));
    let mut points = Vec::new();
    for rules in [0_u32, 100, 1000] {
        let id = format!("nft@{rules}");
        let configuration = "drop <&> \"quoted\"\n".repeat(rules as usize);
        let mut system = System::new(&id, "nftables flat", Role::Subject, "router", configuration);
        system.rules = Some(u64::from(rules));
        system.hooks = vec![text("prerouting"), text("forward")];
        systems.push(system);
        points.push(point(rules, &id));
    }
    Run {
        schema: SCHEMA_VERSION,
        fwlab: text("0.1.0"),
        command: vec![text("fwlab"), text("measure")],
        started: text("2026-11-22T18:00:00Z"),
        seconds: 61.5,
        complete: true,
        incomplete_because: None,
        environment: environment(),
        agents: vec![Agent { end: text("client"), environment: environment() }],
        mode: Mode::Cost,
        topologies: vec![Topology {
            name: text("router"),
            description: text("client - router - server"),
            mtu: 1500,
            families: vec![text("inet")],
            offloads: BTreeMap::from([(text("tx-checksumming"), false)]),
        }],
        systems,
        series: vec![Series {
            title: text("Cost of a packet by number of rules"),
            load: Load {
                kind: text("raw"),
                protocol: Some(text("udp")),
                size: Some(64),
                seconds: 1.0,
                ..Load::default()
            },
            quantity: Quantity {
                name: text("time per packet"),
                unit: text("ns"),
                better: Better::Lower,
                additive: true,
            },
            dimension: Some(Dimension { name: text("rules"), unit: String::new() }),
            points,
        }],
        findings: vec![Finding {
            claim: text("a linear list slows with every rule"),
            source: text("Adamo and Tablò: 8477 to 4590 transactions a second at 500 rules"),
            verdict: Verdict::Holds,
            evidence: text("300 ns with no rule, 10300 ns with 1000"),
        }],
        paper: Some(Paper {
            title: text("Linux vs. OpenBSD: A Firewall Performance Test"),
            source: text("Massimiliano Adamo and Mauro Tablò, ;login:, 2005"),
            differences: vec![text("shorter trials")],
            tables: vec![Table {
                title: text("Transactions a second"),
                columns: ["Rules", "Load", "iptables 2005", "nftables flat"].map(text).to_vec(),
                names: 2,
                rows: vec![["500", "UDP 64", "4590", "41 000"].map(text).to_vec()],
            }],
        }),
    }
}

/// Makes a point. Each round slows all systems by the same amount, and each system has small
/// variations of its own.
fn point(rules: u32, id: &str) -> Point {
    let mut samples = Vec::new();
    for round in 0..ROUNDS {
        let base = 100.0 + f64::from(round);
        let wobble = |salt: u32| f64::from((round * 7 + salt * 5) % 11) * 0.2;
        samples.push(Sample::new(round, 0, "null", base + wobble(0)));
        samples.push(Sample::new(round, 1, "router", base + 200.0 + wobble(1)));
        samples.push(Sample::new(round, 2, "placebo", base + 200.0 + wobble(2)));
        let cost = base + 200.0 + f64::from(rules) * 10.0;
        samples.push(Sample::new(round, 3, id, cost + wobble(3)));
    }
    samples[3].repeats = vec![Repeat { value: 9999.0, why: "3 % stolen".to_string() }];
    samples[3].counts =
        Some(Counts { sent: 1000, received: 999, cycles: Some(2_500_000), ..Counts::default() });
    samples[3].latency = Some(Latency::from_times([(1000, 998), (50_000, 1)]));
    Point { at: Some(f64::from(rules)), ceiling: Some(7e6), void: None, samples }
}

fn environment() -> Environment {
    let text = |text: &str| text.to_string();
    Environment {
        kernel: text("6.18.1 #1 SMP"),
        architecture: text("x86_64"),
        boot: Some(text("one")),
        cpu: Cpu {
            model: text("Fast Processor"),
            online: 2,
            threads_per_core: Some(1),
            governor: Some(text("performance")),
            guest: true,
        },
        memory: Some(1 << 34),
        mitigations: BTreeMap::from([(text("meltdown"), text("Not affected"))]),
        clocksource: Some(text("tsc")),
        sysctls: BTreeMap::from([(text("net.ipv4.ip_forward"), text("1"))]),
        programs: BTreeMap::from([(text("nft"), text("nftables v1.0.6"))]),
        load_average: Some(0.1),
        steal: Some(0.0),
        no_cycles: None,
    }
}

/// Compares the run with the file for the host test of reports. `UPDATE=1 cargo test -p
/// fwlab-results example` writes the file.
#[test]
fn the_file_is_this_run() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/netns/fwlab-run.json");
    if std::env::var_os("UPDATE").is_some() {
        run().write(path.as_ref()).unwrap();
    }
    assert_eq!(Run::read(path.as_ref()).unwrap(), run());
}
