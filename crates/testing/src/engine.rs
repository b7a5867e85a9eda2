//! The data plane under test. `BPF_PROG_TEST_RUN` runs the programs that filter real packets, on
//! packets, a clock, random draws, interfaces and routes that the test chooses.

use std::mem::offset_of;
use std::time::Duration;

use skipstep_abi as abi;
use skipstep_classifier::Planner;
use skipstep_kernel::commit::Earlier;
use skipstep_kernel::contents::{EntryInfo, EntryTraffic};
use skipstep_kernel::object::{self, Maps, Programs, Sizes};
use skipstep_kernel::program::{self, Program, Run};
use skipstep_kernel::record::{Memory, Record};
use skipstep_kernel::ring::RingReader;
use skipstep_kernel::rule_home::RuleHome;
use skipstep_kernel::{
    DroppedPacket, Indexing, Result, commit, contents, counters, drops, limiter, source, state,
    table, trial,
};
use skipstep_model::{Draw, Fate, Packet, TableCounters, TableTraffic, TrialTime};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Evaluator, FastForward, Next, RuleId, RulesChange, Ruleset, TableName};
use skipstep_scenario::Engine;
use skipstep_views::{
    InterfaceCounters, LimiterView, RuleCounters, SourceView, StateView, Status, TableEdit,
};

use crate::here::no_network;
use crate::machine::Machine;
use crate::passage::{Passage, TCX_DROP};
use crate::{arrival, copies, here, reset};

/// The data plane, loaded for this thread and not pinned.
///
/// A new engine moves the calling thread into a network namespace of its own. It ties the thread to
/// its CPU, because results of packets are stored per CPU. The engine must stay on that thread.
pub struct TestEngine {
    evaluator: Evaluator,
    pub(crate) maps: Maps,
    pub(crate) programs: Programs,
    rules: RuleHome,
    empty: Program,
    pub(crate) machine: Machine,
    /// The host, with the indices of its interfaces in this thread's network.
    host: Option<Host>,
    pub(crate) memory: Memory,
    planner: Planner,
    indexing: Indexing,
    pub(crate) record: Record,
    /// The rule set before a load on trial.
    kept: Option<Record>,
    /// The rule set of a trial that is over, as long as no process has released it. The kernel goes
    /// back alone, so packets must have the right fate before a process comes.
    loser: Option<Record>,
    /// The states, as long as no program ran that could change them.
    pub(crate) known: Option<Known>,
    /// The reader of dropped packets, and the check of each packet's records.
    drops: Option<(RingReader<DroppedPacket>, DropCheck)>,
}

/// Checks the records of dropped packets that a packet has caused.
pub type DropCheck = fn(&Packet, &Fate, &[DroppedPacket]);

/// Summary of the states, for the clock.
pub(crate) struct Known {
    /// Ids of the states, in order of creation.
    ids: Vec<u64>,
    /// Second when the first state expires.
    first_end: u32,
}

impl Known {
    fn from_views(views: &[StateView]) -> Self {
        Known {
            ids: views.iter().map(|view| view.id).collect(),
            first_end: views.iter().map(|view| view.expires_at).min().unwrap_or(u32::MAX),
        }
    }

    /// True if a sweep at `now` may end or remove something: a state has expired, or some states
    /// are not shown. Also true if there are sources, or if syncookie keys change.
    fn may_end(&self, status: &abi::Status, now: u32) -> bool {
        let all_shown = self.ids.len() == status.states as usize;
        let remembers = status.sources != 0 || status.limited_sources != 0;
        let turns_keys = status.syncookies.next_key_at != 0;
        self.first_end <= now || !all_shown || remembers || turns_keys
    }
}

/// Result of a timed run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedRun {
    /// Return value of the last run.
    pub returned: u32,
    /// Mean time of a run.
    pub duration: Duration,
}

impl TestEngine {
    /// Loads the data plane. All rule sets will use `evaluator`, whatever their own setting.
    ///
    /// # Errors
    /// Fails if the data plane cannot be loaded.
    pub fn new(evaluator: Evaluator) -> Result<Self> {
        Self::with_sizes(evaluator, &Sizes::test())
    }

    /// Loads the data plane with maps of other sizes.
    ///
    /// # Errors
    /// Fails if the data plane cannot be loaded.
    pub fn with_sizes(evaluator: Evaluator, sizes: &Sizes) -> Result<Self> {
        let (maps, programs) = object::load(sizes)?;
        Self::with_programs(evaluator, sizes, maps, programs)
    }

    /// Wraps a data plane that is loaded already.
    ///
    /// # Errors
    /// Fails if the maps of rules cannot be made, or as [`Machine::new`] does.
    pub(crate) fn with_programs(
        evaluator: Evaluator,
        sizes: &Sizes,
        maps: Maps,
        programs: Programs,
    ) -> Result<Self> {
        let machine = Machine::new(&maps, &programs)?;
        let rules = RuleHome::unchanged(&maps, sizes.rule_slots)?;
        let engine = TestEngine {
            evaluator,
            rules,
            maps,
            programs,
            empty: program::empty()?,
            machine,
            host: None,
            memory: Memory::default(),
            planner: Planner::EAGER,
            // one engine stores all tables in the trie: all engines must agree
            indexing: match evaluator {
                Evaluator::Compiled => Indexing::All,
                _ => Indexing::None,
            },
            record: Record::default(),
            kept: None,
            loser: None,
            known: None,
            drops: None,
        };
        engine.machine.publish_settings();
        Ok(engine)
    }

    /// Builds trees and indexes from now on only where they are faster, as instances do. By default
    /// small rule sets and small tables get them, too, so that tests cover them.
    pub fn use_default_planner(&mut self) {
        self.planner = Planner::default();
        self.indexing = Indexing::default();
    }

    /// Selects the tables that get an index, for rules loaded from now on.
    pub fn set_indexing(&mut self, indexing: Indexing) {
        self.indexing = indexing;
    }

    /// Reads dropped packets from now on, and calls `check` after each packet. `None` ends that.
    ///
    /// # Errors
    /// Fails if the ring of the records cannot be made.
    pub fn check_drops(&mut self, check: Option<DropCheck>) -> Result<()> {
        drops::set_reader(&self.maps, 0, false);
        self.drops = match check {
            Some(check) => Some((drops::test_ring(&self.maps)?, check)),
            None => None,
        };
        Ok(())
    }

    /// Runs one packet `repeat` times and measures the time. A run finds the states and counters
    /// that the run before has changed.
    ///
    /// # Errors
    /// Fails if no rule set is loaded, or if the kernel refuses the run.
    pub fn time_packet(&mut self, packet: &Packet, repeat: u32) -> Result<TimedRun> {
        let run = self.run(self.programs.filter(packet.direction), packet, repeat)?;
        Ok(TimedRun { returned: run.returned, duration: run.duration })
    }

    /// Runs one packet as a joined packet (GSO) of `segments` segments with `size` bytes of payload
    /// each. Returns true if the packet passed.
    ///
    /// # Errors
    /// Fails if no rule set is loaded, or if the kernel refuses the run.
    pub fn run_joined(&mut self, packet: &Packet, segments: u16, size: u16) -> Result<bool> {
        let host = self.host.as_ref().ok_or_else(no_network)?;
        let mut context = arrival::context(packet, host, &self.memory.names)?;
        context.gso_segs = segments.into();
        context.gso_size = size.into();
        let program = self.programs.filter(packet.direction);
        let frame = arrival::frame(&arrival::link_header(packet, host), &packet.bytes);
        let run = program.run_packet(&frame, &context, 1)?;
        Ok(run.returned != TCX_DROP)
    }

    /// Runs a program that does nothing, and measures the time.
    ///
    /// # Errors
    /// Fails if no rule set is loaded, or if the kernel refuses the run.
    pub fn time_empty_program(&mut self, packet: &Packet, repeat: u32) -> Result<TimedRun> {
        let run = self.run(&self.empty, packet, repeat)?;
        Ok(TimedRun { returned: run.returned, duration: run.duration })
    }

    /// Replaces rules and tables as `pfctl -f` does; states and the clock stay.
    ///
    /// # Errors
    /// Fails if no host is set, or if the rules cannot be compiled or written.
    pub fn reload(&mut self, ruleset: &Ruleset) -> Result<()> {
        self.commit(Next::main(&self.record.ruleset, ruleset.clone()))
    }

    fn commit(&mut self, mut next: Next) -> Result<()> {
        self.known = None;
        next.ruleset.options.evaluator = self.evaluator;
        self.memory.planner = self.planner;
        self.memory.indexing = self.indexing;
        if self.evaluator == Evaluator::Linear {
            // one engine has no fast path: all engines must agree
            next.ruleset.options.fast_forward = FastForward::No;
        }
        let host = self.host.as_ref().ok_or_else(no_network)?;
        let (maps, memory) = (&self.maps, &mut self.memory);
        let earlier = Earlier { in_force: &self.record, kept: self.kept.as_ref() };
        let (record, placed) = commit::assign_slots(maps, earlier, memory, next, host)?;
        let new = (&record, placed);
        let prepared = commit::write(maps, &self.rules, earlier, memory, new, host)?;
        if let Some(kept) = earlier.kept {
            trial::set_back(maps, kept.generation, record.generation);
        }
        assert!(commit::switch_generation(maps, earlier, &record), "a test has no other loader");
        commit::settle(maps, earlier, &record, &prepared)?;
        self.record = record;
        self.machine.configure(&self.record.ruleset);
        Ok(())
    }

    /// Commits rules on trial.
    fn commit_on_trial(&mut self, next: Next, time: TrialTime) -> Result<()> {
        if self.kept.is_none() {
            if trial::forget_expansions(&mut self.record) {
                self.commit(Next::same(&self.record.ruleset))?;
            }
            trial::unmark_rules(&self.maps, self.memory.slots_used);
            self.kept = Some(self.record.clone());
        }
        self.commit(next)?;
        trial::set_ends_states(&self.maps, !time.keeps_states);
        let status = &self.maps.shared_status;
        status.store(0, offset_of!(abi::Status, back_running), 1);
        let by = self.machine.test.now + time.seconds;
        status.store(0, offset_of!(abi::Status, confirm_by), by);
        Ok(())
    }

    /// Notes that the trial was confirmed or has failed.
    fn follow_trial(&mut self) {
        let status: abi::Status = self.maps.shared_status.element(0);
        let Some(mut loser) = self.kept.take_if(|_| status.confirm_by == 0) else { return };
        if status.generation == status.back {
            std::mem::swap(&mut self.record, &mut loser);
            self.record.generation = status.back;
            self.machine.configure(&self.record.ruleset);
        }
        self.loser = Some(loser);
    }

    /// Ends the trial that is over, as the next change of a process does.
    fn release_loser(&mut self) -> Result<()> {
        let Some(loser) = self.loser.take() else { return Ok(()) };
        trial::release(&self.maps, &mut self.memory, &mut self.record, &loser)?;
        self.commit(Next::same(&self.record.ruleset))
    }

    fn try_load(&mut self, ruleset: &Ruleset, host: &Host) -> Result<()> {
        self.host = Some(here::enter(host)?);
        self.reset(ruleset)?;
        self.reload(ruleset)
    }

    fn try_change_host(&mut self, host: &Host) -> Result<()> {
        self.known = None;
        self.release_loser()?;
        let host = self.host.insert(here::change(host)?);
        let (memory, record) = (&mut self.memory, &mut self.record);
        let kept = self.kept.as_ref();
        commit::follow_host(&self.maps, &self.rules, memory, record, kept, host)?;
        if commit::is_outdated(&self.record, host) {
            self.commit(Next::same(&self.record.ruleset))?;
        }
        Ok(())
    }

    fn reset(&mut self, ruleset: &Ruleset) -> Result<()> {
        self.known = None;
        self.release_loser()?;
        if let Some(kept) = self.kept.take() {
            trial::release(&self.maps, &mut self.memory, &mut self.record, &kept)?;
        }
        reset::maps(&self.maps, &self.programs, &self.memory, &mut self.record)?;
        copies::forget()?;
        self.memory = Memory::default();
        self.record = Record { generation: self.record.generation, ..Record::default() };
        let status: abi::Status = self.maps.shared_status.element(0);
        let running = abi::Status { running: 1, next_state_id: 1, ..status };
        self.maps.status.set(&0, &running)?;
        self.machine.start(ruleset)
    }

    fn try_set_time(&mut self, seconds: u32) -> Result<Vec<u64>> {
        let moved = self.machine.test.now != seconds;
        self.machine.set_time(seconds);
        let status: abi::Status = self.maps.shared_status.element(0);
        let used = status.confirm_by != 0
            || status.states != 0
            || status.sources != 0
            || status.limited_sources != 0;
        if !used && status.syncookies.next_key_at == 0 {
            return Ok(Vec::new());
        }
        let before = match self.known.take() {
            Some(known) => known,
            None => self.look()?.0,
        };
        let is_due = status.confirm_by != 0 && status.confirm_by <= seconds;
        let idle = !moved && !is_due && !before.may_end(&status, seconds);
        if idle || (self.programs.sweep.call(&())? == 0 && !is_due) {
            self.known = Some(before);
            return Ok(Vec::new());
        }
        self.follow_trial();
        let after = self.look()?.0;
        let ended = before.ids.into_iter().filter(|id| after.ids.binary_search(id).is_err());
        let ended = ended.collect();
        self.known = Some(after);
        Ok(ended)
    }

    /// Returns the states, as a summary and as views.
    fn look(&self) -> Result<(Known, Vec<StateView>)> {
        let views = state::list(&self.maps, &self.memory.names)?;
        let views: Vec<_> = views.into_iter().map(|found| found.view).collect();
        Ok((Known::from_views(&views), views))
    }

    fn try_packet(&mut self, packet: &Packet) -> Result<Fate> {
        let host = self.host.as_ref().ok_or_else(no_network)?;
        let mut passage = Passage {
            maps: &self.maps,
            programs: &self.programs,
            host,
            names: &self.memory.names,
            machine: &mut self.machine,
        };
        passage.packet(packet)
    }

    fn run(&self, program: &Program, packet: &Packet, repeat: u32) -> Result<Run> {
        let host = self.host.as_ref().ok_or_else(no_network)?;
        arrival::run(program, packet, host, &self.memory.names, repeat)
    }

    fn try_table_counters(&self, name: &TableName) -> Result<TableCounters> {
        // a table that rules only mention does not exist, and pfctl does not show it
        let Some(table) = self.record.tables.get(name).filter(|table| table.active) else {
            return Ok(TableCounters::default());
        };
        let entries = contents::read_all(&self.maps, table)?;
        let abi::TableStats { packets, bytes, .. } = counters::table(&self.maps, table.stats)?;
        let of_entry = |info: EntryInfo| {
            let EntryTraffic { packets, bytes } = info.traffic?;
            let [packets, bytes] = [packets, bytes].map(without_xpass);
            Some((info.entry.net, TableTraffic { packets, bytes }))
        };
        Ok(TableCounters {
            traffic: TableTraffic { packets, bytes },
            entries: entries.into_iter().filter_map(of_entry).collect(),
            ..TableCounters::default()
        })
    }

    fn slot(&self, rule: Option<&RuleId>) -> u32 {
        rule.and_then(|rule| self.record.slot_of(rule)).unwrap_or(abi::limits::IDLE_SLOT)
    }
}

/// Panics on errors of the kernel, because the trait cannot return them. Operations of an engine
/// with a loaded rule set do not fail, and a test that went on after a failure would prove nothing.
impl Engine for TestEngine {
    fn name(&self) -> &str {
        match self.evaluator {
            Evaluator::Linear => "bpf-linear",
            Evaluator::SkipSteps => "bpf-skip-steps",
            Evaluator::Compiled => "bpf-compiled",
        }
    }

    fn load(&mut self, ruleset: &Ruleset, host: &Host) -> Result<(), String> {
        self.try_load(ruleset, host).map_err(|error| error.to_string())
    }

    fn try_rules(&mut self, change: &RulesChange, time: TrialTime) -> Result<(), String> {
        self.release_loser().map_err(|error| error.to_string())?;
        let next = change.next(&self.record.ruleset);
        self.commit_on_trial(next, time).map_err(|error| error.to_string())
    }

    fn end_trial(&mut self, confirm: bool) -> bool {
        if self.kept.is_none() {
            return false;
        }
        self.known = None;
        match confirm {
            true => self.maps.shared_status.store(0, offset_of!(abi::Status, confirm_by), 0),
            false => {
                self.programs.go_back.call(&()).expect("the kernel runs the program");
                self.programs.sweep.call(&()).expect("the kernel runs the program");
            }
        }
        self.follow_trial();
        true
    }

    fn change_rules(&mut self, change: &RulesChange) -> Result<(), String> {
        self.release_loser().map_err(|error| error.to_string())?;
        self.commit(change.next(&self.record.ruleset)).map_err(|error| error.to_string())
    }

    fn change_host(&mut self, host: &Host) -> Result<(), String> {
        self.try_change_host(host).map_err(|error| error.to_string())
    }

    fn set_time(&mut self, seconds: u32) -> Vec<u64> {
        certain(self.try_set_time(seconds))
    }

    fn set_random(&mut self, draw: Draw) {
        self.machine.set_random(draw);
    }

    fn accepts(&self, packet: &Packet) -> bool {
        self.host.as_ref().is_some_and(|host| self.machine.can_run(packet, host))
    }

    fn packet(&mut self, packet: &Packet) -> Fate {
        self.known = None;
        // a load clears the status
        drops::set_reader(&self.maps, 0, self.drops.is_some());
        let fate = certain(self.try_packet(packet));
        if let Some((ring, check)) = &mut self.drops {
            let mut records = Vec::new();
            certain(ring.drain(|dropped| records.push(dropped.clone())));
            check(packet, &fate, &records);
        }
        fate
    }

    fn kill(&mut self, ids: &[u64]) {
        self.known = None;
        let TestEngine { maps, programs, memory, .. } = self;
        let wanted = |found: &state::Found| ids.contains(&found.view.id);
        certain(state::kill(maps, programs, &memory.names, state::Sides::One, wanted));
    }

    fn labelled(&mut self, label: &str) -> Vec<u64> {
        certain(self.release_loser());
        let slots = self.record.labelled(label);
        let states = certain(state::list(&self.maps, &self.memory.names));
        let meant = states.into_iter().filter(|found| slots.contains(&found.rule_slot));
        meant.map(|found| found.view.id).collect()
    }

    fn edit_table(&mut self, edit: &TableEdit) -> bool {
        certain(self.release_loser());
        if certain(table::needs_other_trees(&self.maps, &mut self.record, edit)) {
            certain(self.commit(Next::same(&self.record.ruleset)));
        }
        table::edit(&self.maps, &mut self.memory, &mut self.record, edit).is_ok()
    }

    fn states(&mut self) -> Vec<StateView> {
        let (known, views) = certain(self.look());
        self.known = Some(known);
        views
    }

    fn sources(&mut self) -> Vec<SourceView> {
        let sources = certain(source::list(&self.maps, &self.memory.names));
        sources.into_iter().map(|found| found.view).collect()
    }

    fn limiters(&mut self) -> Vec<LimiterView> {
        certain(self.release_loser());
        certain(limiter::list(&self.maps, &self.record.ruleset))
    }

    fn rule_counters(&mut self, rule: Option<&RuleId>) -> RuleCounters {
        certain(counters::rule(&self.maps, self.slot(rule)))
    }

    fn interface_counters(&mut self, name: &str) -> InterfaceCounters {
        let Some(id) = self.memory.names.interfaces.get(name) else {
            return InterfaceCounters::default();
        };
        certain(counters::interface(&self.maps, id))
    }

    fn table_counters(&mut self, name: &TableName) -> TableCounters {
        certain(self.release_loser());
        certain(self.try_table_counters(name))
    }

    fn status(&mut self) -> Status {
        certain(counters::status(&self.maps))
    }
}

/// Adds a count of 0: entries have no counter for packets that their table does not match any more.
fn without_xpass(counts: [[u64; 3]; 2]) -> [[u64; 4]; 2] {
    counts.map(|[block, matched, pass]| [block, matched, pass, 0])
}

fn certain<T>(result: Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("data plane under test: {error}"))
}
