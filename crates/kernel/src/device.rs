//! skipstepd's device for fragments: where the programs send them, and where datagrams come back.

use std::os::fd::{AsFd, BorrowedFd};

use skipstep_abi as abi;
use skipstep_reassembly::Counters;

use crate::error::Result;
use crate::instance::Instance;
use crate::object::Maps;
use crate::own_device::{OwnDevice, Purpose};

/// Says who puts fragments together, at which device (0 for none), what was done, and how many
/// packets never came so far.
pub(crate) fn publish(
    maps: &Maps,
    ifindex: u32,
    pieces: usize,
    counters: Counters,
    lost: u64,
) -> Result<()> {
    let Counters { searches, inserts, removals } = counters;
    let pieces = pieces as u32;
    let value = abi::Reassembler { ifindex, pieces, searches, inserts, removals, lost };
    maps.reassembler.set(&0, &value)
}

/// The device of an instance.
pub struct Device(OwnDevice);

impl Device {
    /// Makes the device of `instance` and tells the programs about it.
    pub fn new(instance: &Instance) -> Result<Self> {
        let device = Device(OwnDevice::new(Purpose::Fragments, &instance.programs.come_back)?);
        device.publish(instance, 0, Counters::default())?;
        Ok(device)
    }

    /// Tells the programs where the device is, and pfctl what was done.
    pub fn publish(&self, instance: &Instance, pieces: usize, counters: Counters) -> Result<()> {
        publish(&instance.maps, self.0.index(), pieces, counters, self.0.dropped()?)
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
