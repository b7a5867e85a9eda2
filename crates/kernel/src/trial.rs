//! Loads on trial (`pfctl -f FILE --confirm SECONDS`): unless somebody confirms such a load in
//! time, the rule set before it is valid again.
//!
//! The maps keep the previous rule set, and the sweep's timer makes it valid again with one store
//! (`bpf/trial.h`). So no process is needed to go back. The next change of the instance then
//! restores queues and XDP programs and releases the rules on trial; skipstepd makes such a change
//! within a second.
//!
//! The data plane and the commands of pfctl decide by one word, `confirm_by` of `pf_status`: the
//! one that sets the word to 0 ends the trial.

use std::collections::HashSet;
use std::mem::offset_of;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use skipstep_abi as abi;
use skipstep_abi::limits::copy_of;
use skipstep_ruleset::{Next, Ruleset};

use crate::change::{Change, Kept};
use crate::commit::{self, Earlier, generation_in};
use crate::error::{Error, Result};
use crate::instance::Instance;
use crate::object::Maps;
use crate::record::{Load, Memory, Record, SlotSet};
use crate::rundir::FoundRecord;
use crate::{attach, contents, guard, limiter, orphans, pool, table_slots};

/// Longest time for a confirmation, in seconds: a week.
pub const LONGEST_TRIAL: u32 = 7 * 24 * 60 * 60;

/// Longest wait for the end of the states of an earlier trial.
const LONGEST_END: Duration = Duration::from_secs(30);

/// Time between two looks whether these states have ended.
const PAUSE: Duration = Duration::from_millis(10);

/// The wish that the next load of an instance is on trial.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrialRequest {
    /// Time for the confirmation, from 1 to [`LONGEST_TRIAL`] seconds.
    pub seconds: u32,
    /// True if the states of new rules stay when the trial fails.
    pub keep_states: bool,
    /// Name of the loaded file, for `pfctl -s confirm`.
    pub file: String,
    /// Text to write to `/etc/pf.conf` when the load is confirmed.
    pub text: Option<String>,
}

/// A load on trial, as a file of the instance stores it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// User, process and time of the last load on trial.
    pub load: Load,
    /// Name of the loaded file.
    pub file: String,
    /// Time for the confirmation in seconds.
    pub seconds: u32,
    /// True if the states of new rules stay when the trial fails.
    pub keep_states: bool,
    /// Text to write to `/etc/pf.conf` when the load is confirmed.
    pub text: Option<String>,
    /// Generation before the trial.
    pub kept: u32,
    /// Generation on trial.
    pub pending: u32,
    /// True if the filter was enabled before the trial.
    pub was_running: bool,
    /// Debug level before the trial.
    pub debug: u8,
    /// True if there were no fingerprints of operating systems before the trial.
    pub fingerprints_flushed: bool,
}

/// A load on trial, for pfctl.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialView {
    /// The load.
    pub trial: Trial,
    /// Seconds until the filter goes back.
    pub seconds_left: u32,
    /// The rule set before the trial, with all anchors.
    pub kept: Ruleset,
}

impl Instance {
    /// Lets the following loads of this value be on trial.
    pub fn set_trial(&mut self, request: TrialRequest) {
        self.request = Some(request);
    }

    /// Returns the load on trial, if there is one.
    ///
    /// # Errors
    /// Fails if the records cannot be read.
    pub fn trial(&self) -> Result<Option<TrialView>> {
        let Some(trial) = self.run.trial()? else { return Ok(None) };
        let confirm_by = confirm_by(&self.maps);
        if confirm_by == 0 {
            return Ok(None);
        }
        let kept = self.run.find(trial.kept)?.into_record().ruleset;
        let seconds_left = confirm_by.saturating_sub(self.uptime()?);
        Ok(Some(TrialView { trial, seconds_left, kept }))
    }

    /// Returns the last trial if it failed, and no load on trial was confirmed since.
    ///
    /// # Errors
    /// Fails if the instance's memory cannot be read.
    pub fn failed_trial(&self) -> Result<Option<Trial>> {
        // no process may have ended the trial yet
        let trial = self.run.trial()?.filter(|_| confirm_by(&self.maps) == 0);
        match trial.filter(|_| self.generation() == self.back()) {
            None => Ok(self.run.memory()?.failed_trial),
            failed => Ok(failed),
        }
    }

    /// Confirms the load on trial. Returns it.
    ///
    /// # Errors
    /// Fails if there is no load on trial, or if its time is over. Fails also if the lock cannot be
    /// taken, or if the records or maps cannot be written.
    pub fn confirm(&self) -> Result<Trial> {
        let mut change = self.begin()?;
        let Some(kept) = change.kept.take() else { return change.refuse(self.no_trial()?) };
        let due = confirm_by(&self.maps);
        let confirmed = due != 0 && set_confirm_by(&self.maps, due, 0);
        change.end()?;
        // the next change ends the trial, whatever its result is
        self.begin()?.end()?;
        if confirmed { Ok(kept.trial) } else { Err(self.no_trial()?) }
    }

    /// Ends the trial at once: the rule set before it is in force on return. Returns the load.
    ///
    /// # Errors
    /// Fails if there is no load on trial. Fails also if the lock cannot be taken, or if the
    /// records or maps cannot be written.
    pub fn revert(&self) -> Result<Trial> {
        let mut change = self.begin()?;
        let Some(kept) = change.kept.take() else { return change.refuse(self.no_trial()?) };
        // if the timer was first, the result is the same
        self.programs.go_back.call(&())?;
        change.end()?;
        let mut change = self.begin()?;
        change.memory.failed_trial = None;
        change.keep()?;
        Ok(kept.trial)
    }

    /// Ends a trial whose result is known but that no process has ended yet. Returns the load if
    /// the trial failed. skipstepd calls this function several times a second.
    ///
    /// # Errors
    /// Fails if the lock cannot be taken, or if the records or maps cannot be read or written.
    pub fn follow_trial(name: &str) -> Result<Option<Trial>> {
        if !crate::rundir::RunDir::new(name).has_trial() {
            return Ok(None);
        }
        let instance = match Self::open(name) {
            Err(Error::NoInstance { .. }) => return Ok(None),
            opened => opened?,
        };
        if confirm_by(&instance.maps) != 0 {
            instance.revive_timer()?;
            return Ok(None);
        }
        instance.begin()?.end()?;
        instance.failed_trial()
    }

    fn no_trial(&self) -> Result<Error> {
        Ok(match self.failed_trial()? {
            Some(trial) => Error::TrialFailed { seconds: trial.seconds },
            None => Error::NoTrial,
        })
    }

    /// Begins to change rules. A load without a trial is refused while other rules are on trial. A
    /// load on trial keeps the rule set in force, or that before the first load on trial.
    ///
    /// # Errors
    /// Fails if a load is refused, if the lock cannot be taken, or if the records or maps cannot be
    /// read or written.
    pub(crate) fn begin_load(&self) -> Result<Change> {
        let change = self.begin()?;
        self.prepare_trial(change)
    }

    /// Does for a change that has begun what [`Instance::begin_load`] does.
    ///
    /// # Errors
    /// Fails as [`Instance::begin_load`] does.
    pub(crate) fn prepare_trial(&self, mut change: Change) -> Result<Change> {
        let Some(request) = &self.request else {
            return match &change.kept {
                None => Ok(change),
                Some(Kept { trial, .. }) => {
                    let left = confirm_by(&self.maps).saturating_sub(self.uptime()?);
                    let (uid, pid) = (trial.load.uid, trial.load.pid);
                    change.refuse(Error::OnTrial { uid, pid, left })
                }
            };
        };
        change = self.without_expansions(change)?;
        if change.kept.is_none() {
            if !self.have_states_ended()? {
                return change.refuse(Error::StatesEnding);
            }
            unmark_rules(&self.maps, change.memory.slots_used);
            let trial = Trial {
                kept: change.record.generation,
                was_running: self.running(),
                debug: change.memory.debug,
                fingerprints_flushed: change.memory.fingerprints_flushed,
                ..Trial::default()
            };
            change.kept = Some(Kept { trial, record: change.record.clone() });
        }
        if let Some(Kept { trial, .. }) = &mut change.kept {
            trial.load = Load::now();
            trial.seconds = request.seconds;
            trial.keep_states = request.keep_states;
            trial.file.clone_from(&request.file);
            trial.text.clone_from(&request.text);
        }
        Ok(change)
    }

    /// Waits until the states have ended that a failed trial ends. Returns false if some are left.
    fn have_states_ended(&self) -> Result<bool> {
        let are_left = || self.maps.shared_status.load(0, offset_of!(abi::Status, ending)) != 0;
        let begin = Instant::now();
        if are_left() {
            self.start()?;
        }
        while are_left() {
            if begin.elapsed() > LONGEST_END {
                return Ok(false);
            }
            thread::sleep(PAUSE);
        }
        Ok(true)
    }

    /// Builds the trees of the rules in force without the networks of tables. Otherwise a command
    /// that adds to a table during the trial would have to build these trees anew, too.
    fn without_expansions(&self, mut change: Change) -> Result<Change> {
        if change.kept.is_some() || !forget_expansions(&mut change.record) {
            return Ok(change);
        }
        let next = Next::same(&change.record.ruleset);
        self.commit(change, next, &crate::host::read()?)?;
        self.begin()
    }

    /// Arms the way back, just before the commit of `new`: the timer goes back after the time that
    /// the load asks for, and ends states as the load asks. Other commits during a trial change
    /// neither.
    ///
    /// # Errors
    /// Fails if the kernel cannot start the timer, or if a file cannot be written.
    pub(crate) fn arm(&self, trial: &mut Trial, new: &Record) -> Result<()> {
        let back = back_after(trial.kept, new.generation);
        let is_first = trial.pending == 0;
        trial.pending = new.generation;
        self.run.link_record(trial.kept, back)?;
        self.run.set_trial(trial)?;
        set_back(&self.maps, trial.kept, new.generation);
        let status = &self.maps.shared_status;
        if self.request.is_none() {
            return Ok(());
        }
        let running = u32::from(trial.was_running);
        status.store(0, offset_of!(abi::Status, back_running), running);
        set_ends_states(&self.maps, !trial.keep_states);
        match self.programs.start_timer()? {
            0 => {}
            errno => return Err(Error::Timer { errno }),
        }
        let by = self.uptime()?.wrapping_add(trial.seconds).max(1);
        if is_first {
            status.store(0, offset_of!(abi::Status, confirm_by), by);
            return Ok(());
        }
        let due = confirm_by(&self.maps);
        match due != 0 && set_confirm_by(&self.maps, due, by) {
            true => Ok(()),
            false => Err(Error::TrialFailed { seconds: trial.seconds }),
        }
    }

    /// Ends a trial that was confirmed or has failed: restores what the trial's rules changed
    /// outside of the maps, releases what only the losing rule set uses, and begins another change.
    ///
    /// # Errors
    /// Fails if a map or record cannot be read or written, or if a link cannot be removed.
    pub(crate) fn end_trial(&self, mut change: Change, trial: Trial) -> Result<Change> {
        let has_failed = change.record.generation == self.back();
        let loser = if has_failed { trial.pending } else { trial.kept };
        // a process that was killed below may have removed the record already
        let loser = self.run.find(loser).map(FoundRecord::into_record).unwrap_or_default();
        change.recover(&self.maps)?;
        release(&self.maps, &mut change.memory, &mut change.record, &loser)?;
        if has_failed {
            change.memory.debug = trial.debug;
            change.memory.fingerprints_flushed = trial.fingerprints_flushed;
            if !self.running() {
                guard::detach(&self.directory)?;
                attach::detach_all(&self.directory)?;
            }
        }
        // the text of the load may be long, and nobody confirms it any more
        change.memory.failed_trial = has_failed.then_some(Trial { text: None, ..trial });
        change.is_unsure |= has_failed;
        let mut change = self.recovered(change)?;
        change.is_unsure = false;
        let next = Next::same(&change.record.ruleset);
        let unsettled = self.commit_unsettled(change, next, &crate::host::read()?)?;
        // while the lock is held: another process may begin a trial as soon as the lock is free
        self.run.remove_trial()?;
        self.settle(unsettled)?;
        self.begin()
    }
}

/// Removes the networks of tables in trees from a record, so that the next commit builds the trees
/// without them. Returns true if there were some.
pub fn forget_expansions(record: &mut Record) -> bool {
    let mut had_some = false;
    for table in record.tables.values_mut().filter(|table| table.expansions.is_some()) {
        (table.contents, table.expansions) = (None, None);
        had_some = true;
    }
    had_some
}

/// Returns the generation that is in force if the trial of the generation `pending` fails.
fn back_after(kept: u32, pending: u32) -> u32 {
    generation_in(copy_of(kept), pending)
}

/// Writes the generation that is in force if the trial of the generation `pending` fails.
pub fn set_back(maps: &Maps, kept: u32, pending: u32) {
    let back = offset_of!(abi::Status, back);
    maps.shared_status.store(0, back, back_after(kept, pending));
}

/// Writes whether states of rules that only the load on trial has end if the trial fails.
pub fn set_ends_states(maps: &Maps, ends_states: bool) {
    maps.shared_status.store(0, offset_of!(abi::Status, ends_states), ends_states.into());
}

/// Ends a trial in the maps: gives the rules of `record`, which are in force, their numbers again,
/// releases the limiters and tables that only the losing rule set has, and records its rules that
/// may still have states.
///
/// # Errors
/// Fails if a map cannot be read or written.
pub fn release(
    maps: &Maps,
    memory: &mut Memory,
    record: &mut Record,
    loser: &Record,
) -> Result<()> {
    for table in record.tables.values_mut() {
        // a load on trial may have changed a table that both rule sets share
        contents::set_counters(maps, memory, table.slot, table.counters)?;
        table.contents = None;
    }
    let replaced = table_slots::replaced_contents(maps, loser, &record.tables)?;
    table_slots::release(maps, &replaced, &record.tables)?;
    // loads on trial before the last one have left contents, too
    contents::remove_all_but(maps, record.all_tables_mut())?;
    let slots: SlotSet = record.slots().collect();
    record.orphans.extend(orphans::rules(maps, loser, &slots));
    commit::forget_numbers(maps, loser, record, None);
    let states = &maps.shared_rule_states;
    for (rule, slot) in record.rules() {
        states.store(slot, offset_of!(abi::RuleStates, number), rule.number);
    }
    limiter::retire(maps, Earlier::in_force(loser), record);
    limiter::finish(maps, Earlier::in_force(loser), record, false);
    orphans::follow_tables(maps, record, None);
    pool::follow_tables(maps, record, None)
}

/// Returns the second of the boot clock until which the rules in force are on trial; 0 if they are
/// not.
pub(crate) fn confirm_by(maps: &Maps) -> u32 {
    maps.shared_status.load(0, offset_of!(abi::Status, confirm_by))
}

/// Replaces the time of the trial, if it is still `old`. Returns true if it was.
pub(crate) fn set_confirm_by(maps: &Maps, old: u32, new: u32) -> bool {
    maps.shared_status.replace(0, offset_of!(abi::Status, confirm_by), old, new)
}

/// Removes the marks that earlier trials have left on rules. `slots_used` is the number of slots
/// ever used.
pub fn unmark_rules(maps: &Maps, slots_used: u32) {
    for slot in 0..slots_used {
        maps.shared_rule_states.store(slot, offset_of!(abi::RuleStates, trial), 0);
    }
}

/// Marks the rules of replaced anchors that the `kept` rule set does not have. The states of these
/// rules may end if the trial fails.
pub(crate) fn mark_rules<'a>(
    maps: &Maps,
    kept: &Record,
    new: &Record,
    replaced: impl Iterator<Item = &'a String>,
) {
    for path in replaced {
        let known = kept.rule_sets.get(path).into_iter();
        let known = known.flat_map(|set| commit::meanings(&kept.ruleset, path, set));
        let known: HashSet<String> = known.map(|(rule, _)| rule).collect();
        let Some(set) = new.rule_sets.get(path) else { continue };
        for (rule, slot) in commit::meanings(&new.ruleset, path, set) {
            let is_new = u32::from(!known.contains(&rule));
            maps.shared_rule_states.store(slot, offset_of!(abi::RuleStates, trial), is_new);
        }
    }
}
