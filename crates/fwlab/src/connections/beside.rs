//! What is sent and received beside connections, as long as they go on.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use serde::{Deserialize, Serialize};

use super::{Answers, Calls, call, datagrams, flood};
use crate::host::Host;
use crate::interrupt::Interrupt;
use crate::placement::Placement;

/// What is sent, so many a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Beside {
    /// Nothing.
    Nothing,
    /// Datagrams in fragments.
    Datagrams(f64),
    /// SYNs of nobody.
    Syns(f64),
}

/// Makes calls from a host, and sends from there what goes on beside them; what became of the
/// calls, and how much was sent.
///
/// # Errors
/// The calls cannot be made, or something cannot be sent.
pub fn call_beside(
    host: &Host,
    at: Placement,
    calls: &Calls,
    beside: Beside,
    interrupt: &Interrupt,
) -> anyhow::Result<(Answers, u64)> {
    let over = AtomicBool::new(false);
    let there = || -> anyhow::Result<()> {
        host.enter()?;
        at.take()
    };
    thread::scope(|scope| {
        let sent = scope.spawn(|| {
            there()?;
            match beside {
                Beside::Nothing => Ok(0),
                Beside::Datagrams(rate) => {
                    let to = SocketAddr::new(calls.server.ip(), datagrams::PORT);
                    datagrams::send(to, rate, &over)
                }
                Beside::Syns(rate) => flood::send(calls.server, rate, &over),
            }
        });
        let done = scope.spawn(|| {
            there()?;
            call(calls, interrupt)
        });
        let done = done.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        over.store(true, Ordering::Relaxed);
        let sent = sent.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((done?, sent?))
    })
}

/// Counts what is sent where it arrives, in a thread of its own, which ends when this goes.
pub struct Counter {
    sent_all: Arc<AtomicBool>,
    thread: Option<JoinHandle<anyhow::Result<u64>>>,
}

impl Counter {
    /// Begins at an address of the network namespace of the calling thread.
    ///
    /// # Errors
    /// A port is taken, or nobody may listen.
    pub fn begin(beside: Beside, address: IpAddr) -> anyhow::Result<Counter> {
        let sent_all = Arc::new(AtomicBool::new(false));
        let told = sent_all.clone();
        let thread = match beside {
            Beside::Nothing => None,
            Beside::Datagrams(_) => {
                let socket = datagrams::listen(SocketAddr::new(address, datagrams::PORT))?;
                Some(thread::spawn(move || datagrams::receive(&socket, &told)))
            }
            Beside::Syns(_) => {
                let socket = flood::listen()?;
                Some(thread::spawn(move || flood::count(&socket, &told, address.is_ipv4())))
            }
        };
        Ok(Counter { sent_all, thread })
    }

    /// Is told that all has been sent; how much came.
    ///
    /// # Errors
    /// It could not be counted.
    pub fn end(mut self) -> anyhow::Result<u64> {
        self.sent_all.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(count)) => count,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(0),
        }
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.sent_all.store(true, Ordering::Relaxed);
        // who does not ask how much came has another failure to tell of
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
