//! skipstepd's device for packets that wait (`set delay`): where they come out, and where they go
//! in when their time has come.

use std::os::fd::{AsFd, BorrowedFd};

use serde::{Deserialize, Serialize};
use skipstep_abi as abi;

use crate::error::Result;
use crate::instance::Instance;
use crate::own_device::{OwnDevice, Purpose};

/// What was done with packets that wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayCounters {
    /// Packets that wait now.
    pub waiting: u32,
    /// Packets whose time has come.
    pub sent: u64,
    /// Packets dropped because as many wait as may.
    pub refused: u64,
    /// Packets dropped because skipstepd did not take them in time.
    pub full: u64,
    /// Frames dropped because the data plane had not sent them.
    pub foreign: u64,
}

/// The device of an instance.
pub struct Delayer(OwnDevice);

impl Delayer {
    /// Makes the device of `instance` and tells the programs about it.
    pub fn new(instance: &Instance) -> Result<Self> {
        let device = Delayer(OwnDevice::new(Purpose::Delayed, &instance.programs)?);
        device.publish(instance, DelayCounters::default())?;
        Ok(device)
    }

    /// Tells the programs where the device is, and pfctl what was done; what the kernel dropped in
    /// front of the device is added.
    pub fn publish(&self, instance: &Instance, counters: DelayCounters) -> Result<()> {
        let DelayCounters { waiting, sent, refused, full, foreign } = counters;
        let full = full + self.0.dropped()?;
        let (ifindex, nonce) = (self.0.index(), self.0.nonce());
        let value = abi::Delayer { ifindex, waiting, nonce, sent, refused, full, foreign };
        instance.maps.delayer.set(&0, &value)
    }

    /// The number that each frame by the device must have.
    pub fn nonce(&self) -> u64 {
        self.0.nonce()
    }
}

impl AsFd for Delayer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
