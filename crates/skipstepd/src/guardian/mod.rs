//! Guardians of workers. A guardian has root's rights, opens everything that its worker needs, and
//! reads no byte of a packet. A worker that has ended is restarted. Until then its device is
//! missing, so the filter drops and counts the worker's packets.

mod delay;
mod divert;
mod flows;
mod fragments;
mod log;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use skipstep_kernel::{Error, Instance};
use skipstep_worker::channel::{Channel, Received};
use skipstep_worker::process;

pub use delay::DelayGuardian;
pub use divert::DivertGuardian;
pub use flows::{Collectors, FlowGuardian};
pub use fragments::FragmentGuardian;
pub use log::LogGuardian;

use crate::complaint::print_message;
use crate::daemon::Signals;
use crate::task::{Order, Request, TICK, Task};

/// Longest wait for a request, before the guardian checks for signals and a new rule set.
const LISTEN: Duration = Duration::from_millis(250);

/// A worker that is silent for so long hangs, and its watchdog has not ended it.
const SILENCE: Duration = Duration::from_secs(40);

/// Interval of the checks if a worker has ended.
const PAUSE: Duration = Duration::from_millis(10);

/// Longest time for a worker to finish and end.
const FINISH: Duration = Duration::from_secs(5);

/// A guardian's part of one task, for one instance.
pub trait Function {
    /// Task of the worker.
    const TASK: Task;

    /// Sends the first orders to the worker.
    ///
    /// # Errors
    /// Fails if the worker takes no orders, or if the kernel or the instance's files refuse a
    /// request.
    fn begin(&mut self, worker: &Worker) -> Result<(), Error>;

    /// Executes a request of the worker. The request is untrusted, because an attacker may control
    /// the worker.
    ///
    /// # Errors
    /// Fails if the request does not belong to the task, if the worker takes no orders, or if the
    /// system refuses a step.
    fn request(
        &mut self,
        worker: &Worker,
        request: Request,
        descriptor: Option<OwnedFd>,
    ) -> Result<(), Error>;

    /// Checks for a new rule set and signals, and informs the worker. It is called several times a
    /// second.
    ///
    /// # Errors
    /// Fails if the worker takes no orders, or if the rule set cannot be read.
    fn follow(&mut self, worker: &Worker) -> Result<(), Error>;
}

/// A running worker process. It ends when this value is dropped.
pub struct Worker {
    task: Task,
    child: Child,
    /// Channel to the worker; `None` once the worker has to end.
    channel: Option<Channel>,
}

impl Worker {
    fn start(task: Task) -> Result<Worker, Error> {
        let started = || {
            let (channel, other) = Channel::pair()?;
            let child = process::start([task.name()], Stdio::from(other), Stdio::null())?;
            Ok(Worker { task, child, channel: Some(channel) })
        };
        started().map_err(|cause| problem(task, cause))
    }

    /// Sends an order, with a descriptor if the order needs one.
    ///
    /// # Errors
    /// Fails if the worker has ended, or if it has not read its orders and the channel is full.
    pub fn order(&self, order: &Order, descriptor: Option<BorrowedFd>) -> Result<(), Error> {
        let sent = self.channel().and_then(|to| to.send_now(order, descriptor.as_slice()));
        sent.map_err(|cause| self.problem(cause))
    }

    fn channel(&self) -> io::Result<&Channel> {
        self.channel.as_ref().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn receive(&self, timeout: Duration) -> Result<Received<Request>, Error> {
        let received = self.channel().and_then(|from| from.receive(timeout));
        received.map_err(|cause| self.problem(cause))
    }

    fn problem(&self, cause: io::Error) -> Error {
        problem(self.task, cause)
    }

    /// Returns the error for a request that does not belong to the worker's task.
    pub fn nonsense(&self, request: &Request) -> Error {
        self.problem(io::Error::other(format!("invalid request: {request:?}")))
    }

    fn ended(&mut self) -> Error {
        let status = self.status().map_or_else(|error| error.to_string(), |s| s.to_string());
        self.problem(io::Error::other(format!("ended ({status}), and is restarted")))
    }

    /// Waits until the worker has ended, but at most [`FINISH`], because an attacker may control
    /// the worker.
    fn status(&mut self) -> io::Result<ExitStatus> {
        let asked = Instant::now();
        loop {
            match self.child.try_wait()? {
                Some(status) => return Ok(status),
                None if asked.elapsed() < FINISH => thread::sleep(PAUSE),
                None => return Err(io::Error::other("does not end")),
            }
        }
    }
}

impl Drop for Worker {
    /// Kills the worker and closes its channel. In a service the guardian may lack the right to
    /// kill processes of other users; such a worker ends when its channel is closed.
    fn drop(&mut self) {
        let _ = self.child.kill();
        self.channel = None;
        if let Err(cause) = self.status() {
            print_message(&self.problem(cause).to_string());
        }
    }
}

fn problem(task: Task, cause: io::Error) -> Error {
    Error::System { operation: format!("the worker that {}", task.work()), cause }
}

/// Starts a worker and serves its requests. It returns when the daemon has to stop, or when the
/// instance is replaced or removed. `starting` is dropped when the worker is ready.
///
/// # Errors
/// Fails if the worker ends or hangs, if it sends a wrong request, or if the system refuses a step.
pub fn serve<F: Function>(
    function: &mut F,
    instance: &Instance,
    signals: &Signals,
    starting: &mut Option<Sender<()>>,
) -> Result<(), Error> {
    let mut worker = Worker::start(F::TASK)?;
    function.begin(&worker)?;
    let (mut heard, mut checked) = (Instant::now(), Instant::now());
    while !signals.stop() {
        if let Some((request, descriptor)) = next(&mut worker, LISTEN)? {
            heard = Instant::now();
            match request {
                Request::Ready => *starting = None,
                request => function.request(&worker, request, descriptor)?,
            }
        }
        if heard.elapsed() >= SILENCE {
            return Err(worker.problem(io::Error::other("does not respond, and is restarted")));
        }
        function.follow(&worker)?;
        if checked.elapsed() >= TICK {
            checked = Instant::now();
            if !instance.is_current() {
                break;
            }
        }
    }
    finish(worker, function)
}

/// Orders a worker to finish, and serves its requests until it has ended.
fn finish<F: Function>(mut worker: Worker, function: &mut F) -> Result<(), Error> {
    worker.order(&Order::Finish, None)?;
    let told = Instant::now();
    while told.elapsed() < FINISH {
        match worker.receive(TICK)? {
            Received::Message(Request::Ready, _) | Received::Nothing => {}
            Received::Message(request, descriptors) => {
                function.request(&worker, request, descriptors.into_iter().next())?;
            }
            Received::End => {
                let status = worker.status().map_err(|cause| worker.problem(cause))?;
                return match status.success() {
                    true => Ok(()),
                    false => Err(worker.problem(io::Error::other(status.to_string()))),
                };
            }
        }
    }
    Err(worker.problem(io::Error::other("does not finish, and is killed")))
}

/// Returns the next request, or `None` if there is none within `timeout`.
fn next(
    worker: &mut Worker,
    timeout: Duration,
) -> Result<Option<(Request, Option<OwnedFd>)>, Error> {
    match worker.receive(timeout)? {
        Received::Message(request, descriptors) => {
            Ok(Some((request, descriptors.into_iter().next())))
        }
        Received::Nothing => Ok(None),
        Received::End => Err(worker.ended()),
    }
}
