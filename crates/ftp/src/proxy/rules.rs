//! The rules that let one data connection through, as text.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::dialogue::Mode;
use crate::proxy::options::Options;

/// Ports that connections through the filter come from: those that nat-to takes by itself.
const SOURCE_PORTS: &str = "50001:65535";

/// The ports that are told to the connecting side: those that IANA leaves to everybody.
pub const TOLD_PORTS: RangeInclusive<u16> = 49_152..=65_535;

/// Where active data connections come from (RFC 959 section 3.2).
const DATA_PORT: &str = "20";

/// Who speaks with whom, on a control connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hosts {
    /// The client.
    pub client: IpAddr,
    /// Whom the client believes to speak with.
    pub original: IpAddr,
    /// Whom it speaks with: another one in reverse mode.
    pub server: IpAddr,
    /// Who the server believes the client is.
    pub proxy: IpAddr,
}

/// A data connection to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Who connects.
    pub mode: Mode,
    /// The port that the waiting side listens at.
    pub port: u16,
    /// The port that the connecting side was told.
    pub told: u16,
    /// Whether it was agreed upon by `EPRT` or `EPSV`.
    pub extended: bool,
}

/// Lets the connection in, to where it really goes, and out, from where it seems to come. Once:
/// `max 1`.
pub fn rules(hosts: &Hosts, expected: &Expected, options: &Options) -> String {
    let Hosts { client, original, server, proxy } = *hosts;
    // who connects; what it was told, and what is meant; whom the waiting side shall see
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

/// `pass in log quick inet proto tcp`; with a tag others decide, by what the packet bears.
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
    fn every_rule_is_one() {
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
