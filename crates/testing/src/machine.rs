//! The machine around the filter, simulated by the test: its clock, its random draws, the fragments
//! that wait in skipstepd, and the reader of the log.

use std::cell::RefCell;

use nix::sched::{CpuSet, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;
use skipstep_abi as abi;
use skipstep_kernel::Result;
use skipstep_kernel::error::Context;
use skipstep_kernel::object::{Maps, Programs};
use skipstep_kernel::program::{Run, SkBuff};
use skipstep_kernel::ring::LogReader;
use skipstep_kernel::shared::Shared;
use skipstep_model::{Draw, Packet};
use skipstep_reassembly::{FragmentFate, Piece, Reassembler};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Owner, Ruleset, Timeout};

use crate::arrival;
use crate::hook::Hook;
use crate::odd_length::{self, OddLength};

/// User id of packets without a socket.
pub(crate) const NOBODY: u32 = Owner::UNKNOWN;

/// The surroundings of the programs of one thread.
pub(crate) struct Machine {
    /// The settings of the test that the programs read.
    pub test: abi::Test,
    shared_settings: Shared,
    /// Fragments that wait; `reassembles` is true if rules ask for reassembly.
    pub fragments: Reassembler,
    pub reassembles: bool,
    pub log: LogReader,
    /// The CPU on which programs run, because results of packets are stored per CPU.
    pub cpu: usize,
    odd_length: OddLength,
    /// Buffer for the `scratch` values of all CPUs.
    scratch: RefCell<Vec<u8>>,
}

impl Machine {
    /// Makes a machine, and ties the calling thread to its current CPU.
    ///
    /// # Errors
    /// Fails if the programs for odd lengths cannot be loaded, or if the thread cannot be tied to
    /// its CPU.
    pub fn new(maps: &Maps, programs: &Programs) -> Result<Self> {
        Ok(Machine {
            test: quiet(),
            shared_settings: Shared::new(&maps.test)?,
            fragments: reassembler(&Ruleset::default()),
            reassembles: false,
            log: LogReader::from_map(&maps.log_ring)?,
            cpu: stay_on_this_cpu()?,
            odd_length: OddLength::load(programs)?,
            scratch: RefCell::default(),
        })
    }

    /// Discards the traces of earlier packets, at second 0 with `ruleset` in force.
    ///
    /// # Errors
    /// Fails if the log cannot be read.
    pub fn start(&mut self, ruleset: &Ruleset) -> Result<()> {
        self.log.drain(|_| {})?;
        self.fragments = reassembler(ruleset);
        self.reassembles = ruleset.options.reassemble;
        self.test = quiet();
        self.publish_settings();
        Ok(())
    }

    /// Applies the limits of a new rule set to the fragments that wait.
    pub fn configure(&mut self, ruleset: &Ruleset) {
        let (limit, timeout) = limits_of_fragments(ruleset);
        self.fragments.configure(limit, timeout);
        self.reassembles = ruleset.options.reassemble;
    }

    /// Sets the clock.
    pub fn set_time(&mut self, seconds: u32) {
        self.fragments.expire(seconds);
        self.test.now = seconds;
        self.publish_settings();
    }

    /// Sets the value of the following random draws.
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
        self.publish_settings();
    }

    /// True if a test run can take the packet and, if it is a fragment, the datagram that it
    /// completes.
    pub fn can_run(&self, packet: &Packet, host: &Host) -> bool {
        let rdomain = host.rdomain(&packet.interface);
        let piece = Piece::parse(&packet.bytes, rdomain).filter(|_| self.reassembles);
        let datagram = piece.map(|piece| self.fragments.clone().add(piece, self.test.now));
        let whole_can_run = match datagram {
            Some(FragmentFate::Complete(whole)) => whole.bytes.len() <= odd_length::LONGEST,
            _ => true,
        };
        packet.bytes.len() <= odd_length::LONGEST && whole_can_run
    }

    /// Runs the program of a hook on a packet.
    ///
    /// # Errors
    /// Fails if the kernel refuses the run.
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
            Hook::Filter(direction) => programs.filter(direction),
            Hook::Return => &programs.return_fragments,
        };
        program.run_packet(&arrival::frame(link_header, packet), context, 1)
    }

    /// Returns the result that the last program run has stored about its packet.
    ///
    /// # Errors
    /// Fails if the map cannot be read.
    pub fn outcome(&self, maps: &Maps) -> Result<abi::Outcome> {
        maps.outcome(self.cpu, &mut self.scratch.borrow_mut())
    }

    /// Writes the settings of the test for the programs.
    pub fn publish_settings(&self) {
        self.shared_settings.set_element(0, &self.test);
    }
}

/// Returns the initial settings: the clock at 0, draws of 0, and packets that belong to no socket.
fn quiet() -> abi::Test {
    abi::Test { enabled: 1, uid: NOBODY, gid: NOBODY, ..abi::Test::default() }
}

/// Makes a reassembler with the limits of `ruleset`.
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
