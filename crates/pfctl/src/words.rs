//! The words that `-F`, `-s`, `-T`, `-o` and `-x` take, which may be cut short as long as they
//! stay unambiguous, and which of them are built.

use crate::args::Refusal;

/// A word of a list with its meaning; `None` is OpenBSD's, and not built yet.
pub type Word<T> = (&'static str, Option<T>);

/// What `-s` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// rules
    Rules,
    /// states
    States,
    /// status and counters
    Info,
    /// interfaces and groups
    Interfaces,
    /// counters of labelled rules
    Labels,
    /// timeouts
    Timeouts,
    /// limits
    Memory,
    /// tables
    Tables,
    /// everything but interfaces
    All,
}

/// What `-F` flushes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// rules
    Rules,
    /// states
    States,
    /// counters
    Info,
    /// tables
    Tables,
    /// all of them
    All,
}

/// What `-T` does with a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableCommand {
    /// remove all addresses
    Flush,
    /// add addresses
    Add,
    /// remove addresses
    Delete,
    /// make the contents these addresses
    Replace,
    /// print the contents
    Show,
    /// look addresses up
    Test,
    /// clear the counters
    Zero,
}

/// Words of `-s`, in OpenBSD's order.
pub const SHOW: &[Word<Show>] = &[
    ("queue", None),
    ("rules", Some(Show::Rules)),
    ("Anchors", None),
    ("Sources", None),
    ("states", Some(Show::States)),
    ("info", Some(Show::Info)),
    ("Interfaces", Some(Show::Interfaces)),
    ("labels", Some(Show::Labels)),
    ("timeouts", Some(Show::Timeouts)),
    ("memory", Some(Show::Memory)),
    ("Tables", Some(Show::Tables)),
    ("osfp", None),
    ("all", Some(Show::All)),
];

/// Words of `-F`.
pub const FLUSH: &[Word<Flush>] = &[
    ("rules", Some(Flush::Rules)),
    ("Sources", None),
    ("states", Some(Flush::States)),
    ("info", Some(Flush::Info)),
    ("Tables", Some(Flush::Tables)),
    ("osfp", None),
    ("Reset", None),
    ("all", Some(Flush::All)),
];

/// Words of `-T`.
pub const TABLE_COMMAND: &[Word<TableCommand>] = &[
    ("kill", None),
    ("flush", Some(TableCommand::Flush)),
    ("add", Some(TableCommand::Add)),
    ("delete", Some(TableCommand::Delete)),
    ("replace", Some(TableCommand::Replace)),
    ("show", Some(TableCommand::Show)),
    ("test", Some(TableCommand::Test)),
    ("zero", Some(TableCommand::Zero)),
    ("expire", None),
];

/// Words of `-o`.
pub const OPTIMIZE: &[Word<()>] = &[("none", Some(())), ("basic", None), ("profile", None)];

/// Words of `-x` with syslog's numbers.
pub const DEBUG_LEVEL: &[Word<u8>] = &[
    ("debug", Some(7)),
    ("info", Some(6)),
    ("notice", Some(5)),
    ("warning", Some(4)),
    ("error", Some(3)),
    ("crit", Some(2)),
    ("alert", Some(1)),
    ("emerg", Some(0)),
];

/// How `-si` and `-x` name a debug level.
pub fn debug_level_name(level: u8) -> &'static str {
    const NAMES: [&str; 8] =
        ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"];
    NAMES.get(usize::from(level)).copied().unwrap_or("unknown")
}

/// The meaning of `word`, which may be the beginning of one word of `list`; `what` names the list
/// in messages, `flag` the flag.
pub fn lookup<T: Copy>(list: &[Word<T>], word: &str, flag: char, what: &str) -> Result<T, Refusal> {
    let mut found = list.iter().filter(|(name, _)| !word.is_empty() && name.starts_with(word));
    let Some((name, meaning)) = found.next() else {
        return Err(Refusal::Usage(format!("Unknown {what} '{word}'")));
    };
    if found.next().is_some() {
        return Err(Refusal::Failure(format!("{word} is ambiguous")));
    }
    meaning.ok_or_else(|| Refusal::Failure(format!("-{flag} {name} is not built yet")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_may_be_cut_short() {
        assert_eq!(lookup(SHOW, "s", 's', "show modifier"), Ok(Show::States));
        assert_eq!(lookup(SHOW, "I", 's', "show modifier"), Ok(Show::Interfaces));
        assert_eq!(lookup(FLUSH, "rul", 'F', "flush modifier"), Ok(Flush::Rules));
    }

    #[test]
    fn a_word_that_begins_nothing_is_unknown() {
        for word in ["x", "", "stats", "rulesx"] {
            assert_eq!(
                lookup(SHOW, word, 's', "show modifier"),
                Err(Refusal::Usage(format!("Unknown show modifier '{word}'")))
            );
        }
    }

    #[test]
    fn a_beginning_of_two_words_is_ambiguous() {
        assert_eq!(
            lookup(&[("to", Some(1)), ("two", Some(2))], "t", 'n', "number"),
            Err(Refusal::Failure("t is ambiguous".into()))
        );
    }

    #[test]
    fn words_that_are_not_built_are_known() {
        assert_eq!(
            lookup(SHOW, "q", 's', "show modifier"),
            Err(Refusal::Failure("-s queue is not built yet".into()))
        );
    }
}
