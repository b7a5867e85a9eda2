//! The records of an instance, which outlive each process: names with their numbers, and for each
//! generation the rules as they were written, with their slots.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use skipstep_abi::table::TABLE_INDEXED;
use skipstep_classifier::{CompiledSet, Names, Planner};
use skipstep_pfconf::identity;
use skipstep_ruleset::{Rule, RuleId, Ruleset, TableEntry, TableName};

use crate::bridge_port::Ports;
use crate::enable_reference::EnableReferences;
use crate::indexing::Indexing;
use crate::netns::Netns;
use crate::routing;
use crate::trial::Trial;

/// The records that outlive rule sets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Numbers of interfaces, groups, tags, anchors and queues.
    pub names: Names,
    /// Last version that was given out, 0 if none. [`Memory::table_version`] returns the next.
    pub next_table_version: u32,
    /// Highest rule slot ever used, plus one.
    pub slots_used: u32,
    /// Debug level: `set debug`, or the value of a later `pfctl -x`.
    pub debug: u8,
    /// The network namespace that the instance filters.
    pub namespace: Netns,
    /// The PID namespace where the instance was made, by its inode.
    #[serde(default)]
    pub processes: u64,
    /// Number of this host for others, unless `set hostid` gives one. Drawn when the instance was
    /// made.
    pub hostid: u32,
    /// Time when the instance was made, in seconds since 1970.
    pub created_at: u64,
    /// Rules for which trees are built; only tests change it.
    #[serde(skip)]
    pub planner: Planner,
    /// Tables that get an index.
    #[serde(skip)]
    pub indexing: Indexing,
    /// Positions of the rule sets in the kernel, for their reuse.
    #[serde(default)]
    pub in_force: InForce,
    /// Times when the counters of interfaces were cleared, in seconds since 1970, by name.
    pub interfaces_zeroed: BTreeMap<String, u64>,
    /// Interfaces that `set xdp on` names and that run no XDP program, with the reason.
    #[serde(default)]
    pub without_xdp: BTreeMap<String, String>,
    /// Interfaces that could not be attached, with the reason.
    #[serde(default)]
    pub unattached: BTreeMap<String, String>,
    /// Ports of bridges.
    #[serde(default)]
    pub ports: Ports,
    /// Forwarding settings of loopback that rules with routes have changed.
    pub loopback: routing::Lent,
    /// True if rules with `af-to` made loopback accept packets with a source address of this host.
    #[serde(default)]
    pub loopback_accepts: bool,
    /// The last trial, if it failed.
    #[serde(default)]
    pub failed_trial: Option<Trial>,
    /// True from `pfctl -F osfp` to the next load of the main rule set.
    #[serde(default)]
    pub fingerprints_flushed: bool,
    /// References that keep the filter enabled.
    #[serde(default)]
    pub enabled_by: EnableReferences,
}

/// The compiled rule sets of a generation in the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InForce {
    /// Number of the generation.
    pub(crate) generation: u32,
    /// For each anchor path, a hash of the meaning of its names, and its position in the maps.
    pub(crate) sets: BTreeMap<String, (u64, CompiledSet)>,
}

/// A rule set in the kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Generation of the rule set.
    pub generation: u32,
    /// Rules, settings and tables as they were loaded, with all anchors.
    pub ruleset: Ruleset,
    /// Slots of the rules of each anchor, by path; the main rule set has the empty path.
    pub rule_sets: BTreeMap<String, RuleSetRecord>,
    /// Tables and dynamic addresses by name.
    pub tables: BTreeMap<TableName, TableRecord>,
    /// The host's own addresses.
    pub own_addresses: Option<TableRecord>,
    /// Orphaned rules by their slots, as long as they may have states.
    pub orphans: BTreeMap<u32, OrphanedRule>,
    /// Names in the rules that were compiled as groups.
    pub groups: BTreeSet<String>,
}

/// The rules of one anchor, or of the main rule set, in the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleSetRecord {
    /// Slot of each filter rule.
    pub slots: Vec<u32>,
    /// Slot of each legacy rule.
    pub legacy_slots: Vec<u32>,
    /// User, process and time of the load.
    pub load: Load,
}

impl RuleSetRecord {
    /// Returns the slots of filter rules and legacy rules.
    pub fn all_slots(&self) -> impl Iterator<Item = u32> {
        self.slots.iter().chain(&self.legacy_slots).copied()
    }
}

/// The record of an orphaned rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrphanedRule {
    /// Names of the tables that the rule compares source and destination with, as its anchor sees
    /// them.
    pub tables: [Option<TableName>; 2],
    /// The table that the rule fills with sources (`overload`).
    pub overload: Option<TableName>,
    /// Tables of its `least-states` pools, with the purposes of the pools: the tables count its
    /// states.
    pub pools: Vec<(u32, TableName)>,
    /// Labels of the rule, by which its states can be killed.
    pub labels: Vec<String>,
    /// The rule's stable identity, if it has no label and had states when it was replaced.
    pub hash: Option<String>,
}

impl OrphanedRule {
    /// Returns the rule's stable identity, if it is known.
    pub fn identity(&self) -> Option<String> {
        identity::of_labels(&self.labels).or_else(|| self.hash.clone())
    }
}

/// A set of rule slots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotSet(Vec<bool>);

impl SlotSet {
    /// True if the set contains the slot.
    pub fn contains(&self, slot: u32) -> bool {
        self.0.get(slot as usize).is_some_and(|is_in| *is_in)
    }

    /// Returns the slots of the set.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.0).filter_map(|(slot, is_in)| is_in.then_some(slot))
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

/// User, process and time of a load of rules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Time in seconds since 1970.
    pub at: u64,
    /// User who loaded the rules.
    pub uid: u32,
    /// Process that loaded the rules.
    pub pid: u32,
}

impl Load {
    /// Returns a load by this process, now.
    pub fn now() -> Self {
        Load { at: wall_clock(), uid: nix::unistd::getuid().as_raw(), pid: std::process::id() }
    }
}

impl Record {
    /// Returns the slots of all rules in force.
    pub fn slots(&self) -> impl Iterator<Item = u32> {
        self.rule_sets.values().flat_map(RuleSetRecord::all_slots)
    }

    /// Returns all rules with their slots, legacy rules included.
    pub fn rules(&self) -> impl Iterator<Item = (&Rule, u32)> {
        self.rule_sets.iter().flat_map(|(path, set)| {
            let filter = self.ruleset.rules_of(path).iter().zip(&set.slots);
            let legacy = self.ruleset.legacy_rules_of(path).iter().map(|legacy| &legacy.rule);
            filter.chain(legacy.zip(&set.legacy_slots)).map(|(rule, slot)| (rule, *slot))
        })
    }

    /// Returns the slots of the rules with this label, including orphaned rules.
    pub fn labelled(&self, label: &str) -> BTreeSet<u32> {
        let has_label = |labels: &[String]| labels.iter().any(|other| other == label);
        let in_force = self.rules().filter(|(rule, _)| has_label(&rule.labels));
        let in_force = in_force.map(|(_, slot)| slot);
        let orphans = self.orphans.iter().filter(|(_, rule)| has_label(&rule.labels));
        in_force.chain(orphans.map(|(slot, _)| *slot)).collect()
    }

    /// Returns the slot of a rule; `None` if there is no such rule.
    pub fn slot_of(&self, rule: &RuleId) -> Option<u32> {
        let set = self.rule_sets.get(&rule.anchor)?;
        if rule.old.is_none() {
            return set.slots.get(rule.number as usize).copied();
        }
        let mut legacy = self.ruleset.legacy_rules_of(&rule.anchor).iter().zip(&set.legacy_slots);
        legacy.find(|(legacy, _)| legacy.id(&rule.anchor) == *rule).map(|(_, slot)| *slot)
    }

    /// Returns the rule in a slot; `None` if no rule in force has it.
    pub fn rule_in(&self, slot: u32) -> Option<RuleId> {
        self.rule_sets.iter().find_map(|(anchor, set)| {
            let is_meant = |other: &u32| *other == slot;
            if let Some(number) = set.slots.iter().position(is_meant) {
                return Some(RuleId::new(anchor, number as u32));
            }
            let place = set.legacy_slots.iter().position(is_meant)?;
            Some(self.ruleset.legacy_rules_of(anchor).get(place)?.id(anchor))
        })
    }

    /// Copies the properties of the tables to the rule sets that mention them. Every evaluator must
    /// look up the same tables as the kernel.
    pub fn describe_tables(&mut self) {
        let tables = &self.tables;
        let anchors = self.ruleset.anchors.iter_mut();
        let anchors = anchors.map(|(path, anchor)| (&path[..], &mut anchor.tables));
        for (path, mentioned) in std::iter::once(("", &mut self.ruleset.tables)).chain(anchors) {
            for mentioned in mentioned {
                if let Some(table) = tables.get(&TableName::new(path, &mentioned.name)) {
                    mentioned.defined = table.active;
                    mentioned.persist = table.persist;
                    mentioned.constant = table.constant;
                    mentioned.counters = table.counters;
                }
            }
        }
    }

    /// Returns all tables in the kernel, including dynamic addresses and the host's own addresses.
    pub fn all_tables_mut(&mut self) -> impl Iterator<Item = &mut TableRecord> {
        self.tables.values_mut().chain(&mut self.own_addresses)
    }
}

/// Stands for the slot of a table that does not exist.
pub(crate) const NO_TABLE: u32 = u32::MAX;

/// Returns the slot that rules of an anchor look up for a table: the anchor's own table if it
/// exists, or else that of the main rule set.
pub fn visible_slot(tables: &BTreeMap<TableName, TableRecord>, name: &TableName) -> Option<u32> {
    let own = tables.get(name).filter(|table| table.active);
    let main = || tables.get(&TableName::from(name.name.as_str()));
    own.or_else(main).map(|table| table.slot)
}

/// A table in the kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TableRecord {
    /// Slot of the current contents.
    pub slot: u32,
    /// Slot of the statistics: the table's first slot.
    pub stats: u32,
    /// True with `persist`.
    pub persist: bool,
    /// True with `const`.
    pub constant: bool,
    /// True with `counters`.
    pub counters: bool,
    /// True if the entries come from interface addresses.
    pub dynamic: bool,
    /// True if pools choose from the table.
    pub pooled: bool,
    /// True if the data plane adds entries, for rules with `overload` or limiters.
    pub filled: bool,
    /// True if a statement or a command made the table; false if rules only name it.
    pub active: bool,
    /// The entries; `None` if they were changed since the load, so only the kernel has them.
    pub contents: Option<Vec<TableEntry>>,
    /// Networks of the table in the trees of rules; together they contain all its entries. An entry
    /// outside of them may be added only after the trees are built without the table.
    pub expansions: Option<Vec<IpNet>>,
    /// Time when the table's counters were last cleared, in seconds since 1970.
    pub zeroed_at: u64,
}

impl TableRecord {
    /// Returns the slots of the table: that of its contents, and that of its statistics.
    pub fn slots(&self) -> [u32; 2] {
        [self.slot, self.stats]
    }
}

/// Number of versions that a loader may use before its memory is saved. This number suffices for
/// every possible table: contents, of which one version may be skipped, list, and counters.
const VERSIONS_OF_A_LOADER: u32 = 4 * skipstep_abi::limits::TABLE_SLOTS;

impl Memory {
    /// Returns the time when the counters of an interface began, in seconds since 1970.
    pub fn zeroed_at(&self, interface: &str) -> u64 {
        self.interfaces_zeroed.get(interface).copied().unwrap_or(self.created_at)
    }

    /// Skips the versions that a killed loader may have used.
    pub fn skip_versions(&mut self) {
        self.next_table_version =
            self.next_table_version.wrapping_add(VERSIONS_OF_A_LOADER) & !TABLE_INDEXED;
    }

    /// Returns a new version for the contents of a table.
    pub fn table_version(&mut self) -> u32 {
        self.next_table_version = (self.next_table_version.wrapping_add(1) & !TABLE_INDEXED).max(1);
        self.next_table_version
    }
}

/// Returns the seconds since 1970.
pub(crate) fn wall_clock() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}
