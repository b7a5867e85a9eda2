//! `fwlab`, the laboratory that measures a firewall from the hosts on both sides of it.
//!
//! The request/response test: one host echoes, the other counts how many questions a second are
//! answered. Because only one packet is under way at any time, the figure is the whole path's
//! latency, and what a firewall adds to it is plain to see.
//!
//! FTP: how many sessions and bytes a second clients get.
//!
//! The bad network: a cable between two hosts that treats frames badly, the same way each time.

mod bad_network;
mod echo;
mod ftp;
mod request_response;

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Parser, Subcommand};

use bad_network::Badness;
use request_response::Protocol;

#[derive(Parser)]
#[command(name = "fwlab", version, about = "Measures a firewall from the hosts around it")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Echo whatever arrives by TCP or UDP, over IPv4 and IPv6, until killed
    Echo {
        /// Port to listen on, the same for both protocols
        port: u16,
    },
    /// Send a request, wait for its answer, and so on; print transactions per second
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
    /// Log in at an FTP server, fetch a file and leave, and so on; print sessions and bytes per second
    Ftp {
        #[command(flatten)]
        load: ftp::Load,
    },
    /// Join two new devices by a network that loses, repeats, delays and cuts frames
    BadNetwork {
        /// Name of the device at one end, in this network namespace; it may be moved to another
        #[arg(value_parser = device)]
        one: String,
        /// Name of the device at the other end
        #[arg(value_parser = device)]
        other: String,
        /// What decides about the fate of each frame
        #[arg(long, default_value_t = 1)]
        seed: u64,
        #[command(flatten)]
        badness: Badness,
        /// Seconds until the devices go, if no signal ends it before
        #[arg(long, default_value_t = 60.0, value_parser = seconds)]
        seconds: f64,
    },
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("between 0.01 and 3600 seconds".to_string()),
    }
}

fn device(name: &str) -> Result<String, String> {
    match name.len() {
        1..=15 if !name.contains(['/', '%', ' ']) => Ok(name.to_owned()),
        _ => Err("no name of a network device".to_string()),
    }
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Echo { port } => echo::serve(port),
        Command::Rr { protocol, server, size, seconds } => {
            let duration = Duration::from_secs_f64(seconds);
            let result = request_response::measure(protocol, server, usize::from(size), duration)?;
            println!("{result}");
            Ok(())
        }
        Command::Ftp { load } => ftp::run(&load),
        Command::BadNetwork { one, other, seed, badness, seconds } => {
            bad_network::join([&one, &other], badness, seed, Duration::from_secs_f64(seconds))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_manual_has_every_command_and_flag() {
        let page = include_str!("../../../man/fwlab.1");
        let arguments = Arguments::command();
        arguments.clone().debug_assert();
        for command in arguments.get_subcommands() {
            assert!(page.contains(&format!(".It Cm {}\n", command.get_name())));
            for flag in command.get_arguments().filter_map(|argument| argument.get_long()) {
                assert!(page.contains(&format!("\n.Op Fl -{flag} ")), "--{flag}");
                assert!(page.contains(&format!("\n.Fl -{flag}")), "--{flag} is not explained");
            }
        }
    }
}
