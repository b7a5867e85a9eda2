//! The data plane under test: the programs that filter real packets, run by `BPF_PROG_TEST_RUN` on
//! packets, a clock, random draws, interfaces and routes of the test's making.

mod arrival;
mod copies;
mod daemon;
mod instance;
mod reset;
mod route;

pub use instance::TestInstance;

use nix::sched::{CpuSet, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;
use skipstep_abi as abi;
use skipstep_abi::pool::route_kind;
use skipstep_abi::rule::divert_kind;
use skipstep_abi::status::decision;
use skipstep_abi::verdict::verdict;
use skipstep_classifier::Names;
use skipstep_reassembly::Reassembler;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Direction, Evaluator, Owner, Reason, RuleId, Ruleset};
use skipstep_scenario::Engine;
use skipstep_scenario::engine::{
    Carried, Decision, Diverted, Draw, Fate, Forwarded, LimiterView, LogView, RuleCounters,
    SocketOwner, SourceView, StateView, Status, TestPacket, Verdict, Way,
};
use std::time::Duration;
use zerocopy::FromBytes;

use crate::commit::RuleHome;
use crate::error::{Context, Error, Result};
use crate::network::TestNetwork;
use crate::next::Next;
use crate::object::{self, Maps, Programs, Sizes};
use crate::program::{self, Program, Run};
use crate::record::{Memory, Record};
use crate::ring::LogReader;
use crate::{commit, counters, limiter, source, state};
use libbpf_rs::{MapCore, MapFlags};

/// Id of the owner of no socket.
const NOBODY: u32 = Owner::UNKNOWN;

/// What a program returns to drop a packet.
const TCX_DROP: u32 = 2;
/// Stands beside a packet that the data plane has sent where it leaves (`ROUTED_MAGIC`).
const ROUTED_MAGIC: u32 = 0x7066_7274;

/// Longest packet that `BPF_PROG_TEST_RUN` takes: it must fit in a page with what the kernel keeps
/// beside it.
const LONGEST_PACKET: usize = 3600;

/// Whether the kernel takes a packet for a test run: it refuses those without a whole IP header
/// and those longer than about a page.
fn can_run(packet: &TestPacket) -> bool {
    let header = match packet.bytes.first().map(|byte| byte >> 4) {
        Some(6) => 40,
        _ => 20,
    };
    (header..=LONGEST_PACKET).contains(&packet.bytes.len())
}

/// The data plane, loaded for this thread alone and pinned nowhere.
///
/// Making one moves the calling thread into a network namespace of its own and ties it to the CPU
/// it is on, since what became of a packet is told per CPU. The engine stays on that thread.
pub struct TestEngine {
    evaluator: Evaluator,
    maps: Maps,
    programs: Programs,
    rules: RuleHome,
    empty: Program,
    log: LogReader,
    network: Option<(Host, TestNetwork)>,
    memory: Memory,
    record: Record,
    test: abi::Test,
    /// Fragments that wait, and whether rules want that.
    fragments: Reassembler,
    reassembles: bool,
    /// The states there are, as long as nothing ran that could change that.
    known: Option<Vec<u64>>,
    cpu: usize,
}

/// How long a program took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bench {
    /// What the program returned the last time.
    pub returned: u32,
    /// Mean time of a run.
    pub duration: Duration,
}

impl TestEngine {
    /// Loads the data plane; every rule set will be walked by `evaluator`, whatever it says itself.
    pub fn new(evaluator: Evaluator) -> Result<Self> {
        Self::with_sizes(evaluator, &Sizes::test())
    }

    /// The same with maps of other sizes.
    pub fn with_sizes(evaluator: Evaluator, sizes: &Sizes) -> Result<Self> {
        let cpu = stay_on_this_cpu()?;
        let (maps, programs) = object::load(sizes)?;
        let log = LogReader::of(&maps.log_ring)?;
        let rules = RuleHome::standing(&maps, sizes.rule_slots)?;
        let engine = TestEngine {
            evaluator,
            rules,
            maps,
            programs,
            empty: program::empty()?,
            log,
            network: None,
            memory: Memory::default(),
            record: Record::default(),
            test: quiet(),
            fragments: daemon::reassembler(&Ruleset::default()),
            reassembles: false,
            known: None,
            cpu,
        };
        engine.maps.test.set(&0, &engine.test)?;
        Ok(engine)
    }

    /// Runs one packet `repeat` times and says how long one run took. What the first run changes in
    /// states and counters the next ones find.
    pub fn bench(&mut self, packet: &TestPacket, repeat: u32) -> Result<Bench> {
        let run = self.run(self.program(packet.direction), packet, repeat)?;
        Ok(Bench { returned: run.returned, duration: run.duration })
    }

    /// The same with a program that does nothing.
    pub fn bench_empty(&mut self, packet: &TestPacket, repeat: u32) -> Result<Bench> {
        let run = self.run(&self.empty, packet, repeat)?;
        Ok(Bench { returned: run.returned, duration: run.duration })
    }

    /// Replaces rules and tables like `pfctl -f`: states and the clock stay.
    pub fn reload(&mut self, ruleset: &Ruleset) -> Result<()> {
        let next = Next::main(&Ruleset::default(), &self.with_evaluator(ruleset));
        let Some((_, network)) = &self.network else {
            return Err(no_network());
        };
        let prepared = commit::prepare(
            &self.maps,
            &self.rules,
            &self.record,
            &mut self.memory,
            &next,
            network.host(),
        )?;
        commit::flip(&self.maps, &self.record, &prepared)?;
        self.record = prepared.record;
        Ok(())
    }

    fn try_load(&mut self, ruleset: &Ruleset, host: &Host) -> Result<()> {
        self.enter_network(host)?;
        self.reset()?;
        self.reassembles = ruleset.options.reassemble;
        self.fragments = daemon::reassembler(ruleset);
        self.reload(ruleset)
    }

    /// Networks are slow to build, and most tests use the one they had.
    fn enter_network(&mut self, host: &Host) -> Result<()> {
        if self.network.as_ref().is_none_or(|(before, _)| before != host) {
            self.network = Some((host.clone(), TestNetwork::enter(host)?));
            copies::listen()?;
        }
        Ok(())
    }

    fn with_evaluator(&self, ruleset: &Ruleset) -> Ruleset {
        let mut ruleset = ruleset.clone();
        ruleset.options.evaluator = self.evaluator;
        ruleset
    }

    fn reset(&mut self) -> Result<()> {
        self.known = None;
        reset::maps(&self.maps, &self.memory, &mut self.record)?;
        self.log.drain(|_| {})?;
        self.memory = Memory::default();
        self.record = Record::default();
        let status: abi::Status = self.maps.shared_status.element(0);
        let running = abi::Status { running: 1, next_state_id: 1, ..status };
        self.maps.status.set(&0, &running)?;
        self.test = quiet();
        self.maps.test.set(&0, &self.test)
    }

    fn try_set_time(&mut self, seconds: u32) -> Result<Vec<u64>> {
        if self.test.now != seconds {
            self.test.now = seconds;
            self.maps.test.set(&0, &self.test)?;
        }
        self.fragments.expire(seconds);
        let status: abi::Status = self.maps.shared_status.element(0);
        let used = status.states != 0 || status.sources != 0 || status.limited_sources != 0;
        if !used && status.syncookies.next_key_at == 0 {
            return Ok(Vec::new());
        }
        let before = match self.known.take() {
            Some(known) => known,
            None => self.ids()?,
        };
        if self.programs.sweep.call(&())? == 0 {
            self.known = Some(before);
            return Ok(Vec::new());
        }
        let after = self.ids()?;
        Ok(before.into_iter().filter(|id| !after.contains(id)).collect())
    }

    fn ids(&self) -> Result<Vec<u64>> {
        let states = state::list(&self.maps, &self.memory.names)?;
        Ok(states.into_iter().map(|found| found.view.id).collect())
    }

    fn try_packet(&mut self, packet: &TestPacket) -> Result<Fate> {
        match packet.carried.fragmentation {
            Some(_) => self.try_datagram(packet),
            None => self.try_marked(packet, 0, false),
        }
    }

    /// The same for a datagram that came in fragments.
    fn try_datagram(&mut self, packet: &TestPacket) -> Result<Fate> {
        self.try_marked(packet, abi::mark::REASSEMBLED, false)
    }

    /// `routed` says that the data plane has sent the packet where it leaves.
    fn try_marked(&mut self, packet: &TestPacket, mark: u32, routed: bool) -> Result<Fate> {
        let owner = packet.owner.unwrap_or(SocketOwner { uid: NOBODY, gid: NOBODY });
        if (self.test.uid, self.test.gid) != (owner.uid, owner.gid) {
            (self.test.uid, self.test.gid) = (owner.uid, owner.gid);
            self.maps.test.set(&0, &self.test)?;
        }
        let mut context = {
            let (_, network) = self.network.as_ref().ok_or_else(no_network)?;
            arrival::context(packet, network.host(), &self.memory.names)?
        };
        context.mark |= mark;
        if routed {
            context.cb[1] = ROUTED_MAGIC;
        }
        let program = self.program(packet.direction);
        let run = program.run_packet(&arrival::frame(&packet.bytes), &context, 1)?;
        let outcome = self.outcome()?;
        match outcome.verdict {
            verdict::HELD => self.hold(packet),
            verdict::REFRAGMENT => {
                let fate = self.fate(packet, &run, &outcome)?;
                Ok(self.fragment_again(packet, fate))
            }
            _ if outcome.route != route_kind::NO => {
                let fate = self.fate(packet, &run, &outcome)?;
                let after = run.packet.get(arrival::LINK_HEADER..).unwrap_or_default();
                self.carry_on(packet, after, &outcome, fate)
            }
            _ => self.fate(packet, &run, &outcome),
        }
    }

    /// What became of a packet, when the program has run on it.
    fn fate(&mut self, packet: &TestPacket, run: &Run, outcome: &abi::Outcome) -> Result<Fate> {
        let after = run.packet.get(arrival::LINK_HEADER..).unwrap_or_default();
        let passed = matches!(outcome.verdict, verdict::PASS | verdict::REFRAGMENT);
        let mut carried = arrival::carried(run, &self.memory.names);
        carried.fragmentation = packet.carried.fragmentation.filter(|_| passed);
        carried.diverted = match outcome.divert {
            divert_kind::TO => Some(Diverted::To),
            divert_kind::REPLY => Some(Diverted::Reply),
            _ => None,
        };
        carried.rtable = match outcome.rtable {
            0 => packet.carried.rtable,
            number => u32::from(number) - 1,
        };
        if outcome.divert == divert_kind::PACKET {
            let diverted = Some(Diverted::Packet(u16::from_be_bytes(outcome.divert_port)));
            carried = Carried { diverted, ..Carried::default() };
        }
        Ok(Fate {
            verdict: match outcome.verdict {
                _ if passed => Verdict::Pass,
                verdict::CONSUMED | verdict::CROSSED => Verdict::Consumed,
                _ => Verdict::Drop,
            },
            decision: self.decided(outcome),
            anchor_rule: u32::try_from(outcome.anchor_rule).ok(),
            reason: Reason::from_code(outcome.reason).unwrap_or(Reason::Match),
            counted: counted(outcome),
            state: (outcome.state_id != u64::MAX).then_some(outcome.state_id),
            out: (passed && after != packet.bytes).then(|| after.to_vec()),
            replies: match outcome.verdict {
                verdict::REPLY => vec![after.to_vec()],
                verdict::CONSUMED => self.proxied(packet, run, outcome)?,
                _ => Vec::new(),
            },
            forwarded: match outcome.verdict {
                verdict::CROSSED => vec![Forwarded { way: Way::Forward, bytes: after.to_vec() }],
                _ => Vec::new(),
            },
            carried,
            log: self.log_views(outcome)?,
        })
    }

    /// What was sent in a packet's place. What goes to the other side of the connection stands where
    /// OpenBSD sends it: the SYN to the server last, the acknowledgment first.
    fn proxied(
        &self,
        packet: &TestPacket,
        run: &Run,
        outcome: &abi::Outcome,
    ) -> Result<Vec<Vec<u8>>> {
        if run.returned == TCX_DROP {
            return Ok(Vec::new());
        }
        let mut sent = vec![run.packet.get(arrival::LINK_HEADER..).unwrap_or_default().to_vec()];
        if outcome.copies != 0 {
            let (_, network) = self.network.as_ref().ok_or_else(no_network)?;
            sent.extend(copies::sent_by(arrival::index_of(network.host(), &packet.interface)?)?);
        }
        if packet.direction == Direction::In {
            sent.rotate_left(1);
        }
        Ok(sent)
    }

    fn program(&self, direction: Direction) -> &Program {
        match direction {
            Direction::In => &self.programs.ingress,
            Direction::Out => &self.programs.egress,
        }
    }

    fn run(&self, program: &Program, packet: &TestPacket, repeat: u32) -> Result<Run> {
        let (_, network) = self.network.as_ref().ok_or_else(no_network)?;
        arrival::run(program, packet, network.host(), &self.memory.names, repeat)
    }

    fn outcome(&self) -> Result<abi::Outcome> {
        let values = self
            .maps
            .scratch
            .lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY)
            .context(|| "map scratch: read".to_owned())?;
        let here = values
            .and_then(|mut values| (self.cpu < values.len()).then(|| values.swap_remove(self.cpu)));
        let outcome = here.and_then(|bytes| {
            abi::Outcome::read_from_prefix(&bytes).ok().map(|(outcome, _)| outcome)
        });
        outcome.ok_or_else(|| Error::Bpf {
            what: "map scratch: read".to_owned(),
            cause: "smaller than struct pf_outcome".to_owned(),
        })
    }

    fn log_views(&mut self, outcome: &abi::Outcome) -> Result<Vec<LogView>> {
        let mut views = Vec::new();
        if outcome.logged != 0 {
            let names = &self.memory.names;
            self.log.drain(|record| views.push(log_view(record, names)))?;
        }
        Ok(views)
    }

    fn decided(&self, outcome: &abi::Outcome) -> Decision {
        let rule = |number| RuleId {
            anchor: self.memory.names.anchors.name(outcome.anchor).unwrap_or_default().to_owned(),
            number,
        };
        match outcome.decision {
            decision::NONE => Decision::None,
            decision::RULE => u32::try_from(outcome.rule)
                .map_or(Decision::Default, |number| Decision::Rule(rule(number))),
            decision::ORPHAN => Decision::OrphanState,
            _ => Decision::Default,
        }
    }

    fn slot(&self, rule: Option<&RuleId>) -> u32 {
        let slot = rule.and_then(|rule| {
            self.record.rule_sets.get(&rule.anchor)?.slots.get(rule.number as usize)
        });
        slot.copied().unwrap_or(abi::limits::IDLE_SLOT)
    }
}

/// The trait has no room for errors of the kernel: what it asks of an engine that was made and has
/// loaded a rule set does not fail, and a test that could go on after that would prove nothing.
impl Engine for TestEngine {
    fn name(&self) -> &str {
        match self.evaluator {
            Evaluator::Linear => "bpf-linear",
            Evaluator::SkipSteps => "bpf-skip-steps",
        }
    }

    fn load(&mut self, ruleset: &Ruleset, host: &Host) -> Result<(), String> {
        self.try_load(ruleset, host).map_err(|error| error.to_string())
    }

    fn set_time(&mut self, seconds: u32) -> Vec<u64> {
        certain(self.try_set_time(seconds))
    }

    fn set_random(&mut self, draw: Draw) {
        set_random(&mut self.test, draw);
        certain(self.maps.test.set(&0, &self.test));
    }

    fn accepts(&self, packet: &TestPacket) -> bool {
        can_run(packet) && self.could_run_datagram(packet)
    }

    fn packet(&mut self, packet: &TestPacket) -> Fate {
        self.known = None;
        certain(self.try_packet(packet))
    }

    fn states(&mut self) -> Vec<StateView> {
        let states = certain(state::list(&self.maps, &self.memory.names));
        self.known = Some(states.iter().map(|found| found.view.id).collect());
        states.into_iter().map(|found| found.view).collect()
    }

    fn sources(&mut self) -> Vec<SourceView> {
        let sources = certain(source::list(&self.maps, &self.memory.names));
        sources.into_iter().map(|found| found.view).collect()
    }

    fn limiters(&mut self) -> Vec<LimiterView> {
        certain(limiter::list(&self.maps, &self.record.ruleset))
    }

    fn rule_counters(&mut self, rule: Option<&RuleId>) -> RuleCounters {
        certain(counters::rule(&self.maps, self.slot(rule)))
    }

    fn status(&mut self) -> Status {
        certain(counters::status(&self.maps))
    }
}

fn certain<T>(result: Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("data plane under test: {error}"))
}

fn no_network() -> Error {
    Error::Bpf { what: "test".to_owned(), cause: "no rule set was loaded".to_owned() }
}

/// The clock at 0, draws of 0, and packets that belong to no socket.
fn quiet() -> abi::Test {
    abi::Test { enabled: 1, uid: NOBODY, gid: NOBODY, ..abi::Test::default() }
}

fn set_random(test: &mut abi::Test, draw: Draw) {
    match draw {
        Draw::Bounded(number) => test.random = number,
        Draw::Sequence(number) => test.sequence = number,
        Draw::Timestamp(number) => test.timestamp = number,
        Draw::SyncookieKey(key) => {
            test.keeps_cookie_key = 1;
            let half = |at: usize| key[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
            test.cookie_key = [half(0), half(8)];
        }
    }
}

/// Each reason as often as it was counted, ascending.
fn counted(outcome: &abi::Outcome) -> Vec<Reason> {
    let times = Reason::ALL.iter().zip(outcome.counted);
    times.flat_map(|(reason, times)| std::iter::repeat_n(*reason, usize::from(times))).collect()
}

fn log_view(record: &abi::LogRecord, names: &Names) -> LogView {
    LogView {
        rule: u32::try_from(record.rule).ok(),
        anchor_rule: u32::try_from(record.anchor_rule).ok(),
        anchor: names.anchors.name(record.anchor).unwrap_or_default().to_owned(),
        reason: Reason::from_code(record.reason).unwrap_or(Reason::Match),
        pass: match record.action {
            abi::verdict::action::PASS => Some(true),
            abi::verdict::action::BLOCK => Some(false),
            _ => None,
        },
        to: record.log_to,
        uid: (record.uid != Owner::UNKNOWN).then_some(record.uid),
    }
}

fn stay_on_this_cpu() -> Result<usize> {
    let cpu = sched_getcpu().context(|| "which CPU".to_owned())?;
    let mut only = CpuSet::new();
    only.set(cpu).context(|| format!("CPU {cpu}"))?;
    sched_setaffinity(Pid::from_raw(0), &only).context(|| format!("CPU {cpu}: stay"))?;
    Ok(cpu)
}
