//! A system in a network of its own, with TCP connections through it, for the searches of RFC 3511.

use std::net::SocketAddr;
use std::thread;
use std::time::Instant;

use anyhow::ensure;
use fwlab_load::connections::{
    self, Answers, Beside, CallSummary, Calls, Counter, PORT, Pages, STRAGGLERS, Service,
};
use fwlab_net::family::Family;
use fwlab_net::interrupt::Interrupt;
use fwlab_net::placement::Placement;
use fwlab_net::system::System;
use fwlab_net::topology::{End, Lab, Topology};
use fwlab_net::transport::Transport;

use super::attempts::{Attempts, BesideCounts, CEILING, CEILING_AT_LEAST, FAST, PROBE, SLOW};
use super::filters::Filter;
use super::network::{Cpus, Installed, pause, shape};
use super::{Measurer, Order, Trial};
use crate::ceiling::USABLE_SHARE;

/// Client and server at two ends of a network, and the system in between.
pub struct TcpNetwork<'l> {
    lab: &'l Lab,
    family: Family,
    cpus: Cpus,
    at: Placement,
    interrupt: Interrupt,
    calls: Calls,
    service: Service,
}

/// Returns the highest rate that a search may attempt, in connections a second: slightly below the
/// client's over a cable.
///
/// # Errors
/// Fails if the network of the cable cannot be made, or if the client does not get through.
pub fn most(
    family: Family,
    cpus: Cpus,
    interrupt: &Interrupt,
    pages: Pages,
) -> anyhow::Result<f64> {
    let lab = Lab::new("search-cable", shape(Topology::Direct))?;
    let count = (CEILING / u64::from(pages.requests)).max(CEILING_AT_LEAST);
    let network = TcpNetwork::between(&lab, family, PORT, count, cpus, interrupt)?;
    // The rate is the whole work divided by its time, with all connections at once. Connections
    // that waited too long are not served, but their work counts.
    let began = Instant::now();
    let answers = network.call(&Calls { count, rate: FAST, pages, ..network.calls.clone() })?;
    let took = if pages == Pages::ONE { answers.took } else { began.elapsed() };
    let share = answers.fetched.len() as f64 / (count * u64::from(pages.requests)) as f64;
    ensure!(
        share > 0.9 || (pages != Pages::ONE && share > 0.0),
        "only {} of {count} connections over a cable were served",
        answers.served
    );
    Ok((count as f64 * share / took.as_secs_f64() * USABLE_SHARE).floor().max(1.0))
}

impl<'l> TcpNetwork<'l> {
    /// Installs a system with a filter, and checks that it passes and blocks the connections it
    /// should. Returns the network, and the description of the system for results.
    ///
    /// # Errors
    /// Fails if the system cannot be installed, if it is a proxy, or if the functional check fails.
    pub fn new(
        lab: &'l Lab,
        system: &'l dyn System,
        filter: Filter,
        family: Family,
        (cpus, most): (Cpus, u64),
        interrupt: &Interrupt,
    ) -> anyhow::Result<(TcpNetwork<'l>, fwlab_results::System)> {
        let installed = Installed::new(lab, system, filter, (Transport::Tcp, family), cpus)?;
        let filters = system.filters();
        let blocked = installed.rules.ports().last().filter(|_| filters);
        let closed = blocked.unwrap_or(PORT);
        let network = TcpNetwork::between(lab, family, closed, most, cpus, interrupt)?;
        let few = Calls { count: PROBE, rate: SLOW, ..network.calls.clone() };
        let served = network.call(&few)?.served;
        ensure!(
            served == PROBE,
            "only {served} of {PROBE} clients at port {PORT} were served, although no rule blocks \
             it"
        );
        let seen = network.service.last_visitor();
        let is_translated = seen == Some(End::Server.gateway(family));
        ensure!(is_translated == filter.nat, "the server sees {seen:?} as the clients' address");
        if let Some(port) = blocked {
            network.call(&Calls { forbidden: 100, ..few })?;
            let leaked = network.leaked();
            ensure!(
                leaked == 0,
                "{leaked} of {PROBE} clients at port {port} reached the server, although a rule \
                 blocks it"
            );
        }
        Ok((network, installed.described()))
    }

    /// Starts client and server of a network. The server listens at the forbidden port too, so that
    /// it counts connections there.
    fn between(
        lab: &'l Lab,
        family: Family,
        forbidden_port: u16,
        most: u64,
        cpus: Cpus,
        interrupt: &Interrupt,
    ) -> anyhow::Result<TcpNetwork<'l>> {
        connections::prepare(lab, family, most)?;
        // no more urgent than the server, which runs on the same CPU
        let at = Placement { priority: 0, ..cpus.at };
        let mut ports = vec![PORT, forbidden_port];
        ports.dedup();
        let service = lab.end(End::Server).inside(|| {
            at.take()?;
            Service::begin(End::Server.address(family), &ports)
        })??;
        let calls = Calls {
            server: SocketAddr::new(End::Server.address(family), PORT),
            ports: 1,
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

    fn call(&self, calls: &Calls) -> anyhow::Result<Answers> {
        self.call_beside(calls, Beside::Nothing).map(|(answers, _)| answers)
    }

    fn call_beside(&self, calls: &Calls, beside: Beside) -> anyhow::Result<(Answers, u64)> {
        let client = self.lab.end(End::Client);
        connections::call_beside(client, self.at, calls, beside, &self.interrupt)
    }
}

impl TcpNetwork<'_> {
    /// Returns the number of connections that reached the server at the forbidden port, after a
    /// wait for those under way.
    fn leaked(&self) -> u64 {
        thread::sleep(STRAGGLERS);
        self.service.came(self.calls.forbidden_port)
    }
}

impl Measurer for TcpNetwork<'_> {
    fn trial(&mut self, order: &Order) -> anyhow::Result<Trial> {
        let attempts = Attempts::from_order(order, &self.calls)?;
        let Attempts { calls, beside, .. } = &attempts;
        let leaked = self.service.came(calls.forbidden_port);
        let server = self.lab.end(End::Server);
        let counter = server.inside(|| Counter::begin(*beside, calls.server.ip()))??;
        let (answers, sent) = self.call_beside(calls, *beside)?;
        let received = counter.end()?;
        let leaked = if calls.forbidden > 0 { self.leaked() - leaked } else { 0 };
        Ok(attempts.trial(&CallSummary::from(&answers), BesideCounts { sent, received, leaked }))
    }

    fn wait(&mut self, seconds: f64) {
        pause(seconds, &self.interrupt);
    }

    fn most(&mut self, pages: Pages) -> anyhow::Result<Option<f64>> {
        most(self.family, self.cpus, &self.interrupt, pages).map(Some)
    }
}
