//! The configuration of ftp-gw, and of the filter that diverts clients to it.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use super::FtpGw;
use crate::family::Family;
use crate::rules::Rules;
use crate::topology::End;

/// The gateway's ports for data connections.
const DATA: &str = "50000-59999";

/// The line between the gateway's and the filter's configuration.
const FILTER: &str = "# pf.conf\n";

/// Port to which clients are diverted.
const DIVERTED: u16 = 8021;

impl FtpGw {
    /// Returns the address and port on which the gateway listens.
    pub(super) fn listen_address(self, family: Family) -> SocketAddr {
        match (self, family) {
            (FtpGw::Direct, _) => (End::Client.gateway(family), 21).into(),
            (_, Family::V4) => (Ipv4Addr::LOCALHOST, DIVERTED).into(),
            (_, Family::V6) => (Ipv6Addr::LOCALHOST, DIVERTED).into(),
        }
    }
}

/// Writes both configurations. The gateway evaluates its rules from the first to the last, and
/// refuses a session that matches no rule.
pub(super) fn written(way: FtpGw, rules: &Rules) -> String {
    let (server, listen_address) = (rules.server(), way.listen_address(rules.family));
    let key = if way == FtpGw::Direct { "listen" } else { "transparent" };
    let mut text = format!("{key} = [\"{listen_address}\"]\ndata-ports = \"{DATA}\"\n");
    text += "[limits]\nsessions = 5000\nsessions-per-client = 5000\n";
    text += &rules.lines(|port| {
        format!("[[rule]]\naction = \"deny\"\nto = [\"{server}\"]\nports = [{port}]")
    });
    // the last rule allows these ports, so the test sees if a deny rule before it is missing
    let ports = [vec![21, Rules::OPEN], rules.tried()].concat();
    text += &format!("[[rule]]\naction = \"allow\"\nto = [\"{server}\"]\nports = {ports:?}\n");
    if way == FtpGw::Transparent {
        let inet = if rules.family == Family::V4 { "inet" } else { "inet6" };
        let ports = ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
        text += &format!(
            "{FILTER}pass\npass in quick on lan0 {inet} proto tcp to {server} port {{ {ports}, {} }} \
             divert-to {} port {}\n",
            DATA.replace('-', ":"),
            listen_address.ip(),
            listen_address.port()
        );
    }
    text
}

/// Splits a text into the gateway's configuration, and the filter's if there is one.
pub(super) fn parts(text: &str) -> (&str, Option<&str>) {
    match text.split_once(FILTER) {
        Some((gateway, filter)) => (gateway, Some(filter)),
        None => (text, None),
    }
}
