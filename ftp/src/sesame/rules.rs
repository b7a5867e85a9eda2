//! The rules that pass one data connection, as text.

use std::fmt::{self, Write as _};
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::dialogue::Mode;
use crate::sesame::options::Options;

/// A data connection that the control connection announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The side that connects.
    pub mode: Mode,
    /// The client's end of the control connection.
    pub client: SocketAddr,
    /// The server's end of the control connection.
    pub server: SocketAddr,
    /// The port that the waiting side listens at.
    pub port: u16,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Expected { mode, port, .. } = self;
        let (client, server) = (self.client.ip(), self.server.ip());
        match mode {
            Mode::Active => write!(f, "active: {server} to {client} port {port}"),
            Mode::Passive => write!(f, "passive: {client} to {server} port {port}"),
        }
    }
}

/// Returns rules that pass the connection in and, if it is forwarded, out. `once` removes each rule
/// after its first match.
pub fn rules(expected: &Expected, options: &Options) -> String {
    let Expected { mode, port, .. } = *expected;
    let (client, server) = (expected.client.ip(), expected.server.ip());
    let (from, to) = match mode {
        Mode::Active => (server, client),
        Mode::Passive => (client, server),
    };
    let source = if options.rfc && mode == Mode::Active { " port 20" } else { "" };
    let log = match options.verbose {
        0 => "",
        1 => " log",
        _ => " log (all)",
    };
    let family = if from.is_ipv4() { "inet" } else { "inet6" };
    let mut tail = String::new();
    if let Some(tag) = &options.tag {
        let _ = write!(tail, " tag \"{tag}\"");
    }
    if let Some(queue) = &options.queue {
        let _ = write!(tail, " set queue \"{queue}\"");
    }
    let mut text = String::new();
    for direction in ["in", "out"] {
        let _ = writeln!(
            text,
            "pass {direction}{log} quick {family} proto tcp from {from}{source} to {to} port {port} \
             flags S/SA keep state once{tail}"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn text(arguments: &[&str], mode: Mode) -> String {
        let [client, server] = ["10.0.0.5:40000", "192.0.2.1:21"].map(|end| end.parse().unwrap());
        let options = Options::parse_from([&["ftpsesame"], arguments].concat());
        rules(&Expected { mode, client, server, port: 4000 }, &options)
    }

    #[test]
    fn a_data_connection_is_between_the_two_hosts_and_once() {
        assert_eq!(
            text(&[], Mode::Passive),
            "pass in quick inet proto tcp from 10.0.0.5 to 192.0.2.1 port 4000 flags S/SA keep state once\n\
             pass out quick inet proto tcp from 10.0.0.5 to 192.0.2.1 port 4000 flags S/SA keep state once\n"
        );
        assert!(
            text(&[], Mode::Active)
                .starts_with("pass in quick inet proto tcp from 192.0.2.1 to 10.0.0.5 port 4000 ")
        );
    }

    #[test]
    fn active_ones_can_be_held_to_port_20() {
        assert!(text(&["-r"], Mode::Active).contains("from 192.0.2.1 port 20 to 10.0.0.5"));
        assert!(text(&["-r"], Mode::Passive).contains("from 10.0.0.5 to 192.0.2.1"));
    }

    #[test]
    fn every_text_parses_as_two_rules() {
        let host = skipstep_ruleset::interface::Host::default();
        let context = skipstep_pfconf::Context::new(&host);
        for arguments in [&[][..], &["-r", "-v"], &["-t", "ftp", "-vv"]] {
            for mode in [Mode::Active, Mode::Passive] {
                let text = text(arguments, mode);
                let loaded = skipstep_pfconf::load(&text, &context);
                assert_eq!(loaded.map(|loaded| loaded.ruleset.rules.len()).ok(), Some(2), "{text}");
            }
        }
    }
}
