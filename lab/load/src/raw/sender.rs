//! The sending side of a trial: a generator at a port, with a number of frames and a rate.

use std::thread;
use std::time::Duration;

use anyhow::Context;
use fwlab_net::host::Host;
use fwlab_net::interrupt::Interrupt;
use fwlab_net::placement::{Disturbance, Placement, Watch};
use fwlab_net::topology::{End, INTERFACE, Lab};
use nix::sys::pthread::{Pthread, pthread_kill, pthread_self};
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use skipstep_kernel::lab::{Field, Order, PATTERN, Progress, Sink, XdpMode};

use super::frame::Flow;
use super::load::{Load, Prepared};
use super::source::Source;

/// Number of frames in a batch, for sending at full speed and at a rate. A frame waits until its
/// batch is complete, or until the other frames are not due yet.
const FAST_BATCH: u32 = 64;
const PACED_BATCH: u32 = 8;

/// The delay after which a frame counts as late.
const GRACE: Duration = Duration::from_micros(10);

/// The interval of checks while the generator may end at any moment; and the longest interval with
/// a rate. Each check may take the CPU from the generator.
const TICK: Duration = Duration::from_millis(2);
const NAP: Duration = Duration::from_millis(250);

/// A number of frames and their rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// Number of frames to send, with those that are skipped.
    pub frames: u64,
    /// Frames a second. None for full speed.
    pub rate: Option<f64>,
    /// The delay after which a frame is skipped.
    pub patience: Duration,
    /// Number of frames before a change of the rate, and the second rate.
    pub turn: Option<(u64, f64)>,
}

impl Pace {
    /// Makes a pace of `frames` at full speed.
    pub fn fast(frames: u64) -> Pace {
        Pace { frames, rate: None, patience: Duration::ZERO, turn: None }
    }

    /// Makes a pace of one rate for some time. Delays of up to a millisecond are caught up.
    pub fn steady(rate: f64, duration: Duration) -> Pace {
        let frames = ((rate * duration.as_secs_f64()).ceil() as u64).max(1);
        Pace { frames, rate: Some(rate), patience: Duration::from_millis(1), turn: None }
    }

    /// Returns the planned time. None at full speed.
    pub fn length(&self) -> Option<Duration> {
        let first = self.turn.map_or(self.frames, |(at, _)| at) as f64 / self.rate?;
        let second = self.turn.map_or(0.0, |(at, rate)| (self.frames - at) as f64 / rate);
        Duration::try_from_secs_f64(first + second).ok()
    }

    /// Returns the pace in the generator's form, with all other fields empty.
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

    /// Returns the same pace, followed by another rate for some time.
    pub fn then(self, rate: f64, duration: Duration) -> Pace {
        let more = Pace::steady(rate, duration).frames;
        Pace { frames: self.frames + more, turn: Some((self.frames, rate)), ..self }
    }
}

/// An interface for generator or sink.
#[derive(Debug, Clone, Copy)]
pub struct Port<'h> {
    host: Option<&'h Host>,
    ifindex: u32,
}

impl<'h> Port<'h> {
    /// Finds the interface of an end of a network.
    ///
    /// # Errors
    /// Fails if the host's interface does not exist.
    pub fn at_end(lab: &'h Lab, end: End) -> anyhow::Result<Port<'h>> {
        let host = lab.end(end);
        Ok(Port { host: Some(host), ifindex: host.index(INTERFACE)? })
    }

    /// Finds an interface in this network namespace.
    ///
    /// # Errors
    /// Fails if there is no interface of that name.
    pub fn here(interface: &str) -> anyhow::Result<Port<'static>> {
        let ifindex = nix::net::if_::if_nametoindex(interface);
        Ok(Port { host: None, ifindex: ifindex.with_context(|| interface.to_owned())? })
    }

    pub(super) fn enter(&self) -> anyhow::Result<()> {
        self.host.map_or(Ok(()), Host::enter)
    }

    /// Attaches a sink to the interface.
    ///
    /// # Errors
    /// Fails if the kernel refuses the program.
    pub fn attach(&self, sink: &mut Sink) -> anyhow::Result<XdpMode> {
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
    /// Makes a generator of a load's frames at a port.
    ///
    /// # Errors
    /// Fails if the load cannot be made, or if the kernel refuses the program.
    pub fn new(from: Port<'h>, flow: Flow, load: &Load) -> anyhow::Result<Sender<'h>> {
        let prepared = load.prepare(&flow)?;
        let source = Source::new(load.engine, &flow, &prepared)?;
        Ok(Sender { from, source, flow, prepared, seed: load.seed })
    }

    /// Prepares the generator for a trial, and returns its order.
    ///
    /// # Errors
    /// Fails if the kernel's maps cannot be written.
    pub fn begin(&self, pace: &Pace, trial: u32) -> anyhow::Result<Order> {
        let order = self.order(pace, trial);
        // another seed for each trial, so that random values cover their range over all trials
        self.source.begin(&order, self.seed.wrapping_add(trial.into()))?;
        Ok(order)
    }

    /// Runs the generator in a thread of its own, until it has sent all frames or a signal comes.
    /// Returns what disturbed the thread.
    ///
    /// # Errors
    /// Fails if the namespace or the CPU cannot be entered, or if the kernel refuses to run the
    /// program.
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
                // a generator with a rate polls the clock until the next frame is due
                let polls = pace.rate.is_some();
                if polls {
                    at.take_for_long()?
                } else {
                    at.take()?
                };
                let watch = Watch::begin(at.cpu)?;
                // the receiver exists as long as this scope
                let _ = tell.send(pthread_self());
                self.source.run(longest, repeat, batch)?;
                let disturbance = watch.end()?;
                Ok(if polls { disturbance.without_switches() } else { disturbance })
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

    /// Returns the progress of the current trial.
    ///
    /// # Errors
    /// Fails if the kernel's map cannot be read.
    pub fn progress(&self) -> anyhow::Result<Progress> {
        self.source.progress()
    }

    /// Returns the bytes of the longest frame, the number of runs of the program, and the runs of a
    /// batch. With a rate most runs find no frame due, so the number of runs is unknown.
    fn runs(&self, pace: &Pace) -> (usize, u32, u32) {
        let longest = self.prepared.frames.iter().map(Vec::len).max().unwrap_or_default();
        match pace.rate {
            None => (longest, u32::try_from(pace.frames).unwrap_or(u32::MAX), FAST_BATCH),
            Some(_) => (longest, u32::MAX, PACED_BATCH),
        }
    }

    /// Estimates the remaining time: zero at the end. None if it is unknown.
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
