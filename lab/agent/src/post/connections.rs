//! Connections that an agent makes or serves.

use std::thread;

use anyhow::Context;
use fwlab_load::connections::{
    CallSummary, Counter, STRAGGLERS, Service, allow_files, call_beside,
};
use fwlab_net::host::Host;
use fwlab_net::interrupt::Interrupt;
use fwlab_net::placement::Placement;

use super::super::message::{Called, Caller, Made, Served};

/// Returns a placement without real-time priority, so that the kernel's own threads, which deliver
/// the packets, come first.
fn ordinary(at: Placement) -> Placement {
    Placement { priority: 0, ..at }
}

/// Raises the limit of open files to the connections of these calls, and fails if that is not
/// possible.
pub(super) fn ready(caller: Caller) -> anyhow::Result<Box<Caller>> {
    allow_files(caller.calls.at_once(), 1)?;
    Ok(Box::new(caller))
}

/// Makes the connections, and returns their results.
pub(super) fn call(
    caller: &Caller,
    host: &Host,
    at: Placement,
    interrupt: &Interrupt,
) -> anyhow::Result<Made> {
    let Caller { calls, beside } = caller;
    let (answers, sent) = call_beside(host, ordinary(at), calls, *beside, interrupt)?;
    Ok(Made { outcome: CallSummary::from(&answers), sent })
}

/// The server of pages.
pub(super) struct Server {
    called: Called,
    service: Service,
    /// The counter of the current trial, and the connections to the forbidden port before the
    /// trial.
    trial: Option<(Counter, u64)>,
}

impl Server {
    /// Starts to listen, without real-time priority.
    ///
    /// # Errors
    /// Fails if the limit of open files is too low, or if the address is not this machine's.
    pub fn new(called: Called, at: Placement) -> anyhow::Result<Server> {
        allow_files(called.at_once, 1)?;
        let ports: Vec<u16> = called.ports.iter().copied().chain(called.forbidden_port).collect();
        let service = ordinary(at).run(|| Service::begin(called.address, &ports))?;
        let why = || {
            format!(
                "cannot listen at {}: check --server-address and --server-ports",
                called.address
            )
        };
        let service = service.with_context(why)?;
        Ok(Server { called, service, trial: None })
    }

    /// Begins a trial.
    ///
    /// # Errors
    /// Fails if datagrams or SYNs cannot be counted.
    pub fn begin(&mut self) -> anyhow::Result<()> {
        let counter = Counter::begin(self.called.beside, self.called.address)?;
        self.trial = Some((counter, self.leaked()));
        Ok(())
    }

    /// Ends the trial, and returns its counts.
    ///
    /// # Errors
    /// Fails if no trial was begun, if the counter fails, or if the server has stopped.
    pub fn collect(&mut self) -> anyhow::Result<Served> {
        let (counter, before) = self.trial.take().context("there is no trial to report")?;
        if self.called.forbidden_port.is_some() {
            thread::sleep(STRAGGLERS);
        }
        let received = counter.end()?;
        self.service.ensure_running().context("HTTP server")?;
        let leaked = self.leaked() - before;
        Ok(Served { leaked, visitor: self.service.last_visitor(), received })
    }

    /// Returns the number of connections that have come to the forbidden port.
    fn leaked(&self) -> u64 {
        self.called.forbidden_port.map_or(0, |port| self.service.came(port))
    }
}
