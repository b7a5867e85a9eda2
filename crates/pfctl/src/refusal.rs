//! Errors of the command line.

use std::fmt;

/// A wrong command line for which only the usage is printed.
#[derive(Debug)]
pub struct UsageError;

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("usage")
    }
}

impl std::error::Error for UsageError {}

/// The reason for refusing a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// A wrong command line: a message, which may be empty, and then the usage.
    Usage(String),
    /// A well-formed command line that cannot be executed: only a message.
    Failure(String),
}

impl Refusal {
    /// Returns the message.
    pub fn message(&self) -> &str {
        match self {
            Refusal::Usage(message) | Refusal::Failure(message) => message,
        }
    }
}
