//! The program `skipstep-broker`.

use std::process::ExitCode;

use clap::Parser;
use skipstep_web::broker::{self, Options};

fn main() -> ExitCode {
    match broker::run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("skipstep-broker: {error:#}");
            ExitCode::FAILURE
        }
    }
}
