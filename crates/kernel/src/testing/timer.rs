//! The timer that sweeps, in a map that userland may not have: then the kernel does not start it.

use libbpf_rs::{MapCore, MapHandle};
use skipstep_abi as abi;

use crate::error::{Context, Result};
use crate::object::{self, Maps, Programs, Sizes};

/// The data plane with a timer that this thread holds, or not.
pub struct LoneTimer {
    programs: Programs,
    status: crate::shared::Shared,
    id: u32,
    held: Option<MapHandle>,
}

impl LoneTimer {
    /// Loads the data plane, and lets go of the map with the timer.
    pub fn new() -> Result<Self> {
        let (maps, programs) = object::load(&Sizes::test())?;
        let Maps { sweeper, shared_status, .. } = maps;
        let id = sweeper.info().context(|| "map sweeper: info".to_owned())?.info.id;
        Ok(LoneTimer { programs, status: shared_status, id, held: None })
    }

    /// Takes the map with the timer, as a process does that opens it.
    pub fn hold(&mut self) -> Result<()> {
        let map = MapHandle::from_map_id(self.id);
        self.held = Some(map.context(|| "map sweeper: open".to_owned())?);
        Ok(())
    }

    /// Lets go of the map with the timer: the kernel cancels the timer.
    pub fn release(&mut self) {
        self.held = None;
    }

    /// Starts the timer. Returns 0, or the kernel's errno.
    pub fn start(&self) -> Result<u32> {
        self.programs.start_timer()
    }

    /// Returns the number of times that the kernel did not start the timer, and the latest error.
    pub fn errors(&self) -> (u32, u32) {
        let status: abi::Status = self.status.element(0);
        (status.timer_errors, status.timer_error)
    }

    /// The second in which the timer came last.
    pub fn second(&self) -> u32 {
        let status: abi::Status = self.status.element(0);
        status.second
    }
}
