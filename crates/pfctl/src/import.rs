//! `pfctl import`: converts another firewall's rules to a pf.conf.

use std::process::ExitCode;

use anyhow::{Result, bail};
use skipstep_import::{Imported, Refused, iptables, pcf};

use crate::load::{Source, report};
use crate::output::print;
use crate::request::Args;

/// Converts a text to a pf.conf. Messages show the second argument as the file's name.
type Importer = fn(&str, &str) -> Result<Imported, Refused>;

/// The importers by the name of their language.
const LANGUAGES: [(&str, Importer); 2] = [("iptables", iptables::import), ("pcf", pcf::import)];

/// Prints the pf.conf that the file in the given language is converted to.
///
/// # Errors
/// Fails if the operands are not a known language and a file, or if the file cannot be read.
pub fn run(args: &Args) -> Result<ExitCode> {
    let names = LANGUAGES.map(|(name, _)| name).join(", ");
    let [language, file] = args.operands.as_slice() else {
        bail!("import: give a language ({names}) and a file");
    };
    let Some((_, import)) = LANGUAGES.into_iter().find(|(name, _)| name == language) else {
        bail!("import: unknown language '{language}': use {names}");
    };
    let source = Source::read(file)?;
    match import(&source.text, &source.name) {
        Ok(imported) => {
            report(&imported.warnings);
            print(&imported.conf)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(messages) => {
            report(&messages);
            Ok(ExitCode::FAILURE)
        }
    }
}
