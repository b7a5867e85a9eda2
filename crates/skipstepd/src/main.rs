//! The program `skipstepd`: the daemon with its guardians, or one of the workers.

use std::process::ExitCode;

use clap::Parser;
use skipstepd::options::Options;
use skipstepd::{daemon, worker};

fn main() -> ExitCode {
    let options = Options::parse();
    let result = match options.worker {
        Some(task) => worker::run(task, &options),
        None => daemon::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("skipstepd: {error:#}");
            ExitCode::FAILURE
        }
    }
}
