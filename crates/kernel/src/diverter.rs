//! skipstepd's device for packets that `divert-packet` hands to programs. The data plane sends
//! packets to the device, and skipstepd returns the packets that programs write through it.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd};

use serde::{Deserialize, Serialize};
use skipstep_abi as abi;
use skipstep_ruleset::Divert;

use crate::error::Result;
use crate::instance::Instance;
use crate::own_device::{OwnDevice, Purpose};

/// Counters of packets for programs. skipstepd sets them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DivertCounters {
    /// Packets delivered to programs.
    pub delivered: u64,
    /// Packets written by programs.
    pub returned: u64,
    /// Packets dropped because no program was at their port.
    pub no_program: u64,
    /// Packets dropped because their program did not keep up.
    pub full: u64,
    /// Writes of programs that were no packet.
    pub malformed: u64,
    /// Frames dropped because they did not come from the data plane.
    pub foreign: u64,
}

/// The device for diverted packets of an instance.
pub struct Diverter(OwnDevice);

impl Diverter {
    /// Makes the device of `instance` and publishes it to the programs.
    ///
    /// # Errors
    /// Fails if the device cannot be made or attached, or if the map cannot be written.
    pub fn new(instance: &Instance) -> Result<Self> {
        let device = Diverter(OwnDevice::new(Purpose::Diverted, &instance.programs)?);
        device.publish(instance, DivertCounters::default())?;
        Ok(device)
    }

    /// Publishes the device to the programs and the counters to pfctl. Adds the packets that the
    /// kernel dropped in front of the device to `full`.
    ///
    /// # Errors
    /// Fails if the kernel's counter cannot be read, or if the map cannot be written.
    pub fn publish(&self, instance: &Instance, counters: DivertCounters) -> Result<()> {
        let DivertCounters { delivered, returned, no_program, full, malformed, foreign } = counters;
        let value = abi::Diverter {
            ifindex: self.0.index(),
            pad: 0,
            nonce: self.0.nonce(),
            delivered,
            returned,
            no_program,
            full: full + self.0.dropped()?,
            malformed,
            foreign,
        };
        instance.maps.diverter.set(&0, &value)
    }

    /// Returns the number that each frame through the device must have.
    pub fn nonce(&self) -> u64 {
        self.0.nonce()
    }
}

impl AsFd for Diverter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Instance {
    /// Returns the ports that rules divert packets to.
    ///
    /// # Errors
    /// Fails if the record of the rule set cannot be read.
    pub fn divert_ports(&self) -> Result<BTreeSet<u16>> {
        let ruleset = self.record()?.ruleset;
        let ports = ruleset.all_rules().filter_map(|(_, rule)| match rule.divert {
            Some(Divert::Packet { port }) => Some(port),
            _ => None,
        });
        Ok(ports.collect())
    }

    /// Returns the folder of the programs' sockets: one for each port, named by its number.
    pub fn divert_directory(&self) -> std::path::PathBuf {
        self.run.divert()
    }
}
