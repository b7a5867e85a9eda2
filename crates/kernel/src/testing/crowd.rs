//! As many states as a large table has, without a packet for each: for what the sweep costs.

use skipstep_abi as abi;

use super::TestEngine;
use crate::error::Result;

/// States written to the map at once.
const BATCH: u32 = 65_536;

impl TestEngine {
    /// Puts UDP states into the first `count` slots. No key leads to them. They were last used at
    /// second 0, and every `living`th of them far ahead.
    pub fn crowd(&mut self, count: u32, living: u32) -> Result<()> {
        self.known = None;
        let mut indexes = Vec::new();
        let mut states = Vec::new();
        for index in 0..count {
            let expire = if index % living == 0 { 1 << 30 } else { 0 };
            let timeout = abi::state::timeout::UDP_FIRST as u8;
            let state =
                abi::State { serial: 1, id: index.into(), timeout, expire, ..Default::default() };
            indexes.push(index);
            states.push(state);
            if indexes.len() as u32 == BATCH || index + 1 == count {
                self.maps.states.set_many(&indexes, &states)?;
                indexes.clear();
                states.clear();
            }
        }
        let status = self.maps.status.at(0)?;
        self.maps.status.set(&0, &abi::Status { states: count, states_used: count, ..status })
    }

    /// Does one slice of a sweep, as the timer does; how many slots it has looked at.
    pub fn sweep_slice(&mut self) -> Result<u32> {
        self.known = None;
        self.programs.sweep_slice.call(&())
    }

    /// Starts the timer that sweeps.
    pub fn start_timer(&mut self) -> Result<()> {
        self.known = None;
        self.programs.start.call(&()).map(drop)
    }

    /// Returns the number of sources whose states end, and which the sweep has not seen to.
    pub fn pending_flushes(&self) -> u32 {
        let status: abi::Status = self.maps.shared_status.element(0);
        status.flushing
    }

    /// Returns the number of states.
    pub fn state_count(&self) -> u32 {
        let status: abi::Status = self.maps.shared_status.element(0);
        status.states
    }
}
