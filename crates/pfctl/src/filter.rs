//! The interface through which `pfctl -s` reads a filter. The filter in the kernel implements it;
//! other evaluators can implement it to be shown in the same format.

use std::collections::{BTreeMap, HashMap};

use anyhow::Result;
use skipstep_kernel::contents::EntryInfo;
use skipstep_kernel::instance::Loaded;
use skipstep_kernel::queue::QueueStats;
use skipstep_kernel::report::{InstanceStatus, InterfaceView};
use skipstep_kernel::table::TableInfo;
use skipstep_kernel::trial::{Trial, TrialView};
use skipstep_kernel::{EnableReference, Instance};
use skipstep_ruleset::TableName;
use skipstep_views::{LimiterView, RuleCounters, SourceView, StateView};

/// A filter whose rules and counters can be shown.
pub trait Filter {
    /// Returns the rule set in force, with the time, user and process of each load.
    ///
    /// # Errors
    /// Fails if the record of the rule set cannot be read.
    fn loaded(&self) -> Result<Loaded>;

    /// Returns the counters of an anchor's rules in order. The empty path is the main rule set.
    ///
    /// # Errors
    /// Fails if the record or a counter map cannot be read.
    fn rule_counters(&self, anchor: &str) -> Result<Vec<RuleCounters>>;

    /// Returns the counters of an anchor's legacy rules in order. The empty path is the main rule
    /// set.
    ///
    /// # Errors
    /// Fails if the record or a counter map cannot be read.
    fn legacy_rule_counters(&self, anchor: &str) -> Result<Vec<RuleCounters>>;

    /// Returns all states in order of creation.
    ///
    /// # Errors
    /// Fails if the state table cannot be read.
    fn states(&self) -> Result<Vec<StateView>>;

    /// Returns the stable identities of rules that are in no rule set any more, by the ids of their
    /// states.
    ///
    /// # Errors
    /// Fails if the state table or the record cannot be read.
    fn identities_of_orphans(&self) -> Result<HashMap<u64, String>> {
        Ok(HashMap::new())
    }

    /// Returns the source nodes, by rule.
    ///
    /// # Errors
    /// Fails if the map of source nodes cannot be read.
    fn sources(&self) -> Result<Vec<SourceView>>;

    /// Returns the limiters in the order of their numbers, state limiters first.
    ///
    /// # Errors
    /// Fails if the limiter maps or the record cannot be read.
    fn limiters(&self) -> Result<Vec<LimiterView>>;

    /// True unless `-F osfp` has removed the fingerprints of operating systems.
    ///
    /// # Errors
    /// Fails if the instance's files cannot be read.
    fn has_fingerprints(&self) -> Result<bool> {
        Ok(true)
    }

    /// Returns the load on trial, if there is one.
    ///
    /// # Errors
    /// Fails if the records of the instance cannot be read.
    fn trial(&self) -> Result<Option<TrialView>> {
        Ok(None)
    }

    /// Returns the last load on trial if it was not confirmed.
    ///
    /// # Errors
    /// Fails if the records of the instance cannot be read.
    fn failed_trial(&self) -> Result<Option<Trial>> {
        Ok(None)
    }

    /// Returns the references that keep the filter enabled, the latest first (macOS's `-E`).
    ///
    /// # Errors
    /// Fails if the instance's files cannot be read.
    fn references(&self) -> Result<Vec<EnableReference>> {
        Ok(Vec::new())
    }

    /// Returns the time in seconds, on the clock of the states' timestamps.
    ///
    /// # Errors
    /// Fails if the clock cannot be read.
    fn now(&self) -> Result<u32>;

    /// Returns the state, limits and global counters of the filter.
    ///
    /// # Errors
    /// Fails if a map or the instance's files cannot be read.
    fn status(&self) -> Result<InstanceStatus>;

    /// Returns the interfaces that exist or that rules name.
    ///
    /// # Errors
    /// Fails if a map or the instance's files cannot be read.
    fn interfaces(&self) -> Result<Vec<InterfaceView>>;

    /// Returns the numbers of the queues by name. Packets carry these numbers.
    ///
    /// # Errors
    /// Fails if the instance's files cannot be read.
    fn queue_numbers(&self) -> Result<BTreeMap<String, u16>>;

    /// Returns the counters of the queues of an interface, by name. `interface` is its index.
    ///
    /// # Errors
    /// Fails if the kernel refuses to list the queues.
    fn queue_stats(&self, interface: u32) -> Result<BTreeMap<String, QueueStats>>;

    /// Returns all tables, except the internal tables of dynamic addresses.
    ///
    /// # Errors
    /// Fails if a map or the record cannot be read.
    fn tables(&self) -> Result<Vec<TableInfo>>;

    /// Returns the entries of a table with their counters.
    ///
    /// # Errors
    /// Fails if the table does not exist or cannot be read.
    fn table_entries(&self, name: &TableName) -> Result<Vec<EntryInfo>>;
}

impl Filter for Instance {
    fn loaded(&self) -> Result<Loaded> {
        Ok(self.loaded()?)
    }

    fn has_fingerprints(&self) -> Result<bool> {
        Ok(self.has_fingerprints()?)
    }

    fn trial(&self) -> Result<Option<TrialView>> {
        Ok(self.trial()?)
    }

    fn failed_trial(&self) -> Result<Option<Trial>> {
        Ok(self.failed_trial()?)
    }

    fn references(&self) -> Result<Vec<EnableReference>> {
        Ok(self.references()?)
    }

    fn rule_counters(&self, anchor: &str) -> Result<Vec<RuleCounters>> {
        Ok(self.rule_counters(anchor)?)
    }

    fn legacy_rule_counters(&self, anchor: &str) -> Result<Vec<RuleCounters>> {
        Ok(self.legacy_rule_counters(anchor)?)
    }

    fn states(&self) -> Result<Vec<StateView>> {
        Ok(self.states()?)
    }

    fn identities_of_orphans(&self) -> Result<HashMap<u64, String>> {
        Ok(self.identities_of_orphans()?)
    }

    fn sources(&self) -> Result<Vec<SourceView>> {
        Ok(self.sources()?)
    }

    fn limiters(&self) -> Result<Vec<LimiterView>> {
        Ok(self.limiters()?)
    }

    fn now(&self) -> Result<u32> {
        Ok(self.uptime()?)
    }

    fn status(&self) -> Result<InstanceStatus> {
        Ok(self.status()?)
    }

    fn interfaces(&self) -> Result<Vec<InterfaceView>> {
        Ok(self.interfaces()?)
    }

    fn queue_numbers(&self) -> Result<BTreeMap<String, u16>> {
        Ok(self.queue_numbers()?)
    }

    fn queue_stats(&self, interface: u32) -> Result<BTreeMap<String, QueueStats>> {
        Ok(self.queue_stats(interface)?)
    }

    fn tables(&self) -> Result<Vec<TableInfo>> {
        Ok(self.table_list()?)
    }

    fn table_entries(&self, name: &TableName) -> Result<Vec<EntryInfo>> {
        Ok(self.table_entry_list(name)?)
    }
}
