//! `pfctl import`: rules in another firewall's language, printed as a pf.conf.

use std::process::ExitCode;

use anyhow::{Result, bail};
use skipstep_import::{Imported, Refused, iptables, pcf};

use crate::load::{Source, report};
use crate::output::print;
use crate::request::Args;

/// Makes a pf.conf of a text; the second argument is what messages call it.
type Importer = fn(&str, &str) -> Result<Imported, Refused>;

/// What can be read, by name.
const LANGUAGES: [(&str, Importer); 2] = [("iptables", iptables::import), ("pcf", pcf::import)];

/// Prints what the file in the given language becomes.
pub fn run(args: &Args) -> Result<ExitCode> {
    let names = LANGUAGES.map(|(name, _)| name).join(", ");
    let [language, file] = args.operands.as_slice() else {
        bail!("import: a language ({names}) and a file are expected");
    };
    let Some((_, import)) = LANGUAGES.into_iter().find(|(name, _)| name == language) else {
        bail!("import: no language is called '{language}'; there are {names}");
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
