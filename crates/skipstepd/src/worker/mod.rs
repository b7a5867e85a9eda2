//! A worker: a process without rights that reads bytes of strangers. It holds the descriptors that
//! its guardian has handed it, and asks the guardian for whatever needs a right.

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

/// How long a guardian may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A worker that hangs for so many seconds ends itself (`SIGALRM`): its guardian may have no right
/// to end processes of other users.
const WATCHDOG: u32 = 30;

/// Frames that a worker takes from its device before something else has its turn.
const BURST: usize = 64;

/// System calls that set the watchdog.
const WATCH: &[Call] = &[
    #[cfg(target_arch = "x86_64")]
    Call::any(libc::SYS_alarm),
    Call::any(libc::SYS_setitimer),
];

/// The work of a worker.
trait Work {
    /// System calls that the work needs beside the usual ones.
    const CALLS: &'static [Call];

    /// The descriptors that wake the worker.
    fn sources(&self) -> Vec<BorrowedFd<'_>>;

    /// The time until there is work in any case.
    fn patience(&self) -> Duration {
        TICK
    }

    /// Carries out an order.
    fn order(
        &mut self,
        order: Order,
        descriptor: Option<OwnedFd>,
        guardian: &Guardian,
    ) -> Result<()>;

    /// Does as much as there is, within bounds.
    fn turn(&mut self, guardian: &Guardian) -> Result<()>;

    /// Counts what was done.
    fn report(&mut self) -> Request;

    /// Does the last of the work.
    fn finish(&mut self, _guardian: &Guardian) -> Result<()> {
        Ok(())
    }
}

/// The worker's end of the channel.
struct Guardian {
    channel: Channel,
    /// Orders that came while the worker waited for an answer.
    set_aside: RefCell<VecDeque<(Order, Option<OwnedFd>)>>,
}

impl Guardian {
    fn inherited() -> Result<Guardian> {
        let channel = Channel::inherited().context("guardian")?;
        Ok(Guardian { channel, set_aside: RefCell::default() })
    }

    /// Returns the next order that comes within this time.
    fn receive(&self, timeout: Duration) -> Result<Option<(Order, Option<OwnedFd>)>> {
        match self.channel.receive(timeout).context("guardian")? {
            Received::Message(order, descriptors) => {
                Ok(Some((order, descriptors.into_iter().next())))
            }
            Received::Nothing => Ok(None),
            Received::End => bail!("the guardian is gone"),
        }
    }

    /// Returns the next order if there is one.
    fn next(&self) -> Result<Option<(Order, Option<OwnedFd>)>> {
        match self.set_aside.borrow_mut().pop_front() {
            Some(order) => Ok(Some(order)),
            None => self.receive(Duration::ZERO),
        }
    }

    fn send(&self, request: &Request, descriptors: &[BorrowedFd]) -> Result<()> {
        self.channel.send(request, descriptors).context("guardian")
    }

    /// Sends a request, and waits for the order for which `answer` returns a value.
    fn ask<T>(
        &self,
        request: &Request,
        answer: impl Fn(Order, Option<OwnedFd>) -> Result<T, (Order, Option<OwnedFd>)>,
    ) -> Result<T> {
        self.send(request, &[])?;
        let asked = Instant::now();
        while asked.elapsed() < PATIENCE {
            match self.receive(TICK)?.map(|(order, descriptor)| answer(order, descriptor)) {
                Some(Ok(value)) => return Ok(value),
                Some(Err(other)) => self.set_aside.borrow_mut().push_back(other),
                None => {}
            }
        }
        bail!("the guardian does not answer")
    }
}

/// Runs until the guardian says so, or is gone.
///
/// # Errors
/// Those of the system.
pub fn run(task: Task, options: &Options) -> Result<()> {
    leave_signals_to_the_guardian()?;
    let guardian = Guardian::inherited()?;
    let first = guardian.receive(PATIENCE)?.context("the guardian says nothing")?;
    match (task, first) {
        (Task::Fragments, (Order::Reassemble(limits, nonce), Some(device))) => {
            attend(fragments::Reassembly::new(limits, nonce, device), &guardian)
        }
        (Task::Divert, (Order::HandPackets(nonce), Some(device))) => {
            attend(divert::Handing::new(nonce, device), &guardian)
        }
        (Task::Delay, (Order::HoldPackets(limit, nonce), Some(device))) => {
            attend(delay::Holding::new(limit, nonce, device), &guardian)
        }
        (Task::Log, (Order::WriteLog(ring), None)) => {
            attend(log::Writing::new(ring, options)?, &guardian)
        }
        (Task::Flows, (Order::ReportFlows(ring, sequence), None)) => {
            attend(flows::Reporting::new(ring, sequence)?, &guardian)
        }
        (_, (order, _)) => bail!("the guardian says nonsense: {order:?}"),
    }
}

/// A service's manager sends signals to all processes of the service. The guardian tells its
/// workers when they are to end, and what they have to do before.
fn leave_signals_to_the_guardian() -> Result<()> {
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        flag::register(signal, Arc::new(AtomicBool::new(false))).context("signals")?;
    }
    Ok(())
}

/// Gives up all rights, and then does the work.
fn attend<W: Work>(mut work: W, guardian: &Guardian) -> Result<()> {
    // the work's end must not outlive the guardian, even if the work has no end
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
