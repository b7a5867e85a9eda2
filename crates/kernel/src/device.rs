//! skipstepd's device for fragments: where the programs send them, and where datagrams come back.

use std::os::fd::{AsFd, BorrowedFd};

use serde::{Deserialize, Serialize};
use skipstep_abi as abi;
use skipstep_reassembly::Counters;

use crate::error::Result;
use crate::instance::Instance;
use crate::object::Maps;
use crate::own_device::{OwnDevice, Purpose};

/// The work of skipstepd with fragments, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FragmentCounters {
    /// Fragments that wait now.
    pub pieces: u32,
    /// Datagrams looked for.
    pub searches: u64,
    /// Fragments put in.
    pub inserts: u64,
    /// Fragments taken out.
    pub removals: u64,
    /// Frames dropped because the data plane had not sent them.
    pub foreign: u64,
}

impl FragmentCounters {
    /// Counts what was done with `pieces` fragments that wait, and frames of others.
    pub fn new(pieces: usize, counters: Counters, foreign: u64) -> Self {
        let Counters { searches, inserts, removals } = counters;
        FragmentCounters { pieces: pieces as u32, searches, inserts, removals, foreign }
    }
}

/// Writes who puts fragments together, at the device with this index and nonce (0 for none), what
/// was done, and how many packets never came so far.
pub(crate) fn publish(
    maps: &Maps,
    (ifindex, nonce): (u32, u64),
    counters: FragmentCounters,
    lost: u64,
) -> Result<()> {
    let FragmentCounters { pieces, searches, inserts, removals, foreign } = counters;
    let value =
        abi::Reassembler { ifindex, pieces, nonce, searches, inserts, removals, lost, foreign };
    maps.reassembler.set(&0, &value)
}

/// The device of an instance.
pub struct Device(OwnDevice);

impl Device {
    /// Makes the device of `instance` and tells the programs about it.
    pub fn new(instance: &Instance) -> Result<Self> {
        let device = Device(OwnDevice::new(Purpose::Fragments, &instance.programs)?);
        device.publish(instance, FragmentCounters::default())?;
        Ok(device)
    }

    /// Tells the programs where the device is, and pfctl what was done.
    pub fn publish(&self, instance: &Instance, counters: FragmentCounters) -> Result<()> {
        let device = (self.0.index(), self.0.nonce());
        publish(&instance.maps, device, counters, self.0.dropped()?)
    }

    /// The number that each frame by the device must have.
    pub fn nonce(&self) -> u64 {
        self.0.nonce()
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
