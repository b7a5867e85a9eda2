//! The program ftpsesame. An option selects the guardian or the worker.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use nix::unistd::daemon;
use skipstep_ftp::logging;
use skipstep_ftp::sesame::options::Options;
use skipstep_ftp::sesame::{NAME, open, serve, worker};

fn main() -> ExitCode {
    logging::end(NAME, run(&Options::parse()))
}

/// Runs the guardian or the worker. Errors of the start are reported before the process moves to
/// the background.
fn run(options: &Options) -> Result<()> {
    if options.worker {
        logging::begin(NAME, options.level, options.foreground)?;
        return worker::run(options);
    }
    let mut anchors = open(options)?;
    if !options.foreground {
        // anchors and log belong to a process ID, which changes in the background
        anchors.give_log_back()?;
        drop(anchors);
        daemon(false, false).context("background")?;
        anchors = open(options)?;
    }
    logging::begin(NAME, options.level, options.foreground)?;
    serve(options, &mut anchors)
}
