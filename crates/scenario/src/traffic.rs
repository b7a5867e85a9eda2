//! `check interface em0 …`, `check table t …`: packets and bytes counted for an interface, a table
//! or a table entry. Counters have the names that pfctl prints.

use std::fmt;

use ipnet::IpNet;
use skipstep_model::TableTraffic;
use skipstep_ruleset::TableName;
use skipstep_views::InterfaceCounters;

use crate::differences::Differences;
use crate::engine::Engine;
use crate::line::{Line, Parsed, pair};
use crate::write;

const OF_INTERFACE: [&str; 8] = [
    "In4/Pass",
    "In4/Block",
    "Out4/Pass",
    "Out4/Block",
    "In6/Pass",
    "In6/Block",
    "Out6/Pass",
    "Out6/Block",
];
const OF_TABLE: [&str; 8] = [
    "In/Block",
    "In/Match",
    "In/Pass",
    "In/XPass",
    "Out/Block",
    "Out/Match",
    "Out/Pass",
    "Out/XPass",
];

/// The object that has the counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Counting {
    /// The interface of this name.
    Interface(String),
    /// A table of the main rule set.
    Table(String),
    /// An entry of a table with `counters`.
    Entry(String, IpNet),
}

/// Expected packets and bytes of some counters of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrafficCheck {
    /// The object with the counters.
    pub of: Counting,
    /// Name of the counter, with packets and bytes. Counters not listed are not compared.
    pub counters: Vec<(&'static str, [u64; 2])>,
}

impl TrafficCheck {
    /// Returns a check of all counters that the evaluator has for the object.
    pub fn complete(of: Counting, engine: &mut dyn Engine) -> Self {
        let counters = found(&of, engine);
        TrafficCheck { of, counters }
    }

    pub(crate) fn compare(&self, engine: &mut dyn Engine, differences: &mut Differences) {
        let found = found(&self.of, engine);
        for (name, expected) in &self.counters {
            let count = found.iter().find(|(found, _)| found == name).map(|(_, count)| *count);
            let expected = Some(write::pair(*expected));
            differences.compare(name, &expected, write::pair(count.unwrap_or_default()));
        }
    }

    /// Reads the words behind `interface`.
    pub(crate) fn parse_interface(line: &mut Line) -> Parsed<Self> {
        let of = Counting::Interface(line.word("a name")?.text.clone());
        Self::parse(of, line)
    }

    /// Reads the words behind `table`.
    pub(crate) fn parse_table(line: &mut Line) -> Parsed<Self> {
        let name = line.word("a name")?.text.clone();
        Self::parse(Counting::Table(name), line)
    }

    fn parse(of: Counting, line: &mut Line) -> Parsed<Self> {
        let mut check = TrafficCheck { of, counters: Vec::new() };
        while let Some(word) = line.next() {
            let known = names(&check.of).iter().find(|name| **name == word.text);
            match (word.text.as_str(), &check.of, known) {
                (",", _, _) => {}
                ("entry", Counting::Table(name), _) => {
                    let net = line.value("a network", |text| text.parse().ok())?;
                    check.of = Counting::Entry(name.clone(), net);
                }
                (_, _, Some(name)) => {
                    check.counters.push((name, line.value("packets and bytes as 1:40", pair)?));
                }
                (other, ..) => {
                    return Err(word.fault(format!("`{other}` is not one of its counters")));
                }
            }
        }
        Ok(check)
    }
}

fn names(of: &Counting) -> &'static [&'static str; 8] {
    match of {
        Counting::Interface(_) => &OF_INTERFACE,
        Counting::Table(_) | Counting::Entry(..) => &OF_TABLE,
    }
}

fn found(of: &Counting, engine: &mut dyn Engine) -> Vec<(&'static str, [u64; 2])> {
    let (packets, bytes): (Vec<u64>, Vec<u64>) = match of {
        Counting::Interface(name) => {
            let InterfaceCounters { packets, bytes } = engine.interface_counters(name);
            let flat = |counts: [[[u64; 2]; 2]; 2]| counts.as_flattened().as_flattened().to_vec();
            (flat(packets), flat(bytes))
        }
        Counting::Table(name) => {
            flat_traffic(engine.table_counters(&TableName::new("", name)).traffic)
        }
        Counting::Entry(name, net) => {
            let entries = engine.table_counters(&TableName::new("", name)).entries;
            flat_traffic(entries.get(net).copied().unwrap_or_default())
        }
    };
    let counts = packets.into_iter().zip(bytes).map(|(packets, bytes)| [packets, bytes]);
    names(of).iter().copied().zip(counts).collect()
}

fn flat_traffic(traffic: TableTraffic) -> (Vec<u64>, Vec<u64>) {
    (traffic.packets.as_flattened().to_vec(), traffic.bytes.as_flattened().to_vec())
}

impl fmt::Display for TrafficCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.of {
            Counting::Interface(name) => write!(f, "interface {name}")?,
            Counting::Table(name) => write!(f, "table {name}")?,
            Counting::Entry(name, net) => write!(f, "table {name} entry {net}")?,
        }
        let mut counters = self.counters.iter();
        counters.try_for_each(|(name, count)| write::word(f, name, Some(write::pair(*count))))
    }
}
