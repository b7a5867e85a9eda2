//! Connections that are made, or served, on the machine of an agent.

use std::thread;

use anyhow::Context;

use super::super::message::{Called, Caller, Made, Served};
use crate::connections::{Counter, Outcome, STRAGGLERS, Service, allow_files, call_beside};
use crate::host::Host;
use crate::interrupt::Interrupt;
use crate::placement::Placement;

/// No more urgent than the kernel's own threads, which bring what is waited for.
fn ordinary(at: Placement) -> Placement {
    Placement { priority: 0, ..at }
}

/// Sees that this machine can make these calls.
pub(super) fn ready(caller: Caller) -> anyhow::Result<Box<Caller>> {
    allow_files(caller.calls.at_once(), 1)?;
    Ok(Box::new(caller))
}

/// Makes them.
pub(super) fn call(
    caller: &Caller,
    host: &Host,
    at: Placement,
    interrupt: &Interrupt,
) -> anyhow::Result<Made> {
    let Caller { calls, beside } = caller;
    let (answers, sent) = call_beside(host, ordinary(at), calls, *beside, interrupt)?;
    Ok(Made { outcome: Outcome::from(&answers), sent })
}

/// Who serves pages.
pub(super) struct Server {
    called: Called,
    service: Service,
    /// What counts in a trial, and how many had come to the forbidden port before.
    trial: Option<(Counter, u64)>,
}

impl Server {
    /// Begins to listen.
    pub fn new(called: Called, at: Placement) -> anyhow::Result<Server> {
        allow_files(called.at_once, 1)?;
        let ports: Vec<u16> = called.ports.iter().copied().chain(called.forbidden_port).collect();
        let service = ordinary(at).run(|| Service::begin(called.address, &ports))?;
        let why = || format!("no server at {} (--server-address, --server-ports)", called.address);
        let service = service.with_context(why)?;
        Ok(Server { called, service, trial: None })
    }

    /// A trial begins.
    pub fn begin(&mut self) -> anyhow::Result<()> {
        let counter = Counter::begin(self.called.beside, self.called.address)?;
        self.trial = Some((counter, self.leaked()));
        Ok(())
    }

    /// What was seen of it.
    pub fn collect(&mut self) -> anyhow::Result<Served> {
        let (counter, before) = self.trial.take().context("no trial to tell of")?;
        if self.called.forbidden_port.is_some() {
            thread::sleep(STRAGGLERS);
        }
        let received = counter.end()?;
        self.service.ensure_running().context("the server of pages")?;
        let leaked = self.leaked() - before;
        Ok(Served { leaked, visitor: self.service.last_visitor(), received })
    }

    /// Connections that have come to the forbidden port.
    fn leaked(&self) -> u64 {
        self.called.forbidden_port.map_or(0, |port| self.service.came(port))
    }
}
