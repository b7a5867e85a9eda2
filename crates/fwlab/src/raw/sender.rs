//! The half of a trial that sends: a generator at a port, told how many frames and how fast.

use std::thread;
use std::time::Duration;

use anyhow::Context;
use nix::sys::pthread::{Pthread, pthread_kill, pthread_self};
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use skipstep_kernel::lab::{Field, Hook, Order, PATTERN, Progress, Sink};

use super::frame::Flow;
use super::load::{Load, Prepared};
use super::source::Source;
use crate::host::Host;
use crate::interrupt::Interrupt;
use crate::placement::{Disturbance, Placement, Watch};
use crate::topology::{End, INTERFACE, Lab};

/// Frames handed over at once when they are sent as fast as it goes, and when each has its time: a
/// frame waits until the others of its batch are made, or their time has not come.
const FAST_BATCH: u32 = 64;
const PACED_BATCH: u32 = 8;

/// A frame that goes so long after its time is late.
const GRACE: Duration = Duration::from_micros(10);

/// How often a generator is looked after that may be done any time, and at least how often one that
/// sends by the clock: each look may take the CPU from it.
const TICK: Duration = Duration::from_millis(2);
const NAP: Duration = Duration::from_millis(250);

/// How many frames, and how fast.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// Frames to send, those for which there was no time among them.
    pub frames: u64,
    /// Frames a second; none is as fast as it goes.
    pub rate: Option<f64>,
    /// A frame is not sent any more so long after its time.
    pub patience: Duration,
    /// Frames before another rate, and that rate.
    pub turn: Option<(u64, f64)>,
}

impl Pace {
    /// A number of frames as fast as it goes.
    pub fn fast(frames: u64) -> Pace {
        Pace { frames, rate: None, patience: Duration::ZERO, turn: None }
    }

    /// A rate for some time; up to a millisecond is caught up with.
    pub fn steady(rate: f64, duration: Duration) -> Pace {
        let frames = ((rate * duration.as_secs_f64()).ceil() as u64).max(1);
        Pace { frames, rate: Some(rate), patience: Duration::from_millis(1), turn: None }
    }

    /// How long it takes.
    pub fn length(&self) -> Option<Duration> {
        let first = self.turn.map_or(self.frames, |(at, _)| at) as f64 / self.rate?;
        let second = self.turn.map_or(0.0, |(at, rate)| (self.frames - at) as f64 / rate);
        Duration::try_from_secs_f64(first + second).ok()
    }

    /// As a generator takes it; what else that has to know is empty.
    pub fn order(&self) -> Order {
        let gap = |rate: f64| (1024e9 / rate).round().max(1.0) as u64;
        let first = self.rate.map_or(0, gap);
        let (turn, second) = self.turn.map_or((self.frames, first), |(at, rate)| (at, gap(rate)));
        Order {
            slots: self.frames,
            gap: first,
            turn,
            second_gap: second,
            grace: GRACE.as_nanos() as u64,
            patience: self.patience.as_nanos() as u64,
            ifindex: 0,
            trial: 0,
            pattern_length: 0,
            pad: 0,
            fields: [Field::FIXED; 4],
            pattern: [0; PATTERN],
        }
    }

    /// The same, and then another rate for some time.
    pub fn then(self, rate: f64, duration: Duration) -> Pace {
        let more = Pace::steady(rate, duration).frames;
        Pace { frames: self.frames + more, turn: Some((self.frames, rate)), ..self }
    }
}

/// Where frames go out or come in.
#[derive(Debug, Clone, Copy)]
pub struct Port<'h> {
    host: Option<&'h Host>,
    ifindex: u32,
}

impl<'h> Port<'h> {
    /// The interface of an end of a network.
    ///
    /// # Errors
    /// The host is gone.
    pub fn of(lab: &'h Lab, end: End) -> anyhow::Result<Port<'h>> {
        let host = lab.end(end);
        Ok(Port { host: Some(host), ifindex: host.index(INTERFACE)? })
    }

    /// An interface of this host.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn here(interface: &str) -> anyhow::Result<Port<'static>> {
        let ifindex = nix::net::if_::if_nametoindex(interface);
        Ok(Port { host: None, ifindex: ifindex.with_context(|| interface.to_owned())? })
    }

    pub(super) fn enter(&self) -> anyhow::Result<()> {
        self.host.map_or(Ok(()), Host::enter)
    }

    /// Puts a sink there.
    ///
    /// # Errors
    /// The kernel does not take it.
    pub fn attach(&self, sink: &mut Sink) -> anyhow::Result<Hook> {
        Ok(match self.host {
            Some(host) => host.inside(|| sink.attach(self.ifindex))??,
            None => sink.attach(self.ifindex)?,
        })
    }
}

/// A generator at a port.
pub struct Sender<'h> {
    pub(super) from: Port<'h>,
    pub(super) source: Source,
    pub(super) flow: Flow,
    pub(super) prepared: Prepared,
    seed: u64,
}

impl<'h> Sender<'h> {
    /// Puts a generator of a load's frames there.
    ///
    /// # Errors
    /// The load cannot be made, or the kernel does not load the program.
    pub fn new(from: Port<'h>, flow: Flow, load: &Load) -> anyhow::Result<Sender<'h>> {
        let prepared = load.prepare(&flow)?;
        let source = Source::new(load.engine, &flow, &prepared)?;
        Ok(Sender { from, source, flow, prepared, seed: load.seed })
    }

    /// Tells it what to do in a trial of this number.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn begin(&self, pace: &Pace, trial: u32) -> anyhow::Result<Order> {
        let order = self.order(pace, trial);
        // what is drawn is drawn anew for each trial, so that in the end all of it comes
        self.source.begin(&order, self.seed.wrapping_add(trial.into()))?;
        Ok(order)
    }

    /// Runs the generator in a thread of its own, and ends it when it has done what it was told, or
    /// when a signal comes.
    ///
    /// # Errors
    /// The kernel refused something.
    pub fn generate(
        &self,
        pace: &Pace,
        at: Placement,
        interrupt: Option<&Interrupt>,
    ) -> anyhow::Result<Disturbance> {
        let (longest, repeat, batch) = self.runs(pace);
        let (tell, told) = std::sync::mpsc::channel::<Pthread>();
        thread::scope(|scope| {
            let thread = scope.spawn(move || -> anyhow::Result<Disturbance> {
                self.from.enter()?;
                // a paced one polls the clock until it is time
                let polls = pace.rate.is_some();
                if polls {
                    at.take_for_long()?
                } else {
                    at.take()?
                };
                let watch = Watch::begin(at.cpu)?;
                // who looks after us may be gone only if this scope is
                let _ = tell.send(pthread_self());
                self.source.run(longest, repeat, batch)?;
                let disturbance = watch.end()?;
                Ok(if polls { disturbance.of_ordinary() } else { disturbance })
            });
            let worker = told.recv().ok();
            while !thread.is_finished() {
                let left = self.left(pace);
                let over = interrupt.is_some_and(Interrupt::came) || left == Some(Duration::ZERO);
                if over {
                    self.source.stop();
                }
                if let (true, Some(worker)) = (over, worker) {
                    // a thread that has ended meanwhile needs no signal
                    let _ = pthread_kill(worker, Signal::SIGUSR1);
                }
                thread::sleep(left.unwrap_or_default().clamp(TICK, NAP));
            }
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// How far it is.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn progress(&self) -> anyhow::Result<Progress> {
        self.source.progress()
    }

    /// Bytes of a page, runs of the program, and how many of them make a batch. With a pace most
    /// runs find that it is not time, so nobody knows how many it takes.
    fn runs(&self, pace: &Pace) -> (usize, u32, u32) {
        let longest = self.prepared.frames.iter().map(Vec::len).max().unwrap_or_default();
        match pace.rate {
            None => (longest, u32::try_from(pace.frames).unwrap_or(u32::MAX), FAST_BATCH),
            Some(_) => (longest, u32::MAX, PACED_BATCH),
        }
    }

    /// How long it takes yet, about, if that is known: nothing if it is done.
    fn left(&self, pace: &Pace) -> Option<Duration> {
        let (length, slot) = (pace.length()?, self.source.progress().ok()?.slot);
        Some(length.mul_f64(1.0 - slot.min(pace.frames) as f64 / pace.frames as f64))
    }

    fn order(&self, pace: &Pace, trial: u32) -> Order {
        let mut pattern = [0; PATTERN];
        pattern[..self.prepared.pattern.len()].copy_from_slice(&self.prepared.pattern);
        Order {
            ifindex: self.from.ifindex,
            trial: trial & 0xffff,
            pattern_length: self.prepared.pattern.len() as u32,
            fields: self.prepared.fields,
            pattern,
            ..pace.order()
        }
    }
}
