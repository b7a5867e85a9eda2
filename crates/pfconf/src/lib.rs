//! The pf.conf language: reads a text, and returns a [`Ruleset`] or diagnostics.
//!
//! The crate opens no files and no sockets. A [`Context`] supplies interfaces, names and the
//! contents of files.
//!
//! `lexer` splits the text into tokens and replaces macros. `parser` makes statements (`ast`) of
//! them, and resolves names, ports and addresses. `load` takes one statement after the other,
//! because macros, `set block-policy` and `set state-defaults` hold from their line on. `expand`
//! makes rules of a statement, and `check` checks the rules. `print` prints rules as pfctl does.
//! `parallel` parses the second half of a long list of rules in parallel, if no statement before it
//! affects it. `failsafe` reads the rules that come before those of every main rule set.

pub mod context;
pub mod diagnostics;
pub mod failsafe;
pub mod format;
pub mod identity;
pub mod names;
pub mod print;
pub mod suggest;

mod anchor;
mod ast;
mod check;
mod expand;
mod keep;
mod label;
mod lexer;
mod load;
mod macros;
mod missing;
mod packet_names;
mod parallel;
mod parser;
pub mod queues;
mod resolve;
mod settings;
mod source;
mod table;
mod token;

pub use context::{Context, Dialect};
pub use diagnostics::{Diagnostic, Severity};
pub use names::Names;
pub use print::PrintOptions;

use skipstep_ruleset::{Limits, Ruleset, TableEntry};

/// A pf.conf without errors.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The resolved rule set.
    pub ruleset: Ruleset,
    /// Warnings and notes.
    pub warnings: Vec<Diagnostic>,
    /// The output of `pfctl -o none -nv`: macros, options, tables and rules in the order of the
    /// text.
    pub echo: String,
}

/// A pf.conf with errors.
#[derive(Debug, Clone)]
pub struct Rejected {
    /// Errors and warnings in the order of the text, with one error at least.
    pub diagnostics: Vec<Diagnostic>,
    /// The output of `pfctl -nv` for the statements without errors.
    pub echo: String,
}

/// Parses and resolves a whole pf.conf.
///
/// # Errors
/// Fails if a statement is wrong, or if a name, address or file cannot be resolved. The diagnostics
/// name all errors.
///
/// ```
/// use skipstep_pfconf::{Context, load};
/// use skipstep_ruleset::interface::Host;
///
/// let host = Host::default(); // no interfaces
/// let context = Context::new(&host);
/// let loaded = load("ports = \"{ 22, 80 }\"\nblock\npass in proto tcp to port $ports", &context);
/// assert_eq!(loaded.unwrap().ruleset.rules.len(), 3); // one for each port
///
/// let rejected = load("block\npass in port 22", &context).unwrap_err();
/// assert_eq!(rejected.diagnostics[0].line, 2);
/// ```
pub fn load(text: &str, context: &Context) -> Result<Loaded, Rejected> {
    load::load(text, context, parallel::PARALLEL_FROM)
}

/// The table sizes that a rule set needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// The limits of `set limit`.
    pub limits: Limits,
    /// Number of rules, including those of anchors.
    pub rules: usize,
}

/// Returns the table sizes that a pf.conf needs. Statements with errors are skipped.
pub fn room(text: &str, context: &Context) -> Room {
    load::room(text, context, parallel::PARALLEL_FROM)
}

/// Parses the text of a table file: addresses, networks, interfaces and host names, with `!` before
/// exceptions and `#` before comments.
///
/// # Errors
/// Fails at the first entry that is wrong or cannot be resolved.
pub fn table_file(text: &str, context: &Context) -> Result<Vec<TableEntry>, Box<Diagnostic>> {
    table::parse(text, context).map_err(|(line, message)| {
        Box::new(Diagnostic {
            file: context.file_name.to_string(),
            line,
            message,
            source: text.lines().nth(line as usize - 1).unwrap_or_default().to_string(),
            ..Diagnostic::default()
        })
    })
}
