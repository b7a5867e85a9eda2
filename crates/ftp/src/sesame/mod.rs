//! ftpsesame: no proxy, it only watches. It reads copies of the packets of control connections that
//! the filter has let pass, and has it let each data connection through that both sides agreed
//! upon: between the two hosts of its control connection, once, for a short time.
//!
//! Packets come by a log of the filter ([`skipstep_kernel::LiveLog`]). The guardian reads their
//! headers alone, to know the control connections (`handshake`, `sessions`), and passes them on
//! (`packets`) to a worker without rights. There a packet (`segment`) becomes bytes in order
//! (`stream`), and both directions a dialogue (`connection`), of which there are many (`watch`).
//! The guardian opens the filter (`rules`) for connections that it knows.

pub mod connection;
pub mod gate;
mod handshake;
pub mod options;
mod packets;
pub mod rules;
pub mod segment;
mod sessions;
pub mod stream;
pub mod watch;
pub mod worker;

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};
use log::error;

use crate::anchor::Anchors;
use crate::guardian::{self, lock};
use options::Options;
use packets::pass_on;
use sessions::Sessions;

/// The program, and the anchor that rule sets call.
pub const NAME: &str = "ftpsesame";

/// The anchors, and the log whose packets come to the worker.
///
/// # Errors
/// The filter is not there, or another program reads the log.
pub fn open(options: &Options) -> Result<Anchors> {
    let mut anchors = Anchors::open(NAME, &options.instance())?;
    anchors.take_log(options.log)?;
    Ok(anchors)
}

/// Reads the log for the worker, and opens the filter for it.
///
/// # Errors
/// Those of the guardian.
pub fn serve(options: &Options, anchors: &mut Anchors) -> Result<()> {
    let (own, worker) = UnixStream::pair().context("worker")?;
    let sessions = Arc::new(Mutex::new(Sessions::new(options, Instant::now())));
    let (known, told) = (sessions.clone(), options.clone());
    // it ends with the worker, or with this process
    thread::spawn(move || {
        if let Err(problem) = pass_on(&own, &known, &told) {
            error!("pflog{}: {problem:#}", told.log);
        }
    });
    let input = Stdio::from(OwnedFd::from(worker));
    let served = guardian::run(anchors, input, |anchors, request| {
        lock(&sessions).order(request, options, || anchors.is_current())
    });
    served.and(anchors.give_log_back())
}
