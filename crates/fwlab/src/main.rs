//! `fwlab`, the laboratory that measures a firewall from the hosts on both sides of it.

use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use skipstep_fwlab::bad_network::Impairment;
use skipstep_fwlab::interrupt::Interrupt;
use skipstep_fwlab::request_response::Protocol;
use skipstep_fwlab::{
    agent, bad_network, compare, converse, echo, ftp, measure, paper, raw, report,
    request_response, search, seconds, speed, workload,
};

#[derive(Parser)]
#[command(name = "fwlab", version, about = "Measures a firewall from the hosts around it")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Answer `fwlab converse` clients, until killed
    Answer {
        /// Ports of TCP and UDP
        #[arg(required = true)]
        ports: Vec<u16>,
    },
    /// Be an end of a measurement: wait for a controller, a `fwlab measure` or `fwlab search` that
    /// names this agent
    Agent {
        #[command(flatten)]
        arguments: agent::Arguments,
    },
    /// Send a number of bytes to a `fwlab answer`, and get a number of bytes, once
    Converse {
        #[command(flatten)]
        arguments: converse::Arguments,
    },
    /// Echo all data that arrives by TCP or UDP, over IPv4 and IPv6, until killed
    Echo {
        /// Port to listen on, the same for both protocols
        port: u16,
    },
    /// Send requests, each after the answer to the last; print transactions per second
    Rr {
        /// Transport protocol
        #[arg(value_enum)]
        protocol: Protocol,
        /// Address and port of a host that runs `fwlab echo`
        server: SocketAddr,
        /// Bytes of payload of request and response
        #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(8..=9000))]
        size: u16,
        /// Seconds to measure, after a tenth of that to warm up
        #[arg(long, default_value_t = 1.0, value_parser = seconds)]
        seconds: f64,
    },
    /// Log in at an FTP server, fetch a file and leave, repeatedly; print sessions and bytes per
    /// second
    Ftp {
        #[command(flatten)]
        load: ftp::Load,
    },
    /// Print the differences between two runs, and which of them are more than noise
    Compare {
        #[command(flatten)]
        runs: compare::Arguments,
    },
    /// Measure firewalls beside a cable, a plain router and the same router again, in rounds
    Measure {
        #[command(flatten)]
        arguments: Box<measure::Arguments>,
    },
    /// Repeat the experiment of a paper about firewalls, and print which of its findings hold here
    Paper {
        #[command(flatten)]
        arguments: paper::Arguments,
    },
    /// Send frames with serial number and time through a new network; print how many came and how
    /// late
    Raw {
        #[command(flatten)]
        arguments: raw::Arguments,
    },
    /// Search for the limits of a system, as the RFCs about benchmarking describe
    Search {
        #[command(flatten)]
        search: Box<search::Arguments>,
    },
    /// Measure all performance targets of skipstep, and print which of them this machine meets
    Speed {
        #[command(flatten)]
        arguments: speed::Arguments,
    },
    /// Run commands in the order and at the times that a file gives
    Workload {
        #[command(flatten)]
        workload: workload::Arguments,
    },
    /// Make one HTML page, or Markdown, of result files
    Report {
        #[command(flatten)]
        report: report::Arguments,
    },
    /// Print the completions of commands and flags for a shell; `make install` puts them where
    /// bash, zsh and fish look
    Completions {
        /// Shell to complete for
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Join two new devices by a network that loses, repeats, delays and cuts frames
    BadNetwork {
        /// Name of the device at one end, in this network namespace; it may be moved to another
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
        /// Seconds until the devices are removed, unless a signal ends the command earlier
        #[arg(long, default_value_t = 60.0, value_parser = seconds)]
        seconds: f64,
    },
}

fn device(name: &str) -> Result<String, String> {
    match name.len() {
        1..=15 if !name.contains(['/', '%', ' ']) => Ok(name.to_owned()),
        _ => Err("no name of a network device".to_string()),
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
        Command::Agent { arguments } => agent::run(&arguments)?,
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
        Command::Paper { arguments } => paper::run(&arguments)?,
        Command::Raw { arguments } => raw::run(&arguments)?,
        Command::BadNetwork { one, other, seed, impairment, seconds } => {
            bad_network::join([&one, &other], impairment, seed, Duration::from_secs_f64(seconds))?;
        }
        Command::Speed { arguments } => speed::run(&arguments)?,
        Command::Search { search } => return search::run(&search),
        Command::Workload { workload } => return workload::run(&workload),
        Command::Report { report } => report::run(&report)?,
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
