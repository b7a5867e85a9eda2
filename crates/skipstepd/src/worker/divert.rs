//! The worker for diverted packets: it passes packets to programs and takes them back.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use anyhow::{Context, Result, bail};
use nix::libc;
use skipstep_kernel::Frames;
use skipstep_worker::privileges::Call;

use crate::complaint::Complaint;
use crate::divert::Ports;
use crate::fragments::LONGEST_FRAME;
use crate::task::{Order, Request};
use crate::worker::{BURST, Guardian, Work};

/// The ports with their programs, and the device.
pub struct DivertWorker {
    ports: Ports,
    device: Frames,
    buffer: Vec<u8>,
    complaint: Complaint,
}

impl DivertWorker {
    /// Makes a worker for frames with `nonce` from `device`.
    pub fn new(nonce: u64, device: OwnedFd) -> DivertWorker {
        DivertWorker {
            ports: Ports::new(nonce),
            device: device.into(),
            buffer: vec![0; LONGEST_FRAME],
            complaint: Complaint::default(),
        }
    }

    /// Asks the guardian to enlarge the send buffers of new programs beyond the limit of other
    /// processes.
    fn widen(&mut self, guardian: &Guardian) -> Result<()> {
        for program in self.ports.new_programs() {
            guardian.send(&Request::Widen, &[program])?;
        }
        Ok(())
    }
}

impl Work for DivertWorker {
    /// Calls to accept programs, to set up their sockets, and to look up names of interfaces. The C
    /// library makes a socket for the lookup.
    const CALLS: &'static [Call] = &[
        Call::any(libc::SYS_accept4),
        Call::any(libc::SYS_sendto),
        Call::any(libc::SYS_recvfrom),
        Call::with(libc::SYS_setsockopt, 2, libc::SO_SNDBUF as u64),
        Call::with(libc::SYS_socket, 0, libc::AF_UNIX as u64),
        Call::with(libc::SYS_ioctl, 1, libc::FIONBIO),
        Call::with(libc::SYS_ioctl, 1, libc::SIOCGIFNAME),
    ];

    fn sources(&self) -> Vec<BorrowedFd<'_>> {
        [self.device.as_fd()].into_iter().chain(self.ports.sources()).collect()
    }

    fn order(
        &mut self,
        order: Order,
        descriptor: Option<OwnedFd>,
        guardian: &Guardian,
    ) -> Result<()> {
        match (order, descriptor) {
            (Order::Port(port), Some(listener)) => self.ports.open(port, listener.into()),
            (Order::Unwanted(port), None) => {
                if self.ports.close(port) {
                    guardian.send(&Request::Closed(port), &[])?;
                }
            }
            (order, _) => bail!("invalid order from the guardian: {order:?}"),
        }
        Ok(())
    }

    fn turn(&mut self, guardian: &Guardian) -> Result<()> {
        for _ in 0..BURST {
            let taken = self.device.take(&mut self.buffer);
            let Some(frame) = taken.context("diverted packets")? else { break };
            self.ports.deliver(frame);
        }
        let (ports, device, complaint) = (&mut self.ports, &mut self.device, &mut self.complaint);
        ports.serve(|frame| {
            complaint.note(device.give(frame)); // an error must not stop other frames
        });
        self.widen(guardian)
    }

    fn report(&mut self) -> Request {
        Request::Divert(self.ports.counters())
    }
}
