//! A trial: the generator sends what it was told to, the sink counts what comes.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use skipstep_kernel::lab::{Counts, Field, Hook, How, Progress, Sink};

use super::frame::Flow;
use super::load::Load;
use super::missing::Missing;
use super::sender::Sender;
pub use super::sender::{Pace, Port};
use crate::interrupt::Interrupt;
use crate::placement::{Disturbance, Placement};
use crate::results;
use crate::topology::{End, Lab};

/// No frame for so long is the end.
const TICK: Duration = Duration::from_millis(10);

/// Frames may be under way so long after the last was sent, if they keep coming.
const STRAGGLERS: Duration = Duration::from_millis(200);

/// Answers that take longer may find the kernel of whom they are for.
const ANSWERED: Duration = Duration::from_secs(10);

/// The first source port of a load, and its first destination port.
pub const PORTS: [u16; 2] = [1024, 9];

/// Frames that open flows, and as many that answer; of a load with more flows some get none.
const OPENING: u64 = 1 << 16;
/// How many each flow has of both, and how fast they come: slower than first packets that meet all
/// rules, or in step with a queue that is full the same flows would be lost each time.
const OF_EACH_FLOW: u64 = 4;
const OPENED_A_SECOND: f64 = 20_000.0;

/// Frames that show whether a port is open.
pub const PROBE: u64 = 64;

/// Tries of a probe.
const TRIES: u32 = 3;

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

    /// What came between the generator and its CPU, which it wants from the first frame to the
    /// last.
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
            cycles: None,
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

/// A generator at one end of a network and a sink at another.
pub struct Flood<'h> {
    sender: Sender<'h>,
    to: Port<'h>,
    sink: Sink,
    hook: Hook,
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

    /// Puts generator and sink at two ports; frames bear these link addresses, and the addresses of
    /// the ends of a network of ours.
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
            ports: PORTS,
        };
        let sender = Sender::new(from, flow, load)?;
        let mut sink = Sink::new()?;
        let hook = to.attach(&mut sink)?;
        Ok(Flood { sender, to, sink, hook, trial: 0 })
    }

    /// Where the sink takes frames.
    pub fn hook(&self) -> Hook {
        self.hook
    }

    /// Sends [`PROBE`] frames to one port, again if fewer than `expected` come, and returns how
    /// many came: the answer of the rules about the port. Beside other work frames are lost that
    /// no rule blocks, and a blocked frame never comes, so the second try cannot hide a block.
    ///
    /// # Errors
    /// The trial cannot be run.
    pub fn probe(&mut self, port: u16, expected: u64, at: Placement) -> anyhow::Result<u64> {
        let mut came = self.probe_once(port, at)?;
        for _ in 1..TRIES {
            if came >= expected {
                break;
            }
            came = self.probe_once(port, at)?;
        }
        Ok(came)
    }

    fn probe_once(&mut self, port: u16, at: Placement) -> anyhow::Result<u64> {
        let mut fields = [Field::FIXED; 4];
        fields[3] = Field::new(How::Counted, port.into(), 1, 1);
        let fields = std::mem::replace(&mut self.sender.prepared.fields, fields);
        let trial = self.run(&Pace::fast(PROBE), at, None);
        self.sender.prepared.fields = fields;
        Ok(trial?.received())
    }

    /// Opens each of the load's flows: some of its frames, and answers from the sink's end to the
    /// generator's, so that who keeps states has seen both directions. `link` is whom the answers
    /// are sent to.
    ///
    /// # Errors
    /// The trial cannot be run.
    pub fn answer(&mut self, link: [u8; 6], at: Placement) -> anyhow::Result<()> {
        // the kernel there knows of no such connections, and would reset each of them
        let mut taken = Sink::new()?;
        self.sender.from.attach(&mut taken)?;
        let fields = self.sender.prepared.fields;
        let flows = fields.iter().fold(1, |flows: u64, field| flows.saturating_mul(field.values()));
        let frames = flows.saturating_mul(OF_EACH_FLOW).min(OPENING);
        let length = Duration::from_secs_f64(frames as f64 / OPENED_A_SECOND);
        let pace = Pace::steady(OPENED_A_SECOND, length);
        // pf's sloppy tracking takes a connection for one half of one if it sees two segments
        // before an answer comes, and for open; after one it waits for ever
        self.run(&pace, at, None)?;
        self.send_back(link, &pace, at)?;
        let (mut before, deadline) = (0, Instant::now() + ANSWERED);
        loop {
            thread::sleep(STRAGGLERS);
            let counts = taken.counts()?;
            let now = counts.frames + counts.strays;
            if now == before || Instant::now() > deadline {
                return Ok(());
            }
            before = now;
        }
    }

    /// Sends a frame from the sink's end to the generator's, so that bridges between them know
    /// where the sink is.
    ///
    /// # Errors
    /// It cannot be sent.
    pub fn learn(&mut self, link: [u8; 6], at: Placement) -> anyhow::Result<()> {
        self.send_back(link, &Pace::fast(1), at)
    }

    fn send_back(&mut self, link: [u8; 6], pace: &Pace, at: Placement) -> anyhow::Result<()> {
        let sender = &mut self.sender;
        let back = sender.flow.answer(link);
        sender.source.set_frames(&back, &[back.frame(back.smallest())?])?;
        let mut fields = sender.prepared.fields;
        fields.swap(0, 1);
        fields.swap(2, 3);
        let there = (sender.from, std::mem::replace(&mut sender.prepared.fields, fields));
        let pattern = std::mem::replace(&mut sender.prepared.pattern, vec![0]);
        sender.from = self.to;
        let trial = self.run(pace, at, None);
        let sender = &mut self.sender;
        (sender.from, sender.prepared.fields) = there;
        sender.prepared.pattern = pattern;
        sender.source.set_frames(&sender.flow, &sender.prepared.frames)?;
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
        self.sender.begin(&pace, self.trial)?;
        self.sender.generate(&pace, at, None)?;
        let progress = self.sender.progress()?;
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
        let order = self.sender.begin(pace, self.trial)?;
        let disturbance = self.sender.generate(pace, at, interrupt)?;
        let progress = self.sender.progress()?;
        let counts = await_stragglers(&self.sink, Some(progress.sent))?;
        let missing = Missing::of(&order, &progress, &self.sink.window()?);
        Ok(Trial { progress, counts, missing, disturbance })
    }
}

/// Waits until no more frames come, or all have that were sent, if that is known. What the sink
/// counted.
///
/// # Errors
/// The kernel does not tell.
pub fn await_stragglers(sink: &Sink, sent: Option<u64>) -> anyhow::Result<Counts> {
    let mut counts = sink.counts()?;
    let since = Instant::now();
    while sent.is_none_or(|sent| counts.frames < sent) && since.elapsed() < STRAGGLERS {
        thread::sleep(TICK);
        let before = counts.frames;
        counts = sink.counts()?;
        if counts.frames == before {
            break;
        }
    }
    Ok(counts)
}

/// The CPU that everything is to run on in cost mode: the last one, which the system uses least.
///
/// # Errors
/// The system does not tell which CPUs there are.
pub fn measuring_cpu() -> anyhow::Result<usize> {
    crate::placement::cpus()?.last().copied().context("no CPU")
}
