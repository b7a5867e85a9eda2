//! PF on FreeBSD and on OpenBSD: the idle share of the firewall's CPU during an FTP transfer and
//! iperf, as a router and with a rule set of 2008.

use fwlab_load::sockets::Talk;
use fwlab_net::family::Family;
use fwlab_net::host::Host;
use fwlab_net::rules::Rules;
use fwlab_net::system::{self, System, skipstep};
use fwlab_net::topology::Topology;
use fwlab_net::traffic::{self, TrafficKind};
use fwlab_net::transport::Transport::Tcp;
use fwlab_results::{Better, Finding, Mode, Quantity, Run, Table};

use super::Paper;
use super::series::{series, talk};
use super::study::{Block, Cpu, Extent, PlannedPoint, Study, Work};
use super::text::number;
use super::verdict::{Check, Range, SampleKey, finding, middle, ratio, values};

/// The study of the article.
pub(super) struct FreebsdOpenbsd;

/// Idle percentage of the CPU with FreeBSD 7.0 and with OpenBSD 4.2, by test, load and system.
const FIGURES: [(&str, &str, &str, [Option<f64>; 2]); 4] = [
    ("Routing, FTP", FTP, "router", [Some(72.3), Some(65.9)]),
    ("Firewall and routing, FTP", FTP, "published", [Some(65.8), Some(64.2)]),
    ("Routing, iperf", IPERF, "router", [None, None]),
    ("Firewall and routing, iperf", IPERF, "published", [Some(48.9), Some(46.1)]),
];

const FTP: &str = "FTP transfer";
const IPERF: &str = "iperf";

/// Rate of the link, in the notation of tc(8).
const LINK: &str = "1gbit";

/// Number of samples of the CPU.
const SAMPLES: u32 = 30;

/// The rule set of the article, which is also an example of this project.
const RULES: &str = include_str!("../../../examples/gateway.conf");

/// The line that follows the article's rules in the example.
const END: &str = "## What the demonstration adds";

/// skipstep with the article's rules.
struct Published;

impl System for Published {
    fn name(&self) -> &'static str {
        "published"
    }

    fn label(&self) -> &'static str {
        "skipstep with the article's rules"
    }

    fn programs(&self) -> Vec<String> {
        skipstep::programs()
    }

    fn configuration(&self, _: &Rules) -> String {
        let text = RULES.split_once(END).map_or(RULES, |(rules, _)| rules);
        // fwlab's sockets discard at port 9, where iperf's server discards at 5001
        text.replace("5001", "9")
    }

    fn hooks(&self, _: Topology) -> Vec<String> {
        skipstep::hooks()
    }

    fn install(&self, device: &Host, _: &Rules, configuration: &str) -> anyhow::Result<()> {
        skipstep::load(device, configuration)
    }

    fn closed(&self, _: Topology) -> Option<u16> {
        Some(traffic::CHARGEN)
    }
}

impl Paper for FreebsdOpenbsd {
    fn name(&self) -> &'static str {
        "freebsd-openbsd"
    }

    fn title(&self) -> &'static str {
        "PF: FreeBSD 7.0 and OpenBSD 4.2"
    }

    fn source(&self) -> &'static str {
        "unreal, an article in French about replacing an OpenBSD firewall by FreeBSD, March 2008"
    }

    fn mode(&self) -> Mode {
        Mode::Queue
    }

    fn differences(&self) -> Vec<&'static str> {
        vec![
            "a virtual link of 1 Gbit/s, made slow by a token bucket, where there were 100 Mbit/s",
            "idle time is measured by the clock of the firewall's threads, which have their own \
             CPU; the article read it from top",
            "fwlab's own FTP, with active data connections as the rules require, and its own \
             stream instead of iperf's, to port 9 instead of 5001",
            "GRO joins no packets, so the CPU handles each packet",
        ]
    }

    fn measure(&self, study: &mut Study) -> anyhow::Result<()> {
        study.set_rounds(if study.extent == Extent::Smoke { 2 } else { SAMPLES });
        let mut systems: Vec<Box<dyn System>> = Vec::new();
        match system::missing(&Published) {
            Some(program) => study.leave_out(&format!("published: no such program: {program}")),
            None => systems.push(Box::new(Published)),
        }
        systems.extend(study.systems(&["nft-conntrack", "iptables-legacy"]));
        let mut cells = Vec::new();
        for (load, kind) in [(FTP, TrafficKind::FtpBulk), (IPERF, TrafficKind::Send)] {
            for value in [Cpu::Idle, Cpu::Packet] {
                let active = true;
                let talk = Talk { active, ..talk(kind, Tcp, Family::V4, 0, study.seconds) };
                cells.push(cell(load, talk, value));
            }
        }
        let block = Block {
            topology: Topology::Router,
            count: 20,
            transport: Tcp,
            family: Family::V4,
            mtu: 1500,
            systems,
            frames: None,
            warm: 0,
            offloads: false,
        };
        study.measure(vec![(block, cells)])
    }

    fn tables(&self, run: &Run) -> Vec<Table> {
        vec![theirs(run), packets(run)]
    }

    fn findings(&self, run: &Run) -> Vec<Finding> {
        let idle = |load: &str, range| {
            let title = title(load, Cpu::Idle);
            let key = |system| SampleKey { title: &title, at: None, system };
            let ratio = ratio(run, &key("published"), &key("router"));
            Check { what: format!("idle with rules by idle without, {load}"), ratio, range }
        };
        let cost = |other: &'static str, range| {
            let title = title(IPERF, Cpu::Packet);
            let key = |system| SampleKey { title: &title, at: None, system };
            let ratio = ratio(run, &key("published"), &key(other));
            Check { what: format!("time of a packet by that of {other}, iperf"), ratio, range }
        };
        vec![
            finding(
                "filtering leaves less of the CPU than routing alone",
                "FTP: FreeBSD 72.3 and 65.8 % idle, OpenBSD 65.9 and 64.2 %",
                vec![idle(FTP, Range(0.0, 0.999)), idle(IPERF, Range(0.0, 0.999))],
            ),
            finding(
                "but not much less: a tenth at most",
                "FTP: idle time with rules is 0.91 (FreeBSD) and 0.97 (OpenBSD) of the idle time \
                 without rules",
                vec![idle(FTP, Range(0.9, 1.0))],
            ),
            finding(
                "a packet costs more with the rules than without",
                "follows from the figures, not measured",
                vec![cost("router", Range::MORE)],
            ),
        ]
    }
}

fn title(load: &str, value: Cpu) -> String {
    match value {
        Cpu::Idle => format!("{load}: CPU idle"),
        Cpu::Packet => format!("{load}: CPU of a packet"),
    }
}

fn cell(load: &str, talk: Talk, value: Cpu) -> PlannedPoint {
    let mut series = series(title(load, value), &talk, None);
    series.load.details = format!("link of {LINK}");
    let (name, unit, better) = match value {
        Cpu::Idle => ("idle", "%", Better::Higher),
        Cpu::Packet => ("time of a packet", "ns", Better::Lower),
    };
    series.quantity =
        Quantity { name: name.to_owned(), unit: unit.to_owned(), better, additive: false };
    PlannedPoint { series, at: None, work: Work::Cpu { talk, link: LINK, value } }
}

/// Returns the mean of all samples, as the article does.
fn mean(run: &Run, load: &str, system: &str) -> Option<f64> {
    let title = title(load, Cpu::Idle);
    let values = values(run, &SampleKey { title: &title, at: None, system });
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn theirs(run: &Run) -> Table {
    let figure = |figure: Option<f64>| figure.map_or("-".to_owned(), number);
    let row = |&(name, load, system, [freebsd, openbsd]): &(&str, &str, &str, [Option<f64>; 2])| {
        vec![
            name.to_owned(),
            figure(freebsd),
            figure(openbsd),
            figure(mean(run, load, system)),
            figure(mean(run, load, if system == "router" { "router" } else { "nft-conntrack" })),
            figure(mean(run, load, if system == "router" { "router" } else { "iptables-legacy" })),
        ]
    };
    let columns = [
        "Test",
        "2008: FreeBSD",
        "2008: OpenBSD",
        "skipstep, its rules",
        "nft-conntrack, 20 rules",
        "iptables-legacy, 20 rules",
    ];
    Table {
        title: "Idle time of the firewall's CPU in percent, mean of all samples".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        names: 1,
        rows: FIGURES.iter().map(row).collect(),
    }
}

/// Makes the table of CPU time per packet, which the article could not measure.
fn packets(run: &Run) -> Table {
    let systems = ["router", "published", "nft-conntrack", "iptables-legacy"];
    let row = |load: &str| {
        let title = title(load, Cpu::Packet);
        let cost = |system| middle(run, &SampleKey { title: &title, at: None, system });
        let mut row = vec![load.to_owned()];
        row.extend(systems.map(|system| cost(system).map_or("-".to_owned(), number)));
        row
    };
    let mut columns = vec!["Test".to_owned()];
    columns.extend(systems.map(str::to_owned));
    Table {
        title: "Nanoseconds of the firewall's CPU a packet, medians".to_owned(),
        columns,
        names: 1,
        rows: vec![row(FTP), row(IPERF)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_are_the_articles_and_end_where_they_should() {
        let topology = Topology::Router;
        let rules = Rules {
            count: 0,
            transport: Tcp,
            family: Family::V4,
            to: fwlab_net::topology::End::Server,
            topology,
        };
        let text = Published.configuration(&rules);
        assert!(text.contains("pass in on $out_if from any to ! <me> keep state"));
        assert!(text.contains("port { 21, 22, 80, 9 }") && !text.contains("5001"), "{text}");
        assert!(text.len() < RULES.len());
    }
}
