//! The process that reads packets. The worker has no files, runs as an unprivileged user, and may
//! do nothing else.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use log::{debug, error, info, warn};
use nix::libc;
use nix::sys::signal::Signal;
use signal_hook::consts::{SIGINT, SIGTERM};
use skipstep_worker::privileges::{self, Call, PROXY_USERS, USUAL};

use crate::sesame::connection::{Connection, EndReason};
use crate::sesame::gate::{Gate, Request};
use crate::sesame::options::Options;
use crate::sesame::packets::{Packets, TICK};
use crate::sesame::segment::Segment;
use crate::sesame::watch::{Event, Watch};

/// System calls to the guardian and to syslog.
const SPEAK: &[Call] = &[Call::any(libc::SYS_recvfrom), Call::any(libc::SYS_sendto)];

/// Connections for which the filter is open, by number, each with the time at which it closes.
#[derive(Default)]
struct Opened {
    until: HashMap<u32, Instant>,
    order: BTreeSet<(Instant, u32)>,
}

impl Opened {
    fn open(&mut self, id: u32, until: Instant) {
        self.close(id);
        self.until.insert(id, until);
        self.order.insert((until, id));
    }

    /// Returns true if the filter was open.
    fn close(&mut self, id: u32) -> bool {
        let until = self.until.remove(&id);
        until.is_some_and(|until| self.order.remove(&(until, id)))
    }

    /// Returns the first connection whose time has passed.
    fn expired(&self, now: Instant) -> Option<u32> {
        self.order.first().filter(|(until, _)| *until <= now).map(|(_, id)| *id)
    }
}

/// Reads packets until SIGTERM or SIGINT, or until the guardian ends.
///
/// # Errors
/// Fails if privileges cannot be dropped, if the guardian has ended, or if the instance no longer
/// filters.
pub fn run(options: &Options) -> Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    let mut packets = Packets::inherited()?;
    let mut gate = Gate::inherited()?;
    privileges::drop(&PROXY_USERS, Signal::SIGTERM)?;
    privileges::confine(&[USUAL, SPEAK])?;
    warn!("watching pflog{}", options.log);
    let mut watch: Watch<Connection> = Watch::new(options.connections as usize, Instant::now());
    let mut opened = Opened::default();
    let mut checked = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let mut events = Vec::new();
        let mut report = |id, event| events.push((id, event));
        let displaced = watch.displaced();
        packets.poll(|packet| {
            if let Some(segment) = Segment::parse(packet) {
                watch.segment(&segment, Instant::now(), &mut report);
            }
        })?;
        let now = Instant::now();
        watch.expire(now, &mut report);
        let mut requests = Vec::new();
        for (id, event) in events {
            requests.extend(handle(id, &event, options, &mut opened));
        }
        while let Some(id) = opened.expired(now) {
            info!("#{id} closed: {} seconds are over", options.expiry);
            requests.extend(close(id, &mut opened));
        }
        if now.duration_since(checked) >= TICK {
            checked = now;
            requests.push(Request::Check);
        }
        let mut gone = None;
        gate.request(&requests, |request, problem| match (request, problem) {
            (Request::Open(id, expected), None) => info!("#{id} open: {expected}"),
            (Request::Open(id, _), Some(problem)) => error!("#{id} not opened: {problem}"),
            (Request::Check, Some(problem)) => gone = Some(problem.to_owned()),
            _ => {}
        })?;
        if let Some(problem) = gone {
            bail!("{problem}");
        }
        if watch.displaced() > displaced {
            warn!(
                "more than {} connections, {} were dropped",
                options.connections,
                watch.displaced()
            );
        }
    }
    warn!("exiting, {} connections were watched", watch.len());
    Ok(())
}

/// Logs an event, and returns the request to send to the guardian.
fn handle(id: u32, event: &Event, options: &Options, opened: &mut Opened) -> Option<Request> {
    match event {
        Event::Begun(client, server) => {
            info!("#{id} client {client} to server {server}");
            None
        }
        Event::Refused(reason, to) => {
            warn!("#{id} not opened for {to}: {reason}");
            None
        }
        Event::Open(expected) => {
            opened.open(id, Instant::now() + Duration::from_secs(options.expiry.into()));
            Some(Request::Open(id, *expected))
        }
        Event::Ended(over) => {
            match over {
                EndReason::Ended
                | EndReason::BegunAnew
                | EndReason::Silent
                | EndReason::Encrypted => {
                    info!("#{id} over: {over}");
                }
                EndReason::Displaced => debug!("#{id} over: {over}"),
                _ => warn!("#{id} given up: {over}"),
            }
            close(id, opened)
        }
    }
}

fn close(id: u32, opened: &mut Opened) -> Option<Request> {
    opened.close(id).then_some(Request::Close(id))
}
