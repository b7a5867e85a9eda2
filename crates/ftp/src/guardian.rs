//! The process that may change the filter. It starts the worker, which reads what the world says and may do
//! nothing else, does what that asks for, and when it is gone removes what is left of its rules. A request is
//! a line of JSON, the answer a line, too: empty, or what is wrong.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::de::DeserializeOwned;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::anchor::Anchors;

/// The argument that makes a program its own worker.
pub const WORKER: &str = "--worker";

/// Serves a worker as long as it lives: `answer` does what it asks for. `input` is its standard input.
///
/// # Errors
/// It could not be started, it has failed, or rules of it stay.
pub fn run<R: DeserializeOwned>(
    anchors: &mut Anchors,
    input: Stdio,
    answer: impl Fn(&mut Anchors, &R) -> Result<()>,
) -> Result<()> {
    let (own, other) = UnixStream::pair().context("worker")?;
    let mut worker = start(input, other)?;
    pass_signals_on(&worker)?;
    let served = serve(anchors, &own, answer);
    let removed = anchors.remove_all();
    drop(own);
    let status = worker.wait().context("worker")?;
    served.and(removed)?;
    check(status)
}

/// The worker is this program, with its end of the stream for output.
fn start(input: Stdio, stream: UnixStream) -> Result<Child> {
    Command::new("/proc/self/exe")
        .args(std::env::args_os().skip(1))
        .arg(WORKER)
        .stdin(input)
        .stdout(Stdio::from(OwnedFd::from(stream)))
        .spawn()
        .context("worker")
}

/// Whatever ends the program ends the worker, and then the guardian.
fn pass_signals_on(worker: &Child) -> Result<()> {
    let pid = Pid::from_raw(worker.id().cast_signed());
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).context("signals")?;
    thread::spawn(move || {
        for _ in signals.forever() {
            // it may be gone by itself
            let _ = kill(pid, Signal::SIGTERM);
        }
    });
    Ok(())
}

fn serve<R: DeserializeOwned>(
    anchors: &mut Anchors,
    stream: &UnixStream,
    answer: impl Fn(&mut Anchors, &R) -> Result<()>,
) -> Result<()> {
    let mut answers = stream;
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { break };
        let request = serde_json::from_str(&line).context("the worker asks for nonsense")?;
        let answer = match answer(anchors, &request) {
            Ok(()) => String::new(),
            Err(problem) => format!("{problem:#}").replace('\n', " "),
        };
        if writeln!(answers, "{answer}").is_err() {
            break;
        }
    }
    Ok(())
}

fn check(status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("the worker has failed: {status}");
    }
    Ok(())
}
