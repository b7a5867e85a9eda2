//! The process that may change the filter. It starts the worker, does what that asks for, and when it
//! is gone removes what is left of its rules.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::anchor::Anchors;
use crate::proxy::gate::Request;
use crate::proxy::options::{Options, WORKER};
use crate::proxy::rules::{self, LOWEST_PORT};

/// Serves a worker as long as it lives.
///
/// # Errors
/// It could not be started, it has failed, or rules of it stay.
pub fn run(options: &Options, anchors: &mut Anchors, listener: TcpListener) -> Result<()> {
    let (own, other) = UnixStream::pair().context("worker")?;
    let mut worker = start(listener, other)?;
    pass_signals_on(&worker)?;
    let served = serve(options, anchors, &own);
    let removed = anchors.remove_all();
    drop(own);
    let status = worker.wait().context("worker")?;
    served.and(removed)?;
    check(status)
}

/// The worker is this program, with the listening socket for input and its end of the stream for output.
fn start(listener: TcpListener, stream: UnixStream) -> Result<Child> {
    Command::new("/proc/self/exe")
        .args(std::env::args_os().skip(1))
        .arg(WORKER)
        .stdin(Stdio::from(OwnedFd::from(listener)))
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

fn serve(options: &Options, anchors: &mut Anchors, stream: &UnixStream) -> Result<()> {
    let mut answers = stream;
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { break };
        let request = serde_json::from_str(&line).context("the worker asks for nonsense")?;
        let answer = match answer(options, anchors, &request) {
            Ok(()) => String::new(),
            Err(problem) => format!("{problem:#}").replace('\n', " "),
        };
        if writeln!(answers, "{answer}").is_err() {
            break;
        }
    }
    Ok(())
}

fn answer(options: &Options, anchors: &mut Anchors, request: &Request) -> Result<()> {
    match request {
        Request::Open(_, _, expected) if expected.port < LOWEST_PORT => {
            bail!("no data connection goes to port {}", expected.port)
        }
        Request::Open(id, hosts, expected) => {
            anchors.replace(*id, &rules::rules(hosts, expected, options))
        }
        Request::Close(id) => anchors.remove(*id),
    }
}

fn check(status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("the worker has failed: {status}");
    }
    Ok(())
}
