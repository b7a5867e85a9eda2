//! The flags for connections between agents.

use std::net::IpAddr;

use anyhow::ensure;
use fwlab_agent::{MOST_ADDRESSES, MOST_PORTS};
use fwlab_load::connections::{Beside, PORT};

use super::Arguments;
use crate::search::connections_apart;
use crate::search::test::{ConnectionTestAtRate, Test};

/// The flags as given.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct EndpointFlags {
    /// Ports of the server that connections use in rotation, between agents; 80 by default
    #[arg(long, value_name = "FIRST[-LAST]", requires = "client_agent", value_parser = ports)]
    server_ports: Option<Ports>,
    /// Addresses of the client's machine that connections use in rotation, between agents; by
    /// default the source address of its route to the server
    #[arg(long, value_name = "ADDRESS,...", value_delimiter = ',', requires = "client_agent")]
    client_addresses: Vec<IpAddr>,
    /// Port of the server that the filter between the agents blocks, for tcp-illegal
    #[arg(long, value_name = "PORT", requires = "client_agent", value_parser = clap::value_parser!(u16).range(1..))]
    forbidden_port: Option<u16>,
}

/// A range of ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ports {
    first: u16,
    count: u16,
}

fn ports(text: &str) -> Result<Ports, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first > 0 && first <= last && last - first < MOST_PORTS => {
            Ok(Ports { first, count: last - first + 1 })
        }
        _ => Err(format!("must be a port, or FIRST-LAST with at most {MOST_PORTS} ports")),
    }
}

impl EndpointFlags {
    /// Returns the name of a given flag. None if no flag was given.
    fn given(&self) -> Option<&'static str> {
        let EndpointFlags { server_ports, client_addresses, forbidden_port } = self;
        [
            ("--server-ports", server_ports.is_some()),
            ("--client-addresses", !client_addresses.is_empty()),
            ("--forbidden-port", forbidden_port.is_some()),
        ]
        .into_iter()
        .find_map(|(flag, is_given)| is_given.then_some(flag))
    }

    /// Checks the flags for a test.
    ///
    /// # Errors
    /// Fails if the flags contradict each other or the test.
    pub fn check(&self, test: Test) -> anyhow::Result<()> {
        let name = test.name();
        if !test.is_about_connections() {
            let Some(flag) = self.given() else { return Ok(()) };
            anyhow::bail!(
                "{flag}: {name} sends frames, which have the benchmarking addresses of RFC 2544: \
                 leave it out"
            );
        }
        ensure!(
            self.client_addresses.len() <= MOST_ADDRESSES,
            "--client-addresses: at most {MOST_ADDRESSES} addresses"
        );
        let is_illegal = test == Test::ConnectionsAtRate(ConnectionTestAtRate::Illegal);
        ensure!(
            self.forbidden_port.is_none() || is_illegal,
            "--forbidden-port is for tcp-illegal: leave it out of {name}"
        );
        if is_illegal {
            let Ports { first, count } = self.ports();
            ensure!(
                self.forbidden_port.is_some(),
                "tcp-illegal: the device between the agents must block connections to a port of \
                 the server: name this port by --forbidden-port"
            );
            ensure!(
                self.forbidden_port.is_none_or(|port| port < first || port - first >= count),
                "--forbidden-port is also one of --server-ports, to which connections are allowed"
            );
        }
        Ok(())
    }

    fn ports(&self) -> Ports {
        self.server_ports.unwrap_or(Ports { first: PORT, count: 1 })
    }

    /// Returns the addresses and ports of a search between agents.
    pub fn endpoints(arguments: &Arguments) -> connections_apart::Endpoints {
        let Ports { first, count } = arguments.ways.ports();
        connections_apart::Endpoints {
            family: arguments.kinds().ip,
            server_ports: (first, count),
            clients: arguments.ways.client_addresses.clone(),
            forbidden: arguments.ways.forbidden_port,
            seconds: arguments.seconds,
            at_once: arguments.holds_connections().then(|| arguments.connections()),
            beside: match arguments.test {
                Test::ConnectionsAtRate(ConnectionTestAtRate::Fragments) => Beside::Datagrams(1.0),
                Test::ConnectionsAtRate(ConnectionTestAtRate::Flood) => Beside::Syns(1.0),
                _ => Beside::Nothing,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_in_a_row_are_read() {
        assert_eq!(ports("80"), Ok(Ports { first: 80, count: 1 }));
        assert_eq!(ports("65472-65535"), Ok(Ports { first: 65_472, count: 64 }));
        for wrong in ["", "0", "0-5", "90-80", "80-", "1-65", "65530-65536"] {
            assert!(ports(wrong).is_err(), "{wrong}");
        }
    }
}
