//! A trial: the generator sends what it was told to, the sink counts what comes.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use nix::sys::pthread::{Pthread, pthread_kill, pthread_self};
use nix::sys::signal::Signal;
use skipstep_kernel::lab::{Counts, Field, Hook, How, Order, PATTERN, Progress, Sink};

use super::frame::Flow;
use super::load::{Load, Prepared};
use super::missing::Missing;
use super::source::Source;
use crate::host::Host;
use crate::interrupt::Interrupt;
use crate::placement::{Disturbance, Placement, Watch};
use crate::results;
use crate::topology::{End, INTERFACE, Lab};

/// Frames handed over at once when they are sent as fast as it goes, and when each has its time: a frame
/// waits until the others of its batch are made, or their time has not come.
const FAST_BATCH: u32 = 64;
const PACED_BATCH: u32 = 8;

/// A frame that goes so long after its time is late.
const GRACE: Duration = Duration::from_micros(10);

/// How often a trial is looked after.
const TICK: Duration = Duration::from_millis(2);

/// Frames may be under way so long after the last was sent, if they keep coming.
const STRAGGLERS: Duration = Duration::from_millis(200);

/// Frames that answer flows; a load with more flows has some without an answer.
const ANSWERS: u64 = 1 << 16;

/// How many frames, and how fast.
#[derive(Debug, Clone, Copy)]
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

    /// The same, and then another rate for some time.
    pub fn then(self, rate: f64, duration: Duration) -> Pace {
        let more = Pace::steady(rate, duration).frames;
        Pace { frames: self.frames + more, turn: Some((self.frames, rate)), ..self }
    }
}

/// What a trial gave.
#[derive(Debug, Clone)]
pub struct Trial {
    /// What the generator did.
    pub progress: Progress,
    /// What the sink counted.
    pub counts: Counts,
    /// What of it did not come.
    pub missing: Missing,
    /// What others did on the generator's CPU.
    pub disturbance: Disturbance,
}

impl Trial {
    /// From the first frame to the last.
    pub fn seconds(&self) -> f64 {
        seconds(&self.progress)
    }

    /// What came between the generator and its CPU, which it wants from the first frame to the last.
    pub fn disturbed(&self) -> Option<String> {
        self.disturbance.why(Duration::from_secs_f64(self.seconds()))
    }

    /// Frames sent a second.
    pub fn rate(&self) -> f64 {
        rate(&self.progress)
    }

    /// Frames that came at least once.
    pub fn received(&self) -> u64 {
        self.counts.frames - self.counts.duplicates.min(self.counts.frames)
    }

    /// Frames that did not come.
    pub fn lost(&self) -> u64 {
        self.progress.sent.saturating_sub(self.received())
    }

    /// What became of the frames, as results have it.
    pub fn tally(&self) -> results::Counts {
        results::Counts {
            sent: self.progress.sent,
            received: self.received(),
            duplicated: self.counts.duplicates,
            reordered: self.counts.reordered,
            late: self.progress.late,
            skipped: self.progress.skipped,
        }
    }

    /// Times from when frames were to be sent until they came; a bucket counts as its middle.
    pub fn latency(&self) -> results::Latency {
        let filled = self.counts.buckets.iter().enumerate().filter(|&(_, &count)| count > 0);
        results::Latency::of(filled.map(|(bucket, &count)| {
            let (low, high) = Counts::bounds(bucket);
            (low + (high - low) / 2, count)
        }))
    }
}

fn seconds(progress: &Progress) -> f64 {
    progress.last.saturating_sub(progress.start) as f64 / 1e9
}

fn rate(progress: &Progress) -> f64 {
    progress.sent.saturating_sub(1) as f64 / seconds(progress).max(1e-9)
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

    fn enter(&self) -> anyhow::Result<()> {
        self.host.map_or(Ok(()), Host::enter)
    }

    fn attach(&self, sink: &mut Sink) -> anyhow::Result<Hook> {
        Ok(match self.host {
            Some(host) => host.inside(|| sink.attach(self.ifindex))??,
            None => sink.attach(self.ifindex)?,
        })
    }
}

/// A generator at one end of a network and a sink at another.
pub struct Flood<'h> {
    from: Port<'h>,
    to: Port<'h>,
    source: Source,
    sink: Sink,
    hook: Hook,
    flow: Flow,
    prepared: Prepared,
    seed: u64,
    trial: u32,
}

impl<'h> Flood<'h> {
    /// Puts generator and sink at two ends of a network.
    ///
    /// # Errors
    /// The load cannot be made, or the kernel does not load the programs.
    pub fn new(lab: &'h Lab, load: &Load, from: End, to: End) -> anyhow::Result<Flood<'h>> {
        let links = [from.link(), lab.next_link(from, to)];
        Flood::between(Port::of(lab, from)?, Port::of(lab, to)?, links, load, [from, to])
    }

    /// Puts generator and sink at two ports; frames bear these link addresses, and the addresses of the
    /// ends of a network of ours.
    ///
    /// # Errors
    /// As of [`Flood::new`].
    pub fn between(
        from: Port<'h>,
        to: Port<'h>,
        links: [[u8; 6]; 2],
        load: &Load,
        ends: [End; 2],
    ) -> anyhow::Result<Flood<'h>> {
        let flow = Flow {
            transport: load.transport,
            extension: load.extension,
            links,
            addresses: ends.map(|end| end.address(load.ip)),
            ports: [1024, 9],
        };
        let prepared = load.prepare(&flow)?;
        let source = Source::new(load.engine, &flow, &prepared)?;
        let mut sink = Sink::new()?;
        let hook = to.attach(&mut sink)?;
        let seed = load.seed;
        Ok(Flood { from, to, source, sink, hook, flow, prepared, seed, trial: 0 })
    }

    /// Where the sink takes frames.
    pub fn hook(&self) -> Hook {
        self.hook
    }

    /// Sends all frames to one port instead of those of the load, and counts what comes: what a rule
    /// decides about a port.
    ///
    /// # Errors
    /// The trial cannot be run.
    pub fn probe(&mut self, port: u16, frames: u64, at: Placement) -> anyhow::Result<u64> {
        let mut fields = [Field::FIXED; 4];
        fields[3] = Field::new(How::Counted, port.into(), 1, 1);
        let fields = std::mem::replace(&mut self.prepared.fields, fields);
        let trial = self.run(&Pace::fast(frames), at, None);
        self.prepared.fields = fields;
        Ok(trial?.received())
    }

    /// Sends an answer to each of the load's flows, from the sink's end to the generator's, so that
    /// who keeps states has seen both directions. `link` is whom the answers are sent to.
    ///
    /// # Errors
    /// The trial cannot be run.
    pub fn answer(&mut self, link: [u8; 6], at: Placement) -> anyhow::Result<()> {
        let back = self.flow.answer(link);
        self.source.set_frames(&back, &[back.frame(back.smallest())?])?;
        let mut fields = self.prepared.fields;
        fields.swap(0, 1);
        fields.swap(2, 3);
        let there = (self.from, std::mem::replace(&mut self.prepared.fields, fields));
        let pattern = std::mem::replace(&mut self.prepared.pattern, vec![0]);
        self.from = self.to;
        let trial = self.run(&Pace::fast(ANSWERS), at, None);
        (self.from, self.prepared.fields) = there;
        self.prepared.pattern = pattern;
        self.source.set_frames(&self.flow, &self.prepared.frames)?;
        trial.map(drop)
    }

    /// Frames a second that the generator gives while the sink looks at nothing but their tag.
    ///
    /// # Errors
    /// The trial cannot be run.
    pub fn ceiling(&mut self, frames: u64, at: Placement) -> anyhow::Result<f64> {
        self.trial += 1;
        self.sink.begin(self.trial.wrapping_add(1))?;
        let pace = Pace::fast(frames);
        self.source.begin(&self.order(&pace), self.seed)?;
        self.generate(&pace, at, None)?;
        let progress = self.source.progress()?;
        anyhow::ensure!(self.sink.counts()?.strays > 0, "no frame came to the end of the cable");
        Ok(rate(&progress))
    }

    /// Runs a trial with the generator in its place.
    ///
    /// # Errors
    /// A signal came, or the kernel refused something.
    pub fn trial(
        &mut self,
        pace: &Pace,
        at: Placement,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Trial> {
        let trial = self.run(pace, at, Some(interrupt))?;
        interrupt.check()?;
        Ok(trial)
    }

    fn run(
        &mut self,
        pace: &Pace,
        at: Placement,
        interrupt: Option<&Interrupt>,
    ) -> anyhow::Result<Trial> {
        self.trial += 1;
        self.sink.begin(self.trial)?;
        // what is drawn is drawn anew for each trial, so that in the end all of it comes
        let order = self.order(pace);
        self.source.begin(&order, self.seed.wrapping_add(self.trial.into()))?;
        let disturbance = self.generate(pace, at, interrupt)?;
        let counts = self.await_stragglers()?;
        let progress = self.source.progress()?;
        let missing = Missing::of(&order, &progress, &self.sink.window()?);
        Ok(Trial { progress, counts, missing, disturbance })
    }

    /// Runs the generator in a thread of its own, and ends it when it has done what it was told, or
    /// when a signal comes.
    fn generate(
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
                at.take()?;
                let watch = Watch::begin(at.cpu)?;
                // who looks after us may be gone only if this scope is
                let _ = tell.send(pthread_self());
                self.source.run(longest, repeat, batch)?;
                watch.end()
            });
            let worker = told.recv().ok();
            while !thread.is_finished() {
                let over = interrupt.is_some_and(Interrupt::came) || self.is_done(pace);
                if over {
                    self.source.stop();
                }
                if let (true, Some(worker)) = (over, worker) {
                    // a thread that has ended meanwhile needs no signal
                    let _ = pthread_kill(worker, Signal::SIGUSR1);
                }
                thread::sleep(TICK);
            }
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Bytes of a page, runs of the program, and how many of them make a batch. With a pace most runs
    /// find that it is not time, so nobody knows how many it takes.
    fn runs(&self, pace: &Pace) -> (usize, u32, u32) {
        let longest = self.prepared.frames.iter().map(Vec::len).max().unwrap_or_default();
        match pace.rate {
            None => (longest, u32::try_from(pace.frames).unwrap_or(u32::MAX), FAST_BATCH),
            Some(_) => (longest, u32::MAX, PACED_BATCH),
        }
    }

    fn is_done(&self, pace: &Pace) -> bool {
        pace.rate.is_some()
            && self.source.progress().is_ok_and(|progress| progress.slot >= pace.frames)
    }

    fn order(&self, pace: &Pace) -> Order {
        let mut pattern = [0; PATTERN];
        pattern[..self.prepared.pattern.len()].copy_from_slice(&self.prepared.pattern);
        let gap = |rate: f64| (1024e9 / rate).round().max(1.0) as u64;
        let first = pace.rate.map_or(0, gap);
        let (turn, second) = pace.turn.map_or((pace.frames, first), |(at, rate)| (at, gap(rate)));
        Order {
            slots: pace.frames,
            gap: first,
            turn,
            second_gap: second,
            grace: GRACE.as_nanos() as u64,
            patience: pace.patience.as_nanos() as u64,
            ifindex: self.from.ifindex,
            trial: self.trial & 0xffff,
            pattern_length: self.prepared.pattern.len() as u32,
            pad: 0,
            fields: self.prepared.fields,
            pattern,
        }
    }

    /// Waits until no more frames come, or all have.
    fn await_stragglers(&self) -> anyhow::Result<Counts> {
        let sent = self.source.progress()?.sent;
        let mut counts = self.sink.counts()?;
        let since = Instant::now();
        while counts.frames < sent && since.elapsed() < STRAGGLERS {
            thread::sleep(5 * TICK);
            let before = counts.frames;
            counts = self.sink.counts()?;
            if counts.frames == before {
                break;
            }
        }
        Ok(counts)
    }
}

/// The CPU that everything is to run on in cost mode: the last one, which the system uses least.
///
/// # Errors
/// The system does not tell which CPUs there are.
pub fn measuring_cpu() -> anyhow::Result<usize> {
    crate::placement::cpus()?.last().copied().context("no CPU")
}
