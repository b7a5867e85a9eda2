//! The guardian of workers: it has root's rights, opens whatever a worker needs, and reads no byte
//! of a packet. A worker that has ended is started again. Until then its device is gone, so the
//! filter drops the packets that the worker should have had, and counts them.

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

pub use delay::Holding;
pub use divert::Handing;
pub use flows::{Collectors, Reporting};
pub use fragments::Reassembly;
pub use log::Writing;

use crate::complaint::say;
use crate::daemon::Signals;
use crate::task::{Order, Request, TICK, Task};

/// How long a guardian listens to its worker before it looks for signals and other rules.
const LISTEN: Duration = Duration::from_millis(250);

/// A worker that is silent for so long hangs, and did not end by itself.
const SILENCE: Duration = Duration::from_secs(40);

/// Between two looks whether a worker has ended.
const PAUSE: Duration = Duration::from_millis(10);

/// How long a worker may take to finish.
const FINISH: Duration = Duration::from_secs(5);

/// What a guardian does for one task, as long as an instance is the one of its name.
pub trait Function {
    /// The task.
    const TASK: Task;

    /// Sends the first orders.
    ///
    /// # Errors
    /// The worker takes no orders, or those of the system.
    fn begin(&mut self, worker: &Worker) -> Result<(), Error>;

    /// Carries out a request of the worker, which may be in the hands of an attacker.
    ///
    /// # Errors
    /// The request is not one of this task, the worker takes no orders, or those of the system.
    fn request(
        &mut self,
        worker: &Worker,
        request: Request,
        descriptor: Option<OwnedFd>,
    ) -> Result<(), Error>;

    /// Takes up other rules and signals, if there are any. Is called often.
    ///
    /// # Errors
    /// The worker takes no orders, or those of the system.
    fn follow(&mut self, worker: &Worker) -> Result<(), Error>;
}

/// A worker at work. It ends when this value is dropped.
pub struct Worker {
    task: Task,
    child: Child,
    /// `None` once the worker is to end.
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
    /// The worker has ended, or has not read for long.
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

    /// Refuses a request.
    pub fn nonsense(&self, request: &Request) -> Error {
        self.problem(io::Error::other(format!("it asks for nonsense: {request:?}")))
    }

    fn ended(&mut self) -> Error {
        let status = self.status().map_or_else(|error| error.to_string(), |s| s.to_string());
        self.problem(io::Error::other(format!("it has ended ({status}), and is started again")))
    }

    /// Waits until the worker has ended, but not for long: it may be in the hands of an attacker.
    fn status(&mut self) -> io::Result<ExitStatus> {
        let asked = Instant::now();
        loop {
            match self.child.try_wait()? {
                Some(status) => return Ok(status),
                None if asked.elapsed() < FINISH => thread::sleep(PAUSE),
                None => return Err(io::Error::other("it does not end")),
            }
        }
    }
}

impl Drop for Worker {
    /// Kills the worker, or has it see that the guardian is gone: in a service the guardian has no
    /// right to kill processes of other users.
    fn drop(&mut self) {
        let _ = self.child.kill();
        self.channel = None;
        if let Err(cause) = self.status() {
            say(&self.problem(cause).to_string());
        }
    }
}

fn problem(task: Task, cause: io::Error) -> Error {
    Error::System { what: format!("the worker that {}", task.work()), cause }
}

/// Starts a worker, and serves it while this instance is the one of its name and there is no signal
/// to stop. `starting` is dropped once the worker is at work.
///
/// # Errors
/// The worker has ended or hangs, or those of the system.
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
            return Err(worker.problem(io::Error::other("it hangs, and is started again")));
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

/// Has a worker finish its work, and serves it until it has ended.
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
    Err(worker.problem(io::Error::other("it does not finish, and is killed")))
}

/// Returns the next request that comes within this time.
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
