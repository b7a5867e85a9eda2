//! The pf.conf language: text in, [`Ruleset`] or diagnostics out.
//!
//! The crate is pure. What the text's meaning depends on besides itself (interfaces, names, the
//! contents of table files) comes in through a [`Context`].
//!
//! `lexer` makes tokens of the text, replacing macros; `parser` makes statements (`ast`) of them,
//! looking up names, ports and addresses as it goes; `load` takes statement after statement,
//! because macros, `set block-policy` and `set state-defaults` hold from their line on, and has
//! `expand` make rules of them, which `check` looks at; `print` writes rules as pfctl does. The
//! second `half` of a long list of rules is read beside the first, if nothing stands between that
//! has a say in it.

pub mod context;
pub mod diagnostics;
pub mod format;
pub mod names;
pub mod print;
pub mod suggest;

mod anchor;
mod ast;
mod check;
mod expand;
mod half;
mod keep;
mod label;
mod lexer;
mod load;
mod macros;
mod missing;
mod packet_names;
mod parser;
pub mod queues;
mod resolve;
mod settings;
mod source;
mod table;
mod token;

pub use context::{Context, Dialect};
pub use diagnostics::{Diagnostic, Kind};
pub use names::Names;
pub use print::PrintOptions;

use skipstep_ruleset::{Limits, Ruleset, TableEntry};

/// A pf.conf that can be loaded.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What it means.
    pub ruleset: Ruleset,
    /// Warnings and notes, which do not stop it from being loaded.
    pub warnings: Vec<Diagnostic>,
    /// What `pfctl -o none -nv` prints: macros, options, tables and rules in the order of the text.
    pub echo: String,
}

/// A pf.conf that cannot be loaded.
#[derive(Debug, Clone)]
pub struct Rejected {
    /// Errors and warnings in the order of the text; at least one is an error.
    pub diagnostics: Vec<Diagnostic>,
    /// What `pfctl -nv` prints of the good lines.
    pub echo: String,
}

/// Parses and resolves a whole pf.conf.
pub fn load(text: &str, context: &Context) -> Result<Loaded, Rejected> {
    load::load(text, context, half::LONG)
}

/// What a rule set asks the filter to have room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// `set limit`
    pub limits: Limits,
    /// Number of rules, those of anchors among them.
    pub rules: usize,
}

/// Returns what a pf.conf asks room for, past lines with errors, which count for nothing.
pub fn room(text: &str, context: &Context) -> Room {
    load::room(text, context, half::LONG)
}

/// Parses the text of a table file: addresses, networks, interfaces and host names, `!` before
/// those that are excepted, `#` before comments.
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
