//! The type of a flag, and parsers that several flags use.

use crate::completion::Completion;
use crate::refusal::Refusal;
use crate::request::Args;
use crate::words;

/// A flag: a row of the table.
pub struct Flag {
    /// The flag as it is typed.
    pub name: Name,
    /// The flag's value, or `None` if the flag takes no value.
    pub value: Option<Value>,
    /// One line for `-h` and completions.
    pub brief: &'static str,
    /// The paragraph of the manual page, in mdoc(7).
    pub text: &'static str,
    /// Stores the flag in the arguments. It validates the value and has no other effect.
    pub set: fn(&mut Args, &str) -> Result<(), Refusal>,
}

/// The spelling of a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// `-x`
    Letter(char),
    /// `--name`
    Long(&'static str),
}

/// A flag's value: its name in the usage, and its completions.
#[derive(Debug, Clone, Copy)]
pub struct Value {
    /// Name in the usage and the manual page.
    pub name: &'static str,
    /// Source of the shell's completions.
    pub kind: Completion,
}

/// Returns the words of a list.
pub(super) fn names<T>(list: &[words::Word<T>]) -> Vec<&'static str> {
    list.iter().map(|(name, _)| *name).collect()
}

/// Parses a number as strtonum(3) does. Messages call the number `what`.
pub(super) fn number(text: &str, what: &str) -> Result<u32, Refusal> {
    let number: Result<i128, _> = text.trim_start().parse();
    let wrong = match number.map(|number| (number, u32::try_from(number))) {
        Ok((_, Ok(number))) => return Ok(number),
        Ok((number, _)) if number < 0 => "too small",
        Ok(_) => "too large",
        Err(_) => "invalid",
    };
    Err(Refusal::Usage(format!("{what} {text}: {wrong}")))
}
