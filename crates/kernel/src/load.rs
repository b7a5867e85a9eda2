//! Loads: the functions that change the rules of an instance.

use std::io;
use std::mem::offset_of;
use std::thread::{self, JoinHandle};

use skipstep_abi as abi;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Next, Options, Ruleset, Table, failsafe};

use crate::change::Change;
use crate::commit::{self, Earlier, Prepared, beside};
use crate::error::{Error, Result};
use crate::instance::Instance;
use crate::lists::Lists;
use crate::object::{Sizes, slots_for};
use crate::record::{Memory, Record, wall_clock};
use crate::rule_home::RuleHome;
use crate::rundir::{FoundRecord, RunDir};
use crate::{divert, host, queue, routing};

/// A committed rule set whose predecessor packets may still read. This value holds the instance's
/// lock; [`Instance::settle`] consumes it. If it is dropped, the next change of the instance
/// recovers.
#[must_use]
pub struct Unsettled {
    change: Change,
    previous: Record,
    prepared: Prepared,
}

impl Unsettled {
    /// Lets counters begin now, for an instance with new maps. No bridge has its programs.
    ///
    /// # Errors
    /// Fails if the memory cannot be saved.
    pub(crate) fn begin_counting(&mut self) -> Result<()> {
        let memory = &mut self.change.memory;
        memory.created_at = wall_clock();
        memory.interfaces_zeroed.clear();
        memory.ports.clear();
        self.change.save_memory()
    }
}

/// A read of the rule set in force in another thread. Other processes may replace the rule set
/// meanwhile.
pub struct ReadAhead(io::Result<JoinHandle<Option<FoundRecord>>>);

impl ReadAhead {
    /// Returns the rule set, if it is still the recorded one. The instance must be locked.
    fn found(self, run: &RunDir) -> Option<Record> {
        self.0.ok()?.join().ok()??.if_still_there(run)
    }
}

impl Instance {
    /// Loads the main rule set and the anchors in it, in one commit (`pfctl -f`). Anchors that were
    /// loaded by themselves and all states stay. A rule set that needs larger maps rebuilds an
    /// instance that is not running.
    ///
    /// # Errors
    /// Fails if the rules cannot be compiled, or if an instance that runs has too little room for
    /// them. Fails also if a limit is below the entries in use, if the lock cannot be taken, or if
    /// the kernel refuses a change.
    pub fn load(&mut self, ruleset: Ruleset, host: &Host) -> Result<()> {
        let change = self.begin_load()?;
        self.load_main(change, ruleset, host)
    }

    /// Loads as [`Instance::load`] does, with a read that [`Instance::read_ahead`] began.
    ///
    /// # Errors
    /// Fails as [`Instance::load`] does.
    pub fn load_ahead(&mut self, ruleset: Ruleset, host: &Host, ahead: ReadAhead) -> Result<()> {
        let lock = self.run.lock()?;
        let found = ahead.found(&self.run);
        let change = Change::begin(&self.run, lock, &self.maps, || match found {
            Some(record) if record.generation == self.generation() => Ok(record),
            _ => self.record(),
        })?;
        let change = self.prepare_trial(self.ready(change)?)?;
        self.load_main(change, ruleset, host)
    }

    fn load_main(&mut self, change: Change, ruleset: Ruleset, host: &Host) -> Result<()> {
        let had_list = change.record.ruleset.has_failsafe_list();
        let loses_list = had_list && !ruleset.has_failsafe_list();
        let next = Next::main(&change.record.ruleset, ruleset);
        self.commit_or_rebuild(change, next, host)?;
        self.lost_failsafe_list = loses_list;
        Ok(())
    }

    /// True if the last [`Instance::load`] of this value replaced rules that began with the
    /// failsafe list by rules that do not.
    pub fn has_lost_failsafe_list(&self) -> bool {
        self.lost_failsafe_list
    }

    /// Begins to read the rule set in force, for a load that follows soon.
    pub fn read_ahead(&self) -> ReadAhead {
        let (run, generation) = (self.run.clone(), self.generation());
        ReadAhead(thread::Builder::new().spawn(move || run.find(generation).ok()))
    }

    /// Loads the rules and tables of `ruleset` into the anchor `path`, in one commit (`pfctl -a
    /// path -f`). Its `anchors` have full paths. Ignores its options and queues.
    ///
    /// # Errors
    /// Fails as [`Instance::load`] does, and for the anchor of the failsafe list in force.
    pub fn load_anchor(&mut self, path: &str, ruleset: &Ruleset, host: &Host) -> Result<()> {
        let change = self.begin_load()?;
        let next = Next::anchors(&change.record.ruleset, [(path, ruleset)]);
        self.commit_or_rebuild(change, next, host)
    }

    /// Loads the tables that `tables` defines into the rule set of `path` (`pfctl -T load`). Rules
    /// and other tables stay.
    ///
    /// # Errors
    /// Fails as [`Instance::load`] does.
    pub fn load_tables(&mut self, path: &str, tables: &[Table], host: &Host) -> Result<()> {
        let change = self.begin_load()?;
        let next = Next::tables(&change.record.ruleset, path, tables);
        self.commit_or_rebuild(change, next, host)
    }

    /// Removes the rules of an anchor, and its tables that are not persistent (`pfctl -a path -F
    /// rules`). Anchors below it stay.
    ///
    /// # Errors
    /// Fails if the host cannot be read, or as [`Instance::load`] does.
    pub fn clear_anchor(&mut self, path: &str) -> Result<()> {
        self.load_anchor(path, &Ruleset::default(), &host::read()?)
    }

    /// Loads several anchors in one commit, as [`Instance::load_anchor`] does; an empty rule set
    /// removes an anchor. The new rules are in force on return. [`Instance::settle`] waits for the
    /// milliseconds until no packet reads the previous rules.
    ///
    /// # Errors
    /// Fails as [`Instance::load`] does.
    pub fn change_anchors<'a>(
        &mut self,
        changes: impl IntoIterator<Item = (&'a str, &'a Ruleset)>,
        host: &Host,
    ) -> Result<Unsettled> {
        let change = self.begin()?;
        let next = Next::anchors(&change.record.ruleset, changes);
        self.rebuild_and_commit(change, next, host)
    }

    /// Waits for the readers of the previous rules and releases these.
    ///
    /// # Errors
    /// Fails if a map or a record cannot be written or removed.
    pub fn settle(&self, unsettled: Unsettled) -> Result<()> {
        let Unsettled { change, previous, prepared } = unsettled;
        let earlier = Earlier { in_force: &previous, ..change.earlier() };
        commit::settle(&self.maps, earlier, &change.record, &prepared)?;
        let on_trial = change.kept.as_ref().map(|kept| [kept.trial.kept, self.back()]);
        let generations = std::iter::once(change.record.generation);
        let generations: Vec<u32> = generations.chain(on_trial.into_iter().flatten()).collect();
        self.run.forget_all_but(&generations)?;
        change.end()
    }

    /// Removes the legacy translation rules from the main rule set or from an anchor (`pfctl -F
    /// nat`). All else stays.
    ///
    /// # Errors
    /// Fails if the lock cannot be taken, or if the rules cannot be compiled or written.
    pub fn flush_translation(&self, path: &str) -> Result<()> {
        let change = self.begin_load()?;
        let next = Next::without_translation(&change.record.ruleset, path);
        self.commit(change, next, &host::read()?)
    }

    /// Removes all rules of the main rule set, and its tables that are not persistent. Options and
    /// anchors that were loaded by themselves stay.
    ///
    /// # Errors
    /// Fails if the lock cannot be taken, or if the rules cannot be compiled or written.
    pub fn flush_rules(&self) -> Result<()> {
        let change = self.begin_load()?;
        let next = Next::emptied(&change.record.ruleset);
        self.commit(change, next, &host::read()?)
    }

    /// Removes the fingerprints of operating systems (`pfctl -F osfp`, `pf_osfp_flush`). Until the
    /// next load of the main rule set, rules with `os` match no packet.
    ///
    /// # Errors
    /// Fails if the lock cannot be taken, or if the rules cannot be compiled or written.
    pub fn flush_fingerprints(&self) -> Result<()> {
        let mut change = self.begin_load()?;
        change.memory.fingerprints_flushed = true;
        let mut next = Next::same(&change.record.ruleset);
        next.ruleset.fingerprints.clear();
        self.commit(change, next, &host::read()?)
    }

    /// Resets all options to their defaults (`pfctl -F Reset`). Rules and tables stay.
    ///
    /// # Errors
    /// Fails as [`Instance::load`] does.
    pub fn reset_options(&mut self) -> Result<()> {
        let change = self.begin_load()?;
        let mut next = Next::same(&change.record.ruleset);
        next.ruleset.options = Options::default();
        self.commit_or_rebuild(change, next, &host::read()?)?;
        self.set_debug(Options::default().debug)
    }

    /// Commits the next rule set, after rebuilding the instance if it has too little room.
    fn commit_or_rebuild(&mut self, change: Change, next: Next, host: &Host) -> Result<()> {
        let unsettled = self.rebuild_and_commit(change, next, host)?;
        self.settle(unsettled)
    }

    pub(crate) fn commit(&self, change: Change, next: Next, host: &Host) -> Result<()> {
        self.settle(self.commit_unsettled(change, next, host)?)
    }

    fn rebuild_and_commit(&mut self, change: Change, next: Next, host: &Host) -> Result<Unsettled> {
        let changes_list = next.replaces(failsafe::ANCHOR) && !next.replaces("");
        if changes_list && change.record.ruleset.has_failsafe_list() {
            return change.refuse(Error::FailsafeList);
        }
        let limits = &next.ruleset.options.limits;
        let rules = next.ruleset.every_rule().count() as u32;
        let rooms = [
            ("states", limits.states, self.maps.states.capacity()),
            ("src-nodes", limits.src_nodes, self.maps.source_nodes.capacity()),
        ];
        let status = self.maps.status.at(0)?;
        let used = [
            ("states", limits.states, status.states),
            ("src-nodes", limits.src_nodes, status.sources),
        ];
        if let Some((limit, wanted, used)) =
            used.into_iter().find(|(_, wanted, used)| next.replaces("") && wanted < used)
        {
            return Err(Error::InUse { limit, wanted, used });
        }
        let too_small = rooms.into_iter().find(|(_, wanted, capacity)| wanted > capacity);
        let fits = too_small.is_none() && slots_for(rules) <= self.maps.rule_states.capacity();
        if fits || self.running() {
            if let Some((limit, wanted, capacity)) = too_small {
                return Err(Error::Capacity { limit, wanted, capacity });
            }
            return self.commit_unsettled(change, next, host);
        }
        if change.kept.is_some() {
            return change.refuse(Error::TrialRoom);
        }
        let sizes = Sizes::instance(limits.states, limits.src_nodes, rules);
        self.make_anew(&sizes, change, &next, host)
    }

    /// Commits the next rule set: places, writes, stores the generation, and switches queues and
    /// XDP programs.
    pub(crate) fn commit_unsettled(
        &self,
        mut change: Change,
        next: Next,
        host: &Host,
    ) -> Result<Unsettled> {
        if divert::is_used(&next.ruleset) {
            divert::set_up()?;
        }
        routing::set_up(&mut change.memory.loopback)?;
        routing::accept_own(&next.ruleset, &mut change.memory.loopback_accepts)?;
        let main = next.replaces("");
        let (maps, run) = (&self.maps, &self.run);
        let mut memory = std::mem::take(&mut change.memory);
        let earlier = change.earlier();
        let (mut record, placed) = commit::assign_slots(maps, earlier, &mut memory, next, host)?;
        let lists = Lists::take(&mut record);
        let new = (&record, placed);
        let (draft, prepared) = beside(
            || run.draft(&record, &lists),
            || commit::write(maps, &RuleHome::Fitting, earlier, &mut memory, new, host),
        )?;
        change.memory = memory;
        lists.put(&mut record);
        let (prepared, draft) = (prepared?, draft?);
        if main {
            change.memory.debug = record.ruleset.options.debug;
            change.memory.fingerprints_flushed = false;
        }
        let (queues, names) = (&record.ruleset.queues, &change.memory.names);
        if change.is_unsure || change.record.ruleset.queues != *queues {
            queue::rehearse(queues, names)?;
        }
        if !record.ruleset.options.xdp.is_empty() {
            self.xdp_fast_path()?;
        }
        let previous = std::mem::replace(&mut change.record, record);
        change.save_drafted(draft)?;
        if let Some(kept) = &mut change.kept {
            self.arm(&mut kept.trial, &change.record)?;
        }
        let earlier = Earlier { in_force: &previous, ..change.earlier() };
        if !commit::switch_generation(&self.maps, earlier, &change.record) {
            let seconds = change.kept.map_or(0, |kept| kept.trial.seconds);
            return Err(Error::TrialFailed { seconds });
        }
        self.switch(&mut change, &previous, main, host)?;
        let boot_time = wall_clock().saturating_sub(self.uptime()?.into());
        self.maps.shared_status.store(0, offset_of!(abi::Status, boot_time), boot_time as u32);
        Ok(Unsettled { change, previous, prepared })
    }

    /// Switches queues and XDP programs to a rule set that has just been committed. A process that
    /// fails or is killed here leaves the change unfinished, and [`Instance::begin`] of the next
    /// change repeats the switch.
    fn switch(
        &self,
        change: &mut Change,
        previous: &Record,
        main: bool,
        host: &Host,
    ) -> Result<()> {
        let queues = &change.record.ruleset.queues;
        if change.is_unsure || previous.ruleset.queues != *queues {
            queue::replace(&previous.ruleset.queues, queues, &change.memory.names, host)?;
        }
        if !self.running() {
            return Ok(());
        }
        let refusals = |memory: &Memory| (memory.without_xdp.clone(), memory.unattached.clone());
        let before = refusals(&change.memory);
        if main {
            // for a host without skipstepd
            let _ = self.attach_all(&mut change.memory, host);
        }
        self.follow_xdp(change, host)?;
        if refusals(&change.memory) != before {
            change.save_memory()?;
        }
        Ok(())
    }
}
