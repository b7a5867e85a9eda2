//! Numbers for names. A number is assigned once and stays valid while the instance lives. So
//! states, packets in flight and the next rule set mean the same interface or tag by it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use skipstep_abi::limits::{MAX_GROUPS, MAX_INTERFACES};
use skipstep_abi::mark::MAX_TAG;

use crate::Error;

/// End of the numbers of anchors. A removed anchor keeps its number while it has states.
const MAX_ANCHORS: u32 = 1 << 16;
/// End of the numbers of queues, which are minor numbers of traffic classes.
const MAX_QUEUES: u32 = skipstep_abi::queue::MAX + 1;

/// All names with numbers, kept by an instance from one rule set to the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names {
    /// Interfaces, numbered from 1.
    pub interfaces: Registry,
    /// Interface groups; the number is a bit, from 0.
    pub groups: Registry,
    /// Tags, numbered from 1.
    pub tags: Registry,
    /// Paths of anchors, numbered from 1; 0 is the main rule set.
    pub anchors: Registry,
    /// Queues, numbered from 1.
    pub queues: Registry,
}

impl Default for Names {
    fn default() -> Self {
        Names {
            interfaces: Registry::new("interface", 1, MAX_INTERFACES),
            // Differs from OpenBSD: linux.md, "Groups"
            groups: Registry::new("group", 0, MAX_GROUPS),
            // Differs from OpenBSD: linux.md, "Tags"
            tags: Registry::new("tag", 1, u32::from(MAX_TAG) + 1),
            anchors: Registry::new("anchor", 1, MAX_ANCHORS),
            queues: Registry::new("queue", 1, MAX_QUEUES),
        }
    }
}

/// The numbers of the names of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registry {
    what: String,
    first: u32,
    end: u32,
    numbers: BTreeMap<String, u32>,
    /// True once a name was removed: the numbers in use are no longer contiguous.
    has_gaps: bool,
}

impl Registry {
    fn new(what: &str, first: u32, end: u32) -> Self {
        Registry { what: what.to_owned(), first, end, numbers: BTreeMap::new(), has_gaps: false }
    }

    /// Returns the number of `name`, and assigns one if it has none.
    ///
    /// # Errors
    /// Fails if all numbers are in use.
    pub fn number(&mut self, name: &str) -> Result<u32, Error> {
        if let Some(number) = self.get(name) {
            return Ok(number);
        }
        let Some(number) = self.free() else {
            let what = match self.what.as_str() {
                "interface" => "interface",
                "group" => "interface group",
                "anchor" => "anchor",
                "queue" => "queue",
                _ => "tag",
            };
            let limit = self.end - self.first;
            return Err(Error::Names { line: 0, what, name: name.to_owned(), limit });
        };
        self.numbers.insert(name.to_owned(), number);
        Ok(number)
    }

    /// Returns the lowest number that is not in use.
    fn free(&self) -> Option<u32> {
        let next = self.first + self.numbers.len() as u32;
        if next < self.end && !self.has_gaps {
            return Some(next);
        }
        let taken: BTreeSet<u32> = self.numbers.values().copied().collect();
        (self.first..self.end).find(|number| !taken.contains(number))
    }

    /// True if three quarters of the numbers are in use, so that unused names should be removed.
    pub fn is_nearly_full(&self) -> bool {
        self.numbers.len() as u32 >= (self.end - self.first) / 4 * 3
    }

    /// Removes the names for which `keep` returns false, and returns their numbers, which become
    /// free for reuse. No rule, state or packet may use a removed number any more.
    pub fn retain(&mut self, keep: impl Fn(&str, u32) -> bool) -> Vec<u32> {
        let mut free = Vec::new();
        self.numbers.retain(|name, number| {
            let kept = keep(name, *number);
            if !kept {
                free.push(*number);
            }
            kept
        });
        self.has_gaps |= !free.is_empty();
        free
    }

    /// Returns the number of `name`, or `None` if it has none.
    pub fn get(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// Returns the name that has `number`.
    pub fn name(&self, number: u32) -> Option<&str> {
        self.numbers.iter().find(|(_, n)| **n == number).map(|(name, _)| name.as_str())
    }

    /// Returns all names with their numbers, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        self.numbers.iter().map(|(name, number)| (name.as_str(), *number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_number() {
        let mut names = Names::default();
        assert_eq!(names.interfaces.number("em0"), Ok(1));
        assert_eq!(names.interfaces.number("em1"), Ok(2));
        assert_eq!(names.interfaces.number("em0"), Ok(1));
        assert_eq!(names.interfaces.name(2), Some("em1"));
        assert_eq!(names.interfaces.get("em2"), None);
    }

    #[test]
    fn forgotten_names_make_room() {
        let mut names = Names::default();
        for i in 0..64 {
            names.groups.number(&format!("g{i}")).unwrap();
        }
        assert!(names.groups.is_nearly_full());
        assert_eq!(names.groups.retain(|name, _| name != "g7"), [7]);
        assert_eq!(names.groups.number("new"), Ok(7));
        assert_eq!(names.groups.get("g7"), None);
        assert!(names.groups.number("another").is_err());
    }

    #[test]
    fn a_full_registry_names_its_limit() {
        let mut names = Names::default();
        for i in 0..64 {
            assert_eq!(names.groups.number(&format!("g{i}")), Ok(i));
        }
        let error = names.groups.number("one-more").unwrap_err().on_line(7);
        assert_eq!(
            error.to_string(),
            "line 7: no number left for interface group one-more: an instance knows at most 64"
        );
    }
}
