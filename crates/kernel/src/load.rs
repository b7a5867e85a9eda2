//! What changes the rules of an instance.

use std::io;
use std::mem::offset_of;
use std::thread::{self, JoinHandle};

use skipstep_abi as abi;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Next, Options, Ruleset};

use crate::change::Change;
use crate::commit::{self, Prepared, beside};
use crate::error::{Error, Result};
use crate::express::Express;
use crate::instance::Instance;
use crate::lists::Lists;
use crate::object::{Sizes, slots_for};
use crate::record::{Memory, Record, wall_clock};
use crate::rule_home::RuleHome;
use crate::rundir::{Found, RunDir};
use crate::{divert, host, queue, routing};

/// Rules that are in force, while packets that began before may still read the old ones. As long as
/// this lives nobody else changes the instance; [`Instance::settle`] ends it. Who drops it leaves
/// that to whoever changes the instance next.
#[must_use]
pub struct Unsettled {
    change: Change,
    old: Record,
    prepared: Prepared,
}

/// The rule set in force, being read in a thread of its own while nothing keeps others from
/// replacing it.
pub struct Ahead(io::Result<JoinHandle<Option<Found>>>);

impl Ahead {
    /// The rule set, if now that the instance is locked it still is what is remembered.
    fn found(self, run: &RunDir) -> Option<Record> {
        self.0.ok()?.join().ok()??.if_still_there(run)
    }
}

impl Instance {
    /// `pfctl -f`: puts the main rule set and the anchors that come with it in force in one piece.
    /// Anchors that were loaded by themselves stay, and so do states. What needs more room than
    /// there is, for states or for rules, makes the instance anew if it is not running, and is
    /// refused if it is.
    pub fn load(&mut self, ruleset: Ruleset, host: &Host) -> Result<()> {
        let change = self.begin()?;
        let next = Next::main(&change.record.ruleset, ruleset);
        self.put_in_force(change, next, host)
    }

    /// [`Instance::load`] by someone who has begun to read what is in force.
    pub fn load_ahead(&mut self, ruleset: Ruleset, host: &Host, ahead: Ahead) -> Result<()> {
        let lock = self.run.lock()?;
        let found = ahead.found(&self.run);
        let change = Change::begin(&self.run, lock, &self.maps, || match found {
            Some(record) if record.generation == self.generation() => Ok(record),
            _ => self.record(),
        })?;
        let change = self.recovered(change)?;
        let next = Next::main(&change.record.ruleset, ruleset);
        self.put_in_force(change, next, host)
    }

    /// Begins to read what is in force, for who is to change it soon and has something else to do
    /// first.
    pub fn read_ahead(&self) -> Ahead {
        let (run, generation) = (self.run.clone(), self.generation());
        Ahead(thread::Builder::new().spawn(move || run.find(generation).ok()))
    }

    /// `pfctl -a path -f`: the rules and tables of `ruleset` become those of the anchor `path`, in
    /// one piece with its `anchors`, whose paths are whole. Its options and queues mean nothing
    /// here.
    pub fn load_anchor(&mut self, path: &str, ruleset: &Ruleset, host: &Host) -> Result<()> {
        let change = self.begin()?;
        let next = Next::anchors(&change.record.ruleset, [(path, ruleset)]);
        self.put_in_force(change, next, host)
    }

    /// `pfctl -a path -F rules`: removes the rules of an anchor, and its tables that are not
    /// persistent. Anchors below it stay.
    pub fn clear_anchor(&mut self, path: &str) -> Result<()> {
        self.load_anchor(path, &Ruleset::default(), &host::read()?)
    }

    /// [`Instance::load_anchor`] for several anchors in one piece; an empty rule set removes one.
    /// They are in force when this returns, and the milliseconds until no packet reads the old ones
    /// are left to [`Instance::settle`].
    pub fn change_anchors<'a>(
        &mut self,
        changes: impl IntoIterator<Item = (&'a str, &'a Ruleset)>,
        host: &Host,
    ) -> Result<Unsettled> {
        let change = self.begin()?;
        let next = Next::anchors(&change.record.ruleset, changes);
        self.turn_where_it_fits(change, next, host)
    }

    /// Lets go of the old rules.
    pub fn settle(&self, unsettled: Unsettled) -> Result<()> {
        let Unsettled { change, old, prepared } = unsettled;
        commit::settle(&self.maps, &old, &change.record, &prepared)?;
        self.run.forget_all_but(change.record.generation)?;
        change.end()
    }

    /// `pfctl -F nat`: removes the translation rules of old times from the main rule set, or from
    /// an anchor. All else stays as it is.
    pub fn flush_translation(&self, path: &str) -> Result<()> {
        let change = self.begin()?;
        let next = Next::without_translation(&change.record.ruleset, path);
        self.commit(change, next, &host::read()?)
    }

    /// Removes all rules of the main rule set; options stay, and tables that are not persistent go
    /// with the rules. Anchors that were loaded by themselves stay.
    pub fn flush_rules(&self) -> Result<()> {
        let change = self.begin()?;
        let next = Next::emptied(&change.record.ruleset);
        self.commit(change, next, &host::read()?)
    }

    /// `pfctl -F osfp`: until the main rule set is loaded again, rules that ask for an operating
    /// system match no packet (`pf_osfp_flush`).
    pub fn flush_fingerprints(&self) -> Result<()> {
        let mut change = self.begin()?;
        change.memory.fingerprints_flushed = true;
        let mut next = Next::same(&change.record.ruleset);
        next.ruleset.fingerprints.clear();
        self.commit(change, next, &host::read()?)
    }

    /// `pfctl -F Reset`: all options become what they are by default; rules and tables stay.
    pub fn reset_options(&mut self) -> Result<()> {
        let change = self.begin()?;
        let mut next = Next::same(&change.record.ruleset);
        next.ruleset.options = Options::default();
        self.put_in_force(change, next, &host::read()?)?;
        self.set_debug(Options::default().debug)
    }

    fn put_in_force(&mut self, change: Change, next: Next, host: &Host) -> Result<()> {
        let unsettled = self.turn_where_it_fits(change, next, host)?;
        self.settle(unsettled)
    }

    pub(crate) fn commit(&self, change: Change, next: Next, host: &Host) -> Result<()> {
        self.settle(self.turn(change, next, host)?)
    }

    /// Makes the instance anew if it has no room for what is to be in force.
    fn turn_where_it_fits(&mut self, change: Change, next: Next, host: &Host) -> Result<Unsettled> {
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
            return self.turn(change, next, host);
        }
        let sizes = Sizes::instance(limits.states, limits.src_nodes, rules);
        let all = Next::main(&Ruleset::default(), next.ruleset);
        let change = self.make_anew(&sizes, change, &all.ruleset)?;
        self.turn(change, all, host)
    }

    /// Puts rules in force.
    fn turn(&self, mut change: Change, next: Next, host: &Host) -> Result<Unsettled> {
        if divert::is_used(&next.ruleset) {
            divert::set_up()?;
        }
        routing::set_up(&mut change.memory.loopback)?;
        routing::accept_own(&next.ruleset, &mut change.memory.loopback_accepts)?;
        let main = next.replaces("");
        let (maps, run) = (&self.maps, &self.run);
        let (old, memory) = (&change.record, &mut change.memory);
        let (mut record, placed) = commit::place(maps, old, memory, next, host)?;
        let lists = Lists::take(&mut record);
        let (draft, prepared) = beside(
            || run.draft(&record, &lists),
            || commit::write(maps, &RuleHome::Fitting, old, memory, (&record, placed), host),
        )?;
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
            Express::of(&self.directory)?;
        }
        let old = std::mem::replace(&mut change.record, record);
        change.save_drafted(draft)?;
        commit::flip(&self.maps, &old, &change.record);
        self.switch(&mut change, &old, main, host)?;
        let boot_time = wall_clock().saturating_sub(self.uptime()?.into());
        self.maps.shared_status.store(0, offset_of!(abi::Status, boot_time), boot_time as u32);
        Ok(Unsettled { change, old, prepared })
    }

    /// Makes queues and programs in drivers those of a rule set that has just come into force. A
    /// process that is killed here, or fails, leaves the change unfinished, and the process that
    /// changes the instance next does it ([`Instance::begin`]).
    fn switch(&self, change: &mut Change, old: &Record, main: bool, host: &Host) -> Result<()> {
        let queues = &change.record.ruleset.queues;
        if change.is_unsure || old.ruleset.queues != *queues {
            queue::replace(&old.ruleset.queues, queues, &change.memory.names, host)?;
        }
        if !self.running() {
            return Ok(());
        }
        let refusals = |memory: &Memory| (memory.without_xdp.clone(), memory.unattached.clone());
        let before = refusals(&change.memory);
        if main {
            // for a host on which no skipstepd runs
            let _ = self.attach_all(&mut change.memory, host);
        }
        self.follow_xdp(change, host)?;
        if refusals(&change.memory) != before {
            change.save_memory()?;
        }
        Ok(())
    }
}
