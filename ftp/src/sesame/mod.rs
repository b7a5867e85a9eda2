//! ftpsesame, which watches FTP without being a proxy. It reads copies of the packets of control
//! connections that the filter has passed. It opens the filter for each data connection that both
//! sides agree upon. The rules allow one connection between the two hosts, for a short time.
//!
//! Packets come from a log of the filter ([`skipstep_kernel::LiveLog`]). The guardian reads only
//! their headers, to know the control connections (`handshake`, `sessions`), and sends the packets
//! (`packets`) to a worker without rights. The worker parses a packet (`segment`), orders the bytes
//! of each direction (`stream`), and combines both directions to a dialogue (`connection`). `watch`
//! has all connections. The guardian opens the filter (`rules`) for connections that it knows.

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
use packets::send_packets;
use sessions::Sessions;

/// The name of the program, and of the anchor that rule sets call.
pub const NAME: &str = "ftpsesame";

/// Opens the anchors and directs the log's packets to this process.
///
/// # Errors
/// Fails as [`Anchors::open`] and [`Anchors::take_log`] do.
pub fn open(options: &Options) -> Result<Anchors> {
    let mut anchors = Anchors::open(NAME, &options.instance())?;
    anchors.take_log(options.log)?;
    Ok(anchors)
}

/// Sends the log's packets to a worker and runs its guardian.
///
/// # Errors
/// Fails as [`guardian::run`] does, or if the log cannot be returned to skipstepd.
pub fn serve(options: &Options, anchors: &mut Anchors) -> Result<()> {
    let (own, worker) = UnixStream::pair().context("worker")?;
    let sessions = Arc::new(Mutex::new(Sessions::new(options, Instant::now())));
    let (known, told) = (sessions.clone(), options.clone());
    // the thread ends with the worker or with this process
    thread::spawn(move || {
        if let Err(problem) = send_packets(&own, &known, &told) {
            error!("pflog{}: {problem:#}", told.log);
        }
    });
    let input = Stdio::from(OwnedFd::from(worker));
    let served = guardian::run(anchors, input, |anchors, request| {
        lock(&sessions).order(request, options, || anchors.is_current())
    });
    served.and(anchors.give_log_back())
}
