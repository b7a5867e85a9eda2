//! `fwlab workload`: runs commands from a file in the language of the workload tool of "Firewall
//! Performance" (Molitor), or makes such a file from a capture. docs/reference/workload.md describes the
//! language.

mod capture;
mod conversation;
mod execute;
mod language;
mod random;
mod report;

use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

pub use capture::CaptureError;
pub use conversation::{DeriveError, derive};
pub use execute::{Ending, Executed, Printed, WorkloadResult, execute};
pub use language::{Job, Mistake, parse};
pub use random::Random;

/// Exit status if a command failed.
const FAILED: u8 = 1;

/// Exit status if the file has a mistake.
const WRONG: u8 = 2;

/// Exit status after a signal, the same that shells use for Ctrl-C.
const INTERRUPTED: u8 = 130;

/// Arguments of `fwlab workload`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// File with the workload
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    file: Option<PathBuf>,
    /// Capture, a pcap file or pf's log, to print as a workload instead of running one
    #[arg(long, value_name = "CAPTURE", conflicts_with_all = ["check", "json"])]
    from: Option<PathBuf>,
    /// Server in the printed workload, instead of the servers in the capture
    #[arg(long, value_name = "ADDRESS", requires = "from")]
    server: Option<IpAddr>,
    /// Check the file and print its number of commands, but run nothing
    #[arg(long, conflicts_with = "json")]
    check: bool,
    /// Print JSON with every executed command; the commands' own output goes to standard error
    #[arg(long)]
    json: bool,
}

/// Reads the file and runs it, or prints the workload of a capture. A mistake in the file is
/// printed, and sets the exit status.
///
/// # Errors
/// Fails if the file cannot be read, or if no workload can be made from the capture. Also fails if
/// the output cannot be written, or if [`execute()`] fails.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout();
    if let Some(path) = &arguments.from {
        let name = || path.display().to_string();
        let file = std::fs::read(path).with_context(name)?;
        let text = derive(&file, arguments.server).with_context(name)?;
        out.write_all(text.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = arguments.file.as_ref().context("no file")?;
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(|| name.clone())?;
    let job = match parse(&text) {
        Ok(job) => job,
        Err(mistake) => {
            eprint!("{}", mistake.explain(&name, &text));
            return Ok(ExitCode::from(WRONG));
        }
    };
    if arguments.check {
        writeln!(out, "{name}: {} commands", job.commands())?;
        return Ok(ExitCode::SUCCESS);
    }
    let printed = if arguments.json { Printed::ToErrors } else { Printed::Through };
    let outcome = execute(&job, printed)?;
    if arguments.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&outcome)?)?;
    } else {
        write!(out, "{}", report::text(&outcome, job.commands()))?;
    }
    Ok(if outcome.interrupted {
        ExitCode::from(INTERRUPTED)
    } else if outcome.executed.iter().all(|one| one.ending.is_success()) {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FAILED)
    })
}
