//! The rules that pass one data connection, as text.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::dialogue::Mode;
use crate::proxy::options::Options;

/// Source ports of translated data connections, the default range of `nat-to`.
const SOURCE_PORTS: &str = "50001:65535";

/// Ports that the proxy announces to the connecting side: IANA's dynamic ports.
pub const TOLD_PORTS: RangeInclusive<u16> = 49_152..=65_535;

/// Source port of active data connections (RFC 959 section 3.2).
const DATA_PORT: &str = "20";

/// The addresses of a control connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hosts {
    /// The client's address.
    pub client: IpAddr,
    /// The server's address as the client knows it.
    pub original: IpAddr,
    /// The server's address. It differs from `original` in reverse mode (`-R`).
    pub server: IpAddr,
    /// The client's address as the server knows it.
    pub proxy: IpAddr,
}

/// A data connection that the proxy expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The side that connects.
    pub mode: Mode,
    /// The port that the waiting side listens at.
    pub port: u16,
    /// The port that the proxy announced to the connecting side.
    pub told: u16,
    /// True if the sides agreed by `EPRT` or `EPSV`.
    pub extended: bool,
}

/// Returns the rules of one data connection. The first passes it in and rewrites the announced
/// destination to the real one. The second passes it out and rewrites the source. `max 1` limits
/// each to one state.
pub fn rules(hosts: &Hosts, expected: &Expected, options: &Options) -> String {
    let Hosts { client, original, server, proxy } = *hosts;
    // the connecting side; the announced and the real destination; the source that the waiting side
    // sees
    let (from, told, to, seen) = match expected.mode {
        Mode::Active => (server, proxy, client, original),
        Mode::Passive => (client, original, server, proxy),
    };
    let rfc = options.rfc && expected.mode == Mode::Active && !expected.extended;
    let source = if rfc { DATA_PORT } else { SOURCE_PORTS };
    let mut text = String::new();
    let head = |direction| head(direction, from, options);
    let (told_port, port) = (expected.told, expected.port);
    let _ = writeln!(
        text,
        "{} from {from} to {told} port {told_port}{} rdr-to {to} port {port}",
        head("in"),
        tail(options),
    );
    let _ = writeln!(
        text,
        "{} from {from} to {to} port {port}{} nat-to {seen} port {source}",
        head("out"),
        tail(options),
    );
    text
}

/// Returns `pass in log quick inet proto tcp` or similar. With a tag the rule only marks packets,
/// and other rules decide by the tag.
fn head(direction: &str, from: IpAddr, options: &Options) -> String {
    let action = if options.tag.is_some() { "match" } else { "pass" };
    let quick = if options.tag.is_some() { "" } else { " quick" };
    let log = match options.verbose {
        0 => "",
        1 => " log",
        _ => " log (all)",
    };
    let family = if from.is_ipv4() { "inet" } else { "inet6" };
    format!("{action} {direction}{log}{quick} {family} proto tcp")
}

fn tail(options: &Options) -> String {
    let mut text = " flags S/SA".to_string();
    if options.tag.is_none() {
        text += " keep state (max 1)";
    }
    if let Some(tag) = &options.tag {
        let _ = write!(text, " tag \"{tag}\"");
    }
    if let Some(queue) = &options.queue {
        let _ = write!(text, " set queue \"{queue}\"");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn text(arguments: &[&str], mode: Mode, extended: bool) -> String {
        let [client, original, server, proxy] =
            ["10.0.0.5", "192.0.2.1", "192.0.2.9", "198.51.100.1"].map(|ip| ip.parse().unwrap());
        let hosts = Hosts { client, original, server, proxy };
        let expected = Expected { mode, port: 4000, told: 5000, extended };
        let options = Options::parse_from([&["ftp-proxy"], arguments].concat());
        rules(&hosts, &expected, &options)
    }

    #[test]
    fn a_passive_connection_seems_to_go_to_the_server_and_to_come_from_the_proxy() {
        assert_eq!(
            text(&[], Mode::Passive, false),
            "pass in quick inet proto tcp from 10.0.0.5 to 192.0.2.1 port 5000 flags S/SA \
             keep state (max 1) rdr-to 192.0.2.9 port 4000\n\
             pass out quick inet proto tcp from 10.0.0.5 to 192.0.2.9 port 4000 flags S/SA \
             keep state (max 1) nat-to 198.51.100.1 port 50001:65535\n"
        );
    }

    #[test]
    fn an_active_one_seems_to_go_to_the_proxy_and_to_come_from_the_server() {
        assert_eq!(
            text(&[], Mode::Active, false),
            "pass in quick inet proto tcp from 192.0.2.9 to 198.51.100.1 port 5000 flags S/SA \
             keep state (max 1) rdr-to 10.0.0.5 port 4000\n\
             pass out quick inet proto tcp from 192.0.2.9 to 10.0.0.5 port 4000 flags S/SA \
             keep state (max 1) nat-to 192.0.2.1 port 50001:65535\n"
        );
    }

    #[test]
    fn old_clients_want_port_20() {
        assert!(text(&["-r"], Mode::Active, false).ends_with("nat-to 192.0.2.1 port 20\n"));
        assert!(text(&["-r"], Mode::Active, true).ends_with(":65535\n"));
        assert!(text(&["-r"], Mode::Passive, false).ends_with(":65535\n"));
    }

    #[test]
    fn with_a_tag_other_rules_decide() {
        let text = text(&["-T", "ftp", "-q", "bulk", "-vv"], Mode::Passive, false);
        assert!(text.starts_with("match in log (all) inet proto tcp from"), "{text}");
        assert!(text.contains("flags S/SA tag \"ftp\" set queue \"bulk\" rdr-to"), "{text}");
    }

    #[test]
    fn every_text_parses_as_two_rules() {
        let host = skipstep_ruleset::interface::Host::default();
        let context = skipstep_pfconf::Context::new(&host);
        for arguments in [&[][..], &["-r", "-v"], &["-T", "ftp"]] {
            for mode in [Mode::Active, Mode::Passive] {
                let text = text(arguments, mode, false);
                let loaded = skipstep_pfconf::load(&text, &context);
                assert_eq!(loaded.map(|loaded| loaded.ruleset.rules.len()).ok(), Some(2), "{text}");
            }
        }
    }
}
