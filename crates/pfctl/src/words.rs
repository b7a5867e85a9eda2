//! The words of `-F`, `-s`, `-T`, `-o` and `-x`. A word may be abbreviated if it stays unambiguous.

use skipstep_ruleset::Optimization;

use crate::refusal::Refusal;

/// A word with its meaning.
pub type Word<T> = (&'static str, T);

/// A modifier of `-s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// `queue`: queues of the interfaces
    Queues,
    /// `rules`: filter rules, and legacy `scrub` rules in front of them
    Rules,
    /// `nat`: legacy translation rules
    Nat,
    /// `Anchors`: paths of anchors
    Anchors,
    /// `Sources`: source nodes
    Sources,
    /// `states`: states in order of creation
    States,
    /// `info`: status and global counters
    Info,
    /// `Interfaces`: interfaces, groups and names in rules
    Interfaces,
    /// `labels`: counters of rules with labels
    Labels,
    /// `timeouts`: timeouts in seconds, and the adaptive limits in states
    Timeouts,
    /// `memory`: hard limits
    Memory,
    /// `Tables`: names of tables, with `-v` also flags
    Tables,
    /// `osfp`: operating systems that fingerprints can recognize
    Fingerprints,
    /// `LimiterStates`: state limiters
    StateLimiters,
    /// `LimiterSrcs`: source limiters
    SourceLimiters,
    /// `confirm`: the load on trial, and its changes
    Confirm,
    /// `metrics`: counters and sizes for Prometheus
    Metrics,
    /// `References`: references of macOS's `-E`
    References,
    /// `all`: most of the above, as in OpenBSD: no anchors, interfaces and limiters
    All,
}

/// A modifier of `-F`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// `rules`: all rules of the main rule set or of an anchor
    Rules,
    /// `nat`: legacy translation rules
    Nat,
    /// `Sources`: source nodes
    Sources,
    /// `states`: all states, or the states of an interface
    States,
    /// `info`: counters that do not belong to rules
    Info,
    /// `Tables`: tables, which are deleted, or emptied if rules use them
    Tables,
    /// `osfp`: fingerprints of operating systems
    Fingerprints,
    /// `Reset`: options, which are reset to their defaults
    Reset,
    /// `all`: everything but options
    All,
}

/// A command of `-T`.
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
    /// replace all addresses by the given ones
    Replace,
    /// print the contents
    Show,
    /// look addresses up; exit status 2 if one does not match
    Test,
    /// clear the counters of the table, or of given addresses
    Zero,
    /// remove addresses whose counters were not cleared for some time
    Expire,
    /// load the tables of a rule set
    Load,
}

/// Words of `-s` that OpenBSD and FreeBSD have, in OpenBSD's order. `References` comes from macOS.
// Differs from OpenBSD: linux.md, "Flags of macOS and FreeBSD"
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
    ("References", Show::References),
    ("all", Show::All),
];

/// Words of `-s` that only skipstep has.
pub const OWN_SHOW: &[Word<Show>] = &[("confirm", Show::Confirm), ("metrics", Show::Metrics)];

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

/// Returns the meaning of a modifier of `-s`, which may be abbreviated. An abbreviation that may
/// mean a word of [`SHOW`] never means a word of [`OWN_SHOW`], so `m` is `memory`, as on OpenBSD.
///
/// # Errors
/// Fails as [`lookup`] does.
pub fn show(word: &str) -> Result<Show, Refusal> {
    let find = |list| lookup(list, word, "show modifier");
    match find(SHOW) {
        Err(Refusal::Usage(_)) => find(OWN_SHOW),
        found => found,
    }
}

/// Returns the name of a debug level for `-si` and `-x`; `unknown` above 7.
pub fn debug_level_name(level: u8) -> &'static str {
    const NAMES: [&str; 8] =
        ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"];
    NAMES.get(usize::from(level)).copied().unwrap_or("unknown")
}

/// Returns the meaning of `word`, which may be the beginning of one word of `list`. Messages call
/// the list `what`.
///
/// # Errors
/// Fails with the usage if no word of `list` begins with `word`, and with a message if several do.
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
    fn abbreviations_mean_words_of_openbsd_first() {
        for word in ["m", "me", "memory"] {
            assert_eq!(show(word), Ok(Show::Memory), "{word}");
        }
        for word in ["met", "metrics"] {
            assert_eq!(show(word), Ok(Show::Metrics), "{word}");
        }
        assert_eq!(show("c"), Ok(Show::Confirm));
        assert_eq!(show("L"), Err(Refusal::Failure("L is ambiguous".into())));
        assert_eq!(show("z"), Err(Refusal::Usage("Unknown show modifier 'z'".into())));
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
