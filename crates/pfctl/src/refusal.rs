//! What is wrong with a command line.

use std::fmt;

/// The command line is wrong in a way that needs no words but the usage.
#[derive(Debug)]
pub struct UsageError;

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("usage")
    }
}

impl std::error::Error for UsageError {}

/// Why a command line is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It is wrong: message (perhaps empty), then the usage.
    Usage(String),
    /// It is understood, but cannot be done: message only.
    Failure(String),
}
