//! The program ftp-proxy. An option selects the guardian or the worker.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use nix::unistd::daemon;
use skipstep_ftp::anchor::Anchors;
use skipstep_ftp::logging;
use skipstep_ftp::proxy::options::Options;
use skipstep_ftp::proxy::{NAME, listen, serve, worker};

fn main() -> ExitCode {
    logging::end(NAME, run(Options::parse()))
}

/// Runs the guardian or the worker. Errors of the start are reported before the process moves to
/// the background.
fn run(options: Options) -> Result<()> {
    if options.worker {
        logging::begin(NAME, options.level, options.foreground)?;
        return worker::run(options);
    }
    let listener = listen(&options)?;
    drop(Anchors::open(NAME, &options.instance())?);
    if !options.foreground {
        daemon(false, false).context("background")?;
    }
    logging::begin(NAME, options.level, options.foreground)?;
    let mut anchors = Anchors::open(NAME, &options.instance())?;
    serve(&options, &mut anchors, listener)
}
