//! The guardian of the worker for delayed packets: it creates the device and reports the limit of
//! the loaded rule set.

use std::os::fd::{AsFd, OwnedFd};

use skipstep_kernel::{Delayer, Error, Instance};

use crate::guardian::{Function, Worker};
use crate::task::{Order, Request, Task};

/// The device for the delayed packets of an instance.
pub struct DelayGuardian<'i> {
    instance: &'i Instance,
    device: Delayer,
    generation: u32,
}

impl<'i> DelayGuardian<'i> {
    /// Creates the device.
    ///
    /// # Errors
    /// Fails if the kernel refuses the device.
    pub fn new(instance: &'i Instance) -> Result<Self, Error> {
        let generation = instance.generation();
        Ok(DelayGuardian { instance, device: Delayer::new(instance)?, generation })
    }

    fn limit(&self) -> Result<u32, Error> {
        Ok(self.instance.loaded()?.ruleset.options.limits.pktdelay_pkts)
    }
}

impl Function for DelayGuardian<'_> {
    const TASK: Task = Task::Delay;

    fn begin(&mut self, worker: &Worker) -> Result<(), Error> {
        let order = Order::HoldPackets(self.limit()?, self.device.nonce());
        worker.order(&order, Some(self.device.as_fd()))
    }

    fn request(
        &mut self,
        worker: &Worker,
        request: Request,
        _: Option<OwnedFd>,
    ) -> Result<(), Error> {
        let Request::Delay(counters) = request else { return Err(worker.nonsense(&request)) };
        self.device.publish(self.instance, counters)
    }

    fn follow(&mut self, worker: &Worker) -> Result<(), Error> {
        if self.instance.generation() == self.generation {
            return Ok(());
        }
        self.generation = self.instance.generation();
        worker.order(&Order::DelayLimit(self.limit()?), None)
    }
}
