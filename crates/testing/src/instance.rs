//! An instance under test. The instance is pinned and recorded like any other, so that all its
//! functions can be tested, but the test supplies packets and clock.

use std::ops::{Deref, DerefMut};

use skipstep_abi as abi;
use skipstep_kernel::device::{self, FragmentCounters};
use skipstep_kernel::object::Sizes;
use skipstep_kernel::record::{Memory, Record};
use skipstep_kernel::{Instance, Result};
use skipstep_model::{Carried, Draw, Packet};
use skipstep_ruleset::Ruleset;
use skipstep_ruleset::interface::Host;

use crate::machine::Machine;
use crate::network::TestNetwork;
use crate::passage::Passage;
use crate::{copies, reset};

/// An instance that filters only the packets of a test, and that is removed when the value is
/// dropped.
///
/// A new instance moves the calling thread into a network namespace of its own.
pub struct TestInstance {
    instance: Instance,
    network: TestNetwork,
    machine: Machine,
}

impl TestInstance {
    /// Makes an instance of this name, on the machine that `host` describes.
    ///
    /// # Errors
    /// Fails if the network or the instance cannot be made.
    pub fn new(name: &str, host: &Host) -> Result<Self> {
        let network = TestNetwork::enter(host)?;
        copies::listen()?;
        let instance = Instance::open_or_create(name, Sizes::test().states)?;
        let machine = Machine::new(instance.maps(), instance.programs())?;
        Ok(TestInstance { instance, network, machine })
    }

    /// Restarts with `ruleset`, as a machine does at boot. The instance filters since second 0 of
    /// its clock, which is second `first_enabled` since 1970.
    ///
    /// # Errors
    /// Fails if the rules cannot be loaded, or if a map or record cannot be written.
    pub fn start(&mut self, ruleset: &Ruleset, hostid: u32, first_enabled: u32) -> Result<()> {
        self.forget()?;
        self.instance.load(ruleset.clone(), self.network.host())?;
        let mut change = self.instance.begin()?;
        change.memory.hostid = hostid;
        change.keep()?;
        let maps = self.instance.maps();
        let status = abi::Status {
            running: 1,
            since: 0,
            first_enabled,
            next_state_id: u64::from(first_enabled) << 32,
            ..maps.status.at(0)?
        };
        maps.status.set(&0, &status)?;
        self.machine.start(ruleset)?;
        self.publish_fragments()
    }

    fn forget(&mut self) -> Result<()> {
        let mut change = self.instance.begin()?;
        let (maps, programs) = (self.instance.maps(), self.instance.programs());
        reset::maps(maps, programs, &change.memory, &mut change.record)?;
        let Memory { namespace, processes, hostid, created_at, .. } = change.memory;
        change.memory = Memory { namespace, processes, hostid, created_at, ..Memory::default() };
        change.record = Record { generation: change.record.generation, ..Record::default() };
        change.keep()
    }

    /// Returns the host, with the indices of its interfaces.
    pub fn host(&self) -> &Host {
        self.network.host()
    }

    /// Sets the clock and removes expired states.
    ///
    /// # Errors
    /// Fails if a map cannot be written, or if the sweep cannot run.
    pub fn set_time(&mut self, seconds: u32) -> Result<()> {
        self.machine.set_time(seconds);
        self.publish_fragments()?;
        self.instance.programs().sweep.call(&()).map(drop)
    }

    /// Sets the value of the following random draws.
    pub fn set_random(&mut self, draw: Draw) {
        self.machine.set_random(draw);
    }

    /// Runs one packet through the filter. Returns the marks that it carries afterwards, or `None`
    /// if the kernel accepts no such packet for a test run.
    ///
    /// # Errors
    /// Fails if a test run, a map or the network fails.
    pub fn packet(&mut self, packet: &Packet) -> Result<Option<Carried>> {
        if !self.machine.can_run(packet, self.network.host()) {
            return Ok(None);
        }
        let mut passage = Passage {
            maps: self.instance.maps(),
            programs: self.instance.programs(),
            host: self.network.host(),
            names: &self.instance.names()?,
            machine: &mut self.machine,
        };
        let fate = passage.packet(packet)?;
        self.publish_fragments()?;
        Ok(Some(fate.carried))
    }

    /// Publishes the counters of fragments, as skipstepd does each second.
    fn publish_fragments(&self) -> Result<()> {
        let fragments = &self.machine.fragments;
        let counters = FragmentCounters::new(fragments.pieces(), fragments.counters(), 0);
        device::publish(self.instance.maps(), (0, 0), counters, 0)
    }
}

impl Deref for TestInstance {
    type Target = Instance;

    fn deref(&self) -> &Instance {
        &self.instance
    }
}

impl DerefMut for TestInstance {
    fn deref_mut(&mut self) -> &mut Instance {
        &mut self.instance
    }
}

impl Drop for TestInstance {
    fn drop(&mut self) {
        // an error must not hide the result of the test
        let _ = Instance::remove_named(self.instance.name());
    }
}
