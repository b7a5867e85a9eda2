//! Tasks for developers of this project: `cargo run -p xtask -- help`.
//!
//! Each subcommand has a module; this file only lists them.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bench;
mod catch;
mod conformance;
mod differential;
mod engines;
mod hostile;
mod man;
mod regress;
mod scenarios;

/// Chores of skipstep's developers.
#[derive(Parser)]
#[command(name = "xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Measures what a packet costs, by evaluator and number of rules (root)
    Bench(bench::Arguments),
    /// Replays the conformance vectors on the evaluators
    Conformance(conformance::Arguments),
    /// Plays random rules and packets on the evaluators, which must agree
    Differential(differential::Arguments),
    /// Throws hostile packets at living states on the evaluators, which must go on
    Hostile(hostile::Arguments),
    /// Writes the manual page of pfctl and the shell completions
    Man,
    /// Reads again what pfctl prints of random rule sets, which must mean the same
    ReadBack(differential::read_back::Arguments),
    /// Runs the cases of OpenBSD's and FreeBSD's own tests on pfctl (root)
    Regress(regress::Arguments),
    /// Plays scenario files on the evaluators
    Scenarios(scenarios::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().chore {
        Chore::Bench(arguments) => bench::run(arguments),
        Chore::Conformance(arguments) => conformance::run(arguments),
        Chore::Differential(arguments) => differential::run(arguments),
        Chore::Hostile(arguments) => hostile::run(arguments),
        Chore::Man => man::run(),
        Chore::ReadBack(arguments) => differential::read_back::run(arguments),
        Chore::Regress(arguments) => regress::run(arguments),
        Chore::Scenarios(arguments) => scenarios::run(arguments),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}
