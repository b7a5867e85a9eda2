//! `fwlab speed`: how fast skipstep is meant to be, and how fast it is here. Each row of its table
//! is a ratio of what was measured in the same rounds; docs/reference/speed.md says what the rows
//! are.

mod cores;
mod loading;
mod lookups;
mod reloads;
mod tables;
mod target;

use std::path::PathBuf;

use clap::ValueEnum;
use skipstep_classifier::sample;

use crate::family::Family;
use crate::paper::series::{costs, series, talk};
use crate::paper::states::{DRAWN, Limit, Room};
use crate::paper::study::{Block, Cell, Extent, Study, Work};
use crate::paper::{How, Paper, run_alone};
use crate::raw::extension::Extension;
use crate::raw::frame::Transport::{self, Tcp, Udp};
use crate::raw::load::{Engine, Load, Sizes, Vary};
use crate::results::{Finding, Run, Table};
use crate::sockets::Kind;
use crate::system::System;
use crate::topology::Topology;

/// Bytes of a frame: the shortest that Ethernet has.
const SIZE: usize = 64;

/// Rules of a system that is asked about its states.
const FEW_RULES: u32 = 20;

/// Numbers of rules, where their number is what matters.
const MANY_RULES: [u32; 3] = [20, 500, 10_000];

/// Source ports that many states have; each address has so many.
const PORTS: u32 = 4000;

/// A few states, and many: these of so many addresses.
const FEW_STATES: u32 = 1000;
const ADDRESSES: u32 = 250;
const MANY_STATES: u32 = ADDRESSES * PORTS;

/// States that are made where each packet makes one.
const NEW_STATES: u32 = 2_000_000;

/// Series.
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
    /// packets of few states
    Hit,
    /// the same on a bridge
    Bridge,
    /// packets that rules pass without a state
    Rules,
    /// requests and answers, and what iperf3 carries
    Sockets,
    /// packets of one of 1,000,000 states
    States,
    /// packets that make states
    New,
    /// packets about which a table of 1,000,000 addresses is asked
    Tables,
    /// packets that are lost while rules are replaced
    Reloads,
    /// rules and tables as they are loaded
    Loading,
    /// the rule that decides, looked up among 100,000
    Lookups,
    /// programs on two CPUs at once
    Cores,
}

/// What `fwlab speed` is told.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Measure these parts alone
    #[arg(long, value_name = "PART,...", value_delimiter = ',')]
    only: Vec<Part>,
    /// Look up rules among ClassBench's lists, too: files in this folder as ClassBench writes them,
    /// gzipped or not
    #[arg(long, value_name = "FOLDER")]
    classbench: Option<PathBuf>,
    #[command(flatten)]
    how: How,
}

/// Measures, prints the table, and writes it.
///
/// # Errors
/// It cannot be measured here, or a signal came.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let parts = match arguments.only.as_slice() {
        [] => Part::value_variants(),
        only => only,
    };
    let classbench = arguments.classbench.clone();
    run_alone(&Speed { parts: parts.to_vec(), classbench }, &arguments.how)
}

struct Speed {
    parts: Vec<Part>,
    /// Where ClassBench's lists are.
    classbench: Option<PathBuf>,
}

impl Paper for Speed {
    fn name(&self) -> &'static str {
        "speed"
    }

    fn title(&self) -> &'static str {
        "How fast skipstep is meant to be, and is"
    }

    fn source(&self) -> &'static str {
        "targets of docs/reference/speed.md; ns of a system are its own: those of a cable in the same round are taken off"
    }

    fn differences(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn measure(&self, study: &mut Study) -> anyhow::Result<()> {
        let _limit = Limit::raise(study, NEW_STATES);
        // with fewer than six no interval of a median is one of 95 %
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
    /// What a round of what is not measured packet by packet takes in a part, about, in seconds.
    fn round_of_others(&self, part: Part) -> f64 {
        let lists =
            sample::Kind::ALL.len() + self.classbench.iter().len() * lookups::CLASSBENCH.len();
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
    /// What it measures packet by packet.
    ///
    /// # Errors
    /// A list for it cannot be written.
    fn blocks(self, study: &mut Study) -> anyhow::Result<Vec<(Block, Vec<Cell>)>> {
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
                study.leave_out(&format!("{STATES}: it takes too long for --smoke"));
                Vec::new()
            }
            Part::States => [FEW_STATES, MANY_STATES].map(|count| many_states(study, count)).into(),
            Part::New => vec![new_states(study)],
            Part::Tables => vec![tables::block(study)?],
            Part::Reloads | Part::Loading | Part::Lookups | Part::Cores => Vec::new(),
        })
    }
}

/// Packets of few states that cross a bridge.
fn on_bridge(study: &mut Study) -> (Block, Vec<Cell>) {
    let systems = ["skipstep-bridge", "skipstep-bridge-xdp"];
    let (mut block, cells) = cost(study, BRIDGED, FEW_RULES, load(Family::V4), &systems);
    block.topology = Topology::Bridge;
    (block, cells)
}

/// Rules without states: few and many, and over IPv6.
fn rules(study: &mut Study) -> Vec<(Block, Vec<Cell>)> {
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

/// What sockets get through, those of other programs where they are installed.
fn all_sockets(study: &mut Study) -> Vec<(Block, Vec<Cell>)> {
    let mut blocks = Vec::new();
    for (title, kind, transport, size) in
        [(TCP_RR, Kind::Rr, Tcp, 1024), (UDP_RR, Kind::Rr, Udp, 64), (IPERF3, Kind::Iperf3, Tcp, 0)]
    {
        if kind.programs().iter().all(|program| crate::system::is_there(program)) {
            blocks.push(sockets(study, title, kind, transport, size));
        } else {
            study.leave_out(&format!("{title}: no such program: {}", kind.programs().join(", ")));
        }
    }
    blocks
}

/// Datagrams of 256 flows.
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

/// What a frame costs.
fn cost(
    study: &mut Study,
    title: &str,
    count: u32,
    load: Load,
    systems: &[&str],
) -> (Block, Vec<Cell>) {
    let cell = Cell {
        series: costs(title.to_owned(), &load, study.seconds, "rules"),
        at: Some(count.into()),
        work: Work::Cost { seconds: study.seconds },
    };
    (block(Some(load), count, study.systems(systems)), vec![cell])
}

/// What sockets get through.
fn sockets(
    study: &mut Study,
    title: &str,
    kind: Kind,
    transport: Transport,
    size: usize,
) -> (Block, Vec<Cell>) {
    // iperf3 counts in tenths of a second, and takes some to begin
    let seconds = if kind == Kind::Iperf3 { study.seconds.max(1.0) } else { study.seconds };
    let talk = talk(kind, transport, Family::V4, size, seconds);
    let cell =
        Cell { series: series(title.to_owned(), &talk, None), at: None, work: Work::Talk(talk) };
    let mut block = block(None, FEW_RULES, study.systems(&["skipstep-states"]));
    block.transport = transport;
    block.offloads = kind == Kind::Iperf3;
    (block, vec![cell])
}

/// What a frame of one of so many states costs, drawn at random.
fn many_states(study: &mut Study, states: u32) -> (Block, Vec<Cell>) {
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

/// What a frame costs that makes a state.
fn new_states(study: &mut Study) -> (Block, Vec<Cell>) {
    let mut load = load(Family::V4);
    load.sources = Vary::Random(1 << 16);
    load.source_ports = Vary::Random(60_000);
    let systems = ["nft-conntrack", "skipstep-states", "skipstep-states-xdp"];
    let (mut block, mut cells) = cost(study, NEW, 0, load, &systems);
    // all rounds together must not come to the limit
    cells[0].work = Work::Cost { seconds: study.seconds.min(0.1) };
    block.systems = with_room(block.systems, NEW_STATES);
    (block, cells)
}

fn with_room(systems: Vec<Box<dyn System>>, states: u32) -> Vec<Box<dyn System>> {
    let room = |inner| -> Box<dyn System> { Box::new(Room { inner, connections: states }) };
    systems.into_iter().map(room).collect()
}
