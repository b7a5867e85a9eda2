//! `pfctl test`: runs scenario files on the model.

use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use skipstep_scenario::run::CaseResult;
use skipstep_scenario::{Model, junit, parse, run as scenario};

use crate::output::print;
use crate::request::Args;

/// Runs the files of the operands, and prints the failures and a closing line.
///
/// # Errors
/// Fails if a file cannot be read or parsed, or if the JUnit report or standard output cannot be
/// written. A failed scenario gives exit status 1.
pub fn run(args: &Args) -> Result<ExitCode> {
    let mut suites: Vec<(String, Vec<CaseResult>)> = Vec::new();
    for name in &args.operands {
        let text = std::fs::read_to_string(name).with_context(|| name.clone())?;
        let file = parse::file(&text, name).map_err(|error| anyhow!("{error}"))?;
        suites.push((name.clone(), scenario::file(&file, name, &mut Model::new())));
    }
    for (name, outcomes) in &suites {
        let reports: String =
            outcomes.iter().map(|outcome| scenario::report(outcome, name)).collect();
        print(&reports)?;
    }
    if let Some(path) = &args.junit {
        std::fs::write(path, junit::document(&suites)?).with_context(|| path.clone())?;
    }
    let outcomes = suites.iter().flat_map(|(_, outcomes)| outcomes);
    let (passed, failed): (Vec<_>, Vec<_>) = outcomes.partition(|outcome| outcome.passed());
    if !args.quiet {
        print(&format!("{} passed, {} failed\n", passed.len(), failed.len()))?;
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
