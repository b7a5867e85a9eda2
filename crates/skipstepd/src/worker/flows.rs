//! Reports states that have ended to collectors.

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

/// Bytes of the ring. At its end a worker reads that much at most.
const RING: usize = 1 << 20;

/// How long records wait for others at most.
const COMPANY: Duration = Duration::from_secs(1);

/// The ring and the collectors.
pub struct Reporting {
    reader: FlowReader,
    exporter: Exporter,
    flushed: Instant,
}

impl Reporting {
    /// Reads the ring with this number; the next record has number `sequence`.
    ///
    /// # Errors
    /// The process is not root, or the instance is gone.
    pub fn new(ring: u32, sequence: u32) -> Result<Reporting> {
        let exporter = Exporter::new(sequence);
        Ok(Reporting { reader: FlowReader::by_id(ring)?, exporter, flushed: Instant::now() })
    }

    /// Takes some records. Returns their number.
    fn take(&mut self) -> Result<usize> {
        let exporter = &mut self.exporter;
        Ok(self.reader.poll(Duration::ZERO, |flow| exporter.report(flow))?)
    }
}

impl Work for Reporting {
    const CALLS: &'static [Call] = &[Call::any(libc::SYS_sendto)];

    fn sources(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.reader.as_fd()]
    }

    fn order(&mut self, order: Order, socket: Option<OwnedFd>, _: &Guardian) -> Result<()> {
        match (order, socket) {
            (Order::Collector(address), Some(socket)) => {
                self.exporter.add(address, UdpSocket::from(socket));
                self.exporter.flush(); // it is to know the templates at once
            }
            (order, _) => bail!("the guardian says nonsense: {order:?}"),
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
