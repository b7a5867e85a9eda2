//! The end of a measurement: what carries out orders on the machine it is on.

mod connections;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use chrono::Utc;
use skipstep_kernel::lab::{self, Progress, Sink};

use super::channel::{Broken, Channel};
use super::log;
use super::message::{Answer, Caller, Frames, Machine, Order, Part, Reach, Start, Tally};
use crate::connections::Ports;
use crate::environment;
use crate::host::Host;
use crate::interrupt::{Interrupt, Interrupted};
use crate::link::Link;
use crate::placement::{Disturbance, KinWatch, Placement};
use crate::raw::flood::{PORTS, await_stragglers};
use crate::raw::frame::Flow;
use crate::raw::missing::Holes;
use crate::raw::sender::{Pace, Port, Sender};
use crate::results::Counts;
use crate::sockets::{self, Kind, Server, Talk};
use crate::system;

/// A controller that has not said anything for so long, while it is its turn, is gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a trial is looked after.
const TURN: Duration = Duration::from_millis(20);

/// What a part has become here.
enum Ready<'h> {
    Nothing,
    Client(Talk),
    Server(#[expect(dead_code, reason = "it serves as long as it is there")] Server),
    Source { sender: Box<Sender<'h>>, pace: Pace },
    Sink(Sink),
    Caller(Box<Caller>),
    Called(connections::Server),
}

/// A trial in which others are active.
struct Watched<'h> {
    watch: KinWatch<'h>,
    /// How long it should take from the order on.
    length: Duration,
}

/// An end of a measurement.
struct Post<'h> {
    host: &'h Host,
    at: Placement,
    ready: Ready<'h>,
    watched: Option<Watched<'h>>,
}

/// Does what a controller says until it leaves; whatever was made for it goes then.
///
/// # Errors
/// Why it left, if not because it was through; a signal came.
pub(super) fn serve(
    channel: &mut Channel,
    at: Placement,
    interrupt: &Interrupt,
) -> Result<(), Broken> {
    let host = Host::here();
    let mut post = Post { host: &host, at, ready: Ready::Nothing, watched: None };
    channel.say(&Answer::Done)?;
    loop {
        let order = match channel.hear::<Order>(post.patience(), interrupt) {
            Err(Broken::Closed) => return Ok(()),
            other => other?,
        };
        let answer = order.check().and_then(|()| post.carry_out(order, channel, interrupt));
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) if error.is::<Interrupted>() => return Err(Broken::Interrupted),
            Err(error) => match error.downcast::<Broken>() {
                Ok(broken) => return Err(broken),
                Err(error) => Answer::Failed(format!("{error:#}")),
            },
        };
        channel.say(&answer)?;
    }
}

impl<'h> Post<'h> {
    /// How long a controller may be silent: in a trial it is, and some take longer than they
    /// should.
    fn patience(&self) -> Duration {
        PATIENCE + self.watched.as_ref().map_or(Duration::ZERO, |watched| watched.length * 2)
    }

    /// Makes ready for a part.
    fn prepare(&self, part: Part) -> anyhow::Result<Ready<'h>> {
        Ok(match part {
            Part::Client(talk) => {
                ensure_there(talk.kind)?;
                Ready::Client(talk)
            }
            Part::Server { talk, address } => {
                ensure_there(talk.kind)?;
                let server = Server::start_for(&talk, self.host, self.at, address);
                let server = server.and_then(|server| {
                    sockets::serve(self.host, &talk, self.at, address).map(|()| server)
                });
                let why = "no server (--server-address says where it listens)";
                Ready::Server(server.context(why)?)
            }
            Part::Source(frames) => {
                let Frames { load, interface, links, addresses, pace } = *frames;
                let flow = Flow {
                    transport: load.transport,
                    links,
                    addresses,
                    ports: PORTS,
                    extension: load.extension,
                };
                let sender = Sender::new(Port::here(&interface)?, flow, &load)?;
                Ready::Source { sender: Box::new(sender), pace }
            }
            Part::Sink { interface } => {
                let mut sink = Sink::new()?;
                Port::here(&interface)?.attach(&mut sink)?;
                Ready::Sink(sink)
            }
            Part::Caller(caller) => Ready::Caller(connections::ready(*caller)?),
            Part::Called(called) => Ready::Called(connections::Server::new(called, self.at)?),
        })
    }

    fn carry_out(
        &mut self,
        order: Order,
        channel: &mut Channel,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Answer> {
        match order {
            Order::Describe(reach) => {
                let link = match reach {
                    Reach::Towards(address) => Link::towards(address)?,
                    Reach::By(interface) => Link::named(&interface)?,
                };
                let (environment, ports) = (environment::here(), Ports::here()?);
                Ok(Answer::Machine(Box::new(Machine { environment, link, ports })))
            }
            Order::Prepare(part) => {
                // the ports of the part before are free again
                (self.ready, self.watched) = (Ready::Nothing, None);
                self.host.stop();
                self.ready = self.prepare(part)?;
                Ok(Answer::Done)
            }
            Order::Pace(next) => match &mut self.ready {
                Ready::Source { pace, .. } => {
                    *pace = next;
                    Ok(Answer::Done)
                }
                _ => bail!("who sends no frames has no pace"),
            },
            Order::Begin(start) => self.begin(&start, channel, interrupt),
            Order::Collect => self.collect(),
        }
    }

    /// Does an active part, or begins to watch what others do.
    fn begin(
        &mut self,
        start: &Start,
        channel: &mut Channel,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Answer> {
        match &mut self.ready {
            Ready::Nothing => bail!("no part to begin with"),
            Ready::Client(talk) => {
                let heard = attend(channel, start, interrupt, &|interrupt| {
                    sockets::talk_from(self.host, Vec::new(), talk, self.at, interrupt)
                });
                return heard.map(Answer::Heard);
            }
            Ready::Source { sender, pace } => {
                sender.begin(pace, start.trial)?;
                let sent = attend(channel, start, interrupt, &|interrupt| {
                    let disturbance = sender.generate(pace, self.at, Some(interrupt))?;
                    interrupt.check()?;
                    Ok(sent(&sender.progress()?, disturbance))
                });
                return sent.map(Answer::Frames);
            }
            Ready::Caller(caller) => {
                let made = attend(channel, start, interrupt, &|interrupt| {
                    connections::call(caller, self.host, self.at, interrupt)
                });
                return made.map(|made| Answer::Made(Box::new(made)));
            }
            Ready::Sink(sink) => sink.begin(start.trial)?,
            Ready::Called(server) => server.begin()?,
            Ready::Server(_) => {}
        }
        let watch = KinWatch::begin(self.at.cpu, vec![self.host])?;
        self.watched = Some(Watched { watch, length: start.delay + start.length });
        Ok(Answer::Done)
    }

    /// What was seen of a trial in which others were active.
    fn collect(&mut self) -> anyhow::Result<Answer> {
        let watched = self.watched.take().context("no trial to tell of")?;
        match &mut self.ready {
            Ready::Called(server) => server.collect().map(Answer::Served),
            Ready::Sink(sink) => {
                let counts = await_stragglers(sink, None)?;
                let tally = counted(&counts, watched.watch.end()?);
                Ok(Answer::Frames(Tally { holes: Holes::from(&sink.window()?), ..tally }))
            }
            _ => Ok(Answer::Seen(watched.watch.end()?)),
        }
    }
}

/// Sees that the programs are here that a talk needs.
fn ensure_there(kind: Kind) -> anyhow::Result<()> {
    match kind.programs().iter().find(|program| !system::is_there(program)) {
        Some(program) => bail!("no such program: {program}: install it"),
        None => Ok(()),
    }
}

/// What a generator did, as far as it can tell.
fn sent(progress: &Progress, disturbance: Disturbance) -> Tally {
    let Progress { sent, late, skipped, start, last, .. } = *progress;
    let counts = Counts { sent, late, skipped, ..Counts::default() };
    let time = Duration::from_nanos(last.saturating_sub(start));
    Tally { counts, time, start, holes: Holes::default(), disturbance }
}

/// What came to a sink. How old it was then is not said: the sender's clock is another one.
fn counted(counts: &lab::Counts, disturbance: Disturbance) -> Tally {
    let time = Duration::from_nanos(counts.last.saturating_sub(counts.first));
    let counts = Counts {
        received: counts.frames.saturating_sub(counts.duplicates),
        duplicated: counts.duplicates,
        reordered: counts.reordered,
        ..Counts::default()
    };
    Tally { counts, time, start: 0, holes: Holes::default(), disturbance }
}

/// Says that a trial will begin, and does the work when it is time. Meanwhile nothing is said here,
/// and who should hear it has to be there and as silent.
fn attend<T: Send>(
    channel: &mut Channel,
    start: &Start,
    interrupt: &Interrupt,
    work: &(dyn Fn(&Interrupt) -> anyhow::Result<T> + Sync),
) -> anyhow::Result<T> {
    let begin = Instant::now() + start.delay;
    channel.say(&Answer::Done)?;
    let (trial, peer) = (start.trial, channel.peer());
    let gone = Arc::new(AtomicBool::new(false));
    let interrupt = interrupt.or(&gone);
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            while let Some(left) = begin.checked_duration_since(Instant::now()) {
                interrupt.check()?;
                thread::sleep(left.min(TURN));
            }
            let since = Utc::now();
            let outcome = work(&interrupt);
            let [since, until] = [since, Utc::now()].map(|time| time.format("%H:%M:%S%.3f"));
            log(peer, &format!("trial {trial} from {since} to {until} UTC"));
            outcome
        });
        let mut said = Ok(0);
        while !worker.is_finished() && said.is_ok() {
            said = channel.waiting();
            thread::sleep(TURN);
        }
        gone.store(said.is_err(), Ordering::Relaxed);
        let outcome = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match said? {
            0 => outcome,
            bytes => bail!("the controller said {bytes} bytes in a trial"),
        }
    })
}
