//! The program: its process, before and behind what it serves.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use nix::unistd::daemon;
use skipstep_ftp::logging;
use skipstep_ftp::proxy::options::Options;
use skipstep_ftp::proxy::{self, NAME};

fn main() -> ExitCode {
    match run(Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{NAME}: {problem:#}");
            ExitCode::FAILURE
        }
    }
}

/// What is wrong from the beginning is told before the process goes into the background.
fn run(options: Options) -> Result<()> {
    let listener = proxy::prepare(&options)?;
    if !options.foreground {
        daemon(false, false).context("background")?;
    }
    logging::begin(NAME, options.level, options.foreground)?;
    proxy::run(options, listener)
}
