//! The words that `-F`, `-s`, `-T`, `-o` and `-x` take, which may be cut short as long as they
//! stay unambiguous.

use skipstep_ruleset::Optimization;

use crate::refusal::Refusal;

/// A word of a list with its meaning.
pub type Word<T> = (&'static str, T);

/// What `-s` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// queues
    Queues,
    /// rules
    Rules,
    /// translation rules of old times
    Nat,
    /// anchors
    Anchors,
    /// source tracking entries
    Sources,
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
    /// fingerprints of operating systems
    Fingerprints,
    /// state limiters
    StateLimiters,
    /// source limiters
    SourceLimiters,
    /// everything but interfaces
    All,
}

/// What `-F` flushes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// rules
    Rules,
    /// translation rules of old times
    Nat,
    /// source tracking entries
    Sources,
    /// states
    States,
    /// counters
    Info,
    /// tables
    Tables,
    /// fingerprints of operating systems
    Fingerprints,
    /// options, which become what they are by default
    Reset,
    /// all but options
    All,
}

/// What `-T` does with a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableCommand {
    /// delete the table
    Kill,
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
    /// remove addresses that nothing was counted for since some time
    Expire,
    /// load the tables of a rule set
    Load,
}

/// Words of `-s`, in OpenBSD's order.
pub const SHOW: &[Word<Show>] = &[
    ("queue", Show::Queues),
    ("rules", Show::Rules),
    ("nat", Show::Nat),
    ("Anchors", Show::Anchors),
    ("Sources", Show::Sources),
    ("states", Show::States),
    ("info", Show::Info),
    ("Interfaces", Show::Interfaces),
    ("labels", Show::Labels),
    ("timeouts", Show::Timeouts),
    ("memory", Show::Memory),
    ("Tables", Show::Tables),
    ("osfp", Show::Fingerprints),
    ("LimiterStates", Show::StateLimiters),
    ("LimiterSrcs", Show::SourceLimiters),
    ("all", Show::All),
];

/// Words of `-F`.
pub const FLUSH: &[Word<Flush>] = &[
    ("rules", Flush::Rules),
    ("nat", Flush::Nat),
    ("Sources", Flush::Sources),
    ("states", Flush::States),
    ("info", Flush::Info),
    ("Tables", Flush::Tables),
    ("osfp", Flush::Fingerprints),
    ("Reset", Flush::Reset),
    ("all", Flush::All),
];

/// Words of `-T`.
pub const TABLE_COMMAND: &[Word<TableCommand>] = &[
    ("kill", TableCommand::Kill),
    ("flush", TableCommand::Flush),
    ("add", TableCommand::Add),
    ("delete", TableCommand::Delete),
    ("load", TableCommand::Load),
    ("replace", TableCommand::Replace),
    ("show", TableCommand::Show),
    ("test", TableCommand::Test),
    ("zero", TableCommand::Zero),
    ("expire", TableCommand::Expire),
];

/// Words of `-o`.
pub const OPTIMIZE: &[Word<Optimization>] = &[
    ("none", Optimization::None),
    ("basic", Optimization::Basic),
    ("profile", Optimization::Profile),
];

/// Words of `-x` with syslog's numbers.
pub const DEBUG_LEVEL: &[Word<u8>] = &[
    ("debug", 7),
    ("info", 6),
    ("notice", 5),
    ("warning", 4),
    ("error", 3),
    ("crit", 2),
    ("alert", 1),
    ("emerg", 0),
];

/// How `-si` and `-x` name a debug level.
pub fn debug_level_name(level: u8) -> &'static str {
    const NAMES: [&str; 8] =
        ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"];
    NAMES.get(usize::from(level)).copied().unwrap_or("unknown")
}

/// The meaning of `word`, which may be the beginning of one word of `list`; `what` names the list
/// in messages.
pub fn lookup<T: Copy>(list: &[Word<T>], word: &str, what: &str) -> Result<T, Refusal> {
    let mut found = list.iter().filter(|(name, _)| !word.is_empty() && name.starts_with(word));
    let Some((_, meaning)) = found.next() else {
        return Err(Refusal::Usage(format!("Unknown {what} '{word}'")));
    };
    if found.next().is_some() {
        return Err(Refusal::Failure(format!("{word} is ambiguous")));
    }
    Ok(*meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_may_be_cut_short() {
        assert_eq!(lookup(SHOW, "s", "show modifier"), Ok(Show::States));
        assert_eq!(lookup(SHOW, "I", "show modifier"), Ok(Show::Interfaces));
        assert_eq!(lookup(FLUSH, "rul", "flush modifier"), Ok(Flush::Rules));
    }

    #[test]
    fn a_word_that_begins_nothing_is_unknown() {
        for word in ["x", "", "stats", "rulesx"] {
            assert_eq!(
                lookup(SHOW, word, "show modifier"),
                Err(Refusal::Usage(format!("Unknown show modifier '{word}'")))
            );
        }
    }

    #[test]
    fn a_beginning_of_two_words_is_ambiguous() {
        assert_eq!(
            lookup(&[("to", 1), ("two", 2)], "t", "number"),
            Err(Refusal::Failure("t is ambiguous".into()))
        );
    }
}
