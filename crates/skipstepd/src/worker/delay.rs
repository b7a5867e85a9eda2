//! The worker for delayed packets: it holds packets until their departure times. Packets that still
//! wait when the worker ends are lost.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use skipstep_kernel::clock::boot_time;
use skipstep_kernel::{DelayCounters, Frames};
use skipstep_worker::privileges::Call;

use crate::complaint::Complaint;
use crate::delay::Delays;
use crate::fragments::LONGEST_FRAME;
use crate::task::{Order, Request, TICK};
use crate::worker::{BURST, Guardian, Work};

/// The waiting packets, and the device.
pub struct DelayWorker {
    delays: Delays,
    device: Frames,
    buffer: Vec<u8>,
    is_over: bool,
    complaint: Complaint,
}

impl DelayWorker {
    /// Makes a worker for frames with `nonce` from `device`, of which at most `limit` wait.
    pub fn new(limit: u32, nonce: u64, device: OwnedFd) -> DelayWorker {
        DelayWorker {
            delays: Delays::new(limit, nonce),
            device: device.into(),
            buffer: vec![0; LONGEST_FRAME],
            is_over: false,
            complaint: Complaint::default(),
        }
    }
}

impl Work for DelayWorker {
    const CALLS: &'static [Call] = &[];

    fn sources(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.device.as_fd()]
    }

    fn patience(&self) -> Duration {
        self.delays.until_next(boot_time()).unwrap_or(TICK)
    }

    fn order(&mut self, order: Order, _: Option<OwnedFd>, _: &Guardian) -> Result<()> {
        match order {
            Order::DelayLimit(limit) => self.delays.configure(limit),
            _ => bail!("invalid order from the guardian: {order:?}"),
        }
        Ok(())
    }

    fn turn(&mut self, _: &Guardian) -> Result<()> {
        for _ in 0..BURST {
            let Some(frame) = self.device.take(&mut self.buffer).context("delayed packets")? else {
                break;
            };
            if let Some(refusal) = self.delays.enqueue(frame) {
                self.complaint.note(self.device.give(&refusal)); // other frames go on
            }
        }
        let now = boot_time();
        while let Some(frame) = self.delays.next(now) {
            self.complaint.note(self.device.give(&frame));
        }
        Ok(())
    }

    fn report(&mut self) -> Request {
        let counters = self.delays.counters();
        let waiting = if self.is_over { 0 } else { counters.waiting };
        Request::Delay(DelayCounters { waiting, ..counters })
    }

    fn finish(&mut self, _: &Guardian) -> Result<()> {
        self.is_over = true;
        Ok(())
    }
}
