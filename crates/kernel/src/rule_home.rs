//! Where the rules of a generation are in the kernel: an array for each of two, made to their
//! measure.

use std::os::fd::{AsFd, AsRawFd};

use skipstep_abi as abi;

use crate::error::Result;
use crate::map;
use crate::object::Maps;
use crate::shared;

/// The rules of a generation, as the image has them.
pub(crate) type Rules = map::Map<u32, abi::Rule>;

/// Rules that a map has room for at least.
const LEAST_ROOM: u32 = 256;

/// Where rules are written.
pub(crate) enum RuleHome {
    /// Into the map of the generation before the last, which nobody reads any more, if it has room.
    /// A new one costs what [`wait`] does: the kernel waits for its readers.
    Fitting,
    /// Into two maps that are there from the start, one for each generation. For tests, whose
    /// packets come when they are sent: waiting for none takes tens of milliseconds.
    Standing([Rules; 2]),
}

impl RuleHome {
    /// Two maps with room for `rules` rules, as both generations' rule sets.
    pub fn standing(maps: &Maps, rules: u32) -> Result<Self> {
        let homes = [new_rules(rules)?, new_rules(rules)?];
        for (generation, home) in (0..).zip(&homes) {
            put(maps, generation, home)?;
        }
        Ok(RuleHome::Standing(homes))
    }

    /// Writes the rules of a generation. Returns their map if packets may read those that were
    /// there before.
    pub fn write(
        &self,
        maps: &Maps,
        generation: u32,
        rules: &[abi::Rule],
    ) -> Result<Option<Rules>> {
        let count = rules.len() as u32;
        match self {
            RuleHome::Fitting => {
                let standing = rules_of(maps, generation)?.filter(|home| fits(home, count));
                let home = match standing {
                    Some(home) => home,
                    None => make_room(maps, generation, count)?,
                };
                shared::fill(&home, rules)?;
                Ok(Some(home))
            }
            RuleHome::Standing(homes) => {
                let home = &homes[(generation & 1) as usize];
                if count > home.capacity() {
                    return Err(home.full());
                }
                shared::fill(home, rules)?;
                Ok(None)
            }
        }
    }

    /// Waits until all packets are through that began before now, while this generation is in
    /// force. In tests none is on its way.
    pub fn wait(&self, maps: &Maps, generation: u32) -> Result<()> {
        match self {
            RuleHome::Fitting => wait(maps, generation),
            RuleHome::Standing(_) => Ok(()),
        }
    }
}

/// Whether `count` rules have room, and no memory lies idle for many more.
fn fits(home: &Rules, count: u32) -> bool {
    let room = home.capacity();
    count <= room && (room <= LEAST_ROOM || room / 4 <= count)
}

/// The map of a generation that is not in force, with room for some more than `count` rules.
fn make_room(maps: &Maps, generation: u32, count: u32) -> Result<Rules> {
    let home = new_rules(count.saturating_add(count / 4).max(LEAST_ROOM))?;
    put(maps, generation, &home)?;
    Ok(home)
}

fn new_rules(count: u32) -> Result<Rules> {
    map::new_array("rules", count, map::INNER_MAP)
}

/// The map of a generation's rules, if it has one yet.
pub(crate) fn rules_of(maps: &Maps, generation: u32) -> Result<Option<Rules>> {
    let id = maps.rulesets.get(&(generation & 1))?;
    id.map(|id| map::by_id("rules", id)).transpose()
}

fn put(maps: &Maps, generation: u32, home: &Rules) -> Result<()> {
    maps.rulesets.set(&(generation & 1), &(home.as_fd().as_raw_fd() as u32))
}

/// Waits until all packets are through that began before now.
pub(crate) fn wait(maps: &Maps, generation: u32) -> Result<()> {
    match rules_of(maps, generation)? {
        Some(rules) => wait_for_readers(maps, generation, &rules),
        None => Ok(()),
    }
}

/// The kernel waits for its readers whenever a map of maps is changed, even into what it was.
pub(crate) fn wait_for_readers(maps: &Maps, generation: u32, rules: &Rules) -> Result<()> {
    put(maps, generation, rules)
}
