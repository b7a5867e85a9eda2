//! An instance under test: pinned and remembered like any other, so that all that reads or changes
//! a filter can be tried on it, but fed with packets and a clock of the test's making.

use std::ops::{Deref, DerefMut};

use skipstep_abi as abi;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Direction, Ruleset};
use skipstep_scenario::engine::{Carried, Draw, TestPacket};

use super::{arrival, can_run, quiet, reset, set_random};
use crate::error::Result;
use crate::instance::Instance;
use crate::network::TestNetwork;
use crate::object::Sizes;
use crate::record::{Memory, Record};

/// An instance that filters nothing but what a test plays. It goes when it is dropped.
///
/// Making one moves the calling thread into a network namespace of its own.
pub struct TestInstance {
    instance: Instance,
    network: TestNetwork,
    test: abi::Test,
}

impl TestInstance {
    /// Makes an instance of this name on the machine that `host` describes.
    pub fn new(name: &str, host: &Host) -> Result<Self> {
        let network = TestNetwork::enter(host)?;
        let instance = Instance::open_or_create(name, Sizes::test().states)?;
        Ok(TestInstance { instance, network, test: abi::Test::default() })
    }

    /// Begins anew with `ruleset` as a machine does that is switched on: filtering since second 0 of
    /// its clock, which on the wall is the second `first_enabled`.
    pub fn start(&mut self, ruleset: &Ruleset, hostid: u32, first_enabled: u32) -> Result<()> {
        self.forget()?;
        self.instance.load(ruleset, self.network.host())?;
        let mut change = self.instance.begin()?;
        change.memory.hostid = hostid;
        change.keep()?;
        let maps = &self.instance.maps;
        let status = abi::Status {
            running: 1,
            since: 0,
            first_enabled,
            next_state_id: u64::from(first_enabled) << 32,
            ..maps.status.at(0)?
        };
        maps.status.set(&0, &status)?;
        self.test = quiet();
        maps.test.set(&0, &self.test)
    }

    fn forget(&mut self) -> Result<()> {
        let mut change = self.instance.begin()?;
        reset::maps(&self.instance.maps, &change.memory, &mut change.record)?;
        let Memory { namespace, hostid, created_at, .. } = change.memory;
        change.memory = Memory { namespace, hostid, created_at, ..Memory::default() };
        change.record = Record::default();
        change.keep()
    }

    /// The host with the indices that its interfaces got.
    pub fn host(&self) -> &Host {
        self.network.host()
    }

    /// Moves the clock and removes the states whose time is up.
    pub fn set_time(&mut self, seconds: u32) -> Result<()> {
        self.test.now = seconds;
        self.instance.maps.test.set(&0, &self.test)?;
        self.instance.programs.sweep.call(&()).map(drop)
    }

    /// Sets what following random draws return.
    pub fn set_random(&mut self, draw: Draw) -> Result<()> {
        set_random(&mut self.test, draw);
        self.instance.maps.test.set(&0, &self.test)
    }

    /// Runs one packet through the firewall; what it carries afterwards. `None` if the kernel takes
    /// no such packet for a test run.
    pub fn packet(&mut self, packet: &TestPacket) -> Result<Option<Carried>> {
        if !can_run(packet) {
            return Ok(None);
        }
        let program = match packet.direction {
            Direction::In => &self.instance.programs.ingress,
            Direction::Out => &self.instance.programs.egress,
        };
        let names = self.instance.run.memory()?.names;
        let run = arrival::run(program, packet, self.network.host(), &names, 1)?;
        Ok(Some(arrival::carried(&run, &names)))
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
        // a test that fails to clean up is no worse for it
        let _ = Instance::remove_named(self.instance.name());
    }
}
