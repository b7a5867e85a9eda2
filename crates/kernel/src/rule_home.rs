//! The maps of rules: an array for each copy, sized to its rules.

use std::os::fd::{AsFd, AsRawFd};

use skipstep_abi as abi;
use skipstep_abi::limits::{COPIES, copy_of};

use crate::error::Result;
use crate::map;
use crate::object::Maps;
use crate::shared;

/// The rules of a generation, in the layout of the image.
pub type Rules = map::Map<u32, abi::Rule>;

/// Least number of rules that a map has room for.
const LEAST_ROOM: u32 = 256;

/// The policy by which maps of rules are chosen.
pub enum RuleHome {
    /// Reuses the map of an earlier generation, which has no readers any more, if its size fits. A
    /// new map costs as much as [`wait`], because the kernel waits for its readers.
    Fitting,
    /// Uses maps that exist from the start, one for each copy. For tests, whose packets
    /// run synchronously: to wait for readers would take tens of milliseconds and find none.
    Unchanged(Vec<Rules>),
}

impl RuleHome {
    /// Makes a map with room for `rules` rules for each copy.
    ///
    /// # Errors
    /// Fails if a map cannot be made or written.
    pub fn unchanged(maps: &Maps, rules: u32) -> Result<Self> {
        let homes = (0..COPIES).map(|_| new_rules(rules)).collect::<Result<Vec<Rules>>>()?;
        for (copy, home) in (0..).zip(&homes) {
            put(maps, copy, home)?;
        }
        Ok(RuleHome::Unchanged(homes))
    }

    /// Writes the rules of a generation. Returns their map if packets may still read the rules
    /// before.
    ///
    /// # Errors
    /// Fails if the rules do not fit into a map of a test, or if a map cannot be made or written.
    pub(crate) fn write(
        &self,
        maps: &Maps,
        generation: u32,
        rules: &[abi::Rule],
    ) -> Result<Option<Rules>> {
        let count = rules.len() as u32;
        match self {
            RuleHome::Fitting => {
                let unchanged = rules_of(maps, generation)?.filter(|home| fits(home, count));
                let home = match unchanged {
                    Some(home) => home,
                    None => make_room(maps, generation, count)?,
                };
                shared::fill(&home, rules)?;
                Ok(Some(home))
            }
            RuleHome::Unchanged(homes) => {
                let home = &homes[copy_of(generation) as usize];
                if count > home.capacity() {
                    return Err(home.full());
                }
                shared::fill(home, rules)?;
                Ok(None)
            }
        }
    }

    /// Waits for all packets that began before now, while this generation is in force. In tests
    /// there are none.
    ///
    /// # Errors
    /// Fails if a map cannot be read or written.
    pub(crate) fn wait(&self, maps: &Maps, generation: u32) -> Result<()> {
        match self {
            RuleHome::Fitting => wait(maps, generation),
            RuleHome::Unchanged(_) => Ok(()),
        }
    }
}

/// True if `count` rules fit, and at least a quarter of a large map is used.
fn fits(home: &Rules, count: u32) -> bool {
    let room = home.capacity();
    count <= room && (room <= LEAST_ROOM || room / 4 <= count)
}

/// Makes a map for a generation that is not in force, with room for a quarter more than `count`
/// rules.
fn make_room(maps: &Maps, generation: u32, count: u32) -> Result<Rules> {
    let home = new_rules(count.saturating_add(count / 4).max(LEAST_ROOM))?;
    put(maps, generation, &home)?;
    Ok(home)
}

fn new_rules(count: u32) -> Result<Rules> {
    map::new_array("rules", count, map::INNER_MAP)
}

/// Returns the map of a generation's rules, if there is one.
pub(crate) fn rules_of(maps: &Maps, generation: u32) -> Result<Option<Rules>> {
    let id = maps.rulesets.get(&copy_of(generation))?;
    id.map(|id| map::by_id("rules", id)).transpose()
}

fn put(maps: &Maps, generation: u32, home: &Rules) -> Result<()> {
    maps.rulesets.set(&copy_of(generation), &(home.as_fd().as_raw_fd() as u32))
}

/// Waits for all packets that began before now.
pub(crate) fn wait(maps: &Maps, generation: u32) -> Result<()> {
    match rules_of(maps, generation)? {
        Some(rules) => wait_for_readers(maps, generation, &rules),
        None => Ok(()),
    }
}

/// Waits for readers: the kernel does so whenever a map of maps changes, even to the same value.
pub(crate) fn wait_for_readers(maps: &Maps, generation: u32, rules: &Rules) -> Result<()> {
    put(maps, generation, rules)
}
