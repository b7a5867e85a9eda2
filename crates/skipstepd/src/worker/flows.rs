//! The worker that exports ended states as flow records to collectors.

use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use nix::libc;
use skipstep_abi::FlowRecord;
use skipstep_kernel::{FlowReader, RECORDS_A_TURN};
use skipstep_worker::privileges::Call;

use crate::flows::Exporter;
use crate::task::{Order, Request};
use crate::worker::{Guardian, Work};

/// Size of the ring in bytes. A finishing worker reads at most as much.
const RING: usize = 1 << 20;

/// Longest time that records wait for their message to fill.
const COMPANY: Duration = Duration::from_secs(1);

/// The ring and the exporter.
pub struct FlowWorker {
    reader: FlowReader,
    exporter: Exporter,
    flushed: Instant,
}

impl FlowWorker {
    /// Opens the ring with the kernel's id `ring`. The next record has number `sequence`.
    ///
    /// # Errors
    /// Fails if the process is not root, or if the ring no longer exists.
    pub fn new(ring: u32, sequence: u32) -> Result<FlowWorker> {
        let exporter = Exporter::new(sequence);
        Ok(FlowWorker { reader: FlowReader::by_id(ring)?, exporter, flushed: Instant::now() })
    }

    /// Takes records from the ring, [`RECORDS_A_TURN`] at most, and returns their number.
    fn take(&mut self) -> Result<usize> {
        let exporter = &mut self.exporter;
        Ok(self.reader.poll(Duration::ZERO, |flow| exporter.report(flow))?)
    }
}

impl Work for FlowWorker {
    const CALLS: &'static [Call] = &[Call::any(libc::SYS_sendto)];

    fn sources(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.reader.as_fd()]
    }

    fn order(&mut self, order: Order, socket: Option<OwnedFd>, _: &Guardian) -> Result<()> {
        match (order, socket) {
            (Order::Collector(address), Some(socket)) => {
                self.exporter.add(address, UdpSocket::from(socket));
                self.exporter.flush(); // records follow their templates
            }
            (order, _) => bail!("invalid order from the guardian: {order:?}"),
        }
        Ok(())
    }

    fn turn(&mut self, _: &Guardian) -> Result<()> {
        self.take()?;
        if self.flushed.elapsed() >= COMPANY {
            self.flushed = Instant::now();
            self.exporter.flush();
        }
        Ok(())
    }

    fn report(&mut self) -> Request {
        Request::Flows(self.exporter.sequence(), self.exporter.lost())
    }

    fn finish(&mut self, _: &Guardian) -> Result<()> {
        for _ in 0..=RING / size_of::<FlowRecord>() / RECORDS_A_TURN {
            if self.take()? < RECORDS_A_TURN {
                break;
            }
        }
        self.exporter.flush();
        Ok(())
    }
}
