//! ftp-proxy. It rewrites the addresses that client and server exchange, and opens the filter for
//! the data connections that they agree upon.
//!
//! A `divert-to` rule brings the control connection, so the local address of its socket is the
//! server that the client wanted. Two processes share the work. A guardian accepts `clients`,
//! records them as `sessions`, and changes the filter. A `worker` without rights serves the clients
//! that the guardian sends it, and requests their data connections. `rules` writes the rules of a
//! data connection.

mod clients;
pub mod gate;
pub mod options;
pub mod rules;
mod session;
mod sessions;
pub mod worker;

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;

use anyhow::{Context, Result, bail};
use nix::unistd::geteuid;

use crate::anchor::Anchors;
use crate::guardian::{self, lock};
use crate::socket;
use options::Options;
use sessions::Sessions;

/// The name of the program, and of the anchor that rule sets call.
pub const NAME: &str = "ftp-proxy";

/// Opens the listening socket. Call this before anything else.
///
/// # Errors
/// Fails without root, if the options contradict each other, or if the address is in use.
pub fn listen(options: &Options) -> Result<TcpListener> {
    if let Some(mistake) = options.mistake() {
        bail!("{mistake}");
    }
    if !geteuid().is_root() {
        bail!("needs root");
    }
    socket::transparent(options.listen())
}

/// Accepts clients at `listener` and runs the guardian of the worker that serves them.
///
/// # Errors
/// Fails as [`guardian::run`] does, or if the system refuses a call.
pub fn serve(options: &Options, anchors: &mut Anchors, listener: TcpListener) -> Result<()> {
    listener.set_nonblocking(false).context("listen")?;
    let (own, worker) = UnixStream::pair().context("worker")?;
    let sessions = Arc::new(Mutex::new(Sessions::default()));
    let (known, allowed) = (sessions.clone(), options.clone());
    // the thread ends with the worker or with this process
    thread::spawn(move || clients::accept(&listener, &own, &known, &allowed));
    guardian::run(anchors, Stdio::from(OwnedFd::from(worker)), |anchors, request| {
        lock(&sessions).order(request, options, |address| anchors.is_own(address))
    })
}
