//! What configures ftp-gw, and the filter that diverts clients to it.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use super::FtpGw;
use crate::family::Family;
use crate::rules::Rules;
use crate::topology::End;

/// Ports of the gateway for data.
const DATA: &str = "50000-59999";

/// What separates its configuration from the filter's.
const FILTER: &str = "# pf.conf\n";

/// Where clients are diverted to.
const DIVERTED: u16 = 8021;

impl FtpGw {
    /// Where it listens.
    pub(super) fn door(self, family: Family) -> SocketAddr {
        match (self, family) {
            (FtpGw::Direct, _) => (End::Client.gateway(family), 21).into(),
            (_, Family::V4) => (Ipv4Addr::LOCALHOST, DIVERTED).into(),
            (_, Family::V6) => (Ipv6Addr::LOCALHOST, DIVERTED).into(),
        }
    }
}

/// All of it: rules for the gateway are looked through from the first to the last, and who finds
/// none is refused.
pub(super) fn written(way: FtpGw, rules: &Rules) -> String {
    let (server, door) = (rules.server(), way.door(rules.family));
    let key = if way == FtpGw::Direct { "listen" } else { "transparent" };
    let mut text = format!("{key} = [\"{door}\"]\ndata-ports = \"{DATA}\"\n");
    text += "[limits]\nsessions = 5000\nsessions-per-client = 5000\n";
    text += &rules.lines(|port| {
        format!("[[rule]]\naction = \"deny\"\nto = [\"{server}\"]\nports = [{port}]")
    });
    // without the rules before it, sessions with the ports that they deny would be allowed
    let ports = [vec![21, Rules::OPEN], rules.tried()].concat();
    text += &format!("[[rule]]\naction = \"allow\"\nto = [\"{server}\"]\nports = {ports:?}\n");
    if way == FtpGw::Transparent {
        let inet = if rules.family == Family::V4 { "inet" } else { "inet6" };
        let ports = ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
        text += &format!(
            "{FILTER}pass\npass in quick on lan0 {inet} proto tcp to {server} port {{ {ports}, {} }} \
             divert-to {} port {}\n",
            DATA.replace('-', ":"),
            door.ip(),
            door.port()
        );
    }
    text
}

/// The gateway's part, and the filter's if there is one.
pub(super) fn parts(text: &str) -> (&str, Option<&str>) {
    match text.split_once(FILTER) {
        Some((gateway, filter)) => (gateway, Some(filter)),
        None => (text, None),
    }
}
