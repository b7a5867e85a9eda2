//! The process that may change the filter. The guardian starts a worker without rights, which reads
//! the bytes of strangers. The guardian carries out a request of the worker if it belongs to a
//! session that the guardian knows from its own sources. When the worker ends, the guardian removes
//! its rules. A request is a line of JSON. An answer is a line, too: empty, or an error.
//!
//! The guardian answers as soon as the rules are active. The filter needs some milliseconds more
//! before it accepts another change. Requests that arrive meanwhile become one change.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use log::error;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::de::DeserializeOwned;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use skipstep_kernel::Unsettled;
use skipstep_worker::process;

use crate::anchor::Anchors;

/// Number of bytes in one read.
const BLOCK: usize = 1 << 16;

/// Length limit of a request line, in bytes.
const LONGEST: usize = 4096;

/// Longest delay of `Close` orders, which nobody waits for, so that they share a change with
/// others.
const CLOSE_DELAY: Duration = Duration::from_millis(50);

/// The change that a request leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Replace the rules of the session by this text.
    Open(u32, String),
    /// Remove the rules of the session. The worker does not wait, and gets no answer.
    Close(u32),
    /// Change nothing, but answer.
    Nothing,
}

/// Locks data that two threads of a guardian share, even if one of them has panicked.
pub fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a worker with `input` as standard input, and serves it until it ends. `order` judges each
/// request and returns the order to carry out; `None` means no change and no answer.
///
/// # Errors
/// Fails if the worker cannot start, sends an invalid request or ends with a failure, or if its
/// rules cannot be removed.
pub fn run<R: DeserializeOwned>(
    anchors: &mut Anchors,
    input: Stdio,
    order: impl FnMut(&mut Anchors, &R) -> Result<Option<Order>>,
) -> Result<()> {
    let (own, other) = UnixStream::pair().context("worker")?;
    let output = Stdio::from(OwnedFd::from(other));
    let mut worker = process::start([""; 0], input, output).context("worker")?;
    pass_signals_on(&worker)?;
    let served = serve(anchors, &own, order);
    let removed = anchors.remove_all();
    drop(own);
    let status = worker.wait().context("worker")?;
    served.and(removed)?;
    check(status)
}

/// Forwards signals that end the program to the worker. The guardian ends when the worker has
/// ended.
fn pass_signals_on(worker: &Child) -> Result<()> {
    let pid = Pid::from_raw(worker.id().cast_signed());
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).context("signals")?;
    thread::spawn(move || {
        for _ in signals.forever() {
            // the worker may have ended already
            let _ = kill(pid, Signal::SIGTERM);
        }
    });
    Ok(())
}

fn serve<R: DeserializeOwned>(
    anchors: &mut Anchors,
    mut stream: &UnixStream,
    mut order: impl FnMut(&mut Anchors, &R) -> Result<Option<Order>>,
) -> Result<()> {
    let mut requests = Requests { stream, bytes: Vec::new() };
    while let Some(asked) = requests.next(None)? {
        let until = Instant::now() + CLOSE_DELAY;
        let mut judge = |asked: &R| order(anchors, asked).transpose();
        let mut orders: Vec<_> = asked.iter().filter_map(&mut judge).collect();
        let can_wait = |order: &Result<Order>| matches!(order, Ok(Order::Close(_)));
        while orders.iter().all(can_wait)
            && let Some(more) = requests.next(Some(until))?
        {
            orders.extend(more.iter().filter_map(&mut judge));
        }
        let (answers, unsettled) = carry_out(anchors, orders);
        if stream.write_all(answers.as_bytes()).is_err() {
            break;
        }
        if let Some(Err(problem)) = unsettled.map(|unsettled| anchors.settle(unsettled)) {
            error!("{problem:#}");
        }
    }
    Ok(())
}

/// Carries out orders in one change, or each in a change of its own if that fails. Returns the
/// answers, and the change that the caller has to settle.
fn carry_out(anchors: &mut Anchors, orders: Vec<Result<Order>>) -> (String, Option<Unsettled>) {
    let mut changes = Vec::new();
    for order in orders.iter().flatten() {
        match order {
            Order::Open(id, rules) => changes.push((*id, rules.clone())),
            Order::Close(id) => changes.push((*id, String::new())),
            Order::Nothing => {}
        }
    }
    let changed = match &changes[..] {
        [] => Ok(None),
        changes => anchors.change(changes).map(Some),
    };
    match changed {
        Ok(unsettled) => (orders.into_iter().filter_map(answer).collect(), unsettled),
        Err(problem) if orders.len() == 1 => {
            let failed = orders.into_iter().map(|order| failed(order, &problem));
            (failed.filter_map(answer).collect(), None)
        }
        Err(_) => {
            let mut answers = String::new();
            for order in orders {
                let (answer, unsettled) = carry_out(anchors, vec![order]);
                if let Some(Err(problem)) = unsettled.map(|unsettled| anchors.settle(unsettled)) {
                    error!("{problem:#}");
                }
                answers += &answer;
            }
            (answers, None)
        }
    }
}

/// Reports that an order could not be carried out. A `Close` only logs the problem.
fn failed(order: Result<Order>, problem: &anyhow::Error) -> Result<Order> {
    match order? {
        Order::Close(id) => {
            error!("#{id} rules stay: {problem:#}");
            Ok(Order::Close(id))
        }
        _ => Err(anyhow!("{problem:#}")),
    }
}

/// Returns the line that answers an order; `None` for a `Close`.
fn answer(order: Result<Order>) -> Option<String> {
    match order {
        Ok(Order::Close(_)) => None,
        Ok(_) => Some("\n".to_owned()),
        Err(problem) => Some(format!("{problem:#}").replace('\n', " ") + "\n"),
    }
}

/// Reads the requests of the worker.
struct Requests<'s> {
    stream: &'s UnixStream,
    /// Bytes of requests that have not arrived completely.
    bytes: Vec<u8>,
}

impl Requests<'_> {
    /// Waits for requests and returns all that have arrived, at least one. Returns `None` at the
    /// end of the stream, and if no request arrives before `until`.
    fn next<R: DeserializeOwned>(&mut self, until: Option<Instant>) -> Result<Option<Vec<R>>> {
        let mut block = vec![0; BLOCK];
        loop {
            if let Some(end) = self.bytes.iter().rposition(|byte| *byte == b'\n') {
                let rest = self.bytes.split_off(end + 1);
                let lines = std::mem::replace(&mut self.bytes, rest);
                let lines = lines[..end].split(|byte| *byte == b'\n');
                let requests = lines.map(serde_json::from_slice).collect::<Result<_, _>>();
                return requests.context("invalid request from the worker").map(Some);
            }
            if self.bytes.len() > LONGEST {
                bail!("invalid request from the worker: a line of more than {LONGEST} bytes");
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
            self.stream.set_read_timeout(left).context("worker")?;
            match self.stream.read(&mut block) {
                Ok(0) => return Ok(None),
                Ok(length) => self.bytes.extend_from_slice(&block[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // the timeout has passed, or the worker ended with unread answers
                Err(_) => return Ok(None),
            }
        }
    }
}

fn check(status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("the worker has failed: {status}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_received_requests_are_returned_together() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut requests = Requests { stream: &ours, bytes: Vec::new() };
        theirs.write_all(b"1\n2\n3").unwrap();
        assert_eq!(requests.next::<u32>(None).unwrap(), Some(vec![1, 2]));
        let soon = Instant::now() + Duration::from_millis(1);
        assert_eq!(requests.next::<u32>(Some(soon)).unwrap(), None);
        theirs.write_all(b"0\n").unwrap();
        assert_eq!(requests.next::<u32>(None).unwrap(), Some(vec![30]));
        theirs.write_all(b"nonsense\n").unwrap();
        assert!(requests.next::<u32>(None).is_err());
        drop(theirs);
        assert_eq!(requests.next::<u32>(None).unwrap(), None);
    }

    #[test]
    fn a_request_without_end_is_nonsense() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut requests = Requests { stream: &ours, bytes: Vec::new() };
        theirs.write_all(&[b' '; LONGEST + 1]).unwrap();
        let soon = Instant::now() + Duration::from_secs(5);
        let problem = requests.next::<u32>(Some(soon)).unwrap_err().to_string();
        assert!(problem.contains("4096 bytes"), "{problem}");
    }

    #[test]
    fn a_close_has_no_answer() {
        let answers = [
            Ok(Order::Open(1, String::new())),
            Ok(Order::Close(2)),
            Ok(Order::Nothing),
            Err(anyhow!("two\nlines")),
        ];
        let answers: String = answers.into_iter().filter_map(answer).collect();
        assert_eq!(answers, "\n\ntwo lines\n");
        let problem = anyhow!("no filter");
        assert!(failed(Ok(Order::Open(1, String::new())), &problem).is_err());
        assert!(failed(Ok(Order::Close(1)), &problem).is_ok());
    }
}
