//! The program: which of its processes this is.

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

/// What is wrong from the beginning is told before the process goes into the background.
fn run(options: &Options) -> Result<()> {
    if options.worker {
        logging::begin(NAME, options.level, options.foreground)?;
        return worker::run(options);
    }
    let mut anchors = open(options)?;
    if !options.foreground {
        // what belongs to a process bears its number
        anchors.give_log_back()?;
        drop(anchors);
        daemon(false, false).context("background")?;
        anchors = open(options)?;
    }
    logging::begin(NAME, options.level, options.foreground)?;
    serve(options, &mut anchors)
}
