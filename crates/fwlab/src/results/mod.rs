//! What a measurement is written down as: everything that is needed to judge it, and to repeat it.
//!
//! docs/fwlab.schema.json is made of these types and their comments. Fields may be added; what a
//! reader of version 1 relies on stays.

mod environment;
#[cfg(test)]
pub(crate) mod example;
mod file;
mod latency;
mod layout;
mod schema;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use environment::{Cpu, Environment, Watch};
pub use file::{ReadError, now};
pub use latency::{Bucket, Latency};
pub use schema::schema;

/// Version of the files' format that this program writes, and the newest that it reads.
pub const SCHEMA_VERSION: u32 = 1;

/// One run of the laboratory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Version of this format.
    pub schema: u32,
    /// Version of the program that wrote it.
    pub fwlab: String,
    /// The command that was run, word by word.
    pub command: Vec<String>,
    /// When it began: RFC 3339, UTC.
    pub started: String,
    /// How long it took.
    pub seconds: f64,
    /// Whether everything that was to be measured was.
    pub complete: bool,
    /// Why it is not complete.
    pub incomplete_because: Option<String>,
    /// Which kind of machine its figures are true for.
    pub environment: Environment,
    /// The ends of the experiment, where they were other machines than the one above.
    #[serde(default)]
    pub agents: Vec<Agent>,
    /// How the parts of the experiment share the machine, and so what its figures mean.
    pub mode: Mode,
    /// The networks that were measured in.
    pub topologies: Vec<Topology>,
    /// What was measured, each with its exact configuration.
    pub systems: Vec<System>,
    /// The measurements.
    pub series: Vec<Series>,
    /// What was to be shown, and whether it was.
    pub findings: Vec<Finding>,
    /// The paper whose experiment was repeated, if one was.
    #[serde(default)]
    pub paper: Option<Paper>,
}

/// An end of an experiment on a machine of its own, with the same version of the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Agent {
    /// `client` or `server`.
    pub end: String,
    /// Its machine.
    pub environment: Environment,
}

/// A paper whose experiment was repeated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Paper {
    /// Its title.
    pub title: String,
    /// Who wrote it, and where it was published.
    pub source: String,
    /// What was done otherwise than in the paper, and what was left out.
    pub differences: Vec<String>,
    /// Its own tables, with the figures of today beside its own.
    pub tables: Vec<Table>,
}

/// A table of text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Table {
    /// What it shows, and in which unit.
    pub title: String,
    /// Headings; the first columns name a row.
    pub columns: Vec<String>,
    /// How many columns name a row.
    pub names: usize,
    /// A cell for each column.
    pub rows: Vec<Vec<String>>,
}

/// How generator, firewall and sink share the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// All on one CPU, one packet after the other.
    Cost,
    /// The firewall on a CPU of its own, with a queue before it that may overflow.
    Queue,
    /// Real network cards.
    Wire,
}

impl Mode {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Cost => "cost",
            Mode::Queue => "queue",
            Mode::Wire => "wire",
        }
    }

    /// What must stand beside every figure of this mode.
    pub fn warning(self) -> &'static str {
        match self {
            Mode::Cost => "run to completion on one CPU, no queueing; not RFC 2544 throughput",
            Mode::Queue => "virtual link; not RFC 2544 throughput of a device",
            Mode::Wire => "real network cards",
        }
    }
}

/// A network with a place for the system under test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Topology {
    /// Its name: `direct`, `router`, `bridge`, …
    pub name: String,
    /// Its hosts and links in words.
    pub description: String,
    /// Largest packet of its links.
    pub mtu: u32,
    /// Whether the hosts talk over IPv4, IPv6 or both: `inet`, `inet6`.
    pub families: Vec<String>,
    /// Offloads of the links and whether they are on, as ethtool names them.
    pub offloads: std::collections::BTreeMap<String, bool>,
}

/// What a system is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Nothing stands between the hosts: what the laboratory itself costs.
    Null,
    /// Forwards without a filter.
    Router,
    /// Bridges without a filter.
    Bridge,
    /// The same as another system once more: how far apart equal things come out.
    Placebo,
    /// To be judged.
    Subject,
}

/// A system under test in one exact configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct System {
    /// What samples call it; no other system of the run has it.
    pub id: String,
    /// Its name in tables and plots. One that is measured with several numbers of rules has the
    /// same name each time, and is one line of a plot.
    pub label: String,
    /// What it is there for.
    pub role: Role,
    /// For a placebo: the id of the system that it repeats.
    pub repeats: Option<String>,
    /// Name of the topology it was measured in.
    pub topology: String,
    /// Number of rules.
    pub rules: Option<u64>,
    /// Hooks that a packet crosses from one host to the other, in order.
    pub hooks: Vec<String>,
    /// Its whole configuration, as its own program reads it.
    pub configuration: String,
    /// SHA-256 of the configuration, hexadecimal.
    pub sha256: String,
}

impl System {
    /// A system of `role` with its configuration; the other fields are empty.
    pub fn new(id: &str, label: &str, role: Role, topology: &str, configuration: String) -> System {
        System {
            id: id.to_string(),
            label: label.to_string(),
            role,
            repeats: None,
            topology: topology.to_string(),
            rules: None,
            hooks: Vec::new(),
            sha256: sha256(&configuration),
            configuration,
        }
    }
}

/// SHA-256 of a text, hexadecimal.
pub fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Measurements of one quantity under one load, perhaps at several values of something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// What is measured, for headings.
    pub title: String,
    /// What the hosts did.
    pub load: Load,
    /// What the values are.
    pub quantity: Quantity,
    /// What differs from point to point, if there are several.
    pub dimension: Option<Dimension>,
    /// The points, ascending.
    pub points: Vec<Point>,
}

/// What the hosts did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    /// `raw`, `rr`, `crr`, `stream`, `ping`, `ftp`, `http`, …
    pub kind: String,
    /// `tcp` or `udp`.
    pub protocol: Option<String>,
    /// `inet` or `inet6`.
    pub family: Option<String>,
    /// Bytes: of a frame with its checksum for `raw`, of the payload otherwise.
    pub size: Option<u64>,
    /// Frames or requests a second that were asked for; none is as fast as it goes.
    pub rate: Option<f64>,
    /// How many different flows.
    pub flows: Option<u64>,
    /// How many at once.
    pub parallel: Option<u64>,
    /// Seconds of a trial.
    pub seconds: f64,
    /// Anything else that must be the same to repeat it.
    pub details: String,
}

/// What values are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quantity {
    /// For example `time per packet`.
    pub name: String,
    /// For example `ns`.
    pub unit: String,
    /// Which way is better.
    pub better: Better,
    /// Whether the null firewall's value of the same round may be taken off, so that what is left
    /// is the system's own share. True of times, not of rates.
    pub additive: bool,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Times, losses.
    Lower,
    /// Rates.
    Higher,
}

/// What differs from point to point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Dimension {
    /// `rules`, `rate`, `size`, `states`, …
    pub name: String,
    /// Its unit, or empty.
    pub unit: String,
}

/// Samples that may be compared with each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Value of the dimension.
    pub at: Option<f64>,
    /// The most that the generator gives with nobody receiving, in frames a second.
    pub ceiling: Option<f64>,
    /// Why these samples say nothing, if they do not.
    pub void: Option<String>,
    /// Every sample, in the order they were taken.
    pub samples: Vec<Sample>,
}

/// One measured value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Which round: each system has one sample in it, or none if the run was interrupted.
    pub round: u32,
    /// Place in the round, from zero; the order is drawn anew for each.
    pub position: u32,
    /// Id of the system.
    pub system: String,
    /// The value.
    pub value: f64,
    /// Trials before this one that were not believed.
    pub repeats: Vec<Repeat>,
    /// Why this one is not to be believed either: it was repeated often enough.
    pub doubtful: Option<String>,
    /// What became of the frames.
    pub counts: Option<Counts>,
    /// How long they took.
    pub latency: Option<Latency>,
}

impl Sample {
    /// A value without anything else.
    pub fn new(round: u32, position: u32, system: &str, value: f64) -> Sample {
        Sample {
            round,
            position,
            system: system.to_string(),
            value,
            repeats: Vec::new(),
            doubtful: None,
            counts: None,
            latency: None,
        }
    }
}

/// A trial that was repeated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Repeat {
    /// Its value.
    pub value: f64,
    /// Why it was not believed.
    pub why: String,
}

/// What became of the frames of a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Sent.
    pub sent: u64,
    /// Received for the first time.
    pub received: u64,
    /// Received again.
    pub duplicated: u64,
    /// Received after one that was sent later.
    pub reordered: u64,
    /// Sent, but not in time, as the generator was late.
    pub late: u64,
    /// Not sent at all, as the generator was too late.
    pub skipped: u64,
    /// Cycles that the firewall's CPU had meanwhile, for all that runs there, if it counts them.
    #[serde(default)]
    pub cycles: Option<u64>,
}

impl Counts {
    /// Those of two trials together.
    pub fn and(self, other: Counts) -> Counts {
        Counts {
            sent: self.sent + other.sent,
            received: self.received + other.received,
            duplicated: self.duplicated + other.duplicated,
            reordered: self.reordered + other.reordered,
            late: self.late + other.late,
            skipped: self.skipped + other.skipped,
            // those of some trials are not those of all
            cycles: self.cycles.zip(other.cycles).map(|(one, more)| one + more),
        }
    }

    /// Cycles for each frame that was sent.
    pub fn cycles_a_frame(&self) -> Option<f64> {
        self.cycles.filter(|_| self.sent > 0).map(|cycles| cycles as f64 / self.sent as f64)
    }
}

/// Something that was to be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// What was claimed.
    pub claim: String,
    /// Whose claim, with its figures.
    pub source: String,
    /// Whether it is so here.
    pub verdict: Verdict,
    /// The figures that say so.
    pub evidence: String,
}

/// Whether a claim holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It does.
    Holds,
    /// It does not.
    Fails,
    /// The interval is too wide to say.
    Undecided,
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Holds => "holds here",
            Verdict::Fails => "does not hold here",
            Verdict::Undecided => "cannot be told from noise here",
        }
    }
}
