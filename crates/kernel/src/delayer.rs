//! skipstepd's device for packets that wait (`set delay`): where they come out, and where they go
//! in when their time has come.

use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use skipstep_abi as abi;

use crate::error::{Context, Result};
use crate::instance::Instance;
use crate::own_device::{OwnDevice, Purpose};

/// What was done with packets that wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DelayCounters {
    /// Packets that wait now.
    pub waiting: u32,
    /// Packets whose time has come.
    pub sent: u64,
    /// Packets dropped because as many wait as may.
    pub refused: u64,
    /// Packets dropped because skipstepd did not take them in time.
    pub full: u64,
}

/// The device of an instance.
pub struct Delayer(OwnDevice);

impl Delayer {
    /// Makes the device of `instance` and tells the programs about it.
    pub fn new(instance: &Instance) -> Result<Self> {
        let device = Delayer(OwnDevice::new(Purpose::Delayed, &instance.programs.let_go)?);
        device.publish(instance, DelayCounters::default())?;
        Ok(device)
    }

    /// Tells the programs where the device is, and pfctl what was done; what the kernel dropped in
    /// front of the device is added.
    pub fn publish(&self, instance: &Instance, counters: DelayCounters) -> Result<()> {
        let DelayCounters { waiting, sent, refused, full } = counters;
        let full = full + self.0.dropped()?;
        let value = abi::Delayer { ifindex: self.0.index(), waiting, sent, refused, full };
        instance.maps.delayer.set(&0, &value)
    }

    /// Waits for a frame at most `timeout`.
    pub fn wait(&self, timeout: Duration) -> Result<()> {
        let mut device = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut device, Some(TimeSpec::from_duration(timeout)), None) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => {
                let error = std::io::Error::from(error);
                Err(error).context(|| "device for delayed packets: wait".to_owned())
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
