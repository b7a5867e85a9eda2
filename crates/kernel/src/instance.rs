//! A firewall in the kernel: made, enabled, loaded, asked and removed by name.

use std::collections::BTreeMap;
use std::io;
use std::mem::offset_of;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};
use skipstep_abi as abi;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Options, Ruleset};
use skipstep_scenario::engine::{LimiterView, SourceView, StateView};

use crate::change::Change;
use crate::commit::RuleHome;
use crate::error::{Context, Error, Result};
use crate::netns::Netns;
use crate::next::Next;
use crate::object::{Maps, Programs, Sizes, slots_for};
use crate::queue::QueueStats;
use crate::record::{Load, Record, wall_clock};
use crate::rundir::{Lock, RunDir};
use crate::{
    attach, commit, divert, forget, host, limiter, map, netns, pins, place, queue, routing, source,
    state,
};

/// Longest name of an instance.
const NAME_BYTES: usize = 63;

/// An instance that exists.
pub struct Instance {
    name: String,
    pub(crate) directory: PathBuf,
    pub(crate) run: RunDir,
    pub(crate) maps: Maps,
    pub(crate) programs: Programs,
}

/// The rule set in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// Rules, settings and tables as they were loaded, with all anchors.
    pub ruleset: Ruleset,
    /// Rises by one with every load.
    pub generation: u32,
    /// When the main rule set was loaded.
    pub loaded_at: SystemTime,
    /// Who loaded it.
    pub uid: u32,
    /// The process that loaded it.
    pub pid: u32,
    /// Who loaded each anchor, by path.
    pub anchors: BTreeMap<String, Load>,
}

impl Instance {
    /// The name meant by nobody saying one: `main` in the network namespace of the first process,
    /// `netns-INODE` in others.
    pub fn default_name() -> String {
        let here = Netns::current().inode;
        if netns::first_inode() == Some(here) { "main".to_owned() } else { format!("netns-{here}") }
    }

    /// Names of all instances.
    pub fn list() -> Result<Vec<String>> {
        pins::list()
    }

    /// An instance that exists. One whose network namespace is gone counts as missing.
    pub fn open(name: &str) -> Result<Self> {
        let directory = directory(name)?;
        exists(name, &directory)?;
        if is_stale(name, &directory)? {
            return Err(Error::NoInstance { name: name.to_owned() });
        }
        let maps = match Maps::open(&directory) {
            Ok(maps) => maps,
            Err(error) => {
                return Err(if nix::unistd::geteuid().is_root() {
                    other_version(name, 0, error)
                } else {
                    Error::NotRoot { what: name.to_owned() }
                });
            }
        };
        let found = maps.status.at(0)?.abi_version;
        if found != abi::VERSION {
            return Err(Error::Version { name: name.to_owned(), found, ours: abi::VERSION });
        }
        let programs = Programs::open(&directory)?;
        let run = RunDir::new(name);
        Ok(Instance { name: name.to_owned(), directory, run, maps, programs })
    }

    /// The instance, made with an empty rule set and room for `states` states if there is none.
    pub fn open_or_create(name: &str, states: u32) -> Result<Self> {
        match Self::open(name) {
            Err(Error::NoInstance { .. }) => {}
            other => return other,
        }
        let lock = RunDir::new(name).lock()?;
        match Self::open(name) {
            Err(Error::NoInstance { .. }) => {
                // what is left of one whose network namespace is gone
                pins::remove(&directory(name)?)?;
                Self::create(name, &Sizes::instance(states, 0, 0), lock)
            }
            other => other,
        }
    }

    fn create(name: &str, sizes: &Sizes, lock: Lock) -> Result<Self> {
        let directory = directory(name)?;
        let run = RunDir::new(name);
        let change = Change::first(&run, lock)?;
        let (maps, programs) = pins::create(&directory, sizes)?;
        let instance = Instance { name: name.to_owned(), directory, run, maps, programs };
        let next = Next::main(&Ruleset::default(), &Ruleset::default());
        instance.commit(change, &next, &host::read()?)?;
        Ok(instance)
    }

    /// Detaches the data plane everywhere and removes all that belongs to the instance.
    pub fn remove(self) -> Result<()> {
        let _lock = self.run.lock()?;
        attach::detach_all(&self.directory)?;
        queue::remove_all()?;
        pins::remove(&self.directory)?;
        divert::tear_down();
        routing::tear_down();
        self.run.remove()
    }

    /// Removes whatever is pinned and kept under `name`, also by another version, also in part.
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
        routing::tear_down();
        run.remove()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Attaches the data plane to every interface and starts to filter; false if it already did.
    pub fn enable(&self) -> Result<bool> {
        let mut change = self.begin()?;
        self.follow(&mut change, &host::read()?)?;
        for index in self.maps.interfaces.keys().collect::<Vec<_>>() {
            attach::attach(&self.programs, &self.directory, index)?;
        }
        self.programs.start.call(&())?;
        change.keep()?;
        if self.running() {
            return Ok(false);
        }
        let status = &self.maps.shared_status;
        if status.load(0, offset_of!(abi::Status, first_enabled)) == 0 {
            // ids go on rising when an instance is made anew
            let now = wall_clock();
            status.store_long(0, offset_of!(abi::Status, next_state_id), now << 32);
            status.store(0, offset_of!(abi::Status, first_enabled), now as u32);
        }
        status.store(0, offset_of!(abi::Status, since), self.uptime()?);
        status.store(0, offset_of!(abi::Status, running), 1);
        Ok(true)
    }

    /// Stops filtering and detaches the data plane everywhere; false if it did not filter. Rules,
    /// tables and states stay.
    pub fn disable(&self) -> Result<bool> {
        let _lock = self.run.lock()?;
        let was_running = self.running();
        let status = &self.maps.shared_status;
        status.store(0, offset_of!(abi::Status, running), 0);
        if was_running {
            status.store(0, offset_of!(abi::Status, since), self.uptime()?);
        }
        attach::detach_all(&self.directory)?;
        Ok(was_running)
    }

    /// Whether packets are filtered.
    pub fn running(&self) -> bool {
        self.maps.shared_status.load(0, offset_of!(abi::Status, running)) != 0
    }

    /// `pfctl -f`: puts the main rule set and the anchors that come with it in force in one piece.
    /// Anchors that were loaded by themselves stay, and so do states. What needs more room than there
    /// is, for states or for rules, makes the instance anew if it is not running, and is refused if
    /// it is.
    pub fn load(&mut self, ruleset: &Ruleset, host: &Host) -> Result<()> {
        let change = self.begin()?;
        let next = Next::main(&change.record.ruleset, ruleset);
        self.put_in_force(change, &next, host)
    }

    /// `pfctl -a path -f`: the rules and tables of `ruleset` become those of the anchor `path`, in
    /// one piece with its `anchors`, whose paths are whole. Its options and queues mean nothing here.
    pub fn load_anchor(&mut self, path: &str, ruleset: &Ruleset, host: &Host) -> Result<()> {
        let change = self.begin()?;
        let next = Next::anchor(&change.record.ruleset, path, ruleset);
        self.put_in_force(change, &next, host)
    }

    /// `pfctl -a path -F rules`: removes the rules of an anchor, and its tables that are not
    /// persistent. Anchors below it stay.
    pub fn clear_anchor(&mut self, path: &str) -> Result<()> {
        let change = self.begin()?;
        let next = Next::without(&change.record.ruleset, path);
        self.put_in_force(change, &next, &host::read()?)
    }

    fn put_in_force(&mut self, change: Change, next: &Next, host: &Host) -> Result<()> {
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
            return self.commit(change, next, host);
        }
        let sizes = Sizes::instance(limits.states, limits.src_nodes, rules);
        skipstep_classifier::image::check_rules(&next.ruleset)?;
        pins::remove(&self.directory)?;
        *self = Self::create(&self.name, &sizes, change.into_lock())?;
        let all = Next::main(&Ruleset::default(), &next.ruleset);
        self.commit(self.begin()?, &all, host)
    }

    pub(crate) fn commit(&self, mut change: Change, next: &Next, host: &Host) -> Result<()> {
        if divert::is_used(&next.ruleset) {
            divert::set_up()?;
        }
        if routing::is_used(&next.ruleset) {
            routing::set_up()?;
        }
        let prepared = commit::prepare(
            &self.maps,
            &RuleHome::New,
            &change.record,
            &mut change.memory,
            next,
            host,
        )?;
        if next.replaces("") {
            change.memory.debug = next.ruleset.options.debug;
        }
        let queues = [&change.record, &prepared.record].map(|record| &record.ruleset.queues[..]);
        queue::replace(queues[0], queues[1], &change.memory.names, host)?;
        let old = std::mem::replace(&mut change.record, prepared.record.clone());
        change.save()?;
        commit::flip(&self.maps, &old, &prepared)?;
        let boot_time = wall_clock().saturating_sub(self.uptime()?.into());
        self.maps.shared_status.store(0, offset_of!(abi::Status, boot_time), boot_time as u32);
        self.run.forget_all_but(prepared.record.generation)?;
        change.keep()
    }

    /// The rule set in force.
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

    /// The rule sets in force by the numbers that log records name them by: path, empty for the main
    /// one, and who loaded it.
    pub fn origins(&self) -> Result<BTreeMap<u32, (String, Load)>> {
        let names = self.run.memory()?.names.anchors;
        let origins = self.record()?.rule_sets.into_iter().filter_map(|(path, set)| {
            let number = if path.is_empty() { 0 } else { names.get(&path)? };
            Some((number, (path, set.load)))
        });
        Ok(origins.collect())
    }

    /// The rules that packets walk at this moment, as the kernel has them.
    pub fn rules_in_force(&self) -> Result<Vec<abi::Rule>> {
        let side = self.generation() & 1;
        let rules = map::by_id::<abi::Rule>("rules", self.maps.rulesets.at(side)?)?;
        Ok(rules.first(self.maps.configs.at(side)?.rules)?.collect())
    }

    /// Takes up what changed in the host: interfaces, their groups and addresses. New interfaces
    /// are attached if packets are filtered.
    pub fn refresh(&self, host: &Host) -> Result<()> {
        let mut change = self.begin()?;
        self.follow(&mut change, host)?;
        attach::forget_gone(&self.directory)?;
        if self.running() {
            for interface in &host.interfaces {
                attach::attach(&self.programs, &self.directory, interface.index)?;
            }
        }
        change.keep()
    }

    fn follow(&self, change: &mut Change, host: &Host) -> Result<()> {
        let ruleset = &change.record.ruleset;
        forget::make_room(&self.maps, &mut change.memory.names, host, &[ruleset])?;
        let skip = &ruleset.options.skip[..];
        commit::write_interfaces(&self.maps, &mut change.memory, host, [skip, skip])?;
        place::follow_addresses(&self.maps, &mut change.memory, &mut change.record, host)?;
        queue::complete(&change.record.ruleset.queues, &change.memory.names, host)
    }

    /// Waits for the lock, puts right what a killed process left, and opens what is remembered.
    pub(crate) fn begin(&self) -> Result<Change> {
        Change::begin(&self.run, self.run.lock()?, &self.maps, || self.record())
    }

    /// Numbers of queues by their names.
    pub fn queue_numbers(&self) -> Result<BTreeMap<String, u16>> {
        let names = self.run.memory()?.names.queues;
        Ok(names.iter().map(|(name, number)| (name.to_owned(), number as u16)).collect())
    }

    /// What went through the queues of an interface, by their names.
    pub fn queue_stats(&self, interface: u32) -> Result<BTreeMap<String, QueueStats>> {
        let names = self.run.memory()?.names.queues;
        let named = |(number, stats)| Some((names.name(u32::from(number))?.to_owned(), stats));
        Ok(queue::stats(interface)?.into_iter().filter_map(named).collect())
    }

    /// All states in order of creation.
    pub fn states(&self) -> Result<Vec<StateView>> {
        let found = state::list(&self.maps, &self.run.memory()?.names)?;
        Ok(found.into_iter().map(|found| found.view).collect())
    }

    /// Removes the states that `wanted` names; how many.
    pub fn kill_states(&self, wanted: impl FnMut(&StateView) -> bool) -> Result<u64> {
        state::kill(&self.maps, &self.programs, &self.run.memory()?.names, wanted)
    }

    /// The sources that rules track, by rule.
    pub fn sources(&self) -> Result<Vec<SourceView>> {
        let found = source::list(&self.maps, &self.run.memory()?.names)?;
        Ok(found.into_iter().map(|found| found.view).collect())
    }

    /// Limiters in the order of their numbers, those of states first.
    pub fn limiters(&self) -> Result<Vec<LimiterView>> {
        limiter::list(&self.maps, &self.record()?.ruleset)
    }

    /// Forgets the sources that `wanted` names; how many. Their states go on.
    pub fn drop_sources(&self, wanted: impl FnMut(&SourceView) -> bool) -> Result<u64> {
        source::drop_nodes(&self.maps, &self.programs, &self.run.memory()?.names, wanted)
    }

    /// Forgets a source of a source limiter, which is counted anew when it comes again. Whether the
    /// limiter knew it; `None` if there is no such limiter.
    pub fn forget_limited(&self, id: u32, rdomain: u32, source: IpAddr) -> Result<Option<bool>> {
        let ruleset = &self.record()?.ruleset;
        limiter::forget(&self.maps, &self.programs, ruleset, (id, rdomain, source))
    }

    /// `pfctl -F nat`: removes the translation rules of old times from the main rule set, or from an
    /// anchor. All else stays as it is.
    pub fn flush_translation(&self, path: &str) -> Result<()> {
        let change = self.begin()?;
        let next = Next::without_translation(&change.record.ruleset, path);
        self.commit(change, &next, &host::read()?)
    }

    /// Removes all rules of the main rule set; options stay, and tables that are not persistent go
    /// with the rules. Anchors that were loaded by themselves stay.
    pub fn flush_rules(&self) -> Result<()> {
        let change = self.begin()?;
        let options = change.record.ruleset.options.clone();
        let empty = Ruleset { options, ..Ruleset::default() };
        let next = Next::main(&change.record.ruleset, &empty);
        self.commit(change, &next, &host::read()?)
    }

    /// `pfctl -F Reset`: all options become what they are by default; rules and tables stay.
    pub fn reset_options(&mut self) -> Result<()> {
        let change = self.begin()?;
        let mut next = Next::same(&change.record.ruleset);
        next.ruleset.options = Options::default();
        self.put_in_force(change, &next, &host::read()?)?;
        self.set_debug(Options::default().debug)
    }

    /// `pfctl -x`
    pub fn set_debug(&self, level: u8) -> Result<()> {
        let mut change = self.begin()?;
        change.memory.debug = level;
        change.keep()
    }

    /// Whether this is still what is pinned under its name: an instance that was removed or rebuilt
    /// must be opened again.
    pub fn is_current(&self) -> bool {
        let pinned = map::pinned_id(&self.directory.join(abi::names::map::STATUS));
        pinned.is_some() && pinned == self.maps.status.id()
    }

    /// Seconds of the clock that states count by; a test may drive it.
    pub fn uptime(&self) -> Result<u32> {
        match self.maps.test.at(0)? {
            driven if driven.enabled != 0 => Ok(driven.now),
            _ => uptime(),
        }
    }

    pub(crate) fn record(&self) -> Result<Record> {
        match self.generation() {
            // whoever made the instance was killed before it had rules
            0 => Ok(Record::default()),
            _ => self.run.record(|| self.generation()),
        }
    }

    /// Rises by one with every load.
    pub fn generation(&self) -> u32 {
        self.maps.shared_status.load(0, offset_of!(abi::Status, generation))
    }
}

fn directory(name: &str) -> Result<PathBuf> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > NAME_BYTES || !name.chars().all(allowed) {
        return Err(Error::InstanceName { name: name.to_owned() });
    }
    Ok(pins::root()?.join(name))
}

/// Whether what is pinned filtered a network namespace that is gone.
fn is_stale(name: &str, directory: &Path) -> Result<bool> {
    let run = RunDir::new(name);
    if !run.is_known() {
        return Err(Error::Forgotten { name: name.to_owned() });
    }
    let (here, there) = (Netns::current(), run.memory()?.namespace);
    Ok(here.succeeds(&there) || (here != there && attach::all_gone(directory)))
}

/// An instance that we may not look for is not one that is missing.
fn exists(name: &str, directory: &Path) -> Result<()> {
    match std::fs::metadata(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::NoInstance { name: name.to_owned() })
        }
        other => other.map(|_| ()).context(|| name.to_owned()),
    }
}

/// Maps that are missing or of other sizes were made by another version.
fn other_version(name: &str, found: u32, error: Error) -> Error {
    match error {
        Error::Bpf { .. } => Error::Version { name: name.to_owned(), found, ours: abi::VERSION },
        other => other,
    }
}

/// Seconds since boot, sleep included: what `bpf_ktime_get_boot_ns` counts.
fn uptime() -> Result<u32> {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).context(|| "boot clock".to_owned())?;
    Ok(now.tv_sec() as u32)
}
