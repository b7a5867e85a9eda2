//! The guardian of the worker for fragments: it creates the device and reports the limits of the
//! loaded rule set.

use std::os::fd::{AsFd, OwnedFd};

use skipstep_kernel::{Device, Error, Instance};
use skipstep_ruleset::Timeout;

use crate::guardian::{Function, Worker};
use crate::task::{FragmentLimits, Order, Request, Task};

/// The device for the fragments of an instance.
pub struct FragmentGuardian<'i> {
    instance: &'i Instance,
    device: Device,
    generation: u32,
}

impl<'i> FragmentGuardian<'i> {
    /// Creates the device.
    ///
    /// # Errors
    /// Fails if the kernel refuses the device.
    pub fn new(instance: &'i Instance) -> Result<Self, Error> {
        let generation = instance.generation();
        Ok(FragmentGuardian { instance, device: Device::new(instance)?, generation })
    }

    fn limits(&self) -> Result<FragmentLimits, Error> {
        let options = self.instance.loaded()?.ruleset.options;
        let (pieces, timeout) = (options.limits.frags, options.timeouts.get(Timeout::Frag));
        Ok(FragmentLimits { pieces: pieces as usize, timeout })
    }
}

impl Function for FragmentGuardian<'_> {
    const TASK: Task = Task::Fragments;

    fn begin(&mut self, worker: &Worker) -> Result<(), Error> {
        let order = Order::Reassemble(self.limits()?, self.device.nonce());
        worker.order(&order, Some(self.device.as_fd()))
    }

    fn request(
        &mut self,
        worker: &Worker,
        request: Request,
        _: Option<OwnedFd>,
    ) -> Result<(), Error> {
        let Request::Fragments(counters) = request else { return Err(worker.nonsense(&request)) };
        self.device.publish(self.instance, counters)
    }

    fn follow(&mut self, worker: &Worker) -> Result<(), Error> {
        if self.instance.generation() == self.generation {
            return Ok(());
        }
        self.generation = self.instance.generation();
        worker.order(&Order::FragmentLimits(self.limits()?), None)
    }
}
