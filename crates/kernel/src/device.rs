//! skipstepd's device for fragments: where the programs send them, and where datagrams come back.

use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use skipstep_abi as abi;
use skipstep_reassembly::Counters;

use crate::error::{Context, Result};
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

    /// Waits for a frame at most `timeout`. Whether there is one.
    pub fn wait(&self, timeout: Duration) -> Result<bool> {
        let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(ready) => Ok(ready > 0),
            Err(nix::errno::Errno::EINTR) => Ok(false),
            Err(error) => {
                Err(std::io::Error::from(error)).context(|| "device for fragments: wait".to_owned())
            }
        }
    }

    /// Takes the next frame, `None` if there is none.
    pub fn take<'b>(&mut self, buffer: &'b mut [u8]) -> Result<Option<&'b [u8]>> {
        self.0.take(buffer)
    }

    /// Gives a frame back.
    pub fn give(&mut self, frame: &[u8]) -> Result<()> {
        self.0.give(frame)
    }
}
