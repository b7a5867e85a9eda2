//! The filter that pftop shows, and its changes.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use pfctl::drops::rules::RulesInForce;
use pfctl::filter::Filter;
use skipstep_kernel::drops::Drops;
use skipstep_kernel::state::Sides;
use skipstep_kernel::{DroppedPacket, Instance, host};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{TableEntry, TableName};
use skipstep_views::RuleCounters;

/// Most turns in which dropped packets are taken from their ring at once, each of at most 256
/// packets. A flood of drops must not stop the keys.
const TURNS: usize = 40;

/// A filter that is shown. Tests implement it without a kernel.
pub trait Source {
    /// Returns the part that `pfctl -s` reads.
    fn filter(&self) -> &dyn Filter;

    /// Returns the number of the rule set in force, which rises with every load.
    fn generation(&self) -> u32;

    /// Reads the rules in force.
    ///
    /// # Errors
    /// Fails if the records of the filter cannot be read.
    fn rules(&self) -> Result<RulesInForce>;

    /// Returns the counters of all rules, by the path of their anchor.
    ///
    /// # Errors
    /// Fails if the counters cannot be read.
    fn counters(&self) -> Result<BTreeMap<String, Vec<RuleCounters>>>;

    /// Reads the interfaces and routes of the host.
    ///
    /// # Errors
    /// Fails if rtnetlink refuses a request.
    fn host(&self) -> Result<Host>;

    /// Returns the entries of a table of the main rule set.
    ///
    /// # Errors
    /// Fails if the table does not exist or cannot be read.
    fn entries(&self, table: &str) -> Result<Vec<TableEntry>> {
        let entries = self.filter().table_entries(&TableName::from(table))?;
        Ok(entries.into_iter().map(|info| info.entry).collect())
    }

    /// Removes the state with an id. Returns false if it has ended before.
    ///
    /// # Errors
    /// Fails if the states cannot be read, or if the kernel refuses.
    fn kill(&self, id: u64) -> Result<bool>;

    /// Begins or ends to read dropped packets.
    ///
    /// # Errors
    /// Fails if too many programs read already.
    fn watch_drops(&mut self, on: bool) -> Result<()>;

    /// Takes the packets that were dropped since the last call. The filter forgets a reader that
    /// does not call this function every second or so.
    ///
    /// # Errors
    /// Fails if the ring cannot be read.
    fn take_drops(&mut self, take: &mut dyn FnMut(&DroppedPacket)) -> Result<Unseen>;
}

/// Dropped packets that were not read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unseen {
    /// Number of packets that came too fast, since reading began.
    pub lost: u64,
    /// True if the filter has forgotten the reader since the last call, because it was suspended.
    pub was_silent: bool,
}

/// The filter in the kernel.
pub struct Live<'i> {
    instance: &'i Instance,
    drops: Option<Drops<'i>>,
}

impl<'i> Live<'i> {
    /// Makes the source of an instance.
    pub fn new(instance: &'i Instance) -> Live<'i> {
        Live { instance, drops: None }
    }

    /// True if the instance is still the filter. A filter that was removed or made anew must be
    /// opened again.
    pub fn is_current(&self) -> bool {
        self.instance.is_current()
    }
}

impl Source for Live<'_> {
    fn filter(&self) -> &dyn Filter {
        self.instance
    }

    fn generation(&self) -> u32 {
        self.instance.generation()
    }

    fn rules(&self) -> Result<RulesInForce> {
        RulesInForce::read(self.instance)
    }

    fn counters(&self) -> Result<BTreeMap<String, Vec<RuleCounters>>> {
        Ok(self.instance.all_rule_counters()?)
    }

    fn host(&self) -> Result<Host> {
        Ok(host::read()?)
    }

    fn kill(&self, id: u64) -> Result<bool> {
        Ok(self.instance.kill_states(Sides::One, |state| state.id == id)? > 0)
    }

    fn watch_drops(&mut self, on: bool) -> Result<()> {
        match (on, &self.drops) {
            (true, None) => self.drops = Some(self.instance.read_drops()?),
            (false, Some(_)) => self.drops = None,
            _ => {}
        }
        Ok(())
    }

    fn take_drops(&mut self, take: &mut dyn FnMut(&DroppedPacket)) -> Result<Unseen> {
        let Some(drops) = &mut self.drops else { return Ok(Unseen::default()) };
        for _ in 0..TURNS {
            if drops.poll(Duration::ZERO, &mut *take)? == 0 {
                break;
            }
        }
        Ok(Unseen { lost: drops.lost()?, was_silent: drops.was_silent() })
    }
}
