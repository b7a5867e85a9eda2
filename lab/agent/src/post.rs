//! The agent's end of a measurement: carries out orders on this machine.

mod connections;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use chrono::Utc;
use fwlab_load::connections::Ports;
use fwlab_load::raw::flood::{PORTS, await_stragglers};
use fwlab_load::raw::frame::Flow;
use fwlab_load::raw::missing::Holes;
use fwlab_load::raw::sender::{Pace, Port, Sender};
use fwlab_load::sockets::{self, Server, Talk};
use fwlab_net::host::Host;
use fwlab_net::interrupt::{Interrupt, Interrupted};
use fwlab_net::link::Link;
use fwlab_net::placement::{Disturbance, KinWatch, Placement};
use fwlab_net::traffic::TrafficKind;
use fwlab_net::{environment, system};
use fwlab_results::Counts;
use skipstep_kernel::lab::{self, Progress, Sink};

use super::channel::{Broken, Channel};
use super::log;
use super::message::{Answer, Caller, Frames, Machine, Order, Part, Reach, Start, Tally};

/// The longest silence of a controller outside of a trial. After that the agent gives it up.
const PATIENCE: Duration = Duration::from_secs(60);

/// The interval of checks during a trial.
const TURN: Duration = Duration::from_millis(20);

/// The current part, prepared.
enum Ready<'h> {
    Nothing,
    Client(Talk),
    Server(#[expect(dead_code, reason = "it serves as long as it is there")] Server),
    Source { sender: Box<Sender<'h>>, pace: Pace },
    Sink(Sink),
    Caller(Box<Caller>),
    Called(connections::Server),
}

/// A trial in which other machines are active.
struct Watched<'h> {
    watch: KinWatch<'h>,
    /// The planned time from the order to the end of the trial.
    length: Duration,
}

/// The agent's state for one controller.
struct Post<'h> {
    host: &'h Host,
    at: Placement,
    ready: Ready<'h>,
    watched: Option<Watched<'h>>,
}

/// Carries out the orders of a controller until it leaves, and then frees all that was made for it.
///
/// # Errors
/// Fails with the reason for which the connection ended, unless the controller closed it; or if a
/// signal came.
pub(super) fn serve(
    channel: &mut Channel,
    at: Placement,
    interrupt: &Interrupt,
) -> Result<(), Broken> {
    let host = Host::here();
    let mut post = Post { host: &host, at, ready: Ready::Nothing, watched: None };
    channel.send(&Answer::Done)?;
    loop {
        let order = match channel.receive::<Order>(post.patience(), interrupt) {
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
        channel.send(&answer)?;
    }
}

impl<'h> Post<'h> {
    /// Returns the longest silence to accept from the controller. A trial is silent, and may take
    /// twice its planned length.
    fn patience(&self) -> Duration {
        PATIENCE + self.watched.as_ref().map_or(Duration::ZERO, |watched| watched.length * 2)
    }

    /// Prepares for a part.
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
                let why = "cannot start the server: check --server-address";
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
                // frees the ports of the previous part
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
                _ => bail!("this agent sends no frames, so it cannot change their rate"),
            },
            Order::Begin(start) => self.begin(&start, channel, interrupt),
            Order::Collect => self.collect(),
        }
    }

    /// Does an active part, or begins to watch the trial of the others.
    fn begin(
        &mut self,
        start: &Start,
        channel: &mut Channel,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Answer> {
        match &mut self.ready {
            Ready::Nothing => bail!("the trial begins before the agent has a role"),
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

    /// Returns the observations of a trial in which others were active.
    fn collect(&mut self) -> anyhow::Result<Answer> {
        let watched = self.watched.take().context("there is no trial to report")?;
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

/// Checks that the programs of a talk are installed.
fn ensure_there(kind: TrafficKind) -> anyhow::Result<()> {
    match kind.programs().iter().find(|program| !system::is_there(program)) {
        Some(program) => bail!("no such program: {program}: install it"),
        None => Ok(()),
    }
}

/// Returns the tally of a generator.
fn sent(progress: &Progress, disturbance: Disturbance) -> Tally {
    let Progress { sent, late, skipped, start, last, .. } = *progress;
    let counts = Counts { sent, late, skipped, ..Counts::default() };
    let time = Duration::from_nanos(last.saturating_sub(start));
    Tally { counts, time, start, holes: Holes::default(), disturbance }
}

/// Returns the tally of a sink, without the latency of frames, because the sender has another
/// clock.
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

/// Answers that the trial will begin, and does the work at its time. The agent sends no message
/// during the trial, and fails if the controller sends one or is gone.
fn attend<T: Send>(
    channel: &mut Channel,
    start: &Start,
    interrupt: &Interrupt,
    work: &(dyn Fn(&Interrupt) -> anyhow::Result<T> + Sync),
) -> anyhow::Result<T> {
    let begin = Instant::now() + start.delay;
    channel.send(&Answer::Done)?;
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
            said = channel.unread_bytes();
            thread::sleep(TURN);
        }
        gone.store(said.is_err(), Ordering::Relaxed);
        let outcome = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match said? {
            0 => outcome,
            bytes => bail!("the controller sent {bytes} bytes during a trial"),
        }
    })
}
