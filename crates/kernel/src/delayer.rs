//! skipstepd's device for delayed packets (`set delay`). The data plane sends packets to the
//! device, and skipstepd returns them through it when their delay is over.

use std::os::fd::{AsFd, BorrowedFd};

use serde::{Deserialize, Serialize};
use skipstep_abi as abi;

use crate::error::Result;
use crate::instance::Instance;
use crate::own_device::{OwnDevice, Purpose};

/// Counters of delayed packets. skipstepd sets them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayCounters {
    /// Packets that wait now.
    pub waiting: u32,
    /// Packets sent at the end of their delay.
    pub sent: u64,
    /// Packets dropped because the largest allowed number of packets waits.
    pub refused: u64,
    /// Packets dropped because skipstepd did not read them in time.
    pub full: u64,
    /// Frames dropped because they did not come from the data plane.
    pub foreign: u64,
}

/// The device for delayed packets of an instance.
pub struct Delayer(OwnDevice);

impl Delayer {
    /// Makes the device of `instance` and publishes it to the programs.
    ///
    /// # Errors
    /// Fails if the device cannot be made or attached, or if the map cannot be written.
    pub fn new(instance: &Instance) -> Result<Self> {
        let device = Delayer(OwnDevice::new(Purpose::Delayed, &instance.programs)?);
        device.publish(instance, DelayCounters::default())?;
        Ok(device)
    }

    /// Publishes the device to the programs and the counters to pfctl. Adds the packets that the
    /// kernel dropped in front of the device to `full`.
    ///
    /// # Errors
    /// Fails if the kernel's counter cannot be read, or if the map cannot be written.
    pub fn publish(&self, instance: &Instance, counters: DelayCounters) -> Result<()> {
        let DelayCounters { waiting, sent, refused, full, foreign } = counters;
        let full = full + self.0.dropped()?;
        let (ifindex, nonce) = (self.0.index(), self.0.nonce());
        let value = abi::Delayer { ifindex, waiting, nonce, sent, refused, full, foreign };
        instance.maps.delayer.set(&0, &value)
    }

    /// Returns the number that each frame through the device must have.
    pub fn nonce(&self) -> u64 {
        self.0.nonce()
    }
}

impl AsFd for Delayer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
