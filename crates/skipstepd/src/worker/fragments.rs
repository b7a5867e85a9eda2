//! The worker for fragments: it reassembles datagrams, and fragments them again.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use skipstep_kernel::Frames;
use skipstep_kernel::clock::boot_time;
use skipstep_worker::privileges::Call;

use crate::complaint::Complaint;
use crate::fragments::{Fragments, LONGEST_FRAME};
use crate::task::{FragmentLimits, Order, Request, TICK};
use crate::worker::{BURST, Guardian, Work};

/// The incomplete datagrams, and the device.
pub struct FragmentWorker {
    fragments: Fragments,
    device: Frames,
    buffer: Vec<u8>,
    expired: Instant,
    complaint: Complaint,
}

impl FragmentWorker {
    /// Makes a worker for frames with `nonce` from `device`.
    pub fn new(limits: FragmentLimits, nonce: u64, device: OwnedFd) -> FragmentWorker {
        FragmentWorker {
            fragments: Fragments::new(limits, nonce),
            device: device.into(),
            buffer: vec![0; LONGEST_FRAME],
            expired: Instant::now(),
            complaint: Complaint::default(),
        }
    }
}

impl Work for FragmentWorker {
    const CALLS: &'static [Call] = &[];

    fn sources(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.device.as_fd()]
    }

    fn order(&mut self, order: Order, _: Option<OwnedFd>, _: &Guardian) -> Result<()> {
        match order {
            Order::FragmentLimits(limits) => self.fragments.configure(limits),
            _ => bail!("invalid order from the guardian: {order:?}"),
        }
        Ok(())
    }

    fn turn(&mut self, _: &Guardian) -> Result<()> {
        let now = (boot_time() / 1_000_000_000) as u32;
        for _ in 0..BURST {
            let Some(frame) = self.device.take(&mut self.buffer).context("fragments")? else {
                break;
            };
            for answer in self.fragments.answer(frame, now) {
                self.complaint.note(self.device.give(&answer)); // other frames go on
            }
        }
        if self.expired.elapsed() >= TICK {
            self.expired = Instant::now();
            self.fragments.expire(now);
        }
        Ok(())
    }

    fn report(&mut self) -> Request {
        Request::Fragments(self.fragments.counters())
    }
}
