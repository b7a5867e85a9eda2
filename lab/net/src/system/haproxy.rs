//! haproxy as a TCP proxy: it accepts connections on the server's ports, and connects to the same
//! ports of the server.

use std::net::IpAddr;
use std::process::Command;

use super::{System, await_listener};
use crate::host::Host;
use crate::rules::Rules;
use crate::topology::{End, Topology};
use crate::traffic::{ServerAddress, TCP_PORTS, TrafficKind};
use crate::transport::Transport;

/// haproxy in mode tcp.
pub(super) struct Haproxy;

impl System for Haproxy {
    fn name(&self) -> &'static str {
        "haproxy"
    }

    fn label(&self) -> &'static str {
        "haproxy, mode tcp"
    }

    fn topology(&self, _: Topology) -> Topology {
        Topology::Proxy
    }

    fn supports(&self, _: Topology) -> bool {
        true
    }

    fn takes(&self, kind: Option<TrafficKind>, transport: Transport) -> bool {
        // other programs use ports that are not in its configuration
        transport == Transport::Tcp && kind.is_some_and(|kind| kind.programs().is_empty())
    }

    fn server_address(&self) -> ServerAddress {
        ServerAddress::Proxy
    }

    fn programs(&self) -> Vec<String> {
        vec!["haproxy".to_owned()]
    }

    fn configuration(&self, rules: &Rules) -> String {
        let own = match End::Client.gateway(rules.family) {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        let server = match rules.server() {
            IpAddr::V4(address) => address.to_string(),
            // the colon at the end means that no port follows
            IpAddr::V6(address) => format!("{address}:"),
        };
        // these ports are only needed to test the rules
        let tried = rules.tried().into_iter().chain([Rules::OPEN]).map(|port| (port, port));
        let binds = tried.chain(TCP_PORTS);
        let binds: String =
            binds.map(|(first, last)| format!("\tbind {own}:{first}-{last}\n")).collect();
        let rules =
            rules.lines(|port| format!("\ttcp-request connection reject if {{ dst_port {port} }}"));
        format!(
            "global\n\tnbthread 1\n\tmaxconn 5000\ndefaults\n\tmode tcp\n\ttimeout connect 5s\n\
             \ttimeout client 60s\n\ttimeout server 60s\nfrontend fwlab\n{binds}{rules}\
             \tdefault_backend server\nbackend server\n\tserver server {server}\n"
        )
    }

    fn hooks(&self, _: Topology) -> Vec<String> {
        vec!["a process on the host in the middle, for each byte".to_owned()]
    }

    fn install(&self, device: &Host, rules: &Rules, configuration: &str) -> anyhow::Result<()> {
        let mut command = Command::new("haproxy");
        command.args(["-q", "-db", "-f", "/dev/stdin"]);
        device.start(command, configuration)?;
        let (last, _) = TCP_PORTS[TCP_PORTS.len() - 1];
        await_listener(device, (End::Client.gateway(rules.family), last).into())
    }
}
