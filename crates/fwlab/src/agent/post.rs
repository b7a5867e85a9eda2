//! The end of a measurement: what carries out orders on the machine it is on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use chrono::{DateTime, Utc};
use skipstep_kernel::lab::{self, Progress, Sink};

use super::channel::{Broken, Channel};
use super::log;
use super::message::{Answer, Frames, LONGEST_TRIAL, Machine, Order, Part, Reach, Tally};
use crate::host::Host;
use crate::interrupt::{Interrupt, Interrupted};
use crate::link::Link;
use crate::measure;
use crate::placement::{Disturbance, KinWatch, Placement};
use crate::raw::flood::{PORTS, await_stragglers};
use crate::raw::frame::Flow;
use crate::raw::sender::{Pace, Port, Sender};
use crate::results::Counts;
use crate::sockets::{self, Server, Talk};

/// A controller that has not said anything for so long, while it is its turn, is gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a trial is looked after.
const TURN: Duration = Duration::from_millis(20);

/// What a part has become here.
enum Ready<'h> {
    Nothing,
    Client(Talk),
    Server { talk: Talk, _server: Server, watch: Option<KinWatch<'h>> },
    Source { sender: Box<Sender<'h>>, pace: Pace },
    Sink { sink: Sink, watch: Option<KinWatch<'h>> },
}

/// An end of a measurement.
struct Post<'h> {
    host: &'h Host,
    at: Placement,
    ready: Ready<'h>,
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
    let mut post = Post { host: &host, at, ready: Ready::Nothing };
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
    /// How long a controller may be silent: there may be a trial in which this end is not active.
    fn patience(&self) -> Duration {
        match &self.ready {
            Ready::Server { talk, watch: Some(_), .. } => PATIENCE + talk.duration * 2,
            // it is not told how long others send
            Ready::Sink { watch: Some(_), .. } => PATIENCE + LONGEST_TRIAL,
            _ => PATIENCE,
        }
    }

    /// Makes ready for a part.
    fn prepare(&self, part: Part) -> anyhow::Result<Ready<'h>> {
        Ok(match part {
            Part::Client(talk) => Ready::Client(talk),
            Part::Server { talk, address } => {
                let server = Server::start_for(&talk, self.host, self.at, address)
                    .context("no server (--server-address says where it listens)")?;
                Ready::Server { talk, _server: server, watch: None }
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
                Ready::Sink { sink, watch: None }
            }
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
                let environment = measure::environment();
                Ok(Answer::Machine(Box::new(Machine { environment, link })))
            }
            Order::Prepare(part) => {
                // the ports of the part before are free again
                self.ready = Ready::Nothing;
                self.ready = self.prepare(part)?;
                Ok(Answer::Done)
            }
            Order::Begin { trial, delay } => match &mut self.ready {
                Ready::Nothing => bail!("no part to begin with"),
                Ready::Client(talk) => {
                    let begin = Instant::now() + delay;
                    channel.say(&Answer::Done)?;
                    let heard = attend(channel, trial, begin, interrupt, &|interrupt| {
                        sockets::talk_from(self.host, Vec::new(), talk, self.at, interrupt)
                    });
                    heard.map(Answer::Heard)
                }
                Ready::Source { sender, pace } => {
                    let begin = Instant::now() + delay;
                    sender.begin(pace, trial)?;
                    channel.say(&Answer::Done)?;
                    let sent = attend(channel, trial, begin, interrupt, &|interrupt| {
                        let disturbance = sender.generate(pace, self.at, Some(interrupt))?;
                        interrupt.check()?;
                        Ok(sent(&sender.progress()?, disturbance))
                    });
                    sent.map(Answer::Frames)
                }
                Ready::Server { watch, .. } => {
                    *watch = Some(KinWatch::begin(self.at.cpu, vec![self.host])?);
                    Ok(Answer::Done)
                }
                Ready::Sink { sink, watch } => {
                    sink.begin(trial)?;
                    *watch = Some(KinWatch::begin(self.at.cpu, vec![self.host])?);
                    Ok(Answer::Done)
                }
            },
            Order::Collect => match &mut self.ready {
                Ready::Server { watch, .. } => {
                    let watch = watch.take().context("no trial to tell of")?;
                    Ok(Answer::Seen(watch.end()?))
                }
                Ready::Sink { sink, watch } => {
                    let watch = watch.take().context("no trial to tell of")?;
                    let counts = await_stragglers(sink, None)?;
                    Ok(Answer::Frames(counted(&counts, watch.end()?)))
                }
                _ => bail!("nothing to tell of"),
            },
        }
    }
}

/// What a generator did, as far as it can tell.
fn sent(progress: &Progress, disturbance: Disturbance) -> Tally {
    let Progress { sent, late, skipped, start, last, .. } = *progress;
    let counts = Counts { sent, late, skipped, ..Counts::default() };
    Tally { counts, time: Duration::from_nanos(last.saturating_sub(start)), disturbance }
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
    Tally { counts, time, disturbance }
}

/// Does the work of a trial when it is time. Meanwhile nothing is said here, and who should hear it has to be there
/// and as silent.
fn attend<T: Send>(
    channel: &Channel,
    trial: u32,
    begin: Instant,
    interrupt: &Interrupt,
    work: &(dyn Fn(&Interrupt) -> anyhow::Result<T> + Sync),
) -> anyhow::Result<T> {
    let gone = Arc::new(AtomicBool::new(false));
    let interrupt = interrupt.or(&gone);
    let span = |since: DateTime<Utc>| {
        let [since, until] = [since, Utc::now()].map(|time| time.format("%H:%M:%S%.3f"));
        log(channel.peer(), &format!("trial {trial} from {since} to {until} UTC"));
    };
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            while let Some(left) = begin.checked_duration_since(Instant::now()) {
                interrupt.check()?;
                thread::sleep(left.min(TURN));
            }
            let since = Utc::now();
            let outcome = work(&interrupt);
            span(since);
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
