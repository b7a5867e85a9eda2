//! The addresses that a rule is about at one end.

use crate::ranges::{ADDRESS, Ranges};
use crate::words;

/// Addresses in all of these.
#[derive(Debug, Clone)]
pub struct Hosts {
    /// Addresses that are written down.
    pub set: Ranges,
    /// Whether only the machine's own addresses are meant, or only others.
    pub local: Option<bool>,
}

impl Default for Hosts {
    fn default() -> Self {
        Hosts { set: Ranges::all(ADDRESS), local: None }
    }
}

impl Hosts {
    /// Leaves the addresses that are in `set` as well, or, `negated`, that are not.
    pub fn narrow(&mut self, set: Ranges, negated: bool) {
        let set = if negated { set.complement(ADDRESS) } else { set };
        self.set = self.set.intersection(&set);
    }

    /// Whether the two ways of saying it meet, for which pf.conf has no words.
    pub fn is_mixed(&self) -> bool {
        self.local.is_some() && self.set != Ranges::all(ADDRESS)
    }

    /// Whether every address is meant.
    pub fn is_any(&self) -> bool {
        self.local.is_none() && self.set == Ranges::all(ADDRESS)
    }

    /// As pf.conf has it.
    pub fn text(&self) -> String {
        match self.local {
            Some(true) => "(self)".to_string(),
            Some(false) => "! (self)".to_string(),
            None => words::hosts(&self.set),
        }
    }
}
