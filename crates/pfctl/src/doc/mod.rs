//! Documents that are made from the table of flags: usage, `-h`, manual page and shell completions.

pub mod complete;
pub mod help;
pub mod man;
pub mod reasons;

use crate::flags::FLAGS;
use crate::flags::flag::{Flag, Name};

/// Returns names below `man/` and contents of the files that are made from the table.
pub fn files() -> [(&'static str, String); 4] {
    [
        ("pfctl.8", man::page()),
        ("completions/pfctl.bash", complete::bash()),
        ("completions/_pfctl", complete::zsh()),
        ("completions/pfctl.fish", complete::fish()),
    ]
}

/// Returns the letters of all flags without a value, for the usage's `[-degq]`.
fn plain_letters() -> String {
    let letters = FLAGS.iter().filter(|flag| flag.value.is_none());
    letters.filter_map(|flag| letter(flag)).collect()
}

fn letter(flag: &Flag) -> Option<char> {
    match flag.name {
        Name::Letter(letter) => Some(letter),
        Name::Long(_) => None,
    }
}

/// Returns the flag as typed: `-f` or `--json`.
fn written(flag: &Flag) -> String {
    match flag.name {
        Name::Letter(letter) => format!("-{letter}"),
        Name::Long(name) => format!("--{name}"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn files_are_up_to_date() {
        let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../man");
        for (name, text) in super::files() {
            let there = std::fs::read_to_string(directory.join(name)).unwrap_or_default();
            assert!(there == text, "man/{name} is stale: run `cargo run -p xtask -- man`");
        }
    }
}
