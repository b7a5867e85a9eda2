//! `xtask scenarios`: plays scenario files on the evaluators.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use skipstep_scenario::run::{self, CaseResult};
use skipstep_scenario::{junit, parse};

use crate::engines::Choice;

#[derive(clap::Args)]
pub struct Arguments {
    /// Files, or directories of *.scn [default: tests/scenarios]
    paths: Vec<PathBuf>,
    /// Evaluator to use
    #[arg(long, value_enum, default_value = "all")]
    engine: Choice,
    /// File for the results as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

/// Plays the files of the arguments on the chosen evaluators, and prints the results.
///
/// # Errors
/// Fails if a file cannot be read or parsed, or if an evaluator cannot start.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let paths = match arguments.paths.as_slice() {
        [] => vec![PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/scenarios"))],
        given => given.to_vec(),
    };
    let files = files(&paths)?;
    let mut suites: Vec<(String, Vec<CaseResult>)> = Vec::new();
    let choices = arguments.engine.available()?;
    for choice in &choices {
        let mut engine = choice.start()?;
        for path in &files {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path).with_context(|| format!("read {name}"))?;
            let file = parse::file(&text, &name)?;
            let outcomes = run::file(&file, &name, engine.as_mut());
            for outcome in outcomes.iter().filter(|outcome| !outcome.passed()) {
                print!("{}", run::report(outcome, &name));
            }
            suites.push((name, outcomes));
        }
    }
    if let Some(path) = &arguments.junit {
        std::fs::write(path, junit::document(&suites)?)
            .with_context(|| format!("write {}", path.display()))?;
    }
    let outcomes = || suites.iter().flat_map(|(_, outcomes)| outcomes);
    let passed = outcomes().filter(|outcome| outcome.passed()).count();
    let failed = outcomes().count() - passed;
    let names: Vec<&str> = choices.iter().map(|choice| choice.name()).collect();
    println!("scenarios: {passed} passed, {failed} failed, on {}", names.join(", "));
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the scenario files that `paths` name, in order.
fn files(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries =
            std::fs::read_dir(path).with_context(|| format!("read {}", path.display()))?;
        let found = entries.collect::<Result<Vec<_>, _>>()?.into_iter().map(|entry| entry.path());
        let mut found: Vec<PathBuf> = found.filter(|path| is_scenario(path)).collect();
        found.sort();
        files.extend(found);
    }
    if files.is_empty() {
        bail!("there are no scenario files (*.scn) in {}", paths[0].display());
    }
    Ok(files)
}

fn is_scenario(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "scn")
}
