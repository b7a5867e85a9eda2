//! States and sources of limiters in large numbers, made without a packet for each, to measure the
//! cost of the sweep.

use libbpf_rs::{MapCore, MapFlags};
use skipstep_abi as abi;
use skipstep_kernel::Result;
use skipstep_kernel::error::Context;
use zerocopy::IntoBytes;

use crate::engine::TestEngine;

/// States written to the map by one call.
const BATCH: u32 = 65_536;

impl TestEngine {
    /// Writes UDP states to the first `count` indexes. No key leads to them. The states were last
    /// used at second 0, and every `living`th of them far in the future.
    ///
    /// # Errors
    /// Fails if a map cannot be written.
    pub fn fill_states(&mut self, count: u32, living: u32) -> Result<()> {
        self.known = None;
        let mut indexes = Vec::with_capacity(BATCH as usize);
        let mut states = Vec::with_capacity(BATCH as usize);
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

    /// Writes `count` sources of the source limiter with this serial number. Serial 0 belongs to a
    /// limiter in use: its sources stay until second `stays_until`.
    ///
    /// # Errors
    /// Fails if a map cannot be written.
    pub fn fill_limited_sources(
        &mut self,
        count: u32,
        serial: u32,
        stays_until: u32,
    ) -> Result<()> {
        self.known = None;
        for number in 0..count {
            let family = abi::INET;
            let mut key = abi::LimitedKey { serial, id: 1, family, ..Default::default() };
            key.address[..4].copy_from_slice(&number.to_be_bytes());
            let source = abi::LimitedSource { stays_until, ..Default::default() };
            self.maps.limited_sources.set(&key, &source)?;
            let turn = abi::LimitedTurn { key, source: source.serial };
            let queued = self.maps.limited_turns.update(&[], turn.as_bytes(), MapFlags::ANY);
            queued.context(|| "map limited_turns: push".to_owned())?;
        }
        let status = self.maps.status.at(0)?;
        let limited_sources = status.limited_sources + count;
        let limited_turns = status.limited_turns + count;
        self.maps.status.set(&0, &abi::Status { limited_sources, limited_turns, ..status })
    }

    /// Does one slice of the sweep of states, as the timer does. Returns the number of states that
    /// it has examined.
    ///
    /// # Errors
    /// Fails if the program cannot run.
    pub fn sweep_slice(&mut self) -> Result<u32> {
        self.known = None;
        self.programs.sweep_slice.call(&0u32)
    }

    /// Does one slice of the sweep of limiters' sources. Returns the number of sources that it has
    /// examined.
    ///
    /// # Errors
    /// Fails if the program cannot run.
    pub fn sweep_limited_slice(&mut self) -> Result<u32> {
        self.known = None;
        self.programs.sweep_slice.call(&1u32)
    }

    /// Sweeps all states at second `now`. Returns the number of removed states, without the list
    /// that [`Engine::set_time`](skipstep_scenario::Engine::set_time) makes: for millions of
    /// states.
    ///
    /// # Errors
    /// Fails if the program cannot run.
    pub fn sweep_at(&mut self, now: u32) -> Result<u32> {
        self.known = None;
        self.machine.set_time(now);
        self.programs.sweep.call(&())
    }

    /// Starts the sweeper's timer. Returns 0, or the kernel's errno.
    ///
    /// # Errors
    /// Fails if the program cannot run.
    pub fn start_timer(&mut self) -> Result<u32> {
        self.known = None;
        self.programs.start_timer()
    }

    /// Returns the number of flushed sources whose states the sweep has not ended yet.
    pub fn pending_flushes(&self) -> u32 {
        let status: abi::Status = self.maps.shared_status.element(0);
        status.flushing
    }

    /// Returns the number of sources of limiters.
    pub fn limited_count(&self) -> u32 {
        let status: abi::Status = self.maps.shared_status.element(0);
        status.limited_sources
    }

    /// Returns the number of states.
    pub fn state_count(&self) -> u32 {
        let status: abi::Status = self.maps.shared_status.element(0);
        status.states
    }
}
