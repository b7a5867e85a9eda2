//! The interface of all evaluators, so that one test can drive each of them. They are the model,
//! and the BPF programs under `BPF_PROG_TEST_RUN`, with the linear evaluator, with skip steps and
//! with trees.

use skipstep_model::{Draw, Fate, Packet, TableCounters, TrialTime};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{RuleId, RulesChange, Ruleset, TableName};
use skipstep_views::{
    InterfaceCounters, LimiterView, RuleCounters, SourceView, StateView, Status, TableEdit,
};

/// An evaluator under test.
pub trait Engine {
    /// Short name for reports: `model`, `bpf-linear`, `bpf-skip-steps`, `bpf-compiled`.
    fn name(&self) -> &str;

    /// Replaces rules, settings and tables. Clears the state table and all counters, and sets the
    /// clock and all random draws to 0.
    ///
    /// # Errors
    /// Fails with a message if the evaluator refuses the rules.
    fn load(&mut self, ruleset: &Ruleset, host: &Host) -> Result<(), String>;

    /// Changes the rules like `pfctl -f`, `-a` and `-F rules`. States, the clock and everything
    /// else stay.
    ///
    /// # Errors
    /// Fails with a message if the evaluator refuses the rules.
    fn change_rules(&mut self, change: &RulesChange) -> Result<(), String>;

    /// Changes the rules as [`Engine::change_rules`] does, on trial.
    ///
    /// # Errors
    /// Fails with a message if the evaluator refuses the rules.
    fn try_rules(&mut self, change: &RulesChange, time: TrialTime) -> Result<(), String>;

    /// Confirms the load on trial, or else undoes it. Returns false if nothing is on trial.
    fn end_trial(&mut self, confirm: bool) -> bool;

    /// Replaces the host. The rules stay, and dynamic addresses follow the new host.
    ///
    /// # Errors
    /// Fails with a message if the evaluator cannot adopt the host.
    fn change_host(&mut self, host: &Host) -> Result<(), String>;

    /// Sets the clock and removes expired states, as pf's purge would. Returns the ids of the
    /// removed states, ascending.
    fn set_time(&mut self, seconds: u32) -> Vec<u64>;

    /// Sets the results of the following random draws.
    fn set_random(&mut self, draw: Draw);

    /// True if the evaluator can run the packet. A test run of the kernel's programs takes at most
    /// about 16,000 bytes.
    fn accepts(&self, _packet: &Packet) -> bool {
        true
    }

    /// Runs a packet through the firewall.
    fn packet(&mut self, packet: &Packet) -> Fate;

    /// Removes the states with these ids. Unknown ids are ignored.
    fn kill(&mut self, ids: &[u64]);

    /// Returns the ids of the states of rules with this label, orphaned rules included.
    fn labelled(&mut self, label: &str) -> Vec<u64>;

    /// Changes the contents of a table. Returns false if the change is not possible.
    fn edit_table(&mut self, edit: &TableEdit) -> bool;

    /// Returns all states in order of creation.
    fn states(&mut self) -> Vec<StateView>;

    /// Returns the tracked sources, in any order.
    fn sources(&mut self) -> Vec<SourceView>;

    /// Returns the limiters, state limiters first, ordered by number.
    fn limiters(&mut self) -> Vec<LimiterView>;

    /// Returns the counters of a rule, `None` for the default rule.
    fn rule_counters(&mut self, rule: Option<&RuleId>) -> RuleCounters;

    /// Returns the counters of an interface.
    fn interface_counters(&mut self, name: &str) -> InterfaceCounters;

    /// Returns the counters of a table, without the number of lookups, which depends on the
    /// evaluator.
    fn table_counters(&mut self, name: &TableName) -> TableCounters;

    /// Returns the counters of the whole firewall.
    fn status(&mut self) -> Status;
}
