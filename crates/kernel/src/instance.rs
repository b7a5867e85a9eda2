//! An instance: the filter of one network namespace, created, enabled, loaded, queried and removed
//! by name.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::mem::offset_of;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};
use skipstep_abi as abi;
use skipstep_classifier::Names;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Limits, Next, Ruleset};
use skipstep_views::{LimiterView, SourceView, StateView};

use crate::change::Change;
use crate::error::{Context, Error, Result};
use crate::load::Unsettled;
use crate::netns::Netns;
use crate::object::{Maps, Programs, Sizes};
use crate::queue::QueueStats;
use crate::record::{InForce, Load, Memory, Record, wall_clock};
use crate::rule_home::RuleHome;
use crate::rundir::{Lock, RunDir};
use crate::state::{Found, Sides};
use crate::trial::{self, TrialRequest};
use crate::xdp_fast_path::XdpFastPath;
use crate::{
    attach, commit, divert, guard, host, limiter, map, netns, pins, ports, queue, routing, source,
    state, table_slots,
};

/// Longest name of an instance, in bytes.
const NAME_BYTES: usize = 63;

/// An open instance.
pub struct Instance {
    name: String,
    pub(crate) directory: PathBuf,
    pub(crate) run: RunDir,
    pub(crate) maps: Maps,
    pub(crate) programs: Programs,
    /// The wish that the next load is on trial.
    pub(crate) request: Option<TrialRequest>,
    /// True if the last load of the main rules removed the failsafe list.
    pub(crate) lost_failsafe_list: bool,
}

/// The rule set in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// Rules, settings and tables as they were loaded, with all anchors.
    pub ruleset: Ruleset,
    /// Number of the rule set. Rises with every load.
    pub generation: u32,
    /// Time when the main rule set was loaded.
    pub loaded_at: SystemTime,
    /// User who loaded the main rule set.
    pub uid: u32,
    /// Process that loaded the main rule set.
    pub pid: u32,
    /// User, process and time of the load of each anchor, by path.
    pub anchors: BTreeMap<String, Load>,
}

impl Instance {
    /// Returns the name of the instance that commands use if no name is given: `main` in the
    /// network namespace of the first process, `netns-INODE` in others.
    // Differs from OpenBSD: linux.md, "Instances and namespaces"
    pub fn default_name() -> String {
        match netns::is_first() {
            true => "main".to_owned(),
            false => format!("netns-{}", Netns::current().inode),
        }
    }

    /// Returns the names of all instances.
    ///
    /// # Errors
    /// Fails if other users can write to the folder of pins.
    pub fn list() -> Result<Vec<String>> {
        pins::list()
    }

    /// Opens an instance that exists. An instance whose network namespace is gone counts as
    /// missing.
    ///
    /// # Errors
    /// Fails if there is no such instance, or if the process is not root. Fails also if another
    /// version made the instance, or if its files are missing or another user's.
    pub fn open(name: &str) -> Result<Self> {
        let directory = directory(name)?;
        exists(name, &directory)?;
        let run = RunDir::new(name);
        run.mend()?;
        if is_stale(&run, &directory)? {
            return Err(Error::NoInstance { name: name.to_owned() });
        }
        let maps = match Maps::open(&directory) {
            Ok(maps) => maps,
            Err(error) => {
                return Err(if nix::unistd::geteuid().is_root() {
                    other_version(name, 0, error)
                } else {
                    Error::NotRoot { operation: name.to_owned() }
                });
            }
        };
        let found = maps.status.at(0)?.abi_version;
        if found != abi::VERSION {
            return Err(Error::Version { name: name.to_owned(), found, ours: abi::VERSION });
        }
        let programs = Programs::open(&directory)?;
        Ok(Instance {
            name: name.to_owned(),
            directory,
            run,
            maps,
            programs,
            request: None,
            lost_failsafe_list: false,
        })
    }

    /// Opens the instance. Makes it with an empty rule set and room for `states` states if it does
    /// not exist.
    ///
    /// # Errors
    /// Fails if the instance exists and cannot be opened, or if it cannot be made: the kernel is
    /// too old, the verifier refuses a program, or memory for the maps is short.
    pub fn open_or_create(name: &str, states: u32) -> Result<Self> {
        Self::open_or_create_sized(name, &Sizes::instance(states, 0, 0))
    }

    /// Opens or makes the instance, with room for `limits` and for successive rule sets of `rules`
    /// rules. An instance that filters keeps its size, because rebuilding it would let packets pass
    /// meanwhile.
    ///
    /// # Errors
    /// Fails if the instance cannot be opened, made, or rebuilt with larger maps.
    pub fn open_with_room(name: &str, limits: &Limits, rules: u32) -> Result<Self> {
        let sizes = Sizes::instance(limits.states, limits.src_nodes, rules);
        let mut instance = Self::open_or_create_sized(name, &sizes)?;
        if instance.running() || instance.has(&sizes) {
            return Ok(instance);
        }
        let change = instance.begin_load()?;
        let same = Next::same(&change.record.ruleset);
        let unsettled = instance.make_anew(&sizes, change, &same, &host::read()?)?;
        instance.settle(unsettled)?;
        Ok(instance)
    }

    /// True if the maps are at least as large as `sizes`.
    fn has(&self, sizes: &Sizes) -> bool {
        let maps = &self.maps;
        maps.states.capacity() >= sizes.states
            && maps.source_nodes.capacity() >= sizes.sources
            && maps.rule_states.capacity() >= sizes.rule_slots
    }

    fn open_or_create_sized(name: &str, sizes: &Sizes) -> Result<Self> {
        match Self::open(name) {
            Err(Error::NoInstance { .. }) => {}
            other => return other,
        }
        let lock = RunDir::new(name).lock()?;
        match Self::open(name) {
            Err(Error::NoInstance { .. }) => {
                // remove the remains of an instance whose network namespace is gone
                pins::remove(&directory(name)?)?;
                Self::create(name, sizes, lock)
            }
            other => other,
        }
    }

    /// Rebuilds an instance that does not filter, with maps of other sizes, and commits `next`. The
    /// new maps get the rules first, and then take the place of the present ones with one rename.
    /// So a process that is killed before leaves the rules in force, and one that is killed after
    /// leaves those of `next`. All states go.
    pub(crate) fn make_anew(
        &mut self,
        sizes: &Sizes,
        mut change: Change,
        next: &Next,
        host: &Host,
    ) -> Result<Unsettled> {
        skipstep_classifier::image::check_rules(&next.ruleset)?;
        let next = table_slots::with_contents(&self.maps, &change.record, next)?;
        // until the rename, the memory must be right for the maps of both
        let rule_slots = sizes.rule_slots.max(self.maps.rule_states.capacity());
        let draft = pins::Draft::new(&self.directory, &Sizes { rule_slots, ..*sizes })?;
        let (name, run) = (self.name.clone(), self.run.clone());
        let pins::Draft { maps, programs, directory } = draft;
        let new = Instance {
            name,
            directory,
            run,
            maps,
            programs,
            request: None,
            lost_failsafe_list: false,
        };
        let generation = change.record.generation;
        new.maps.shared_status.store(0, offset_of!(abi::Status, generation), generation);
        change.memory.in_force = InForce::default();
        let queues = std::mem::take(&mut change.record.ruleset.queues);
        let ruleset = Ruleset { queues, ..Ruleset::default() };
        change.record = Record { generation, ruleset, ..Record::default() };
        let replaced = new.commit_unsettled(change, next, host).and_then(|unsettled| {
            pins::exchange(&new.directory, &self.directory)?;
            Ok(unsettled)
        });
        // the new pins, or the previous ones if they were exchanged
        let removed = pins::remove(&new.directory);
        let mut unsettled = replaced?;
        *self = Instance { directory: self.directory.clone(), ..new };
        removed?;
        unsettled.begin_counting()?;
        Ok(unsettled)
    }

    pub(crate) fn create(name: &str, sizes: &Sizes, lock: Lock) -> Result<Self> {
        let directory = directory(name)?;
        let run = RunDir::new(name);
        let change = Change::first(&run, lock)?;
        let (maps, programs) = pins::create(&directory, sizes)?;
        let name = name.to_owned();
        let instance = Instance {
            name,
            directory,
            run,
            maps,
            programs,
            request: None,
            lost_failsafe_list: false,
        };
        let next = Next::main(&Ruleset::default(), Ruleset::default());
        instance.commit(change, next, &host::read()?)?;
        Ok(instance)
    }

    /// Detaches the data plane everywhere and removes the instance.
    ///
    /// # Errors
    /// Fails if the lock cannot be taken, or if a link, queue, pin or file cannot be removed.
    pub fn remove(self) -> Result<()> {
        let _lock = self.run.lock()?;
        guard::detach(&self.directory)?;
        attach::detach_all(&self.directory)?;
        queue::remove_all()?;
        pins::remove(&self.directory)?;
        divert::tear_down();
        restore_host(&self.run);
        self.run.remove()
    }

    /// Removes all pins and files under `name`, also those of another version or of an incomplete
    /// instance.
    ///
    /// # Errors
    /// Fails if there is no such instance, if the lock cannot be taken, or if a pin or file cannot
    /// be removed.
    pub fn remove_named(name: &str) -> Result<()> {
        let directory = directory(name)?;
        let run = RunDir::new(name);
        if !run.exists() {
            exists(name, &directory)?;
        }
        let _lock = run.lock()?;
        pins::remove(&directory)?;
        pins::remove_unfinished()?;
        divert::tear_down();
        restore_host(&run);
        run.remove()
    }

    /// Returns the maps of the instance.
    pub fn maps(&self) -> &Maps {
        &self.maps
    }

    /// Returns the programs of the instance.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Returns the XDP programs of the instance, loaded if no rule set has asked for them yet.
    ///
    /// # Errors
    /// Fails if the verifier refuses a program, or if it cannot be pinned or opened.
    pub fn xdp_fast_path(&self) -> Result<XdpFastPath> {
        XdpFastPath::open_or_load(&self.directory)
    }

    /// Returns the numbers of interfaces, groups, tags, anchors and queues.
    ///
    /// # Errors
    /// Fails if the instance's memory cannot be read.
    pub fn names(&self) -> Result<Names> {
        Ok(self.run.memory()?.names)
    }

    /// Returns the name of the instance.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Implements [`Instance::enable`] in a change that has begun.
    pub(crate) fn enable_in(&self, mut change: Change) -> Result<bool> {
        let host = host::read()?;
        self.attach_all(&mut change.memory, &host)?;
        let was_running = self.running();
        let guarded = guard::attach(&self.programs, &self.directory);
        let followed = self
            .follow(&mut change, &host)
            .and_then(|()| self.follow_xdp(&mut change, &host))
            .and_then(|()| self.start());
        if !was_running {
            self.begin_to_filter()?;
            self.stop_after_failed_trial()?;
            // skipstepd attaches no interface before this point, so attach those that appeared
            // meanwhile
            self.attach_all(&mut change.memory, &host::read()?)?;
        }
        release_namespaces();
        guarded.and(followed)?;
        self.keep(change, &host)?;
        Ok(!was_running)
    }

    /// Stops filtering again if this process has loaded the rules on trial, and the trial has
    /// failed before the filter was enabled.
    fn stop_after_failed_trial(&self) -> Result<()> {
        let Some(request) = &self.request else { return Ok(()) };
        if trial::confirm_by(&self.maps) != 0 || self.generation() != self.back() {
            return Ok(());
        }
        self.maps.shared_status.store(0, offset_of!(abi::Status, running), 0);
        Err(Error::TrialFailed { seconds: request.seconds })
    }

    /// Lets the programs filter the packets that they see.
    fn begin_to_filter(&self) -> Result<()> {
        let status = &self.maps.shared_status;
        if status.load(0, offset_of!(abi::Status, first_enabled)) == 0 {
            // state ids must go on rising when an instance is rebuilt
            let now = wall_clock();
            status.store_long(0, offset_of!(abi::Status, next_state_id), now << 32);
            status.store(0, offset_of!(abi::Status, first_enabled), now as u32);
        }
        status.store(0, offset_of!(abi::Status, since), self.uptime()?);
        status.store(0, offset_of!(abi::Status, running), 1);
        Ok(())
    }

    /// Attaches the data plane to every interface, and records the interfaces that refuse.
    ///
    /// # Errors
    /// Fails if no interface can be attached, as on a kernel without tcx.
    pub(crate) fn attach_all(&self, memory: &mut Memory, host: &Host) -> Result<()> {
        let mut refused = BTreeMap::new();
        for interface in &host.interfaces {
            if let Err(error) = attach::attach(&self.programs, &self.directory, interface.index) {
                refused.insert(interface.name.clone(), error);
            }
        }
        let describe = |(name, error): (&String, &Error)| (name.clone(), error.to_string());
        memory.unattached = refused.iter().map(describe).collect();
        match refused.pop_first() {
            Some((_, error)) if memory.unattached.len() == host.interfaces.len() => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns the interfaces that could not be attached at the last attempt, with the reason.
    ///
    /// # Errors
    /// Fails if the instance's memory cannot be read.
    pub fn unattached(&self) -> Result<BTreeMap<String, String>> {
        Ok(self.run.memory()?.unattached)
    }

    /// Returns the interfaces that `set xdp on` names and that run no XDP program, with the reason.
    ///
    /// # Errors
    /// Fails if the instance's memory cannot be read.
    pub fn without_xdp(&self) -> Result<BTreeMap<String, String>> {
        Ok(self.run.memory()?.without_xdp)
    }

    /// Returns true unless `pfctl -F osfp` has removed the fingerprints of operating systems.
    ///
    /// # Errors
    /// Fails if the instance's memory cannot be read.
    pub fn has_fingerprints(&self) -> Result<bool> {
        Ok(!self.run.memory()?.fingerprints_flushed)
    }

    /// True if the guard drops the packets of interfaces that the filter is not attached to.
    pub fn is_guarded(&self) -> bool {
        self.wants_guard() && guard::is_attached(&self.directory)
    }

    /// True if packets are filtered and the rules ask for the guard, but the kernel has no BPF
    /// programs for netfilter's hooks.
    pub fn lacks_guard(&self) -> bool {
        self.running() && self.wants_guard() && !guard::is_attached(&self.directory)
    }

    /// True unless `set unattached pass` is in force.
    fn wants_guard(&self) -> bool {
        let config = self.maps.configs.at(self.copy());
        config.is_ok_and(|config| config.unattached == abi::config::unattached::BLOCK)
    }

    /// Implements [`Instance::disable`] under the lock.
    pub(crate) fn stop(&self) -> Result<bool> {
        let was_running = self.running();
        let status = &self.maps.shared_status;
        status.store(0, offset_of!(abi::Status, running), 0);
        if was_running {
            status.store(0, offset_of!(abi::Status, since), self.uptime()?);
        }
        guard::detach(&self.directory)?;
        attach::detach_all(&self.directory)?;
        Ok(was_running)
    }

    /// True if packets are filtered.
    pub fn running(&self) -> bool {
        self.maps.shared_status.load(0, offset_of!(abi::Status, running)) != 0
    }

    /// Returns the rule set in force.
    ///
    /// # Errors
    /// Fails if the record of the rule set cannot be read.
    pub fn loaded(&self) -> Result<Loaded> {
        let record = self.record()?;
        let mut loads: BTreeMap<String, Load> =
            record.rule_sets.into_iter().map(|(path, set)| (path, set.load)).collect();
        let main = loads.remove("").unwrap_or_default();
        Ok(Loaded {
            ruleset: record.ruleset,
            generation: record.generation,
            loaded_at: UNIX_EPOCH + Duration::from_secs(main.at),
            uid: main.uid,
            pid: main.pid,
            anchors: loads,
        })
    }

    /// Returns the rule sets in force by the numbers that log records have. Each has its path
    /// (empty for the main rule set) and its load.
    ///
    /// # Errors
    /// Fails if the records cannot be read.
    pub fn origins(&self) -> Result<BTreeMap<u32, (String, Load)>> {
        let names = self.names()?.anchors;
        let origins = self.record()?.rule_sets.into_iter().filter_map(|(path, set)| {
            let number = if path.is_empty() { 0 } else { names.get(&path)? };
            Some((number, (path, set.load)))
        });
        Ok(origins.collect())
    }

    /// Returns the rules that packets are evaluated against now, as the kernel stores them.
    ///
    /// # Errors
    /// Fails if the maps cannot be read.
    pub fn rules_in_force(&self) -> Result<Vec<abi::Rule>> {
        let copy = self.copy();
        let rules = map::by_id::<abi::Rule>("rules", self.maps.rulesets.at(copy)?)?;
        Ok(rules.first(self.maps.configs.at(copy)?.rules)?.collect())
    }

    /// Applies changes of the host: interfaces, their groups and addresses. Attaches new interfaces
    /// if packets are filtered.
    ///
    /// # Errors
    /// Fails if the lock cannot be taken, if no interface can be attached, or if the records or
    /// maps cannot be written.
    pub fn refresh(&self, host: &Host) -> Result<()> {
        let mut change = self.begin()?;
        if self.running() {
            self.attach_all(&mut change.memory, host)?;
        }
        self.follow(&mut change, host)?;
        attach::forget_gone(&self.directory)?;
        if self.running() {
            self.follow_xdp(&mut change, host)?;
            guard::attach(&self.programs, &self.directory)?;
        }
        self.keep(change, host)
    }

    /// Attaches the XDP program to the interfaces that `set xdp on` of the recorded rule set names.
    pub(crate) fn follow_xdp(&self, change: &mut Change, host: &Host) -> Result<()> {
        let wanted = &change.record.ruleset.options.xdp;
        change.memory.without_xdp = attach::follow_xdp(&self.directory, wanted, host)?;
        Ok(())
    }

    /// Restarts the sweeper's timer if it is overdue. The data plane counts an error of the timer.
    pub(crate) fn revive_timer(&self) -> Result<()> {
        let second = self.maps.status.at(0)?.second;
        let is_needed = self.running() || trial::confirm_by(&self.maps) != 0;
        match second != 0 && is_needed && self.uptime()?.saturating_sub(second) > 2 {
            true => self.start(),
            false => Ok(()),
        }
    }

    /// Starts the sweeper's timer, unless it runs.
    pub(crate) fn start(&self) -> Result<()> {
        self.programs.start_timer().map(drop)
    }

    pub(crate) fn follow(&self, change: &mut Change, host: &Host) -> Result<()> {
        commit::follow_host(
            &self.maps,
            &RuleHome::Fitting,
            &mut change.memory,
            &mut change.record,
            change.kept.as_ref().map(|kept| &kept.record),
            host,
        )?;
        let (maps, programs, directory) = (&self.maps, &self.programs, &self.directory);
        ports::follow(maps, programs, directory, &mut change.memory.ports, host)?;
        queue::complete(&change.record.ruleset.queues, &change.memory.names, host)
    }

    /// Ends a change that followed the host. Compiles the rules again if a name in them has changed
    /// its meaning.
    fn keep(&self, change: Change, host: &Host) -> Result<()> {
        if !commit::is_outdated(&change.record, host) {
            return change.keep();
        }
        let next = Next::same(&change.record.ruleset);
        self.commit(change, next, host)
    }

    /// Begins a change: takes the lock, recovers from a killed process, and opens the records.
    ///
    /// # Errors
    /// Fails if the lock cannot be taken, or if the records cannot be read or written. Fails also
    /// if the instance filters another network namespace.
    pub fn begin(&self) -> Result<Change> {
        let lock = self.run.lock()?;
        self.revive_timer()?;
        self.ready(Change::begin(&self.run, lock, &self.maps, || self.record())?)
    }

    /// Restores what a killed process has left, and ends a trial whose result is known.
    pub(crate) fn ready(&self, change: Change) -> Result<Change> {
        let change = self.recovered(change)?;
        match self.run.trial()?.filter(|_| change.kept.is_none()) {
            Some(trial) => self.end_trial(change, trial),
            None => Ok(change),
        }
    }

    /// Restores the queues and XDP programs of the rule set in force, if the change before was not
    /// ended.
    pub(crate) fn recovered(&self, mut change: Change) -> Result<Change> {
        if !change.is_unsure {
            return Ok(change);
        }
        let host = host::read()?;
        // a queue or program that the kernel refuses must not keep other rules from being loaded
        let _ = queue::restore(&change.record.ruleset.queues, &change.memory.names, &host);
        if self.running() {
            let _ = self.follow_xdp(&mut change, &host);
        }
        Ok(change)
    }

    /// Returns the numbers of queues by their names.
    ///
    /// # Errors
    /// Fails if the instance's memory cannot be read.
    pub fn queue_numbers(&self) -> Result<BTreeMap<String, u16>> {
        let names = self.names()?.queues;
        Ok(names.iter().map(|(name, number)| (name.to_owned(), number as u16)).collect())
    }

    /// Returns the counters of an interface's queues, by their names.
    ///
    /// # Errors
    /// Fails if the instance's memory cannot be read, or if rtnetlink refuses the request.
    pub fn queue_stats(&self, interface: u32) -> Result<BTreeMap<String, QueueStats>> {
        let names = self.names()?.queues;
        let named = |(number, stats)| Some((names.name(u32::from(number))?.to_owned(), stats));
        Ok(queue::stats(interface)?.into_iter().filter_map(named).collect())
    }

    /// Returns all states in order of creation.
    ///
    /// # Errors
    /// Fails if the maps or the instance's memory cannot be read.
    pub fn states(&self) -> Result<Vec<StateView>> {
        let found = state::list(&self.maps, &self.names()?)?;
        Ok(found.into_iter().map(|found| found.view).collect())
    }

    /// Returns the stable identities of orphaned rules, by the ids of their states.
    ///
    /// # Errors
    /// Fails if the maps or the record cannot be read.
    pub fn identities_of_orphans(&self) -> Result<HashMap<u64, String>> {
        match self.record()?.orphans {
            orphans if orphans.is_empty() => Ok(HashMap::new()),
            orphans => state::identities_of_orphans(&self.maps, &orphans),
        }
    }

    /// Removes the states that `wanted` accepts. Returns the number of removed states.
    ///
    /// # Errors
    /// Fails if the maps or the instance's memory cannot be read, or if a program of the kernel
    /// fails.
    pub fn kill_states(
        &self,
        sides: Sides,
        mut wanted: impl FnMut(&StateView) -> bool,
    ) -> Result<u64> {
        let names = self.names()?;
        state::kill(&self.maps, &self.programs, &names, sides, |found| wanted(&found.view))
    }

    /// Removes the states that `wanted` accepts and that rules with this label made, also orphaned
    /// rules. Returns the number of removed states.
    ///
    /// # Errors
    /// Fails if the maps or records cannot be read, or if a program of the kernel fails.
    pub fn kill_labelled(
        &self,
        label: &str,
        sides: Sides,
        mut wanted: impl FnMut(&StateView) -> bool,
    ) -> Result<u64> {
        let (names, slots) = (self.names()?, self.record()?.labelled(label));
        let meant = |found: &Found| slots.contains(&found.rule_slot) && wanted(&found.view);
        state::kill(&self.maps, &self.programs, &names, sides, meant)
    }

    /// Returns the source nodes, sorted by rule.
    ///
    /// # Errors
    /// Fails if the maps or the instance's memory cannot be read.
    pub fn sources(&self) -> Result<Vec<SourceView>> {
        let found = source::list(&self.maps, &self.names()?)?;
        Ok(found.into_iter().map(|found| found.view).collect())
    }

    /// Returns the limiters, state limiters first, each kind in the order of its numbers.
    ///
    /// # Errors
    /// Fails if the maps or the record of the rule set cannot be read.
    pub fn limiters(&self) -> Result<Vec<LimiterView>> {
        limiter::list(&self.maps, &self.record()?.ruleset)
    }

    /// Removes the source nodes that `wanted` accepts. Returns their number. Their states stay.
    ///
    /// # Errors
    /// Fails if the maps or the instance's memory cannot be read, or if a program of the kernel
    /// fails.
    pub fn drop_sources(&self, wanted: impl FnMut(&SourceView) -> bool) -> Result<u64> {
        source::drop_nodes(&self.maps, &self.programs, &self.names()?, wanted)
    }

    /// Removes a source from a source limiter, which starts a new count at the source's next
    /// packet. Returns true if the limiter had the source; `None` if there is no such limiter.
    ///
    /// # Errors
    /// Fails if the record of the rule set cannot be read, or if a program of the kernel fails.
    pub fn forget_limited(&self, id: u32, rdomain: u32, source: IpAddr) -> Result<Option<bool>> {
        let ruleset = &self.record()?.ruleset;
        limiter::forget(&self.maps, &self.programs, ruleset, (id, rdomain, source))
    }

    /// Sets the debug level (`pfctl -x`).
    ///
    /// # Errors
    /// Fails if the lock cannot be taken, or if the records cannot be written.
    pub fn set_debug(&self, level: u8) -> Result<()> {
        let mut change = self.begin()?;
        change.memory.debug = level;
        change.keep()
    }

    /// True if this instance is still pinned under its name. An instance that was removed or
    /// rebuilt must be opened again.
    pub fn is_current(&self) -> bool {
        let pinned = map::pinned_id(&self.directory.join(abi::names::map::STATUS));
        pinned.is_some() && pinned == self.maps.status.id()
    }

    /// Returns the seconds of the clock that states use. A test may set this clock.
    ///
    /// # Errors
    /// Fails if the clock or the map cannot be read.
    pub fn uptime(&self) -> Result<u32> {
        match self.maps.test.at(0)? {
            driven if driven.enabled != 0 => Ok(driven.now),
            _ => uptime(),
        }
    }

    pub(crate) fn record(&self) -> Result<Record> {
        match self.generation() {
            // the process that made the instance was killed before it wrote rules
            0 => Ok(Record::default()),
            _ => {
                let mut record = self.run.record(|| self.generation())?;
                if self.run.has_trial() && trial::confirm_by(&self.maps) == 0 {
                    // commands may have changed these tables during the trial
                    record.all_tables_mut().for_each(|table| table.contents = None);
                }
                Ok(record)
            }
        }
    }

    /// Returns the largest number of rules that one packet may be evaluated against, as the load
    /// has computed it.
    pub fn longest_walk(&self) -> u32 {
        let config: abi::Config = self.maps.shared_configs.element(self.copy());
        config.longest_walk
    }

    /// Returns the generation in force, which rises with every load.
    pub fn generation(&self) -> u32 {
        self.maps.shared_status.load(0, offset_of!(abi::Status, generation))
    }

    /// Returns the generation that is in force after a trial that fails.
    pub(crate) fn back(&self) -> u32 {
        self.maps.shared_status.load(0, offset_of!(abi::Status, back))
    }

    /// Returns the copy that has the rules and settings in force.
    fn copy(&self) -> u32 {
        abi::limits::copy_of(self.generation())
    }
}

fn directory(name: &str) -> Result<PathBuf> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > NAME_BYTES || !name.chars().all(allowed) {
        return Err(Error::InstanceName { name: name.to_owned() });
    }
    Ok(pins::root()?.join(name))
}

/// Restores the settings of loopback and of bridge ports, as far as they are recorded. The memory
/// of another version may be unreadable.
fn restore_host(run: &RunDir) {
    if let Ok(memory) = run.memory() {
        routing::tear_down(&memory.loopback);
        routing::refuse_own(memory.loopback_accepts);
        ports::tear_down(&memory.ports);
    }
}

/// Releases network namespaces that only the guards of other instances keep alive.
fn release_namespaces() {
    for name in pins::list().unwrap_or_default() {
        if let Ok(directory) = directory(&name) {
            // a failure does not concern this instance, and the next process tries again
            let _ = is_stale(&RunDir::new(&name), &directory);
        }
    }
}

/// True if the pinned instance filtered a network namespace that is gone.
fn is_stale(run: &RunDir, directory: &Path) -> Result<bool> {
    if !run.is_known() {
        return Err(Error::Forgotten { name: run.name() });
    }
    let memory = run.memory()?;
    let (here, there) = (Netns::current(), memory.namespace);
    if here != there {
        guard::release_namespace(directory, &memory)?;
    }
    Ok(here.succeeds(&there) || (here != there && attach::all_gone(directory)))
}

/// Checks that the pins of an instance exist. An instance that this user may not see does not count
/// as missing.
fn exists(name: &str, directory: &Path) -> Result<()> {
    match std::fs::metadata(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::NoInstance { name: name.to_owned() })
        }
        other => other.map(|_| ()).context(|| name.to_owned()),
    }
}

/// Converts an error of opening the maps: missing maps, or maps of other sizes, come from another
/// version.
fn other_version(name: &str, found: u32, error: Error) -> Error {
    match error {
        Error::Bpf { .. } => Error::Version { name: name.to_owned(), found, ours: abi::VERSION },
        other => other,
    }
}

/// Returns the seconds since boot, including sleep, as `bpf_ktime_get_boot_ns` counts them.
fn uptime() -> Result<u32> {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).context(|| "boot clock".to_owned())?;
    Ok(now.tv_sec() as u32)
}
