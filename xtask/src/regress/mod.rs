//! `xtask regress`: the cases of OpenBSD's and FreeBSD's own pfctl tests, and published pf.confs,
//! run on the real pfctl. The files are beside the project; the modules explain each kind of case.
//!
//! Cases need interfaces, names and a packet filter of their own. So they run in a network and a
//! mount namespace that the command creates ([`lab`]).

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};

mod case;
mod freebsd;
mod lab;
mod openbsd;
mod pfctl;
mod realworld;
mod table;

use case::{Case, CaseKind, CaseResult};
use lab::Lab;

/// Cases that do not pass here, with reasons. They are printed and not counted.
const EXCEPTIONS: [(&str, &str); 1] = [(
    "pfsetup1",
    "not run by OpenBSD either: no pfctl since 4.1 prints the `keep state` it expects",
)];

#[derive(clap::Args)]
pub struct Arguments {
    /// Folder with openbsd/, freebsd/ and realworld/
    #[arg(long, value_name = "DIR", default_value = "../shared/pf-regress")]
    cases: PathBuf,
    /// Kinds or cases to run, such as pfail or pf12 [default: all]
    names: Vec<String>,
    /// Print the differences of failed cases' output
    #[arg(long)]
    diff: bool,
    /// Set by the program itself when it has entered the namespaces
    #[arg(long, hide = true)]
    inside: bool,
}

/// Runs the cases that the arguments name, and prints their results.
///
/// # Errors
/// Fails if the namespaces cannot be created, if a file cannot be read, or if a program cannot run.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if !arguments.inside {
        return lab::enter();
    }
    let lab = Lab::new()?;
    let mut totals: Vec<(CaseKind, usize, usize)> = Vec::new();
    for case in cases(&arguments.cases)? {
        if !wanted(&arguments.names, &case) {
            continue;
        }
        let name = case.to_string();
        if let Some((_, reason)) = EXCEPTIONS.iter().find(|(exception, _)| *exception == name) {
            println!("except {case}: {reason}");
            continue;
        }
        let outcome = case.run(&lab).with_context(|| case.to_string())?;
        println!("{}", outcome.line(&case));
        if let Some(line) = table::CONTRADICTED.iter().find(|line| line.case == name) {
            println!("except {case}, one line: {}", line.reason);
        }
        if let (CaseResult::Different { expected, actual }, true) = (&outcome, arguments.diff) {
            print!("{}", lab.diff(expected, actual)?);
        }
        if totals.last().is_none_or(|(kind, ..)| *kind != case.kind) {
            totals.push((case.kind, 0, 0));
        }
        let (_, passed, total) = totals.last_mut().context("no total")?;
        *passed += usize::from(outcome.is_good());
        *total += 1;
    }
    let (mut passed, mut total) = (0, 0);
    for (kind, good, all) in totals {
        println!("{:<14} {good:>4} of {all}", kind.name());
        passed += good;
        total += all;
    }
    println!("regress: {passed} of {total} passed");
    Ok(if passed == total { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Finds the cases in `folder`, ordered by kind.
fn cases(folder: &Path) -> anyhow::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for kind in CaseKind::ALL {
        let folder = folder.join(kind.folder());
        let folder = folder.canonicalize().with_context(|| folder.display().to_string())?;
        cases.extend(kind.find(&folder)?);
    }
    if cases.is_empty() {
        bail!("no cases in {}", folder.display());
    }
    Ok(cases)
}

/// Returns true if `names` has the kind or the name of `case`, or is empty.
fn wanted(names: &[String], case: &Case) -> bool {
    names.is_empty()
        || names.iter().any(|name| *name == case.kind.name() || *name == case.to_string())
}
