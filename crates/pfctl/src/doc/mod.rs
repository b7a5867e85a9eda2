//! Documents that are made from the table of flags: usage, `-h`, manual page and shell completions.

pub mod complete;
pub mod help;
pub mod man;
pub mod reasons;

use crate::flags::FLAGS;
use crate::flags::flag::Flag;
use crate::request::Args;
use crate::verbs::{Row, VERBS};

/// A program with tables of its flags and verbs, from which its documents are made.
pub struct Program<A: 'static> {
    /// Name of the program.
    pub name: &'static str,
    /// Files with the tables.
    pub source: &'static str,
    /// Flags in the order of the manual page.
    pub flags: &'static [&'static Flag<A>],
    /// Verbs in the order of the manual page.
    pub verbs: &'static [Row],
    /// Letters of the flags that may be given several times.
    pub repeated: &'static [char],
}

/// pfctl.
pub const PFCTL: Program<Args> = Program {
    name: "pfctl",
    source: "crates/pfctl/src/flags.rs and verbs.rs",
    flags: FLAGS,
    verbs: VERBS,
    repeated: &['D', 'K', 'k', 'v'],
};

/// Returns names below `man/` and contents of the files that are made from the table.
pub fn files() -> Vec<(String, String)> {
    let mut files = PFCTL.completions();
    files.push(("pfctl.8".into(), man::page()));
    files
}

impl<A> Program<A> {
    /// Returns names below `man/` and contents of the completions for the shells.
    pub fn completions(&self) -> Vec<(String, String)> {
        let name = self.name;
        vec![
            (format!("completions/{name}.bash"), complete::bash(self)),
            (format!("completions/_{name}"), complete::zsh(self)),
            (format!("completions/{name}.fish"), complete::fish(self)),
        ]
    }

    /// Returns the letters of all flags without a value, for the usage's `[-degq]`.
    pub fn plain_letters(&self) -> String {
        let letters = self.flags.iter().filter(|flag| flag.value.is_none());
        letters.filter_map(|flag| flag.letter()).collect()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn files_are_up_to_date() {
        let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../man");
        for (name, text) in super::files() {
            let there = std::fs::read_to_string(directory.join(&name)).unwrap_or_default();
            assert!(there == text, "man/{name} is stale: run `cargo run -p xtask -- man`");
        }
    }
}
