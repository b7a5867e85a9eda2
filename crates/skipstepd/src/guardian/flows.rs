//! The guardian of the worker that exports flows: it passes the sockets of the collectors on.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};

use skipstep_kernel::{Error, Instance};

use crate::guardian::{Function, Worker};
use crate::task::{Order, Request, Task};

/// The collectors and the numbers of records sent to them.
pub struct Collectors {
    /// Address and socket of each collector.
    pub sockets: Vec<(SocketAddr, UdpSocket)>,
    /// Number of the next record.
    pub sequence: u32,
    /// Number of records that could not be sent.
    pub lost: u64,
}

/// The flow export of an instance.
pub struct FlowGuardian<'i> {
    instance: &'i Instance,
    collectors: &'i mut Collectors,
    /// Number of records that earlier workers could not send.
    lost_before: u64,
}

impl<'i> FlowGuardian<'i> {
    /// Makes the guardian's part of the flow export of `instance`.
    pub fn new(instance: &'i Instance, collectors: &'i mut Collectors) -> Self {
        let lost_before = collectors.lost;
        FlowGuardian { instance, collectors, lost_before }
    }
}

impl Function for FlowGuardian<'_> {
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
