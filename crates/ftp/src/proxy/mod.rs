//! ftp-proxy: the helper that rewrites what client and server tell each other, and opens the filter
//! for the data connections that they agree upon.
//!
//! The control connection comes by `divert-to`; the address that the client wanted is that of the
//! socket. Two processes share the work. A guardian accepts `clients`, remembers them as
//! `sessions`, and changes the filter; a `worker` without rights serves the clients that the
//! guardian hands it, and asks for data connections of these sessions. What a data connection needs
//! is in `rules`.

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

/// The program, and the anchor that rule sets call.
pub const NAME: &str = "ftp-proxy";

/// Where the proxy listens, before it does anything else.
///
/// # Errors
/// It has no permission, the options contradict each other, or the address is taken.
pub fn listen(options: &Options) -> Result<TcpListener> {
    if let Some(mistake) = options.mistake() {
        bail!("{mistake}");
    }
    if !geteuid().is_root() {
        bail!("needs root");
    }
    socket::transparent(options.listen())
}

/// Accepts clients at `listener`, has the worker serve them, and opens the filter for it.
///
/// # Errors
/// Those of the guardian.
pub fn serve(options: &Options, anchors: &mut Anchors, listener: TcpListener) -> Result<()> {
    listener.set_nonblocking(false).context("listen")?;
    let (own, worker) = UnixStream::pair().context("worker")?;
    let sessions = Arc::new(Mutex::new(Sessions::default()));
    let (known, allowed) = (sessions.clone(), options.clone());
    // it ends with the worker, or with this process
    thread::spawn(move || clients::accept(&listener, &own, &known, &allowed));
    guardian::run(anchors, Stdio::from(OwnedFd::from(worker)), |anchors, request| {
        lock(&sessions).order(request, options, |address| anchors.is_own(address))
    })
}
