//! Background traffic beside connections: fragmented datagrams or a SYN flood.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use fwlab_net::host::Host;
use fwlab_net::interrupt::Interrupt;
use fwlab_net::placement::Placement;
use serde::{Deserialize, Serialize};

use super::{Answers, Calls, call, datagrams, flood};

/// The kind of background traffic, with its rate in packets per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Beside {
    /// No background traffic.
    Nothing,
    /// Fragmented UDP datagrams.
    Datagrams(f64),
    /// SYNs with source addresses that nobody answers for.
    Syns(f64),
}

/// Makes the calls and sends the background traffic from a host, in two threads. Returns the
/// results of the calls and the number of packets sent beside them.
///
/// # Errors
/// Fails if the threads cannot enter the host or their CPU, if the calls fail, or if the background
/// traffic cannot be sent.
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

/// A thread that counts the background traffic at the receiver. It ends when this value is dropped.
pub struct Counter {
    sent_all: Arc<AtomicBool>,
    thread: Option<JoinHandle<anyhow::Result<u64>>>,
}

impl Counter {
    /// Starts to count at `address`, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// Fails if the UDP port is taken, or if the process lacks the right to open a packet socket.
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

    /// Tells the thread that all packets were sent, and returns the number of packets that arrived.
    ///
    /// # Errors
    /// Fails if the thread could not read its socket.
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
        // the caller has already failed and does not need the count
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
