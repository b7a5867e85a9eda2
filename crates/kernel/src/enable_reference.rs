//! References that keep the filter enabled, as macOS counts them: `pfctl -E` takes one, and
//! `pfctl -X` releases it.

use std::fs;

use serde::{Deserialize, Serialize};

/// Largest number of references with a token. Programs that never release theirs must not let the
/// instance's memory grow without bound.
pub const MAX_REFERENCES: usize = 4096;

/// A reference that a process has taken (`pfctl -E`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnableReference {
    /// Random number by which `pfctl -X` releases the reference; never 0.
    pub token: u64,
    /// Process that took the reference.
    pub pid: u32,
    /// Name of this process.
    pub process: String,
    /// Time when the reference was taken, in seconds since 1970.
    pub since: u64,
}

/// The references that keep the filter enabled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnableReferences {
    /// References with a token, in the order in which they were taken.
    tokens: Vec<EnableReference>,
    /// True if the filter is disabled with the last token: `pfctl -E` has enabled it, and no
    /// `pfctl -e` followed. As in macOS, `pfctl -e` counts as one reference without a token.
    only_tokens: bool,
}

impl EnableReferences {
    /// Takes the reference of `pfctl -e`, which has no token. A filter that is not `running` has no
    /// earlier references.
    pub fn hold(&mut self, running: bool) {
        if !running {
            self.tokens.clear();
        }
        self.only_tokens = false;
    }

    /// Takes a reference with this token for this process; `now` is in seconds since 1970. A filter
    /// that is not `running` has no earlier references. Returns false if there are as many
    /// references as there may be.
    #[must_use]
    pub fn take(&mut self, token: u64, running: bool, now: u64) -> bool {
        if !running {
            *self = EnableReferences { tokens: Vec::new(), only_tokens: true };
        } else if self.tokens.is_empty() {
            // a command that failed later has enabled the filter, and took no reference
            self.only_tokens = false;
        }
        if self.tokens.len() >= MAX_REFERENCES {
            return false;
        }
        let process = fs::read_to_string("/proc/self/comm").unwrap_or_default();
        self.tokens.push(EnableReference {
            token,
            pid: std::process::id(),
            process: process.trim_end().to_owned(),
            since: now,
        });
        true
    }

    /// Releases the reference with this token. Returns the number of references that are left;
    /// `None` if there is no such token.
    pub fn release(&mut self, token: u64) -> Option<usize> {
        let place = self.tokens.iter().position(|held| held.token == token)?;
        self.tokens.remove(place);
        Some(self.tokens.len() + usize::from(!self.only_tokens))
    }

    /// Returns the references with a token, the latest first.
    pub fn latest_first(self) -> Vec<EnableReference> {
        self.tokens.into_iter().rev().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_token_ends_what_a_token_began() {
        let mut references = EnableReferences::default();
        assert!(references.take(7, false, 100));
        assert!(references.take(8, true, 200));
        let held: Vec<(u64, u32, u64)> = references
            .clone()
            .latest_first()
            .into_iter()
            .map(|held| (held.token, held.pid, held.since))
            .collect();
        let pid = std::process::id();
        assert_eq!(held, [(8, pid, 200), (7, pid, 100)]);
        assert_eq!(references.release(7), Some(1));
        assert_eq!(references.release(7), None);
        assert_eq!(references.release(8), Some(0));
    }

    #[test]
    fn a_filter_that_was_enabled_without_a_token_stays_enabled() {
        let mut references = EnableReferences::default();
        assert!(references.take(7, true, 100));
        assert_eq!(references.release(7), Some(1));
        assert!(references.take(8, false, 100));
        references.hold(true);
        assert_eq!(references.release(8), Some(1));
        assert!(references.take(9, false, 100));
        assert_eq!(references.release(9), Some(0));
        assert!(references.take(10, true, 100));
        assert_eq!(references.release(10), Some(1), "no token has enabled the filter");
    }

    #[test]
    fn tokens_of_a_filter_that_was_disabled_are_void() {
        let mut references = EnableReferences::default();
        assert!(references.take(7, false, 100));
        assert!(references.take(8, false, 200));
        assert_eq!(references.release(7), None);
        assert_eq!(references.release(8), Some(0));
        assert!(references.take(9, false, 300));
        references.hold(false);
        assert_eq!(references.release(9), None);
    }

    #[test]
    fn references_are_limited() {
        let mut references = EnableReferences::default();
        for token in 1..=MAX_REFERENCES as u64 {
            assert!(references.take(token, token > 1, 100));
        }
        assert!(!references.take(9999, true, 100));
        assert_eq!(references.release(9999), None);
        assert_eq!(references.release(1), Some(MAX_REFERENCES - 1));
        assert!(references.take(9999, true, 100));
    }
}
