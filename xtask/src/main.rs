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

/// Run tasks of skipstep's developers
#[derive(Parser)]
#[command(name = "xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Measure the cost of a packet, by evaluator and number of rules (root)
    Bench(bench::Arguments),
    /// Replay the conformance vectors on the evaluators
    Conformance(conformance::Arguments),
    /// Play random rules and packets on the evaluators, and print disagreements
    Differential(differential::Arguments),
    /// Send hostile packets to active states on the evaluators, and check that the states survive
    Hostile(hostile::Arguments),
    /// Write the manual page of pfctl and the shell completions
    Man,
    /// Parse pfctl's output for random rule sets, and check that the meaning is the same
    ReadBack(differential::read_back::Arguments),
    /// Run OpenBSD's and FreeBSD's regression tests on pfctl (root)
    Regress(regress::Arguments),
    /// Play scenario files on the evaluators
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
