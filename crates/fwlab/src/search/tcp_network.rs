//! A system in a network of its own with TCP connections through it, for the searches of RFC 3511.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};

use super::filters::Filter;
use super::network::{BELIEVED, Cpus, Installed, pause, shape};
use super::{Besides, Connections, Measurer, Order, Setup, Trial};
use crate::connections::datagrams::{self, Datagrams};
use crate::connections::flood::{self, Flood};
use crate::connections::{self, Answers, Calls, PORT, Pages, Service};
use crate::interrupt::Interrupt;
use crate::placement::Placement;
use crate::raw::frame::Transport;
use crate::results::{self, Latency};
use crate::system::System;
use crate::topology::{End, Family, Lab, Topology};

/// Connections that show how fast the client is, and that a system does what it should.
const CEILING: u64 = 5000;
const CEILING_AT_LEAST: u64 = 100;
const PROBE: u64 = 10;

/// As fast as it goes.
const FAST: f64 = 1e6;

/// A rate at which everything manages a few connections.
const SLOW: f64 = 1000.0;

/// How long the last connections may be under way.
const STRAGGLERS: Duration = Duration::from_millis(100);

/// The client may be late by this share of a trial's length, and by this time, before attempts count as not made.
const LATE: (f64, f64) = (0.02, 0.02);

/// Client and server at two ends of a network, and what is in between.
pub struct TcpNetwork<'l> {
    lab: &'l Lab,
    family: Family,
    cpus: Cpus,
    at: Placement,
    interrupt: Interrupt,
    calls: Calls,
    service: Service,
}

/// The most connections a second that searches attempt: what the client manages over a cable, and somewhat less.
///
/// # Errors
/// There can be no cable, or the client does not get through it.
pub fn most(
    family: Family,
    cpus: Cpus,
    interrupt: &Interrupt,
    pages: Pages,
) -> anyhow::Result<f64> {
    let lab = Lab::new("search-cable", shape(Topology::Direct))?;
    let count = (CEILING / u64::from(pages.requests)).max(CEILING_AT_LEAST);
    let network = TcpNetwork::between(&lab, family, PORT, count, cpus, interrupt)?;
    // all that there is to do, and what is done of it in a second when all of them want it at once; who then waits for
    // too long has not been served, though it was as much work
    let began = Instant::now();
    let answers = network.call(Calls { count, rate: FAST, pages, ..network.calls })?;
    let took = if pages == Pages::ONE { answers.took } else { began.elapsed() };
    let share = answers.fetched.len() as f64 / (count * u64::from(pages.requests)) as f64;
    ensure!(
        share > 0.9 || (pages != Pages::ONE && share > 0.0),
        "over a cable only {} of {count} connections were served",
        answers.served
    );
    Ok((count as f64 * share / took.as_secs_f64() * BELIEVED).floor().max(1.0))
}

impl<'l> TcpNetwork<'l> {
    /// Builds a system with such a filter, and sees whether it lets pass and blocks what it should; what it is, for
    /// results.
    ///
    /// # Errors
    /// It cannot be built, is a proxy, or does something else.
    pub fn new(
        lab: &'l Lab,
        system: &'l dyn System,
        filter: Filter,
        family: Family,
        (cpus, most): (Cpus, u64),
        interrupt: &Interrupt,
    ) -> anyhow::Result<(TcpNetwork<'l>, results::System)> {
        let installed = Installed::new(lab, system, filter, (Transport::Tcp, family), cpus)?;
        let filters = system.filters();
        let blocked = installed.rules.ports().last().filter(|_| filters);
        let closed = blocked.unwrap_or(PORT);
        let network = TcpNetwork::between(lab, family, closed, most, cpus, interrupt)?;
        let few = Calls { count: PROBE, rate: SLOW, ..network.calls };
        let served = network.call(few)?.served;
        ensure!(
            served == PROBE,
            "port {PORT} is open, but {served} of {PROBE} clients were served"
        );
        let seen = network.service.last_visitor();
        let is_translated = seen == Some(End::Server.gateway(family));
        ensure!(is_translated == filter.nat, "the server sees {seen:?} where clients come from");
        if let Some(port) = blocked {
            network.call(Calls { forbidden: 100, ..few })?;
            let leaked = network.leaked();
            ensure!(
                leaked == 0,
                "port {port} is blocked, but {leaked} of {PROBE} clients got as far as the server"
            );
        }
        Ok((network, installed.described()))
    }

    /// Client and server of a network with whatever is between them; at the forbidden port the server listens as well,
    /// so that who gets there is seen.
    fn between(
        lab: &'l Lab,
        family: Family,
        forbidden_port: u16,
        most: u64,
        cpus: Cpus,
        interrupt: &Interrupt,
    ) -> anyhow::Result<TcpNetwork<'l>> {
        connections::prepare(lab, family, most)?;
        // no more urgent than the server, which runs beside it
        let at = Placement { priority: 0, ..cpus.at };
        let mut ports = vec![PORT, forbidden_port];
        ports.dedup();
        let service = lab.end(End::Server).inside(|| {
            at.take()?;
            Service::begin(&ports)
        })??;
        let calls = Calls {
            server: SocketAddr::new(End::Server.address(family), PORT),
            clients: connections::clients(family),
            count: 1,
            rate: 1.0,
            hold: false,
            close: None,
            forbidden: 0,
            forbidden_port,
            pages: Pages::ONE,
        };
        let interrupt = interrupt.clone();
        Ok(TcpNetwork { lab, family, cpus, at, interrupt, calls, service })
    }

    fn call(&self, calls: Calls) -> anyhow::Result<Answers> {
        self.lab.end(End::Client).inside(|| {
            self.at.take()?;
            connections::call(&calls, &self.interrupt)
        })?
    }
}

impl TcpNetwork<'_> {
    /// Connections that have come as far as the server at the forbidden port, when those under way are there.
    fn leaked(&self) -> u64 {
        thread::sleep(STRAGGLERS);
        self.service.came(self.calls.forbidden_port)
    }
}

impl Measurer for TcpNetwork<'_> {
    fn trial(&mut self, order: &Order) -> anyhow::Result<Trial> {
        let &[phase] = order.phases else { bail!("connections are attempted at one rate") };
        let count = (phase.rate * phase.seconds).round().max(1.0) as u64;
        let calls = Calls { count, rate: phase.rate, ..self.calls };
        let calls = match order.besides {
            Besides::Nothing | Besides::Fragments(_) => calls,
            Besides::Hold => Calls { hold: true, ..calls },
            Besides::TearDown(rate) => Calls { hold: true, rate, close: Some(phase.rate), ..calls },
            Besides::Forbidden(forbidden) => Calls { forbidden, ..calls },
            Besides::Pages(pages) | Besides::Flood(_, pages) => Calls { pages, ..calls },
            Besides::Reset(_) => bail!("nothing is reset under connections"),
        };
        let leaked = self.service.came(calls.forbidden_port);
        let hosts = [End::Client, End::Server].map(|end| self.lab.end(end));
        let (mut datagrams, mut flood) = (Datagrams::default(), Flood::default());
        let answers = match order.besides {
            Besides::Fragments(rate) if rate > 0.0 => {
                let to = SocketAddr::new(calls.server.ip(), datagrams::PORT);
                let beside = datagrams::beside(hosts, self.at, to, rate, || self.call(calls));
                let (answers, seen) = beside?;
                datagrams = seen;
                answers
            }
            Besides::Flood(rate, _) if rate > 0.0 => {
                let beside = flood::beside(hosts, self.at, calls.server, rate, || self.call(calls));
                let (answers, seen) = beside?;
                flood = seen;
                answers
            }
            _ => self.call(calls)?,
        };
        if calls.close.is_some() {
            return Ok(tear_down_of(&answers, phase.seconds));
        }
        // how long it took until all were there, is of no concern if they stay
        let seconds = if calls.hold { f64::INFINITY } else { phase.seconds };
        let mut trial = trial_of(&answers, (datagrams, flood), seconds);
        if let Some(known) = trial.connections.as_mut().filter(|_| calls.forbidden > 0) {
            known.leaked = self.leaked() - leaked;
        }
        Ok(trial)
    }

    fn wait(&mut self, seconds: f64) {
        pause(seconds, &self.interrupt);
    }

    fn most(&mut self, pages: Pages) -> anyhow::Result<Option<f64>> {
        most(self.family, self.cpus, &self.interrupt, pages).map(Some)
    }
}

/// The share of what was to be done in so many seconds that was done in time, if all of it took so long: what the client
/// was late with was not attempted at the rate.
fn in_time(took: Duration, seconds: f64) -> f64 {
    let took = took.as_secs_f64();
    let (share, time) = LATE;
    if took > seconds * (1.0 + share) + time { seconds / took } else { 1.0 }
}

fn times(all: &[u64]) -> Setup {
    let total: u64 = all.iter().sum();
    Setup {
        least: all.iter().copied().min().unwrap_or_default(),
        mean: total as f64 / all.len().max(1) as f64,
        most: all.iter().copied().max().unwrap_or_default(),
        total,
    }
}

/// A trial of these answers, for whose attempts there were so many seconds.
fn trial_of(answers: &Answers, beside: (Datagrams, Flood), seconds: f64) -> Trial {
    let (datagrams, flood) = beside;
    let in_time = in_time(answers.took, seconds);
    Trial {
        sent: answers.attempted,
        received: (answers.served as f64 * in_time) as u64,
        latency: Latency::of(answers.setup.iter().map(|&time| (time, 1))),
        connections: Some(Connections {
            established: answers.established,
            forbidden: answers.forbidden,
            leaked: 0,
            setup: times(&answers.setup),
            datagrams,
            flood,
            pages: (answers.fetched.len() as f64 * in_time) as u64,
            fetched: times(&answers.fetched),
        }),
        ..Trial::default()
    }
}

/// The same where it is of interest how they were closed.
fn tear_down_of(answers: &Answers, seconds: f64) -> Trial {
    let closed = answers.closed.len() as f64 * in_time(answers.closing, seconds);
    let known = Connections {
        established: answers.established,
        setup: times(&answers.closed),
        ..Connections::default()
    };
    Trial {
        sent: answers.attempted,
        received: closed as u64,
        latency: Latency::of(answers.closed.iter().map(|&time| (time, 1))),
        connections: Some(known),
        ..Trial::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_that_were_late_do_not_count_as_served() {
        let answers = |took| Answers {
            attempted: 100,
            established: 100,
            served: 100,
            setup: vec![10, 20, 60],
            took: Duration::from_millis(took),
            ..Answers::default()
        };
        let of = |took| trial_of(&answers(took), Default::default(), 1.0);
        assert_eq!(of(990).received, 100);
        assert_eq!(of(1030).received, 100);
        assert_eq!(of(2000).received, 50);
        let torn_down = |closing| {
            let (closed, closing) = (vec![5; 80], Duration::from_millis(closing));
            tear_down_of(&Answers { closed, closing, ..answers(10) }, 1.0).received
        };
        assert_eq!([torn_down(1000), torn_down(4000)], [80, 20]);
        let setup = of(990).connections.unwrap().setup;
        assert_eq!(setup, Setup { least: 10, mean: 30.0, most: 60, total: 90 });
    }
}
