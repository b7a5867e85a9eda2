//! What userland remembers of an instance between its processes: names with their numbers, and
//! for each generation the rules as they were written and the slots they got.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use skipstep_abi::table::TABLE_INDEXED;
use skipstep_classifier::{Names, Planner};
use skipstep_ruleset::{RuleId, Ruleset, TableEntry, TableName};

use crate::gone::GoneRule;
use crate::netns::Netns;
use crate::standing::InForce;
use crate::table_index::Indexing;
use crate::{bridge, routing};

/// What outlives rule sets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Numbers of interfaces, groups and tags.
    pub names: Names,
    /// Version that no table ever had; 0 means 1.
    pub next_table_version: u32,
    /// One more than the highest rule slot ever used.
    pub slots_used: u32,
    /// `set debug`, as pfctl -x changed it.
    pub debug: u8,
    /// The network namespace that the instance filters.
    pub namespace: Netns,
    /// The PID namespace that the instance was made in, by its inode.
    #[serde(default)]
    pub processes: u64,
    /// Who we are to others, unless `set hostid` says something else; drawn when the instance was
    /// made.
    pub hostid: u32,
    /// Seconds since 1970 when the instance was made.
    pub created_at: u64,
    /// What trees search; only tests want more than others.
    #[serde(skip)]
    pub planner: Planner,
    /// Which tables have an index.
    #[serde(skip)]
    pub indexing: Indexing,
    /// Where the rule sets are in the kernel.
    #[serde(default)]
    pub in_force: InForce,
    /// Seconds since 1970 when the counters of an interface were cleared, if ever.
    pub interfaces_zeroed: BTreeMap<String, u64>,
    /// Interfaces that `set xdp on` names and whose drivers do not run XDP: why not.
    #[serde(default)]
    pub without_xdp: BTreeMap<String, String>,
    /// Interfaces that could not be attached: why not.
    #[serde(default)]
    pub unattached: BTreeMap<String, String>,
    /// Ports of bridges.
    #[serde(default)]
    pub ports: bridge::Ports,
    /// What rules that route had loopback do.
    pub loopback: routing::Lent,
    /// True if rules with `af-to` had loopback take packets with a source of this host's.
    #[serde(default)]
    pub loopback_accepts: bool,
    /// True from `pfctl -F osfp` to the next load of the main rule set.
    #[serde(default)]
    pub fingerprints_flushed: bool,
}

/// A rule set in the kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its generation.
    pub generation: u32,
    /// Rules, settings and tables as they were loaded, with all anchors.
    pub ruleset: Ruleset,
    /// The rules of each rule set by the path of its anchor; the main rule set has the empty one.
    pub rule_sets: BTreeMap<String, RuleSetRecord>,
    /// Tables and dynamic addresses by name.
    pub tables: BTreeMap<TableName, TableRecord>,
    /// The host's own addresses.
    pub own_addresses: Option<TableRecord>,
    /// Rules that are gone, by their slots, as long as they may have states.
    pub gone: BTreeMap<u32, GoneRule>,
    /// Names in the rules that were taken for groups.
    pub groups: BTreeSet<String>,
}

/// The rules of one anchor, or of the main rule set, in the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleSetRecord {
    /// Slot of each filter rule.
    pub slots: Vec<u32>,
    /// Slot of each old rule.
    pub old_slots: Vec<u32>,
    /// Who loaded them, and when.
    pub load: Load,
}

impl RuleSetRecord {
    /// Slots of filter rules and old ones.
    pub fn all_slots(&self) -> impl Iterator<Item = u32> {
        self.slots.iter().chain(&self.old_slots).copied()
    }
}

/// Slots of rules, for the question whether one is among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotSet(Vec<bool>);

impl SlotSet {
    /// Whether a slot is among them.
    pub fn contains(&self, slot: u32) -> bool {
        self.0.get(slot as usize).is_some_and(|is_in| *is_in)
    }
}

impl FromIterator<u32> for SlotSet {
    fn from_iter<T: IntoIterator<Item = u32>>(slots: T) -> Self {
        let mut set = Vec::new();
        for slot in slots.into_iter().map(|slot| slot as usize) {
            if slot >= set.len() {
                set.resize(slot + 1, false);
            }
            set[slot] = true;
        }
        SlotSet(set)
    }
}

/// Who loaded rules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Seconds since 1970.
    pub at: u64,
    /// The user.
    pub uid: u32,
    /// The process.
    pub pid: u32,
}

impl Load {
    /// By this process, now.
    pub fn now() -> Self {
        Load { at: wall_clock(), uid: nix::unistd::getuid().as_raw(), pid: std::process::id() }
    }
}

impl Record {
    /// Slots of all rules in force.
    pub fn slots(&self) -> impl Iterator<Item = u32> {
        self.rule_sets.values().flat_map(RuleSetRecord::all_slots)
    }

    /// Slots of the rules with this label, be those gone or not.
    pub fn labelled(&self, label: &str) -> BTreeSet<u32> {
        let has_label = |labels: &[String]| labels.iter().any(|other| other == label);
        let in_force = self.rule_sets.iter().flat_map(|(path, set)| {
            let filter = self.ruleset.rules_of(path).iter().zip(&set.slots);
            let old = self.ruleset.old_rules_of(path).iter().map(|old| &old.rule);
            filter.chain(old.zip(&set.old_slots))
        });
        let in_force = in_force.filter(|(rule, _)| has_label(&rule.labels)).map(|(_, slot)| *slot);
        let gone = self.gone.iter().filter(|(_, rule)| has_label(&rule.labels));
        in_force.chain(gone.map(|(slot, _)| *slot)).collect()
    }

    /// The slot of a rule, if there is such a one.
    pub fn slot_of(&self, rule: &RuleId) -> Option<u32> {
        let set = self.rule_sets.get(&rule.anchor)?;
        if rule.old.is_none() {
            return set.slots.get(rule.number as usize).copied();
        }
        let mut old = self.ruleset.old_rules_of(&rule.anchor).iter().zip(&set.old_slots);
        old.find(|(old, _)| old.id(&rule.anchor) == *rule).map(|(_, slot)| *slot)
    }

    /// The rule in a slot, if one is.
    pub fn rule_in(&self, slot: u32) -> Option<RuleId> {
        self.rule_sets.iter().find_map(|(anchor, set)| {
            let is_meant = |other: &u32| *other == slot;
            if let Some(number) = set.slots.iter().position(is_meant) {
                return Some(RuleId::new(anchor, number as u32));
            }
            let place = set.old_slots.iter().position(is_meant)?;
            Some(self.ruleset.old_rules_of(anchor).get(place)?.id(anchor))
        })
    }

    /// Everything in the kernel that has contents as a table has.
    pub fn all_tables_mut(&mut self) -> impl Iterator<Item = &mut TableRecord> {
        self.tables.values_mut().chain(&mut self.own_addresses)
    }
}

/// The slot that rules of an anchor look into for a table: the anchor's own if it exists, else that
/// of the main rule set.
pub fn slot_seen(tables: &BTreeMap<TableName, TableRecord>, name: &TableName) -> Option<u32> {
    let own = tables.get(name).filter(|table| table.active);
    let main = || tables.get(&TableName::from(name.name.as_str()));
    own.or_else(main).map(|table| table.slot)
}

/// A table in the kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TableRecord {
    /// Its slot.
    pub slot: u32,
    /// The slot where its packets are counted: its first one.
    pub stats: u32,
    /// `persist`
    pub persist: bool,
    /// `const`
    pub constant: bool,
    /// `counters`
    pub counters: bool,
    /// Made from interface addresses.
    pub dynamic: bool,
    /// Pools choose from it.
    pub pooled: bool,
    /// The data plane adds to it, for rules with `overload`.
    pub filled: bool,
    /// Defined by a statement or made by hand; otherwise rules only name it.
    pub active: bool,
    /// Its contents, if nobody changed them since they were loaded.
    pub contents: Option<Vec<TableEntry>>,
    /// What stands of it in the trees of rules: networks with all of its entries in them. Beyond
    /// these none may be added until trees are planted without it.
    pub spread: Option<Vec<IpNet>>,
    /// Seconds since 1970 when its counters were last cleared.
    pub zeroed_at: u64,
}

impl TableRecord {
    /// The slots that are its own: where its contents are, and where its packets are counted.
    pub fn slots(&self) -> [u32; 2] {
        [self.slot, self.stats]
    }
}

/// Versions that a loader may use up before its memory is written: enough for the contents, of
/// which one may be passed over, the list and the counters of every table there can be.
const VERSIONS_OF_A_LOADER: u32 = 4 * skipstep_abi::limits::TABLE_SLOTS;

impl Memory {
    /// When the counters of an interface began.
    pub fn zeroed_at(&self, interface: &str) -> u64 {
        self.interfaces_zeroed.get(interface).copied().unwrap_or(self.created_at)
    }

    /// Leaves out the versions that a loader may have used that was killed.
    pub fn skip_versions(&mut self) {
        self.next_table_version =
            self.next_table_version.wrapping_add(VERSIONS_OF_A_LOADER) & !TABLE_INDEXED;
    }

    /// A version for the contents of a table.
    pub fn table_version(&mut self) -> u32 {
        self.next_table_version = (self.next_table_version.wrapping_add(1) & !TABLE_INDEXED).max(1);
        self.next_table_version
    }
}

/// Seconds since 1970.
pub(crate) fn wall_clock() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}
