//! The program ftp-gw.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use nix::unistd::daemon;
use skipstep_ftp::gateway::accounts::{self, Accounts};
use skipstep_ftp::gateway::config::Config;
use skipstep_ftp::gateway::options::{Chore, Options};
use skipstep_ftp::gateway::{NAME, privileges, serve};
use skipstep_ftp::logging;

fn main() -> ExitCode {
    logging::end(NAME, run(&Options::parse()))
}

/// Runs the gateway. Errors in options and configuration are reported before the process moves to
/// the background.
fn run(options: &Options) -> Result<()> {
    if let Some(Chore::Password { name }) = &options.chore {
        return accounts::print_line(name);
    }
    let config = Config::read(&options.config)?;
    let accounts = config.accounts.as_deref().map(Accounts::read).transpose()?;
    if options.check {
        return Ok(());
    }
    let listeners = serve::listen(&config)?;
    if !options.foreground {
        daemon(false, false).context("background")?;
    }
    logging::begin(NAME, options.level, options.foreground)?;
    privileges::drop_to(config.user.as_deref())?;
    serve::run(config, accounts, listeners)
}
