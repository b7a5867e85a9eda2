//! skipstepd's device for packets that `divert-packet` hands to programs: where they come out, and
//! where what the programs write goes in.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd};

use serde::{Deserialize, Serialize};
use skipstep_abi as abi;
use skipstep_ruleset::Divert;

use crate::error::Result;
use crate::instance::Instance;
use crate::own_device::{OwnDevice, Purpose};

/// What was done with packets for programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DivertCounters {
    /// Packets that programs got.
    pub delivered: u64,
    /// Packets that they wrote.
    pub returned: u64,
    /// Packets dropped because no program was at their port.
    pub no_program: u64,
    /// Packets dropped because their program did not keep up.
    pub full: u64,
    /// What programs wrote and is no packet.
    pub malformed: u64,
    /// Frames dropped because the data plane had not sent them.
    pub foreign: u64,
}

/// The device of an instance.
pub struct Diverter(OwnDevice);

impl Diverter {
    /// Makes the device of `instance` and tells the programs about it.
    pub fn new(instance: &Instance) -> Result<Self> {
        let device = Diverter(OwnDevice::new(Purpose::Diverted, &instance.programs)?);
        device.publish(instance, DivertCounters::default())?;
        Ok(device)
    }

    /// Tells the programs where the device is, and pfctl what was done; what the kernel dropped in
    /// front of the device is added.
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

    /// The number that each frame by the device must have.
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
    /// The ports that rules divert packets to.
    pub fn divert_ports(&self) -> Result<BTreeSet<u16>> {
        let ruleset = self.record()?.ruleset;
        let ports = ruleset.all_rules().filter_map(|(_, rule)| match rule.divert {
            Some(Divert::Packet { port }) => Some(port),
            _ => None,
        });
        Ok(ports.collect())
    }

    /// Where programs find the ports: a socket for each, called by its number.
    pub fn divert_directory(&self) -> std::path::PathBuf {
        self.run.divert()
    }
}
