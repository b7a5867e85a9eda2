//! The key table alone: any number of threads insert and remove states.

use skipstep_abi as abi;
use skipstep_kernel::Result;
use skipstep_kernel::map::Map;
use skipstep_kernel::object::{self, Maps, Programs, Sizes};
use skipstep_kernel::program::Program;

/// The data plane's table of states, without the filter.
pub struct KeyTable {
    states: Map<u32, abi::State>,
    lines: Map<u32, abi::KeyLine>,
    restore: Program,
    kill: Program,
}

impl KeyTable {
    /// Makes a table with room for as many states as tests have.
    ///
    /// # Errors
    /// Fails if the data plane cannot be loaded.
    pub fn new() -> Result<Self> {
        let (maps, programs) = object::load(&Sizes::test())?;
        let limit_states = maps.states.capacity();
        maps.configs.set(&0, &abi::Config { limit_states, ..abi::Config::default() })?;
        let (Maps { states, state_keys, .. }, Programs { restore, kill, .. }) = (maps, programs);
        Ok(KeyTable { states, lines: state_keys, restore, kill })
    }

    /// Returns the largest number of states.
    pub fn capacity(&self) -> u32 {
        self.states.capacity()
    }

    /// Makes a state with a key for each side; equal keys count as one. Returns `None` if another
    /// state has one of the keys.
    ///
    /// # Errors
    /// Fails if the program cannot run, or if the map cannot be read.
    pub fn insert(&self, key: [abi::StateKey; 2]) -> Result<Option<abi::Kill>> {
        let direction = abi::verdict::direction::IN;
        let state = abi::State { key, direction, ..abi::State::default() };
        let Some(index) =
            self.restore.call(&abi::KeptState { state, ..Default::default() })?.checked_sub(1)
        else {
            return Ok(None);
        };
        let serial = self.states.at(index)?.serial;
        Ok(Some(abi::Kill { index, serial }))
    }

    /// Removes a state. Returns true if it existed.
    ///
    /// # Errors
    /// Fails if the program cannot run.
    pub fn remove(&self, state: abi::Kill) -> Result<bool> {
        Ok(self.kill.call(&state)? == 1)
    }

    /// Returns the number of entries in use.
    ///
    /// # Errors
    /// Fails if the map cannot be read.
    pub fn entries(&self) -> Result<usize> {
        let lines = self.lines.first(self.lines.capacity())?;
        Ok(lines.flat_map(|line| line.entry).filter(|entry| *entry != 0).count())
    }

    /// Returns the numbers of the buckets that have an entry in use.
    ///
    /// # Errors
    /// Fails if the map cannot be read.
    pub fn lines_in_use(&self) -> Result<Vec<u32>> {
        let lines = (0..).zip(self.lines.first(self.lines.capacity())?);
        Ok(lines
            .filter(|(_, line)| line.entry != [0; abi::state::KEY_ENTRIES])
            .map(|(number, _)| number)
            .collect())
    }

    /// Writes `onward` beside every entry as its prefetch hint: the index, plus 1, of the egress
    /// state.
    ///
    /// # Errors
    /// Fails if the map cannot be read or written.
    pub fn overwrite_hints(&self, peer: u32) -> Result<()> {
        for (number, line) in (0..).zip(self.lines.first(self.lines.capacity())?) {
            self.lines
                .set(&number, &abi::KeyLine { peer: [peer; abi::state::KEY_ENTRIES], ..line })?;
        }
        Ok(())
    }

    /// Returns the prefetch hints of the entries in use.
    ///
    /// # Errors
    /// Fails if the map cannot be read.
    pub fn peer_hints(&self) -> Result<Vec<u32>> {
        let lines = self.lines.first(self.lines.capacity())?;
        let places = lines.flat_map(|line| line.entry.into_iter().zip(line.peer));
        Ok(places.filter(|(entry, _)| *entry != 0).map(|(_, onward)| onward).collect())
    }
}
