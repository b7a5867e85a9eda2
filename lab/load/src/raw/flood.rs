//! A trial of frames: a generator sends, and a sink counts.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use fwlab_net::interrupt::Interrupt;
use fwlab_net::placement::{Disturbance, Placement};
use fwlab_net::topology::{End, Lab};
use skipstep_kernel::lab::{Counts, Field, Progress, Sink, Variation, XdpMode};

use super::frame::Flow;
use super::load::Load;
use super::missing::Missing;
use super::sender::Sender;
pub use super::sender::{Pace, Port};

/// The interval without a frame after which a trial is over.
const TICK: Duration = Duration::from_millis(10);

/// The longest wait for frames after the last was sent, if frames keep coming.
const STRAGGLERS: Duration = Duration::from_millis(200);

/// The longest wait for answers to opened flows. Later ones may reach the kernel of the receiver.
const ANSWERED: Duration = Duration::from_secs(10);

/// The first source port of a load, and its first destination port.
pub const PORTS: [u16; 2] = [1024, 9];

/// The most frames that open flows, and the most answers. A load with more flows leaves some
/// unopened.
const OPENING: u64 = 1 << 16;
/// The frames of each flow in each direction, and their rate a second. The rate is below that of
/// first packets against all rules. At a rate in step with a full queue, the same flows would lose
/// their frames each time.
const OF_EACH_FLOW: u64 = 4;
const OPENED_A_SECOND: f64 = 20_000.0;

/// Number of frames that show if a port is open.
pub const PROBE: u64 = 64;

/// Number of tries of a probe.
const TRIES: u32 = 3;

/// The result of a trial.
#[derive(Debug, Clone)]
pub struct Trial {
    /// The generator's counts and times.
    pub progress: Progress,
    /// The sink's counts.
    pub counts: Counts,
    /// The frames that did not come.
    pub missing: Missing,
    /// The time that the generator's CPU lost to others.
    pub disturbance: Disturbance,
}

impl Trial {
    /// Returns the time from the first frame to the last.
    pub fn seconds(&self) -> f64 {
        seconds(&self.progress)
    }

    /// Returns the reason to doubt the trial: the generator needs its CPU from the first frame to
    /// the last. None if it had it.
    pub fn disturbed(&self) -> Option<String> {
        self.disturbance.doubt_if_busy(Duration::from_secs_f64(self.seconds()))
    }

    /// Returns the rate of sent frames a second.
    pub fn rate(&self) -> f64 {
        rate(&self.progress)
    }

    /// Returns the number of frames that came at least once.
    pub fn received(&self) -> u64 {
        self.counts.frames - self.counts.duplicates.min(self.counts.frames)
    }

    /// Returns the number of frames that did not come.
    pub fn lost(&self) -> u64 {
        self.progress.sent.saturating_sub(self.received())
    }

    /// Returns the counts for result files.
    pub fn tally(&self) -> fwlab_results::Counts {
        fwlab_results::Counts {
            sent: self.progress.sent,
            received: self.received(),
            duplicated: self.counts.duplicates,
            reordered: self.counts.reordered,
            late: self.progress.late,
            skipped: self.progress.skipped,
            cycles: None,
        }
    }

    /// Returns the latencies, from the time a frame was due until it came. A bucket counts as its
    /// middle.
    pub fn latency(&self) -> fwlab_results::Latency {
        let filled = self.counts.buckets.iter().enumerate().filter(|&(_, &count)| count > 0);
        fwlab_results::Latency::from_times(filled.map(|(bucket, &count)| {
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
    hook: XdpMode,
    trial: u32,
}

impl<'h> Flood<'h> {
    /// Puts generator and sink at two ends of a network.
    ///
    /// # Errors
    /// Fails if the load cannot be made, or if the kernel refuses the programs.
    pub fn new(lab: &'h Lab, load: &Load, from: End, to: End) -> anyhow::Result<Flood<'h>> {
        let links = [from.link(), lab.next_link(from, to)];
        Flood::between(Port::at_end(lab, from)?, Port::at_end(lab, to)?, links, load, [from, to])
    }

    /// Puts generator and sink at two ports. Frames have the given link addresses, and the IP
    /// addresses of the ends of fwlab's networks.
    ///
    /// # Errors
    /// Fails as [`Flood::new`] does.
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

    /// Returns the hook at which the sink receives frames.
    pub fn hook(&self) -> XdpMode {
        self.hook
    }

    /// Sends [`PROBE`] frames to a port, and returns how many came. Tries again up to twice while
    /// fewer than `expected` come, because frames are lost beside other work. A blocked frame never
    /// comes, so a retry cannot hide a block.
    ///
    /// # Errors
    /// Fails if the kernel refuses the trial.
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
        fields[3] = Field::new(Variation::Counted, port.into(), 1, 1);
        let fields = std::mem::replace(&mut self.sender.prepared.fields, fields);
        let trial = self.run(&Pace::fast(PROBE), at, None);
        self.sender.prepared.fields = fields;
        Ok(trial?.received())
    }

    /// Opens each flow of the load: sends some of its frames, and answers from the sink's end. A
    /// stateful system has then seen both directions. `link` is the link address to which answers
    /// go.
    ///
    /// # Errors
    /// Fails if the kernel refuses the trial.
    pub fn answer(&mut self, link: [u8; 6], at: Placement) -> anyhow::Result<()> {
        // keeps answers from the kernel, which knows no such connections and would reset each
        let mut taken = Sink::new()?;
        self.sender.from.attach(&mut taken)?;
        let fields = self.sender.prepared.fields;
        let flows = fields.iter().fold(1, |flows: u64, field| flows.saturating_mul(field.values()));
        let frames = flows.saturating_mul(OF_EACH_FLOW).min(OPENING);
        let length = Duration::from_secs_f64(frames as f64 / OPENED_A_SECOND);
        let pace = Pace::steady(OPENED_A_SECOND, length);
        // All frames go before all answers. If pf's sloppy tracking sees two segments before an
        // answer, it takes them for the only visible direction, and sets the state to established.
        // After a single segment it would wait for ever.
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

    /// Sends a frame from the sink's end to the generator's, so that bridges in between learn the
    /// sink's port.
    ///
    /// # Errors
    /// Fails if the frame cannot be sent.
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

    /// Measures the highest rate of the generator in frames a second, while the sink reads only the
    /// tags.
    ///
    /// # Errors
    /// Fails if the kernel refuses the trial, or if no frame reached the sink.
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

    /// Does a trial with the generator at a placement.
    ///
    /// # Errors
    /// Fails if a signal came, or if the kernel refused an operation.
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
        let missing = Missing::from_window(&order, &progress, &self.sink.window()?);
        Ok(Trial { progress, counts, missing, disturbance })
    }
}

/// Waits until no more frames come, or until all `sent` frames have come. Returns the sink's
/// counts.
///
/// # Errors
/// Fails if the sink's maps cannot be read.
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

/// Returns the CPU for all threads in cost mode: the last CPU, because the system uses it least.
///
/// # Errors
/// Fails if the CPUs of this process cannot be read.
pub fn measuring_cpu() -> anyhow::Result<usize> {
    fwlab_net::placement::cpus()?.last().copied().context("no CPU")
}
