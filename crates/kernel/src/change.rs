//! Changes of an instance. A change holds the instance's lock and its records, and marks on disk
//! that it has begun. A killed process leaves the mark, and the next change recovers.

use std::mem::offset_of;

use skipstep_abi as abi;

use crate::commit::Earlier;
use crate::error::{Error, Result};
use crate::kept_rules::{KeptRules, NO_NUMBER};
use crate::netns::{self, Netns};
use crate::object::Maps;
use crate::record::{InForce, Memory, Record, wall_clock};
use crate::rundir::{Draft, Lock, RunDir};
use crate::trial::{self, Trial};
use crate::{contents, orphans, pool, rule_home};

/// A change that has begun. A change that is dropped without [`Change::keep`] counts as unfinished.
pub struct Change {
    /// The records that outlive rule sets.
    pub memory: Memory,
    /// The record of the rule set in force.
    pub record: Record,
    /// The rule set before a trial, if the rules in force are on trial.
    pub(crate) kept: Option<Kept>,
    /// True if the change before was not ended: queues and XDP programs may belong to another rule
    /// set.
    pub(crate) is_unsure: bool,
    run: RunDir,
    _lock: Lock,
}

/// The rule set before a trial, and the trial.
pub(crate) struct Kept {
    pub trial: Trial,
    pub record: Record,
}

impl Kept {
    /// Returns the rule set that a trial keeps, if the rules in force are on trial.
    fn read(run: &RunDir, maps: &Maps, generation: u32) -> Result<Option<Self>> {
        let Some(trial) = run.trial()? else { return Ok(None) };
        let due = trial::confirm_by(maps);
        if due == 0 {
            return Ok(None);
        }
        if generation == trial.kept {
            // a process was killed between the start of the timer and the commit
            if trial::set_confirm_by(maps, due, 0) {
                run.remove_trial()?;
            }
            return Ok(None);
        }
        let record = run.find(trial.kept)?.into_record();
        Ok(Some(Kept { trial, record }))
    }
}

impl Change {
    /// Begins to change an instance that exists. Recovers first if the change before was not ended.
    ///
    /// # Errors
    /// Fails if the records cannot be read or written, or if the instance belongs to another
    /// network namespace.
    pub(crate) fn begin(
        run: &RunDir,
        lock: Lock,
        maps: &Maps,
        record: impl FnOnce() -> Result<Record>,
    ) -> Result<Self> {
        let is_unsure = run.is_unfinished();
        let (memory, mut record, run) = (run.memory()?, record()?, run.clone());
        let mut kept = Kept::read(&run, maps, record.generation)?;
        let generation = || maps.shared_status.load(0, offset_of!(abi::Status, generation));
        if record.generation != generation() {
            // the time of a trial has run out since the record was read
            (record, kept) = (run.record(generation)?, None);
        }
        let mut change = Change { memory, record, kept, is_unsure, run, _lock: lock };
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
    ///
    /// # Errors
    /// Fails if the records cannot be written.
    pub(crate) fn first(run: &RunDir, lock: Lock) -> Result<Self> {
        run.begin()?;
        let memory = Memory {
            namespace: Netns::current(),
            processes: netns::processes(),
            hostid: (draw() as u32).max(1), // 0 stands for no hostid
            created_at: wall_clock(),
            ..Memory::default()
        };
        run.set_memory(&memory)?;
        let (record, is_unsure, run) = (Record::default(), false, run.clone());
        Ok(Change { memory, record, kept: None, is_unsure, run, _lock: lock })
    }

    /// Returns the rule sets that the change must not change.
    pub(crate) fn earlier(&self) -> Earlier<'_> {
        let kept = self.kept.as_ref().map(|kept| &kept.record);
        Earlier { in_force: &self.record, kept }
    }

    /// Saves the change so far, and does not end it.
    ///
    /// # Errors
    /// Fails if the records cannot be written.
    pub(crate) fn save(&mut self) -> Result<()> {
        self.run.set_memory(&self.memory)?;
        self.run.set_record(&mut self.record)
    }

    /// Saves the change so far, with a record of the rule set that was drafted before.
    ///
    /// # Errors
    /// Fails if the records cannot be written.
    pub(crate) fn save_drafted(&mut self, draft: Draft) -> Result<()> {
        self.run.set_memory(&self.memory)?;
        self.run.keep(draft)
    }

    /// Saves the records that outlive rule sets, and does not end the change.
    ///
    /// # Errors
    /// Fails if the records cannot be written.
    pub(crate) fn save_memory(&self) -> Result<()> {
        self.run.set_memory(&self.memory)
    }

    /// Saves the change and ends it.
    ///
    /// # Errors
    /// Fails if the records cannot be written, or if the mark cannot be removed.
    pub fn keep(mut self) -> Result<()> {
        self.save()?;
        self.end()
    }

    /// Ends the change without saving. [`Change::save`] must have saved all that changed.
    ///
    /// # Errors
    /// Fails if the mark cannot be removed.
    pub(crate) fn end(self) -> Result<()> {
        self.run.end()
    }

    /// Ends a change that is refused and has done nothing.
    ///
    /// # Errors
    /// Always returns `reason`, unless the mark cannot be removed.
    pub(crate) fn refuse<T>(self, reason: Error) -> Result<T> {
        self.end()?;
        Err(reason)
    }

    /// Recovers from an unfinished change: removes the contents that the change wrote beside those
    /// in force, and distrusts the records that the change may have made false.
    pub(crate) fn recover(&mut self, maps: &Maps) -> Result<()> {
        // the killed process may have committed a moment ago, so packets may still read the rules
        // before
        rule_home::wait(maps, self.record.generation)?;
        // saved before a version is used: the next process may be killed too, and versions must not
        // be reused
        self.memory.skip_versions();
        self.memory.in_force = InForce::default();
        self.run.set_memory(&self.memory)?;
        let kept = self.kept.iter_mut().flat_map(|kept| kept.record.all_tables_mut());
        contents::remove_all_but(maps, self.record.all_tables_mut().chain(kept))?;
        let rules = self.kept.as_ref().map(|kept| KeptRules::new(maps, &kept.record, &self.record));
        let rules = rules.as_ref();
        orphans::follow_tables(maps, &self.record, rules);
        pool::follow_tables(maps, &self.record, rules)?;
        pool::remove_unused(maps, || self.earlier().records().flat_map(|r| r.tables.values()))?;
        let known = self.earlier().slots();
        for slot in (1..self.memory.slots_used).filter(|slot| !known.contains(*slot)) {
            maps.shared_rule_states.store(slot, offset_of!(abi::RuleStates, number), NO_NUMBER);
        }
        if let Some(rules) = rules {
            rules.begin(maps, &self.record);
        }
        Ok(())
    }
}

/// Returns a random number that another machine, instance or process is unlikely to draw.
pub(crate) fn draw() -> u64 {
    // std's hashers are seeded by the kernel's random numbers
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}
