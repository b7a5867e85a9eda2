//! Differences between expected and found values.

use std::fmt::Debug;

/// A list of differences, as text.
#[derive(Default)]
pub(crate) struct Differences(pub Vec<String>);

impl Differences {
    /// Compares a value, if one is expected.
    pub fn compare<T: PartialEq + Debug>(&mut self, what: &str, expected: &Option<T>, found: T) {
        match expected {
            Some(expected) if *expected != found => {
                self.0.push(format!("{what}: expected {expected:?}, found {found:?}"));
            }
            _ => {}
        }
    }
}
