//! The program `skipstepd`.

use std::process::ExitCode;

use clap::Parser;
use skipstepd::options::Options;

fn main() -> ExitCode {
    match skipstepd::daemon::run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("skipstepd: {error:#}");
            ExitCode::FAILURE
        }
    }
}
