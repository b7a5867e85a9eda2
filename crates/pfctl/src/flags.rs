//! The one table of flags. The command line is read by it, and `-h`, the manual page and the shell
//! completions are made of it; each row's test stands below it,
//! in the file of its subject.

use crate::args::{Args, Refusal};
use crate::words;

mod filter;
mod rules;
mod show;
mod states;
mod tables;
mod verbs;

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

/// What a shell completes a value with.
#[derive(Debug, Clone, Copy)]
pub enum Completion {
    /// nothing
    None,
    /// file names
    File,
    /// names of network interfaces
    Interface,
    /// names of tables
    Table,
    /// paths of anchors
    Anchor,
    /// words of a list
    Words(fn() -> Vec<&'static str>),
}

/// All flags, in the order of the manual page.
pub const FLAGS: &[&Flag] = &[
    &rules::ANCHOR,
    &rules::MACRO,
    &filter::DISABLE,
    &filter::ENABLE,
    &filter::FLUSH,
    &rules::FILE,
    &show::DEBUG,
    &show::HELP,
    &states::LIMITER,
    &states::INTERFACE,
    &states::KILL_SOURCES,
    &states::KILL,
    &states::LOAD_STATES,
    &rules::NO_DNS,
    &rules::NO_ACTION,
    &rules::OPTIMIZE,
    &show::PORT_NAMES,
    &filter::INSTANCE,
    &show::QUIET,
    &rules::RULE,
    &show::HOST_NAMES,
    &states::STORE_STATES,
    &show::SHOW,
    &tables::COMMAND,
    &tables::TABLE,
    &filter::RDOMAIN,
    &show::VERBOSE,
    &filter::DEBUG_LEVEL,
    &filter::ZERO,
    &show::JSON,
    &verbs::JUNIT,
    &verbs::CHECK,
    &verbs::WRITE,
    &verbs::EXAMPLES,
    &verbs::ALL,
    &filter::REMOVE,
];

/// The names in a word list.
fn names<T>(list: &[words::Word<T>]) -> Vec<&'static str> {
    list.iter().map(|(name, _)| *name).collect()
}

/// A number as strtonum(3) reads it; `what` names it in messages.
fn number(text: &str, what: &str) -> Result<u32, Refusal> {
    let number: Result<i128, _> = text.trim_start().parse();
    let wrong = match number.map(|number| (number, u32::try_from(number))) {
        Ok((_, Ok(number))) => return Ok(number),
        Ok((number, _)) if number < 0 => "too small",
        Ok(_) => "too large",
        Err(_) => "invalid",
    };
    Err(Refusal::Usage(format!("{what} {text}: {wrong}")))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::args::parse;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| word.to_string()).collect()
    }

    pub fn args(line: &[&str]) -> Args {
        parse(&words(line)).unwrap_or_else(|refusal| panic!("{line:?}: {refusal:?}"))
    }

    pub fn refusal(line: &[&str]) -> Refusal {
        parse(&words(line)).expect_err("should have been refused")
    }

    #[test]
    fn no_two_flags_have_the_same_name() {
        let mut seen = HashSet::new();
        for flag in FLAGS {
            assert!(seen.insert(format!("{:?}", flag.name)), "{:?}", flag.name);
        }
    }

    #[test]
    fn every_letter_of_openbsd_is_known() {
        for letter in "adDeqfFghiKkLNnoPpRrSstTvVxz".chars() {
            assert!(FLAGS.iter().any(|flag| flag.name == Name::Letter(letter)), "-{letter}");
        }
    }
}
