//! `pfctl fmt`: prints pf.confs in canonical spacing.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use skipstep_pfconf::format::format;
use skipstep_ruleset::interface::Host;

use crate::load::{self, Source, report};
use crate::output::print;
use crate::request::Args;

/// Formats the files of the operands, or standard input. The result goes to standard output or,
/// with `--write`, back into the files. `--check` only prints the names of files that would change.
///
/// # Errors
/// Fails if a file cannot be read or written, or if standard output cannot.
pub fn run(args: &Args) -> Result<ExitCode> {
    let standard_input = ["-".to_string()];
    let files = if args.operands.is_empty() { &standard_input[..] } else { &args.operands };
    let mut status = ExitCode::SUCCESS;
    for file in files {
        let source = Source::read(file)?;
        if has_syntax_error(&source, args) {
            status = ExitCode::FAILURE;
            continue;
        }
        let formatted = format(&source.text);
        let changes = formatted != source.text;
        if args.check {
            if changes {
                print(&format!("{}\n", source.name))?;
                status = ExitCode::FAILURE;
            }
        } else if args.write && file != "-" {
            if changes {
                std::fs::write(file, formatted).with_context(|| file.clone())?;
            }
        } else {
            print(&formatted)?;
        }
    }
    Ok(status)
}

/// Prints the syntax errors of the text, and returns true if there are any. Names that are unknown
/// on this machine are no syntax errors.
fn has_syntax_error(source: &Source, args: &Args) -> bool {
    let Err(rejected) = load::parse(source, args, &Host::default()) else {
        return false;
    };
    let mut errors = rejected.diagnostics;
    errors.retain(|diagnostic| diagnostic.is_syntax_error());
    report(&errors);
    !errors.is_empty()
}
