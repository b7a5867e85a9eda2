//! The machine around the filter that the test stands for: its clock, its draws, the fragments that
//! wait in skipstepd, and the reader of the log.

use std::cell::RefCell;

use libbpf_rs::MapHandle;
use nix::sched::{CpuSet, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;
use skipstep_abi as abi;
use skipstep_reassembly::{Outcome, Piece, Reassembler};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Owner, Ruleset, Timeout};
use skipstep_scenario::engine::{Draw, TestPacket};
use zerocopy::FromBytes;

use super::arrival;
use super::hook::Hook;
use super::odd_length::{self, OddLength};
use crate::error::{Context, Error, Result};
use crate::map;
use crate::object::{Maps, Programs};
use crate::program::{Run, SkBuff};
use crate::ring::LogReader;
use crate::shared::Shared;

/// Id of the owner of no socket.
pub(super) const NOBODY: u32 = Owner::UNKNOWN;

/// What stands around the programs of one thread.
pub(super) struct Machine {
    /// What the programs are told of the test.
    pub test: abi::Test,
    told: Shared,
    /// Fragments that wait, and whether rules want that.
    pub fragments: Reassembler,
    pub reassembles: bool,
    pub log: LogReader,
    /// The one CPU that programs run on: what became of a packet is told per CPU.
    pub cpu: usize,
    odd_length: OddLength,
    /// Room for what the CPUs have in `scratch`.
    scratch: RefCell<Vec<u8>>,
}

impl Machine {
    /// Ties the calling thread to the CPU that it is on.
    pub fn new(maps: &Maps, programs: &Programs) -> Result<Self> {
        Ok(Machine {
            test: quiet(),
            told: Shared::new(&maps.test)?,
            fragments: reassembler(&Ruleset::default()),
            reassembles: false,
            log: LogReader::of(&maps.log_ring)?,
            cpu: stay_on_this_cpu()?,
            odd_length: OddLength::load(programs)?,
            scratch: RefCell::default(),
        })
    }

    /// Forgets what packets have left, at second 0 with `ruleset` in force.
    pub fn start(&mut self, ruleset: &Ruleset) -> Result<()> {
        self.log.drain(|_| {})?;
        self.fragments = reassembler(ruleset);
        self.reassembles = ruleset.options.reassemble;
        self.test = quiet();
        self.tell();
        Ok(())
    }

    /// Other rules are in force: fragments that wait go on waiting under their limits.
    pub fn configure(&mut self, ruleset: &Ruleset) {
        let (limit, timeout) = limits_of_fragments(ruleset);
        self.fragments.configure(limit, timeout);
        self.reassembles = ruleset.options.reassemble;
    }

    /// Moves the clock.
    pub fn set_time(&mut self, seconds: u32) {
        self.fragments.expire(seconds);
        self.test.now = seconds;
        self.tell();
    }

    /// Sets what following random draws return.
    pub fn set_random(&mut self, draw: Draw) {
        let test = &mut self.test;
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
        self.tell();
    }

    /// Whether a packet can be made for a test run, and the datagram that it completes if it is a
    /// fragment.
    pub fn can_run(&self, packet: &TestPacket, host: &Host) -> bool {
        let rdomain = host.rdomain(&packet.interface);
        let piece = Piece::parse(&packet.bytes, rdomain).filter(|_| self.reassembles);
        let datagram = piece.map(|piece| self.fragments.clone().add(piece, self.test.now));
        let whole_can_run = match datagram {
            Some(Outcome::Whole(whole)) => whole.bytes.len() <= odd_length::LONGEST,
            _ => true,
        };
        packet.bytes.len() <= odd_length::LONGEST && whole_can_run
    }

    /// Runs the program of a hook on a packet.
    pub fn run(
        &self,
        programs: &Programs,
        hook: Hook,
        (link_header, packet): (&[u8], &[u8]),
        context: &SkBuff,
    ) -> Result<Run> {
        if OddLength::is_odd(packet) {
            return self.odd_length.run(hook, (link_header, packet), context);
        }
        let program = match hook {
            Hook::Filter(direction) => programs.of(direction),
            Hook::Return => &programs.come_back,
        };
        program.run_packet(&arrival::frame(link_header, packet), context, 1)
    }

    /// What the program that ran last noted of its packet.
    pub fn outcome(&self, scratch: &MapHandle) -> Result<abi::Outcome> {
        let mut values = self.scratch.borrow_mut();
        map::read_per_cpu(scratch, &mut values)?;
        let stride = values.len() / map::cpus()?;
        let outcome = values.get(self.cpu * stride..).and_then(|bytes| {
            abi::Outcome::read_from_prefix(bytes).ok().map(|(outcome, _)| outcome)
        });
        outcome.ok_or_else(|| Error::Bpf {
            what: "map scratch: read".to_owned(),
            cause: "smaller than struct pf_outcome".to_owned(),
        })
    }

    /// Lets the programs know.
    pub fn tell(&self) {
        self.told.set_element(0, &self.test);
    }
}

/// The clock at 0, draws of 0, and packets that belong to no socket.
fn quiet() -> abi::Test {
    abi::Test { enabled: 1, uid: NOBODY, gid: NOBODY, ..abi::Test::default() }
}

/// One with the limits of `ruleset`.
fn reassembler(ruleset: &Ruleset) -> Reassembler {
    let (limit, timeout) = limits_of_fragments(ruleset);
    Reassembler::new(limit, timeout)
}

fn limits_of_fragments(ruleset: &Ruleset) -> (usize, u32) {
    let options = &ruleset.options;
    (options.limits.frags as usize, options.timeouts.get(Timeout::Frag))
}

fn stay_on_this_cpu() -> Result<usize> {
    let cpu = sched_getcpu().context(|| "which CPU".to_owned())?;
    let mut only = CpuSet::new();
    only.set(cpu).context(|| format!("CPU {cpu}"))?;
    sched_setaffinity(Pid::from_raw(0), &only).context(|| format!("CPU {cpu}: stay"))?;
    Ok(cpu)
}
