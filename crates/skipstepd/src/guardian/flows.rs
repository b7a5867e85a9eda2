//! Hands the sockets of collectors to the worker that reports flows.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};

use skipstep_kernel::{Error, Instance};

use crate::guardian::{Function, Worker};
use crate::task::{Order, Request, Task};

/// The collectors, and the records that they were sent.
pub struct Collectors {
    /// Each with its socket.
    pub sockets: Vec<(SocketAddr, UdpSocket)>,
    /// Number of the next record.
    pub sequence: u32,
    /// Records that could not be sent.
    pub lost: u64,
}

/// The flows of an instance.
pub struct Reporting<'i> {
    instance: &'i Instance,
    collectors: &'i mut Collectors,
    /// Records that other workers could not send.
    lost_before: u64,
}

impl<'i> Reporting<'i> {
    /// Reports the flows of `instance`.
    pub fn new(instance: &'i Instance, collectors: &'i mut Collectors) -> Self {
        let lost_before = collectors.lost;
        Reporting { instance, collectors, lost_before }
    }
}

impl Function for Reporting<'_> {
    const TASK: Task = Task::Flows;

    fn begin(&mut self, worker: &Worker) -> Result<(), Error> {
        let ring = self.instance.flow_ring()?;
        worker.order(&Order::ReportFlows(ring, self.collectors.sequence), None)?;
        for (address, socket) in &self.collectors.sockets {
            worker.order(&Order::Collector(*address), Some(socket.as_fd()))?;
        }
        Ok(())
    }

    fn request(
        &mut self,
        worker: &Worker,
        request: Request,
        _: Option<OwnedFd>,
    ) -> Result<(), Error> {
        let Request::Flows(sequence, lost) = request else {
            return Err(worker.nonsense(&request));
        };
        self.collectors.sequence = sequence;
        self.collectors.lost = self.lost_before.saturating_add(lost);
        Ok(())
    }

    fn follow(&mut self, _: &Worker) -> Result<(), Error> {
        Ok(())
    }
}
