//! Errors of compilation: limits of the data plane, and names that cannot be compiled.

use skipstep_ruleset::TableName;

/// An error in a rule set, with the limit that it exceeds if there is one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The rules use too many different names behind `os`.
    #[error("{names} different names behind `os`: at most {limit} are supported")]
    Systems {
        /// number of names used
        names: usize,
        /// most names possible
        limit: usize,
    },
    /// The rule set has more fingerprints than the data plane has room for.
    #[error("{count} fingerprints of operating systems: at most {limit} are supported")]
    Fingerprints {
        /// number of fingerprints
        count: usize,
        /// most fingerprints possible
        limit: u32,
    },
    /// The rule set has more rules than the data plane has room for.
    #[error("{rules} rules: a rule set holds at most {limit}")]
    Rules {
        /// number of rules
        rules: usize,
        /// most rules possible
        limit: u32,
    },
    /// The rule set has more anchors than `set limit anchors` allows.
    #[error("{anchors} anchors exceed the limit of {limit}: write `set limit anchors {anchors}`")]
    Anchors {
        /// number of anchors
        anchors: usize,
        /// value of `set limit anchors`
        limit: u32,
    },
    /// The rule set has more tables than `set limit tables` allows.
    #[error("{tables} tables exceed the limit of {limit}: write `set limit tables {tables}`")]
    Tables {
        /// number of tables
        tables: usize,
        /// value of `set limit tables`
        limit: u32,
    },
    /// The rule set has more tables and dynamic addresses than the data plane has slots for.
    #[error("{tables} tables and dynamic addresses: an instance holds at most {limit}")]
    TableSlots {
        /// number of tables and dynamic addresses
        tables: usize,
        /// number of slots
        limit: u32,
    },
    /// The tables have more addresses than `set limit table-entries` allows.
    #[error(
        "{entries} table entries exceed the limit of {limit}: write `set limit table-entries {entries}`"
    )]
    TableEntries {
        /// number of addresses
        entries: usize,
        /// value of `set limit table-entries`
        limit: u32,
    },
    /// A registry of names is full.
    #[error("{line}no number left for {what} {name}: an instance knows at most {limit}", line = at(*.line))]
    Names {
        /// line of the rule, 0 if the name is in no rule
        line: u32,
        /// kind of name, as printed
        what: &'static str,
        /// the name without a number
        name: String,
        /// most names possible
        limit: u32,
    },
    /// An interface name is longer than the kernel allows.
    #[error("{line}{name}: interface names have at most 15 bytes", line = at(*.line))]
    InterfaceName {
        /// line of the rule, 0 if the name is in no rule
        line: u32,
        /// the interface name
        name: String,
    },
    /// A rule uses a table that has no slot.
    #[error("{line}table {name} is not part of the rule set", line = at(*.line))]
    UnknownTable {
        /// line of the rule, 0 if not known yet
        line: u32,
        /// name of the table or dynamic address
        name: TableName,
    },
}

impl Error {
    /// Sets the line of the rule in errors that have one.
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
