//! The source or destination criterion of a rule.

use crate::ranges::{ADDRESS, Ranges};
use crate::words;

/// A set of addresses, restricted by both fields.
#[derive(Debug, Clone)]
pub struct Hosts {
    /// Addresses given by number.
    pub set: Ranges,
    /// `Some(true)` for only the machine's own addresses, `Some(false)` for all others.
    pub local: Option<bool>,
}

impl Default for Hosts {
    fn default() -> Self {
        Hosts { set: Ranges::all(ADDRESS), local: None }
    }
}

impl Hosts {
    /// Removes the addresses outside `set`, or, if `negated`, those inside.
    pub fn narrow(&mut self, set: Ranges, negated: bool) {
        let set = if negated { set.complement(ADDRESS) } else { set };
        self.set = self.set.intersection(&set);
    }

    /// True if both conditions restrict the set, which pf.conf cannot express.
    pub fn is_mixed(&self) -> bool {
        self.local.is_some() && self.set != Ranges::all(ADDRESS)
    }

    /// True if the set has every address.
    pub fn is_any(&self) -> bool {
        self.local.is_none() && self.set == Ranges::all(ADDRESS)
    }

    /// Returns the set in the notation of pf.conf.
    pub fn text(&self) -> String {
        match self.local {
            Some(true) => "(self)".to_string(),
            Some(false) => "! (self)".to_string(),
            None => words::hosts(&self.set),
        }
    }
}
