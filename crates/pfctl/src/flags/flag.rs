//! A flag, and what those of one kind have in common.

use crate::completion::Completion;
use crate::refusal::Refusal;
use crate::request::Args;
use crate::words;

/// A flag: one row of the table.
pub struct Flag {
    /// How it is written.
    pub name: Name,
    /// What its value is, if it takes one.
    pub value: Option<Value>,
    /// One line, for `-h` and completions.
    pub brief: &'static str,
    /// The paragraph of the manual page, in mdoc(7).
    pub text: &'static str,
    /// Notes it down. Only looks at the value, does nothing else.
    pub set: fn(&mut Args, &str) -> Result<(), Refusal>,
}

/// How a flag is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// `-x`
    Letter(char),
    /// `--name`
    Long(&'static str),
}

/// A flag's value: its name in the usage, and what a shell can complete it with.
#[derive(Debug, Clone, Copy)]
pub struct Value {
    /// Name in the usage.
    pub name: &'static str,
    /// What completes it.
    pub kind: Completion,
}

/// The names in a word list.
pub(super) fn names<T>(list: &[words::Word<T>]) -> Vec<&'static str> {
    list.iter().map(|(name, _)| *name).collect()
}

/// A number as strtonum(3) reads it; `what` names it in messages.
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
