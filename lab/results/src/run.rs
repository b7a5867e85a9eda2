//! The result of a measurement, with all that is needed to judge and to repeat it.
//!
//! docs/reference/fwlab.schema.json is generated from these types and their comments. Fields may be
//! added. Fields of version 1 keep their meaning.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{Environment, Latency};

/// Version of the file format that this program writes, and the newest that it reads.
pub const SCHEMA_VERSION: u32 = 1;

/// A run of the laboratory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Version of the file format.
    pub schema: u32,
    /// Version of the program that wrote the file.
    pub fwlab: String,
    /// The command of the run, word by word.
    pub command: Vec<String>,
    /// Start time: RFC 3339, UTC.
    pub started: String,
    /// Duration of the run in seconds.
    pub seconds: f64,
    /// True if all planned measurements were made.
    pub complete: bool,
    /// The reason for which the run is incomplete.
    pub incomplete_because: Option<String>,
    /// The machine on which the figures were measured.
    pub environment: Environment,
    /// The machines at the ends of the experiment, if they were others than that of `environment`.
    #[serde(default)]
    pub agents: Vec<Agent>,
    /// The mode: it determines the meaning of the figures.
    pub mode: Mode,
    /// The networks of the measurements.
    pub topologies: Vec<Topology>,
    /// The measured systems, each with its exact configuration.
    pub systems: Vec<System>,
    /// The measurements.
    pub series: Vec<Series>,
    /// Claims, and whether the run confirms them.
    pub findings: Vec<Finding>,
    /// The paper whose experiment the run repeats.
    #[serde(default)]
    pub paper: Option<Paper>,
}

/// An end of the experiment on a machine of its own, with the same version of the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Agent {
    /// `client` or `server`.
    pub end: String,
    /// The machine.
    pub environment: Environment,
}

/// A paper whose experiment the run repeats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Paper {
    /// Title of the paper.
    pub title: String,
    /// Authors and place of publication.
    pub source: String,
    /// Deviations from the paper's experiment, and omitted parts.
    pub differences: Vec<String>,
    /// The paper's tables, with the measured figures beside the published ones.
    pub tables: Vec<Table>,
}

/// A table of text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Table {
    /// Contents and unit of the table.
    pub title: String,
    /// Headings of all columns. The first columns name a row.
    pub columns: Vec<String>,
    /// Number of columns that name a row.
    pub names: usize,
    /// Rows, with a cell for each column.
    pub rows: Vec<Vec<String>>,
}

/// The distribution of generator, firewall and sink over the machine.
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
    /// Returns the name in result files.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Cost => "cost",
            Mode::Queue => "queue",
            Mode::Wire => "wire",
        }
    }

    /// Returns the caveat that reports print with every figure of this mode.
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
    /// Name: `direct`, `router`, `bridge`, …
    pub name: String,
    /// Hosts and links in words.
    pub description: String,
    /// MTU of the links in bytes.
    pub mtu: u32,
    /// Families of the hosts' addresses: `inet`, `inet6`.
    pub families: Vec<String>,
    /// Offloads of the links, by ethtool's names, and true for those that are on.
    pub offloads: std::collections::BTreeMap<String, bool>,
}

/// The role of a system in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// No system between the hosts: measures the cost of the laboratory itself.
    Null,
    /// A router without a filter.
    Router,
    /// A bridge without a filter.
    Bridge,
    /// A repetition of another system: shows the noise between equal systems.
    Placebo,
    /// The system under test.
    Subject,
}

/// A system in one exact configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct System {
    /// Id of the system in samples, unique in the run.
    pub id: String,
    /// Name in tables and plots. The same system with other numbers of rules has the same name, and
    /// is one line of a plot.
    pub label: String,
    /// Role in the run.
    pub role: Role,
    /// For a placebo: id of the repeated system.
    pub repeats: Option<String>,
    /// Name of the topology in which the system was measured.
    pub topology: String,
    /// Number of rules.
    pub rules: Option<u64>,
    /// Hooks that a packet crosses from one host to the other, in order.
    pub hooks: Vec<String>,
    /// Complete configuration, as the system's own program reads it.
    pub configuration: String,
    /// SHA-256 of the configuration, hexadecimal.
    pub sha256: String,
}

impl System {
    /// Makes a system of `role` with its configuration. The other fields are empty.
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

/// Returns the SHA-256 of a text, hexadecimal.
pub fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Measurements of one quantity under one load, with a point for each value of a dimension.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Title for headings.
    pub title: String,
    /// The load.
    pub load: Load,
    /// Name and unit of the values.
    pub quantity: Quantity,
    /// The dimension of the points, if there are several.
    pub dimension: Option<Dimension>,
    /// The points, in ascending order.
    pub points: Vec<Point>,
}

/// The load that the hosts make.
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
    /// Frames or requests a second, as ordered. None for full speed.
    pub rate: Option<f64>,
    /// Number of different flows.
    pub flows: Option<u64>,
    /// Number of simultaneous clients or connections.
    pub parallel: Option<u64>,
    /// Length of a trial in seconds.
    pub seconds: f64,
    /// All other parameters that a repetition needs.
    pub details: String,
}

/// Name, unit and direction of values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quantity {
    /// Name, for example `time per packet`.
    pub name: String,
    /// Unit, for example `ns`.
    pub unit: String,
    /// The better direction.
    pub better: Better,
    /// True if the null firewall's value of the same round may be subtracted, so that the system's
    /// own share remains. True for times, false for rates.
    pub additive: bool,
}

/// The better direction of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Lower is better: times, losses.
    Lower,
    /// Higher is better: rates.
    Higher,
}

/// The dimension in which points differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Dimension {
    /// `rules`, `rate`, `size`, `states`, …
    pub name: String,
    /// Unit, or empty.
    pub unit: String,
}

/// Samples that may be compared with each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Value of the dimension.
    pub at: Option<f64>,
    /// Highest rate of the generator without a receiver, in frames a second.
    pub ceiling: Option<f64>,
    /// The reason for which these samples are void. None if they are valid.
    pub void: Option<String>,
    /// All samples, in the order of measurement.
    pub samples: Vec<Sample>,
}

/// A measured value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Number of the round. A system has one sample in each round, or none in the interrupted one.
    pub round: u32,
    /// Position in the random order of the round, from zero.
    pub position: u32,
    /// Id of the system.
    pub system: String,
    /// The value, in the unit of the series.
    pub value: f64,
    /// Disturbed trials before this one.
    pub repeats: Vec<Repeat>,
    /// The reason to doubt this value: the trial was disturbed, and no more repeats were allowed.
    pub doubtful: Option<String>,
    /// Number of frames sent, received, lost and so on.
    pub counts: Option<Counts>,
    /// Latencies of the frames.
    pub latency: Option<Latency>,
}

impl Sample {
    /// Makes a sample with a value and no other data.
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

/// A disturbed trial that was repeated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Repeat {
    /// The measured value.
    pub value: f64,
    /// The disturbance.
    pub why: String,
}

/// Counts of the frames of a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Sent.
    pub sent: u64,
    /// Received for the first time.
    pub received: u64,
    /// Received again.
    pub duplicated: u64,
    /// Received after a frame that was sent later.
    pub reordered: u64,
    /// Sent late, because the generator was behind its pace.
    pub late: u64,
    /// Not sent, because the generator was too far behind its pace.
    pub skipped: u64,
    /// CPU cycles of all programs on the firewall's CPU during the trial. None if not counted.
    #[serde(default)]
    pub cycles: Option<u64>,
}

impl Counts {
    /// Adds the counts of two trials.
    pub fn and(self, other: Counts) -> Counts {
        Counts {
            sent: self.sent + other.sent,
            received: self.received + other.received,
            duplicated: self.duplicated + other.duplicated,
            reordered: self.reordered + other.reordered,
            late: self.late + other.late,
            skipped: self.skipped + other.skipped,
            // the sum is unknown if one trial has no cycles
            cycles: self.cycles.zip(other.cycles).map(|(one, more)| one + more),
        }
    }

    /// Returns the CPU cycles for each sent frame. None if not counted.
    pub fn cycles_a_frame(&self) -> Option<f64> {
        self.cycles.filter(|_| self.sent > 0).map(|cycles| cycles as f64 / self.sent as f64)
    }
}

/// A claim, and whether the run confirms it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The claim.
    pub claim: String,
    /// Author of the claim, with the figures of the source.
    pub source: String,
    /// The verdict of this run.
    pub verdict: Verdict,
    /// The figures for the verdict.
    pub evidence: String,
}

/// A verdict on a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The claim holds.
    Holds,
    /// The claim does not hold.
    Fails,
    /// The confidence interval is too wide for a verdict.
    Undecided,
}

impl Verdict {
    /// Returns the verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Holds => "holds here",
            Verdict::Fails => "does not hold here",
            Verdict::Undecided => "undecided: within the noise",
        }
    }
}
