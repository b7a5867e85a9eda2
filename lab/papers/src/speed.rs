//! `fwlab speed`: compares skipstep's speed on this machine with its targets. Each row of the table
//! is a ratio of values from the same rounds; docs/reference/speed.md explains the rows.

mod cores;
mod loading;
mod lookups;
mod reloads;
mod tables;
mod target;

use std::path::PathBuf;

use clap::ValueEnum;
use fwlab_load::raw::extension::Extension;
use fwlab_load::raw::load::{Engine, Load, Sizes, Vary};
use fwlab_net::family::Family;
use fwlab_net::system::System;
use fwlab_net::topology::Topology;
use fwlab_net::traffic::TrafficKind;
use fwlab_net::transport::Transport::{self, Tcp, Udp};
use fwlab_results::{Finding, Run, Table};
use skipstep_samples::ListShape;

use crate::series::{costs, series, talk};
use crate::states::{DRAWN, Limit, Room};
use crate::study::{Block, Extent, PlannedPoint, Study, Work};
use crate::{Paper, StudyOptions, run_alone};

/// Bytes of a frame: the shortest frame of Ethernet.
const SIZE: usize = 64;

/// Number of rules where the states are measured.
const FEW_RULES: u32 = 20;

/// Numbers of rules where the number of rules is measured.
const MANY_RULES: [u32; 3] = [20, 500, 10_000];

/// Number of source ports of each address in the measurement of many states.
const PORTS: u32 = 4000;

/// Numbers of states: few; the addresses of many; many.
const FEW_STATES: u32 = 1000;
const ADDRESSES: u32 = 250;
const MANY_STATES: u32 = ADDRESSES * PORTS;

/// Number of states for which there is room where each packet makes a state.
const NEW_STATES: u32 = 2_000_000;

/// Titles of series.
const HIT: &str = "A state is hit";
const RULES: &str = "Rules without states";
const RULES6: &str = "Rules without states, IPv6";
const STATES: &str = "One of many states is hit";
const NEW: &str = "A state is made";
const BRIDGED: &str = "A state is hit on a bridge";
const TCP_RR: &str = "Requests over TCP, 1024 bytes";
const UDP_RR: &str = "Requests over UDP, 64 bytes";
const IPERF3: &str = "iperf3, offloads on";

/// Parts of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// packets of existing states, of which there are few
    Hit,
    /// packets of existing states, on a bridge
    Bridge,
    /// packets that rules pass without a state
    Rules,
    /// requests and responses, and the throughput of iperf3
    Sockets,
    /// packets of existing states, of which there are 1,000,000
    States,
    /// packets that create states
    New,
    /// packets that are looked up in a table of 1,000,000 addresses
    Tables,
    /// packets that are lost while rules are replaced
    Reloads,
    /// time to load rules and tables
    Loading,
    /// time to find the deciding rule among 100,000
    Lookups,
    /// programs on two CPUs at once
    Cores,
}

/// Arguments of `fwlab speed`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Parts to measure, by default all
    #[arg(long, value_name = "PART,...", value_delimiter = ',')]
    only: Vec<Part>,
    /// Folder with rule lists of ClassBench, gzipped or not, for the part lookups
    #[arg(long, value_name = "FOLDER")]
    classbench: Option<PathBuf>,
    #[command(flatten)]
    options: StudyOptions,
}

/// Measures, prints the table, and writes the result.
///
/// # Errors
/// Fails if a part cannot be measured on this machine, if a file cannot be written, or if a signal
/// arrives.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let parts = match arguments.only.as_slice() {
        [] => Part::value_variants(),
        only => only,
    };
    let classbench = arguments.classbench.clone();
    run_alone(&Speed { parts: parts.to_vec(), classbench }, &arguments.options)
}

struct Speed {
    parts: Vec<Part>,
    /// The folder of ClassBench's lists, if any.
    classbench: Option<PathBuf>,
}

impl Paper for Speed {
    fn name(&self) -> &'static str {
        "speed"
    }

    fn title(&self) -> &'static str {
        "Performance of skipstep against its targets"
    }

    fn source(&self) -> &'static str {
        "targets of docs/reference/speed.md; the time of a system is without the time of the cable \
         in the same round"
    }

    fn differences(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn measure(&self, study: &mut Study) -> anyhow::Result<()> {
        let _limit = Limit::raise(study, NEW_STATES);
        // an interval of a median needs six rounds to reach 95 %
        study.set_rounds(match study.extent {
            Extent::Smoke => 1,
            Extent::Quick => 6,
            Extent::Full => 12,
        });
        let mut blocks = Vec::new();
        for part in &self.parts {
            blocks.extend(part.blocks(study)?);
        }
        study.expect_others(self.parts.iter().map(|part| self.round_of_others(*part)).sum());
        study.measure(blocks)?;
        if self.parts.contains(&Part::Reloads) {
            reloads::measure(study)?;
        }
        if self.parts.contains(&Part::Loading) {
            loading::measure(study)?;
        }
        if self.parts.contains(&Part::Lookups) {
            lookups::measure(study, self.classbench.as_deref())?;
        }
        if self.parts.contains(&Part::Cores) {
            cores::measure(study)?;
        }
        Ok(())
    }

    fn tables(&self, run: &Run) -> Vec<Table> {
        vec![target::table(run)]
    }

    fn findings(&self, _: &Run) -> Vec<Finding> {
        Vec::new()
    }
}

impl Speed {
    /// Returns the estimated seconds of a round in the parts that do not measure single packets.
    fn round_of_others(&self, part: Part) -> f64 {
        let lists = ListShape::ALL.len() + self.classbench.iter().len() * lookups::CLASSBENCH.len();
        match part {
            Part::Reloads => reloads::ROUND,
            Part::Loading => loading::ROUND * loading::CARGOES.len() as f64,
            Part::Lookups => lookups::ROUND * lists as f64,
            Part::Cores => cores::ROUND,
            _ => 0.0,
        }
    }
}

impl Part {
    /// Returns the blocks of this part that measure single packets.
    ///
    /// # Errors
    /// Fails if the file of a table cannot be written.
    fn blocks(self, study: &mut Study) -> anyhow::Result<Vec<(Block, Vec<PlannedPoint>)>> {
        Ok(match self {
            Part::Hit => {
                let systems = [
                    "xdp-route",
                    "tc-route",
                    "nft-conntrack",
                    "skipstep-states",
                    "skipstep-states-xdp",
                ];
                vec![cost(study, HIT, FEW_RULES, load(Family::V4), &systems)]
            }
            Part::Bridge => vec![on_bridge(study)],
            Part::Rules => rules(study),
            Part::Sockets => all_sockets(study),
            Part::States if study.extent == Extent::Smoke => {
                study.leave_out(&format!("{STATES}: takes too long for --smoke"));
                Vec::new()
            }
            Part::States => [FEW_STATES, MANY_STATES].map(|count| many_states(study, count)).into(),
            Part::New => vec![new_states(study)],
            Part::Tables => vec![tables::block(study)?],
            Part::Reloads | Part::Loading | Part::Lookups | Part::Cores => Vec::new(),
        })
    }
}

/// Plans packets of few states that cross a bridge.
fn on_bridge(study: &mut Study) -> (Block, Vec<PlannedPoint>) {
    let systems = ["skipstep-bridge", "skipstep-bridge-xdp"];
    let (mut block, cells) = cost(study, BRIDGED, FEW_RULES, load(Family::V4), &systems);
    block.topology = Topology::Bridge;
    (block, cells)
}

/// Plans rules without states: few rules, many rules, and IPv6.
fn rules(study: &mut Study) -> Vec<(Block, Vec<PlannedPoint>)> {
    let mut blocks = Vec::new();
    for count in MANY_RULES {
        let systems: &[&str] = match count {
            500 => &[
                "iptables-legacy",
                "nft-flat",
                "nft-maps",
                "skipstep-compiled",
                "skipstep-compiled-xdp",
            ],
            _ => &["skipstep-compiled-xdp"],
        };
        blocks.push(cost(study, RULES, count, load(Family::V4), systems));
    }
    let systems = ["skipstep-compiled-xdp"];
    blocks.push(cost(study, RULES6, 500, load(Family::V6), &systems));
    blocks
}

/// Plans the loads of sockets. Loads of programs that are not installed are left out.
fn all_sockets(study: &mut Study) -> Vec<(Block, Vec<PlannedPoint>)> {
    let mut blocks = Vec::new();
    for (title, kind, transport, size) in [
        (TCP_RR, TrafficKind::Rr, Tcp, 1024),
        (UDP_RR, TrafficKind::Rr, Udp, 64),
        (IPERF3, TrafficKind::Iperf3, Tcp, 0),
    ] {
        if kind.programs().iter().all(|program| fwlab_net::system::is_there(program)) {
            blocks.push(sockets(study, title, kind, transport, size));
        } else {
            study.leave_out(&format!("{title}: no such program: {}", kind.programs().join(", ")));
        }
    }
    blocks
}

/// Makes a load of datagrams with 256 flows.
fn load(ip: Family) -> Load {
    Load {
        engine: Engine::Xdp,
        transport: Udp,
        ip,
        extension: Extension::None,
        size: Sizes::one(if ip == Family::V4 { SIZE } else { SIZE + 20 }),
        sources: Vary::Fixed,
        destinations: Vary::Fixed,
        source_ports: Vary::Count(256),
        destination_ports: Vary::Fixed,
        seed: 1,
    }
}

fn block(frames: Option<Load>, count: u32, systems: Vec<Box<dyn System>>) -> Block {
    Block {
        topology: Topology::Router,
        count,
        transport: Udp,
        family: frames.as_ref().map_or(Family::V4, |load| load.ip),
        mtu: 1500,
        systems,
        frames,
        warm: 0,
        offloads: false,
    }
}

/// Plans the time of a frame.
fn cost(
    study: &mut Study,
    title: &str,
    count: u32,
    load: Load,
    systems: &[&str],
) -> (Block, Vec<PlannedPoint>) {
    let cell = PlannedPoint {
        series: costs(title.to_owned(), &load, study.seconds, "rules"),
        at: Some(count.into()),
        work: Work::Cost { seconds: study.seconds },
    };
    (block(Some(load), count, study.systems(systems)), vec![cell])
}

/// Plans a load of sockets.
fn sockets(
    study: &mut Study,
    title: &str,
    kind: TrafficKind,
    transport: Transport,
    size: usize,
) -> (Block, Vec<PlannedPoint>) {
    // iperf3 counts in tenths of a second, and loses some at its start
    let seconds = if kind == TrafficKind::Iperf3 { study.seconds.max(1.0) } else { study.seconds };
    let talk = talk(kind, transport, Family::V4, size, seconds);
    let cell = PlannedPoint {
        series: series(title.to_owned(), &talk, None),
        at: None,
        work: Work::Talk(talk),
    };
    let mut block = block(None, FEW_RULES, study.systems(&["skipstep-states"]));
    block.transport = transport;
    block.offloads = kind == TrafficKind::Iperf3;
    (block, vec![cell])
}

/// Plans the time of a frame of one of `states` states, drawn at random.
fn many_states(study: &mut Study, states: u32) -> (Block, Vec<PlannedPoint>) {
    let mut load = load(Family::V4);
    if states > PORTS {
        load.sources = Vary::Random(states / PORTS);
        load.source_ports = Vary::Random(PORTS);
    } else {
        load.source_ports = Vary::Random(states);
    }
    let names = ["nft-conntrack", "skipstep-states", "skipstep-states-xdp"];
    let (mut block, mut cells) = cost(study, STATES, 0, load, &names);
    cells[0].at = Some(states.into());
    if let Some(dimension) = &mut cells[0].series.dimension {
        dimension.name = "states".to_owned();
    }
    block.warm = u64::from(states * DRAWN);
    block.systems = with_room(block.systems, states);
    (block, cells)
}

/// Plans the time of a frame that makes a state.
fn new_states(study: &mut Study) -> (Block, Vec<PlannedPoint>) {
    let mut load = load(Family::V4);
    load.sources = Vary::Random(1 << 16);
    load.source_ports = Vary::Random(60_000);
    let systems = ["nft-conntrack", "skipstep-states", "skipstep-states-xdp"];
    let (mut block, mut cells) = cost(study, NEW, 0, load, &systems);
    // the states of all rounds together must stay below the limit
    cells[0].work = Work::Cost { seconds: study.seconds.min(0.1) };
    block.systems = with_room(block.systems, NEW_STATES);
    (block, cells)
}

fn with_room(systems: Vec<Box<dyn System>>, states: u32) -> Vec<Box<dyn System>> {
    let room = |inner| -> Box<dyn System> { Box::new(Room { inner, connections: states }) };
    systems.into_iter().map(room).collect()
}
