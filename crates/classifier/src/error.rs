//! What can be too much for the data plane.

use skipstep_ruleset::TableName;

/// A rule set that does not fit, and which limit says so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// More names behind `os` than a rule can ask for.
    #[error("{names} different names behind `os`: at most {limit} can be told apart")]
    Systems {
        /// how many there are
        names: usize,
        /// how many there can be
        limit: usize,
    },
    /// More fingerprints than there is room for.
    #[error("{count} fingerprints of operating systems: at most {limit} are looked at")]
    Fingerprints {
        /// how many there are
        count: usize,
        /// how many there can be
        limit: u32,
    },
    /// More rules than one rule set may have.
    #[error("{rules} rules: a rule set holds at most {limit}")]
    Rules {
        /// rules there are
        rules: usize,
        /// rules there may be
        limit: u32,
    },
    /// More anchors than `set limit anchors` allows.
    #[error("{anchors} anchors exceed the limit of {limit}: write `set limit anchors {anchors}`")]
    Anchors {
        /// anchors there are
        anchors: usize,
        /// what the limit says
        limit: u32,
    },
    /// More tables than `set limit tables` allows.
    #[error("{tables} tables exceed the limit of {limit}: write `set limit tables {tables}`")]
    Tables {
        /// tables there are
        tables: usize,
        /// what the limit says
        limit: u32,
    },
    /// More tables and dynamic addresses than the data plane has places for.
    #[error("{tables} tables and dynamic addresses: an instance holds at most {limit}")]
    TableSlots {
        /// tables and dynamic addresses there are
        tables: usize,
        /// places there are
        limit: u32,
    },
    /// More addresses in tables than `set limit table-entries` allows.
    #[error(
        "{entries} table entries exceed the limit of {limit}: write `set limit table-entries {entries}`"
    )]
    TableEntries {
        /// addresses there are
        entries: usize,
        /// what the limit says
        limit: u32,
    },
    /// A registry of names is full.
    #[error("{line}no number left for {what} {name}: an instance knows at most {limit}", line = at(*.line))]
    Names {
        /// line of the rule, 0 if it is in none
        line: u32,
        /// kind of name
        what: &'static str,
        /// the name
        name: String,
        /// how many there may be
        limit: u32,
    },
    /// An interface name longer than the kernel's.
    #[error("{line}{name}: interface names have at most 15 bytes", line = at(*.line))]
    InterfaceName {
        /// line of the rule, 0 if it is in none
        line: u32,
        /// the name
        name: String,
    },
    /// A rule uses a table that the rule set does not list.
    #[error("{line}table {name} is not part of the rule set", line = at(*.line))]
    UnknownTable {
        /// line of the rule
        line: u32,
        /// the table or dynamic address
        name: TableName,
    },
}

impl Error {
    /// The same error, said of a rule on `line`.
    pub(crate) fn on_line(mut self, number: u32) -> Self {
        match &mut self {
            Error::Names { line, .. }
            | Error::InterfaceName { line, .. }
            | Error::UnknownTable { line, .. } => *line = number,
            Error::Rules { .. }
            | Error::Anchors { .. }
            | Error::Tables { .. }
            | Error::TableSlots { .. }
            | Error::TableEntries { .. }
            | Error::Systems { .. }
            | Error::Fingerprints { .. } => {}
        }
        self
    }
}

fn at(line: u32) -> String {
    if line == 0 { String::new() } else { format!("line {line}: ") }
}
