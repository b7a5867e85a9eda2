//! The program `skipstep-web`.

use std::process::ExitCode;

use clap::Parser;
use skipstep_web::server::{Options, run};

fn main() -> ExitCode {
    match run(Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("skipstep-web: {error:#}");
            ExitCode::FAILURE
        }
    }
}
