//! Changes of an instance, one after the other: the lock, what is remembered, and a mark that says
//! that somebody began. Whoever is killed leaves the mark, and the next one puts things right.

use std::collections::BTreeSet;
use std::mem::offset_of;

use skipstep_abi as abi;

use crate::error::{Error, Result};
use crate::netns::{self, Netns};
use crate::object::Maps;
use crate::record::{Memory, Record, SlotSet, wall_clock};
use crate::rundir::{Draft, Lock, RunDir};
use crate::standing::InForce;
use crate::table_index::Edition;
use crate::{contents, gone, pool, rule_home};

/// A change that has begun. Dropped without [`Change::keep`] it counts as unfinished.
pub(crate) struct Change {
    /// What outlives rule sets.
    pub memory: Memory,
    /// The rule set in force.
    pub record: Record,
    /// A killed process may have left queues and programs in drivers of another rule set.
    pub is_unsure: bool,
    run: RunDir,
    lock: Lock,
}

impl Change {
    /// Begins to change an instance that exists.
    pub fn begin(
        run: &RunDir,
        lock: Lock,
        maps: &Maps,
        record: impl FnOnce() -> Result<Record>,
    ) -> Result<Self> {
        let is_unsure = run.is_unfinished();
        let (memory, record, run) = (run.memory()?, record()?, run.clone());
        let mut change = Change { memory, record, is_unsure, run, lock };
        if change.memory.namespace != Netns::current() {
            return Err(Error::Namespace { name: change.run.name() });
        }
        if is_unsure {
            change.recover(maps)?;
        }
        change.run.begin()?;
        Ok(change)
    }

    /// Begins to fill an instance that has just been made.
    pub fn first(run: &RunDir, lock: Lock) -> Result<Self> {
        run.begin()?;
        let memory = Memory {
            namespace: Netns::current(),
            processes: netns::processes(),
            hostid: draw(),
            created_at: wall_clock(),
            ..Memory::default()
        };
        run.set_memory(&memory)?;
        let (record, is_unsure, run) = (Record::default(), false, run.clone());
        Ok(Change { memory, record, is_unsure, run, lock })
    }

    /// Remembers the change so far; it is not over.
    pub fn save(&mut self) -> Result<()> {
        self.run.set_memory(&self.memory)?;
        self.run.set_record(&mut self.record)
    }

    /// The same where the rule set was drafted.
    pub fn save_drafted(&mut self, draft: Draft) -> Result<()> {
        self.run.set_memory(&self.memory)?;
        self.run.keep(draft)
    }

    /// Remembers what outlives rule sets; the change is not over.
    pub fn save_memory(&self) -> Result<()> {
        self.run.set_memory(&self.memory)
    }

    /// Remembers the change and ends it.
    pub fn keep(mut self) -> Result<()> {
        self.save()?;
        self.end()
    }

    /// Ends the change, of which nothing is to be remembered that [`Change::save`] has not kept.
    pub fn end(self) -> Result<()> {
        self.run.end()
    }

    /// Ends a change that is not to be, with nothing done.
    pub fn refuse<T>(self, why: Error) -> Result<T> {
        self.end()?;
        Err(why)
    }

    /// Gives the change up for another one under the same lock.
    pub fn into_lock(self) -> Lock {
        self.lock
    }

    /// Removes what an unfinished change wrote beside what is in force, and no longer trusts what
    /// it may have changed.
    fn recover(&mut self, maps: &Maps) -> Result<()> {
        // perhaps the page was turned only just now
        rule_home::wait(maps, self.record.generation)?;
        // kept before any is used: the next one may be killed too, and must not use them again
        self.memory.skip_versions();
        self.memory.in_force = InForce::default();
        self.run.set_memory(&self.memory)?;
        let (mut editions, mut counted) = (BTreeSet::new(), BTreeSet::new());
        for table in self.record.all_tables_mut() {
            let abi::Table { version, counters, .. } = maps.tables.at(table.slot)?;
            editions.insert(Edition { slot: table.slot, version });
            counted.insert(counters);
            table.contents = None;
        }
        contents::remove_unused(maps, &editions, &counted)?;
        gone::follow_tables(maps, &self.record);
        pool::follow_tables(maps, &self.record)?;
        pool::remove_unused(maps, &self.record.tables)?;
        let in_force: SlotSet = self.record.slots().collect();
        for slot in (1..self.memory.slots_used).filter(|slot| !in_force.contains(*slot)) {
            let gone = -1i32;
            maps.shared_rule_states.store(slot, offset_of!(abi::RuleStates, number), gone as u32);
        }
        Ok(())
    }
}

/// A number that another machine or instance will hardly draw; never 0, which is no hostid.
fn draw() -> u32 {
    // std's hashers are seeded by the kernel's random numbers
    use std::hash::{BuildHasher, RandomState};
    (RandomState::new().hash_one(std::process::id()) as u32).max(1)
}
