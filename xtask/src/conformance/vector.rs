//! A conformance vector as it is stored in the files: the recorded behaviour of OpenBSD 7.8's pf
//! for a rule set and a sequence of packets. README.md beside the vectors explains the fields.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;
use skipstep_scenario::look::unhex;
use skipstep_wire::checksum;

/// A rule set with its packets and their results.
#[derive(Debug, Deserialize)]
pub struct Vector {
    pub id: String,
    pub rules: String,
    pub packets: Vec<Packet>,
    pub counters: Vec<RuleCounters>,
    pub status: Status,
    /// The two keys of SYN cookies, of which the second is in use; empty without cookies.
    #[serde(default)]
    pub syncookie_keys: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub struct Packet {
    /// Seconds since the start.
    pub t: u32,
    pub dir: String,
    pub ifname: String,
    /// The bytes from the IP header on, in hexadecimal.
    pub packet: String,
    /// True if the previous packet goes on to another interface.
    #[serde(default)]
    pub cont: bool,
    /// The reason why a system would have dropped the packet before pf.
    pub pre: Option<String>,
    /// The recorded result; empty in files about other things.
    #[serde(default)]
    pub result: PacketResult,
}

impl Packet {
    /// Returns the bytes as pf gets them, with a correct checksum in the header. OpenBSD's input
    /// routine drops a packet with a wrong checksum, and so does skipstep. Returns `None` if the
    /// field is not hexadecimal.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let mut bytes = unhex(&self.packet)?;
        if self.dir == "in" {
            checksum::fix_ipv4_header(&mut bytes);
        }
        Some(bytes)
    }
}

/// The result of a packet. `rule` is -1 for the default rule, and absent if no rule was evaluated.
#[derive(Debug, Default, Deserialize)]
pub struct PacketResult {
    pub verdict: String,
    pub rule: Option<i64>,
    /// Path of the anchor that the rule is in; empty for the main rule set.
    #[serde(default)]
    pub anchor: String,
    pub anchor_rule: Option<i64>,
    pub reason: Option<String>,
    #[serde(default)]
    pub counted: BTreeMap<String, usize>,
    pub state: Option<u32>,
    pub out: Option<String>,
    pub tag: Option<String>,
    pub prio: Option<u8>,
    pub rtable: Option<u32>,
    #[serde(default)]
    pub emitted: Vec<Emitted>,
    #[serde(default)]
    pub log: Vec<LogRecord>,
    #[serde(default)]
    pub states: Vec<State>,
    #[serde(default)]
    pub rng: Vec<Drawn>,
    #[serde(default)]
    pub expired: Vec<u32>,
    #[serde(default)]
    pub removed: Vec<u32>,
    /// Other passes through pf while it processed this packet.
    #[serde(default)]
    pub nested: Vec<Nested>,
    pub nstates: u64,
    #[serde(default)]
    pub src_nodes: u64,
}

/// The decision of another pass through pf.
#[derive(Debug, Default, Deserialize)]
pub struct Nested {
    pub rule: Option<i64>,
    #[serde(default)]
    pub anchor: String,
    pub anchor_rule: Option<i64>,
    pub reason: Option<String>,
}

/// A random number that was drawn: `["r", number]`, or `["u", bound, number]`.
#[derive(Debug, Deserialize)]
pub struct Drawn(Vec<serde_json::Value>);

impl Drawn {
    /// Returns the number if it has 32 bits without a bound.
    pub fn number(&self) -> Option<u32> {
        match &self.0[..] {
            [_, number] => number.as_u64().and_then(|number| u32::try_from(number).ok()),
            _ => None,
        }
    }
}

#[derive(Debug, Deserialize)]
pub struct Emitted {
    pub kind: String,
    pub packet: String,
    /// The interface and next hop of a routed packet.
    pub ifname: Option<String>,
    pub nexthop: Option<std::net::IpAddr>,
}

#[derive(Debug, Deserialize)]
pub struct LogRecord {
    pub rule: i64,
    pub anchor_rule: i64,
    pub reason: String,
    pub action: String,
}

#[derive(Debug, Deserialize)]
pub struct State {
    pub id: u32,
    pub proto: u8,
    pub dir: String,
    #[serde(rename = "if")]
    pub interface: String,
    pub rule: i64,
    pub anchor_rule: i64,
    pub wire: (std::net::IpAddr, u16, std::net::IpAddr, u16),
    pub stack: (std::net::IpAddr, u16, std::net::IpAddr, u16),
    pub src: Peer,
    pub dst: Peer,
    pub timeout: String,
    /// Time of expiry in seconds since the start; negative if the state has ended and waits for
    /// removal.
    pub expires_at: i64,
    pub packets: [u64; 2],
    pub bytes: [u64; 2],
    pub flags: u16,
    #[serde(default)]
    pub min_ttl: u8,
    #[serde(default)]
    pub max_mss: u16,
    pub tag: Option<String>,
    /// OpenBSD's number of `route-to` and similar options; 0 is none.
    #[serde(default)]
    pub rt: u8,
    pub src_scrub: Option<Scrub>,
    pub dst_scrub: Option<Scrub>,
}

/// The data that `reassemble tcp` keeps for a peer.
#[derive(Debug, Deserialize)]
pub struct Scrub {
    pub ts_mod: u32,
}

#[derive(Debug, Deserialize)]
pub struct Peer {
    pub state: u8,
    pub seqlo: u32,
    pub seqhi: u32,
    pub seqdiff: u32,
    pub max_win: u16,
    pub wscale: u8,
}

#[derive(Debug, Deserialize)]
pub struct RuleCounters {
    /// Path of the anchor that the rule is in; empty for the main rule set.
    #[serde(default)]
    pub anchor: String,
    pub nr: u32,
    pub evaluations: u64,
    pub packets: [u64; 2],
    pub bytes: [u64; 2],
    pub states_created: u64,
}

#[derive(Debug, Deserialize)]
pub struct Status {
    pub searches: u64,
    pub inserts: u64,
    pub removals: u64,
    pub reasons: BTreeMap<String, u64>,
}

/// Reads the lines of a vector file, one vector each.
///
/// # Errors
/// Fails if the file cannot be opened or decompressed.
pub fn lines(path: &Path) -> anyhow::Result<Vec<String>> {
    let file = std::fs::File::open(path).with_context(|| format!("open {}", path.display()))?;
    let lines = BufReader::new(flate2::read::GzDecoder::new(file)).lines();
    lines.collect::<Result<_, _>>().with_context(|| format!("read {}", path.display()))
}
