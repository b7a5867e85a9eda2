//! `fwlab`, the laboratory that measures a firewall from the hosts on both sides of it. This crate
//! has the command line; each command is a function of another crate.

use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use fwlab_load::request_response::Protocol;
use fwlab_load::{converse, echo, ftp, raw, request_response, seconds, workload};
use fwlab_method::{measure, search};
use fwlab_net::bad_network::{self, Impairment};
use fwlab_net::interrupt::Interrupt;
use fwlab_papers::speed;
use fwlab_results::{compare, ratio, report};

#[derive(Parser)]
#[command(name = "fwlab", version, about = "Measure a firewall from the hosts around it")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Answer `fwlab converse` clients, until killed
    Answer {
        /// Ports to listen on, for TCP and UDP
        #[arg(required = true)]
        ports: Vec<u16>,
    },
    /// Serve as one end of a measurement, for a `fwlab measure` or `fwlab search` on another
    /// machine
    Agent {
        #[command(flatten)]
        arguments: fwlab_agent::Arguments,
    },
    /// Send a number of bytes to a `fwlab answer` and receive a number of bytes, once
    Converse {
        #[command(flatten)]
        arguments: converse::Arguments,
    },
    /// Echo all data that arrives by TCP or UDP, over IPv4 and IPv6, until killed
    Echo {
        /// Port to listen on, the same for both protocols
        port: u16,
    },
    /// Send requests, each after the response to the previous one; print transactions per second
    Rr {
        /// Transport protocol
        #[arg(value_enum)]
        protocol: Protocol,
        /// Address and port of a host that runs `fwlab echo`
        server: SocketAddr,
        /// Payload of a request and of a response in bytes, 8 to 9000
        #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(8..=9000))]
        size: u16,
        /// Duration in seconds, 0.01 to 3600, after a warm-up of a tenth of it
        #[arg(long, default_value_t = 1.0, value_parser = seconds)]
        seconds: f64,
    },
    /// Log in to an FTP server, fetch a file and log out, repeatedly; print sessions and bytes per
    /// second
    Ftp {
        #[command(flatten)]
        load: ftp::Load,
    },
    /// Compare two runs, and print the differences that exceed the noise
    Compare {
        #[command(flatten)]
        runs: compare::Arguments,
    },
    /// Compare two settings by the rounds on standard input, and print the ratio unless it is noise
    Ratio {
        #[command(flatten)]
        arguments: ratio::Arguments,
    },
    /// Measure firewalls in rounds, together with a cable, a plain router and a placebo
    Measure {
        #[command(flatten)]
        arguments: Box<measure::Arguments>,
    },
    /// Repeat the experiment of a paper about firewalls, and print the verdict on each finding
    Paper {
        #[command(flatten)]
        arguments: fwlab_papers::Arguments,
    },
    /// Send frames with serial numbers and timestamps through a new network; print loss and latency
    Raw {
        #[command(flatten)]
        arguments: raw::Arguments,
    },
    /// Search for the limits of a system, by the methods of RFC 2544 and its successors
    Search {
        #[command(flatten)]
        search: Box<search::Arguments>,
    },
    /// Measure all performance targets of skipstep, and print the verdict on each target
    Speed {
        #[command(flatten)]
        arguments: speed::Arguments,
    },
    /// Run the commands of a workload file, in its order and at its times
    Workload {
        #[command(flatten)]
        workload: workload::Arguments,
    },
    /// Write one report, HTML or Markdown, about result files
    Report {
        #[command(flatten)]
        report: report::Arguments,
    },
    /// Print the completions of commands and flags for a shell; `make install` installs those of
    /// bash, zsh and fish
    Completions {
        /// Shell to complete for
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Join two new devices by a network that loses, duplicates, reorders and truncates frames
    BadNetwork {
        /// Name of the device at one end, in this network namespace; it may be moved to another one
        #[arg(value_parser = device)]
        one: String,
        /// Name of the device at the other end
        #[arg(value_parser = device)]
        other: String,
        /// Seed of the random numbers that decide the fate of each frame
        #[arg(long, default_value_t = 1)]
        seed: u64,
        #[command(flatten)]
        impairment: Impairment,
        /// Seconds until the devices are removed, 0.01 to 3600; a signal ends the command earlier
        #[arg(long, default_value_t = 60.0, value_parser = seconds)]
        seconds: f64,
    },
}

fn device(name: &str) -> Result<String, String> {
    match name.len() {
        1..=15 if !name.contains(['/', '%', ' ']) => Ok(name.to_owned()),
        _ => Err("not a name of a network device".to_string()),
    }
}

fn main() -> ExitCode {
    run(Arguments::parse().command).unwrap_or_else(|error| {
        eprintln!("fwlab: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Agent { arguments } => fwlab_agent::run(&arguments)?,
        Command::Answer { ports } => converse::answer(&ports)?,
        Command::Converse { arguments } => converse::converse(&arguments)?,
        Command::Echo { port } => echo::serve(port)?,
        Command::Rr { protocol, server, size, seconds } => {
            let duration = Duration::from_secs_f64(seconds);
            let result = request_response::measure(
                protocol,
                server,
                usize::from(size),
                duration,
                &Interrupt::never(),
            )?;
            println!("{result}");
        }
        Command::Ftp { load } => ftp::run(&load)?,
        Command::Measure { arguments } => measure::run(&arguments)?,
        Command::Paper { arguments } => fwlab_papers::run(&arguments)?,
        Command::Raw { arguments } => raw::run(&arguments)?,
        Command::BadNetwork { one, other, seed, impairment, seconds } => {
            bad_network::join([&one, &other], impairment, seed, Duration::from_secs_f64(seconds))?;
        }
        Command::Speed { arguments } => speed::run(&arguments)?,
        Command::Search { search } => return search::run(&search),
        Command::Workload { workload } => return workload::run(&workload),
        Command::Report { report } => report::run(&report)?,
        Command::Ratio { arguments } => ratio::run(&arguments)?,
        Command::Compare { runs } => return compare::run(&runs),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Arguments::command(), "fwlab", &mut io::stdout());
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_has_every_command_and_flag() {
        let page = include_str!("../../../man/fwlab.1");
        let arguments = Arguments::command();
        arguments.clone().debug_assert();
        for command in arguments.get_subcommands() {
            assert!(page.contains(&format!(".It Cm {}\n", command.get_name())));
            for flag in command.get_arguments().filter_map(|argument| argument.get_long()) {
                let listed = [" ", "\n"].map(|end| format!("\n.Op Fl -{flag}{end}"));
                assert!(listed.iter().any(|line| page.contains(line)), "--{flag}");
                assert!(page.contains(&format!("\n.Fl -{flag}")), "--{flag} is not explained");
            }
        }
    }
}
