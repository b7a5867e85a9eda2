//! The type of a flag, and parsers that several flags use.

use crate::completion::Completion;
use crate::refusal::Refusal;
use crate::request::Args;
use crate::words;

/// A flag: a row of a program's table. The program stores its flags in an `A`.
pub struct Flag<A = Args> {
    /// The flag as it is typed.
    pub name: Name,
    /// The flag's value, or `None` if the flag takes no value.
    pub value: Option<Value>,
    /// One line for `-h` and completions.
    pub brief: &'static str,
    /// The paragraph of the manual page, in mdoc(7).
    pub text: &'static str,
    /// Stores the flag in the arguments. It validates the value and has no other effect.
    pub set: fn(&mut A, &str) -> Result<(), Refusal>,
}

impl<A> Flag<A> {
    /// Returns the flag as typed: `-f` or `--json`.
    pub fn written(&self) -> String {
        match self.name {
            Name::Letter(letter) => format!("-{letter}"),
            Name::Long(name) => format!("--{name}"),
        }
    }

    /// Returns the letter of the flag, or `None` if it is a word.
    pub fn letter(&self) -> Option<char> {
        match self.name {
            Name::Letter(letter) => Some(letter),
            Name::Long(_) => None,
        }
    }
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
///
/// # Errors
/// Fails if the text is no number of 32 bits.
pub fn number(text: &str, what: &str) -> Result<u32, Refusal> {
    let number: Result<i128, _> = text.trim_start().parse();
    let wrong = match number.map(|number| (number, u32::try_from(number))) {
        Ok((_, Ok(number))) => return Ok(number),
        Ok((number, _)) if number < 0 => "too small",
        Ok(_) => "too large",
        Err(_) => "invalid",
    };
    Err(Refusal::Usage(format!("{what} {text}: {wrong}")))
}
