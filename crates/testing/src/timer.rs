//! The sweeper's timer, in a map that userland may close: then the kernel does not start the timer.

use libbpf_rs::{MapCore, MapHandle};
use skipstep_abi as abi;
use skipstep_kernel::Result;
use skipstep_kernel::error::Context;
use skipstep_kernel::object::{self, Maps, Programs, Sizes};

/// The data plane, with the map of its timer open in this thread or not.
pub struct LoneTimer {
    programs: Programs,
    status: skipstep_kernel::shared::Shared,
    id: u32,
    map: Option<MapHandle>,
}

impl LoneTimer {
    /// Loads the data plane, and closes the map of the timer.
    ///
    /// # Errors
    /// Fails if the data plane cannot be loaded.
    pub fn new() -> Result<Self> {
        let (maps, programs) = object::load(&Sizes::test())?;
        let Maps { sweeper, shared_status, .. } = maps;
        let id = sweeper.info().context(|| "map sweeper: info".to_owned())?.info.id;
        Ok(LoneTimer { programs, status: shared_status, id, map: None })
    }

    /// Opens the map of the timer, as a process with an open instance does.
    ///
    /// # Errors
    /// Fails if the map cannot be opened.
    pub fn open_map(&mut self) -> Result<()> {
        let map = MapHandle::from_map_id(self.id);
        self.map = Some(map.context(|| "map sweeper: open".to_owned())?);
        Ok(())
    }

    /// Closes the map of the timer: the kernel cancels the timer.
    pub fn close_map(&mut self) {
        self.map = None;
    }

    /// Starts the timer. Returns the kernel's errno, or 0.
    ///
    /// # Errors
    /// Fails if the program cannot run.
    pub fn start(&self) -> Result<u32> {
        self.programs.start_timer()
    }

    /// Returns the number of times that the kernel did not start the timer, and the latest errno.
    pub fn errors(&self) -> (u32, u32) {
        let status: abi::Status = self.status.element(0);
        (status.timer_errors, status.timer_error)
    }

    /// Returns the second of the timer's last run.
    pub fn second(&self) -> u32 {
        let status: abi::Status = self.status.element(0);
        status.second
    }
}
