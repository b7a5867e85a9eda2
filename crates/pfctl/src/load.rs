//! `-f`: from a file to rules in force.

use std::io::{IsTerminal, Read};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use skipstep_kernel::{Instance, host};
use skipstep_pfconf::{Context, Diagnostic, Kind, Loaded, Names, Rejected};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::support::refusals;

use crate::args::Args;
use crate::run::{complain, instance_name, print};
use crate::session;

/// A text and what it is called in messages.
pub struct Source {
    /// Path, or `stdin`.
    pub name: String,
    /// Contents.
    pub text: String,
}

impl Source {
    /// Reads `file`; `-` is standard input.
    pub fn read(file: &str) -> Result<Source> {
        if file == "-" {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("stdin")?;
            return Ok(Source { name: "stdin".into(), text });
        }
        let text = std::fs::read_to_string(file).with_context(|| file.to_string())?;
        Ok(Source { name: file.to_string(), text })
    }
}

/// Parses a rule set on this machine: with its interfaces, its services and its table files.
pub fn parse(
    source: &Source,
    macros: &[(String, String)],
    host: &Host,
) -> Result<Loaded, Rejected> {
    let read = |path: &str| std::fs::read_to_string(path);
    let system = |path: &str| read(path).unwrap_or_default();
    let names = Names::parse(&system("/etc/services"), &system("/etc/protocols"))
        .with_owners(&system("/etc/passwd"), &system("/etc/group"));
    let context = Context {
        file_name: &source.name,
        macros,
        read_file: &read,
        names: &names,
        ..Context::new(host)
    };
    skipstep_pfconf::load(&source.text, &context)
}

/// Prints messages: OpenBSD's lines, with the source below on a terminal.
pub fn report(diagnostics: &[Diagnostic]) {
    let terminal = std::io::stderr().is_terminal();
    for diagnostic in diagnostics {
        if terminal {
            eprintln!("{}", diagnostic.explain());
        } else {
            eprintln!("{diagnostic}");
        }
    }
}

/// Parses and prints, by `-v`, what was read. `None` if it cannot be loaded.
fn read_rules(args: &Args, file: &str, host: &Host) -> Result<Option<Loaded>> {
    let source = match Source::read(file) {
        Ok(source) => source,
        Err(error) => {
            complain(&error.context("cannot open the main config file!"));
            return Ok(None);
        }
    };
    match parse(&source, &args.macros, host) {
        Ok(loaded) => {
            // OpenBSD only tells of unused macros when asked twice
            let mut warnings = loaded.warnings.clone();
            warnings.retain(|warning| warning.kind != Kind::Note || args.verbose >= 2);
            report(&warnings);
            if args.verbose > 0 {
                print(&loaded.echo)?;
            }
            Ok(Some(loaded))
        }
        Err(rejected) => {
            if args.verbose > 0 {
                print(&rejected.echo)?;
            }
            report(&rejected.diagnostics);
            Ok(None)
        }
    }
}

/// `-nf`: only parses.
pub fn check(args: &Args, file: &str) -> Result<ExitCode> {
    Ok(match read_rules(args, file, &host::read()?)? {
        Some(_) => ExitCode::SUCCESS,
        None => ExitCode::FAILURE,
    })
}

/// `-f`: replaces the rules in force. If anything is wrong they stay as they are.
pub fn load(args: &Args, file: &str) -> Result<ExitCode> {
    let host = host::read()?;
    let Some(loaded) = read_rules(args, file, &host)? else {
        eprintln!("pfctl: Syntax error in config file: pf rules not loaded");
        return Ok(ExitCode::FAILURE);
    };
    let refusals = refusals(&loaded.ruleset);
    if !refusals.is_empty() {
        for refusal in &refusals {
            let file = refusal.file.as_deref().unwrap_or(file);
            eprintln!("{file}:{}: {refusal}", refusal.line);
        }
        eprintln!("pfctl: the rule set uses what is not built yet: pf rules not loaded");
        return Ok(ExitCode::FAILURE);
    }
    let states = loaded.ruleset.options.limits.states;
    if let Some(warning) = session::warning(args, &loaded.ruleset, &host)? {
        eprintln!("pfctl: warning: {warning}");
    }
    let mut instance = Instance::open_or_create(&instance_name(args), states)?;
    instance.load(&loaded.ruleset, &host)?;
    Ok(ExitCode::SUCCESS)
}
