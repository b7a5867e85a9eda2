//! Workers. A worker is a process without rights that reads untrusted bytes. It uses the
//! descriptors that its guardian has passed to it, and asks the guardian for everything that needs
//! a right.

mod delay;
mod divert;
mod flows;
mod fragments;
mod log;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::libc;
use nix::sys::signal::Signal;
use nix::unistd::alarm;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use skipstep_worker::channel::{Channel, Received, wait};
use skipstep_worker::privileges::{self, Call, SKIPSTEPD_USERS, USUAL};

use crate::options::Options;
use crate::task::{Order, Request, TICK, Task};

/// Longest wait for the guardian's answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Seconds after which a hanging worker ends itself (`SIGALRM`). The guardian may lack the right to
/// kill processes of other users.
const WATCHDOG: u32 = 30;

/// Most frames that a worker takes from its device before it does other work.
const BURST: usize = 64;

/// System calls that set the watchdog.
const WATCH: &[Call] = &[
    #[cfg(target_arch = "x86_64")]
    Call::any(libc::SYS_alarm),
    Call::any(libc::SYS_setitimer),
];

/// A worker's part of a task.
trait Work {
    /// System calls of this task, in addition to the usual ones.
    const CALLS: &'static [Call];

    /// Returns the descriptors that wake the worker when they are readable.
    fn sources(&self) -> Vec<BorrowedFd<'_>>;

    /// Returns the longest time that the worker may sleep.
    fn patience(&self) -> Duration {
        TICK
    }

    /// Executes an order.
    fn order(
        &mut self,
        order: Order,
        descriptor: Option<OwnedFd>,
        guardian: &Guardian,
    ) -> Result<()>;

    /// Does the pending work, within bounds.
    fn turn(&mut self, guardian: &Guardian) -> Result<()>;

    /// Returns the current counters as a report.
    fn report(&mut self) -> Request;

    /// Does the remaining work before the worker ends.
    fn finish(&mut self, _guardian: &Guardian) -> Result<()> {
        Ok(())
    }
}

/// The worker's end of the channel to its guardian.
struct Guardian {
    channel: Channel,
    /// Orders that arrived while the worker waited for an answer.
    postponed: RefCell<VecDeque<(Order, Option<OwnedFd>)>>,
}

impl Guardian {
    fn inherited() -> Result<Guardian> {
        let channel = Channel::inherited().context("guardian")?;
        Ok(Guardian { channel, postponed: RefCell::default() })
    }

    /// Returns the next order, or `None` if there is none within `timeout`.
    fn receive(&self, timeout: Duration) -> Result<Option<(Order, Option<OwnedFd>)>> {
        match self.channel.receive(timeout).context("guardian")? {
            Received::Message(order, descriptors) => {
                Ok(Some((order, descriptors.into_iter().next())))
            }
            Received::Nothing => Ok(None),
            Received::End => bail!("the guardian is gone"),
        }
    }

    /// Returns the next order, or `None` if there is none now.
    fn next(&self) -> Result<Option<(Order, Option<OwnedFd>)>> {
        match self.postponed.borrow_mut().pop_front() {
            Some(order) => Ok(Some(order)),
            None => self.receive(Duration::ZERO),
        }
    }

    fn send(&self, request: &Request, descriptors: &[BorrowedFd]) -> Result<()> {
        self.channel.send(request, descriptors).context("guardian")
    }

    /// Sends a request and waits for its answer. `answer` extracts the value of the answer, and
    /// gives other orders back, which are kept for later.
    fn request<T>(
        &self,
        request: &Request,
        answer: impl Fn(Order, Option<OwnedFd>) -> Result<T, (Order, Option<OwnedFd>)>,
    ) -> Result<T> {
        self.send(request, &[])?;
        let asked = Instant::now();
        while asked.elapsed() < PATIENCE {
            match self.receive(TICK)?.map(|(order, descriptor)| answer(order, descriptor)) {
                Some(Ok(value)) => return Ok(value),
                Some(Err(other)) => self.postponed.borrow_mut().push_back(other),
                None => {}
            }
        }
        bail!("the guardian does not answer")
    }
}

/// Runs the worker of a task until its guardian ends it.
///
/// # Errors
/// Fails if the guardian is gone or silent, or if it sends a wrong order. Also fails if rights
/// cannot be given up, or if the system refuses a step.
pub fn run(task: Task, options: &Options) -> Result<()> {
    leave_signals_to_the_guardian()?;
    let guardian = Guardian::inherited()?;
    let first = guardian.receive(PATIENCE)?.context("no order from the guardian")?;
    match (task, first) {
        (Task::Fragments, (Order::Reassemble(limits, nonce), Some(device))) => {
            run_work(fragments::FragmentWorker::new(limits, nonce, device), &guardian)
        }
        (Task::Divert, (Order::HandPackets(nonce), Some(device))) => {
            run_work(divert::DivertWorker::new(nonce, device), &guardian)
        }
        (Task::Delay, (Order::HoldPackets(limit, nonce), Some(device))) => {
            run_work(delay::DelayWorker::new(limit, nonce, device), &guardian)
        }
        (Task::Log, (Order::WriteLog(ring), None)) => {
            run_work(log::LogWorker::new(ring, options)?, &guardian)
        }
        (Task::Flows, (Order::ReportFlows(ring, sequence), None)) => {
            run_work(flows::FlowWorker::new(ring, sequence)?, &guardian)
        }
        (_, (order, _)) => bail!("invalid order from the guardian: {order:?}"),
    }
}

/// Ignores signals that end the service. Its manager signals all processes, but a worker has to end
/// when its guardian orders it.
fn leave_signals_to_the_guardian() -> Result<()> {
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        flag::register(signal, Arc::new(AtomicBool::new(false))).context("signals")?;
    }
    Ok(())
}

/// Gives up all rights, and then works until the guardian orders the end.
fn run_work<W: Work>(mut work: W, guardian: &Guardian) -> Result<()> {
    // SIGKILL, because a worker that hangs must not outlive its guardian, either
    privileges::drop(&SKIPSTEPD_USERS, Signal::SIGKILL)?;
    privileges::confine(&[USUAL, WATCH, W::CALLS])?;
    alarm::set(WATCHDOG);
    guardian.send(&Request::Ready, &[])?;
    let mut reported = Instant::now();
    loop {
        let mut sources = work.sources();
        sources.push(guardian.channel.as_fd());
        wait(&sources, work.patience().min(TICK)).context("wait")?;
        while let Some((order, descriptor)) = guardian.next()? {
            if order == Order::Finish {
                work.finish(guardian)?;
                return guardian.send(&work.report(), &[]);
            }
            work.order(order, descriptor, guardian)?;
        }
        work.turn(guardian)?;
        if reported.elapsed() >= TICK {
            reported = Instant::now();
            alarm::set(WATCHDOG);
            guardian.send(&work.report(), &[])?;
        }
    }
}
