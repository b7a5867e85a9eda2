//! The table of keys alone: states that are put into it and taken out again by as many threads as
//! like.

use skipstep_abi as abi;

use crate::error::Result;
use crate::map::Map;
use crate::object::{self, Maps, Programs, Sizes};
use crate::program::Program;

/// The data plane's table of states, with nothing around it.
pub struct KeyTable {
    states: Map<u32, abi::State>,
    lines: Map<u32, abi::KeyLine>,
    restore: Program,
    kill: Program,
}

impl KeyTable {
    /// One with room for as many states as tests have.
    pub fn new() -> Result<Self> {
        let (maps, programs) = object::load(&Sizes::test())?;
        let limit_states = maps.states.capacity();
        maps.configs.set(&0, &abi::Config { limit_states, ..abi::Config::default() })?;
        let (Maps { states, state_keys, .. }, Programs { restore, kill, .. }) = (maps, programs);
        Ok(KeyTable { states, lines: state_keys, restore, kill })
    }

    /// How many states there is room for.
    pub fn capacity(&self) -> u32 {
        self.states.capacity()
    }

    /// Makes a state with a key on each side, which are one if they are equal; none if another
    /// state has one of them.
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

    /// Removes a state; whether it was there.
    pub fn remove(&self, state: abi::Kill) -> Result<bool> {
        Ok(self.kill.call(&state)? == 1)
    }

    /// How many entries are not free.
    pub fn entries(&self) -> Result<usize> {
        let lines = self.lines.first(self.lines.capacity())?;
        Ok(lines.flat_map(|line| line.entry).filter(|entry| *entry != 0).count())
    }

    /// Numbers of the lines that have an entry which is not free.
    pub fn lines_in_use(&self) -> Result<Vec<u32>> {
        let lines = (0..).zip(self.lines.first(self.lines.capacity())?);
        Ok(lines
            .filter(|(_, line)| line.entry != [0; abi::state::KEY_ENTRIES])
            .map(|(number, _)| number)
            .collect())
    }

    /// Says of every entry, free or not, that this is the place, plus 1, of the state that knows
    /// its packets where they leave.
    pub fn lead_astray(&self, onward: u32) -> Result<()> {
        for (number, line) in (0..).zip(self.lines.first(self.lines.capacity())?) {
            self.lines.set(
                &number,
                &abi::KeyLine { onward: [onward; abi::state::KEY_ENTRIES], ..line },
            )?;
        }
        Ok(())
    }

    /// What is said so of entries that are not free.
    pub fn onward(&self) -> Result<Vec<u32>> {
        let lines = self.lines.first(self.lines.capacity())?;
        let places = lines.flat_map(|line| line.entry.into_iter().zip(line.onward));
        Ok(places.filter(|(entry, _)| *entry != 0).map(|(_, onward)| onward).collect())
    }
}
