//! skipstepd's device for fragments. The data plane sends fragments to the device, and skipstepd
//! returns datagrams through it.

use std::os::fd::{AsFd, BorrowedFd};

use serde::{Deserialize, Serialize};
use skipstep_abi as abi;
use skipstep_reassembly::Counters;

use crate::error::Result;
use crate::instance::Instance;
use crate::object::Maps;
use crate::own_device::{OwnDevice, Purpose};

/// Counters of skipstepd's reassembly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FragmentCounters {
    /// Fragments that wait now.
    pub pieces: u32,
    /// Searches for the datagram of a fragment.
    pub searches: u64,
    /// Fragments stored.
    pub inserts: u64,
    /// Fragments removed.
    pub removals: u64,
    /// Frames dropped because they did not come from the data plane.
    pub foreign: u64,
}

impl FragmentCounters {
    /// Makes the counters from the `pieces` fragments that wait, the reassembly's counters, and the
    /// frames that did not come from the data plane.
    pub fn new(pieces: usize, counters: Counters, foreign: u64) -> Self {
        let Counters { searches, inserts, removals } = counters;
        FragmentCounters { pieces: pieces as u32, searches, inserts, removals, foreign }
    }
}

/// Publishes the reassembler: the device's index and nonce (0 for none), the counters, and the
/// packets that the kernel has `lost` on the way.
///
/// # Errors
/// Fails if the map cannot be written.
pub fn publish(
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

/// The device for fragments of an instance.
pub struct Device(OwnDevice);

impl Device {
    /// Makes the device of `instance` and publishes it to the programs.
    ///
    /// # Errors
    /// Fails if the device cannot be made or attached, or if the map cannot be written.
    pub fn new(instance: &Instance) -> Result<Self> {
        let device = Device(OwnDevice::new(Purpose::Fragments, &instance.programs)?);
        device.publish(instance, FragmentCounters::default())?;
        Ok(device)
    }

    /// Publishes the device to the programs and the counters to pfctl.
    ///
    /// # Errors
    /// Fails if the kernel's counter of dropped packets cannot be read, or if the map cannot be
    /// written.
    pub fn publish(&self, instance: &Instance, counters: FragmentCounters) -> Result<()> {
        let device = (self.0.index(), self.0.nonce());
        publish(&instance.maps, device, counters, self.0.dropped()?)
    }

    /// Returns the number that each frame through the device must have.
    pub fn nonce(&self) -> u64 {
        self.0.nonce()
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
