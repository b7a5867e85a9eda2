//! What showing asks of a filter. The one in the kernel answers; so does whatever else evaluates
//! rules and wants to be shown in the same words.

use std::collections::BTreeMap;

use anyhow::Result;
use skipstep_kernel::Instance;
use skipstep_kernel::instance::Loaded;
use skipstep_kernel::queue::QueueStats;
use skipstep_kernel::report::{InstanceStatus, InterfaceView};
use skipstep_kernel::table::{EntryInfo, TableInfo};
use skipstep_ruleset::TableName;
use skipstep_scenario::engine::{LimiterView, RuleCounters, SourceView, StateView};

/// A filter with rules in force.
pub trait Filter {
    /// The rules, and who loaded them.
    fn loaded(&self) -> Result<Loaded>;

    /// Counters of every rule of an anchor, of the main rule set if the path is empty, in order.
    fn rule_counters(&self, anchor: &str) -> Result<Vec<RuleCounters>>;

    /// The same of old rules.
    fn old_rule_counters(&self, anchor: &str) -> Result<Vec<RuleCounters>>;

    /// All states in order of creation.
    fn states(&self) -> Result<Vec<StateView>>;

    /// The sources that rules track, by rule.
    fn sources(&self) -> Result<Vec<SourceView>>;

    /// Limiters in the order of their numbers, those of states first.
    fn limiters(&self) -> Result<Vec<LimiterView>>;

    /// True unless the fingerprints of operating systems were flushed.
    fn has_fingerprints(&self) -> Result<bool> {
        Ok(true)
    }

    /// Second of the clock that states count by.
    fn now(&self) -> Result<u32>;

    /// State, limits and counters of the whole.
    fn status(&self) -> Result<InstanceStatus>;

    /// Interfaces that are there or that rules name.
    fn interfaces(&self) -> Result<Vec<InterfaceView>>;

    /// Numbers of the queues, which packets name them by.
    fn queue_numbers(&self) -> Result<BTreeMap<String, u16>>;

    /// What went through the queues of an interface, by their names.
    fn queue_stats(&self, interface: u32) -> Result<BTreeMap<String, QueueStats>>;

    /// All tables but those of dynamic addresses.
    fn tables(&self) -> Result<Vec<TableInfo>>;

    /// What is in a table.
    fn table_entries(&self, name: &TableName) -> Result<Vec<EntryInfo>>;
}

impl Filter for Instance {
    fn loaded(&self) -> Result<Loaded> {
        Ok(self.loaded()?)
    }

    fn has_fingerprints(&self) -> Result<bool> {
        Ok(self.has_fingerprints()?)
    }

    fn rule_counters(&self, anchor: &str) -> Result<Vec<RuleCounters>> {
        Ok(self.rule_counters(anchor)?)
    }

    fn old_rule_counters(&self, anchor: &str) -> Result<Vec<RuleCounters>> {
        Ok(self.old_rule_counters(anchor)?)
    }

    fn states(&self) -> Result<Vec<StateView>> {
        Ok(self.states()?)
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
