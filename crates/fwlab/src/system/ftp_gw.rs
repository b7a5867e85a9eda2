//! ftp-gw, skipstep's application proxy for FTP: clients name the server to it, or are diverted to it and know nothing.

use std::process::Command;

use super::skipstep::pfctl;
use super::{Rules, System, await_listener, beside};
use crate::host::Host;
use crate::raw::frame::Transport;
use crate::sockets::{Kind, Way};
use crate::topology::{End, Family, Topology};

/// One way to use it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FtpGw {
    Direct,
    Transparent,
}

/// All ways.
pub(super) fn all() -> Vec<Box<dyn System>> {
    vec![Box::new(FtpGw::Direct), Box::new(FtpGw::Transparent)]
}

/// Where clients are diverted to.
const DIVERTED: u16 = 8021;

/// Ports of the gateway for data.
const DATA: &str = "50000-59999";

/// What separates its configuration from the filter's.
const FILTER: &str = "# pf.conf\n";

impl FtpGw {
    fn door(self, family: Family) -> std::net::SocketAddr {
        match (self, family) {
            (FtpGw::Direct, _) => (End::Client.gateway(family), 21).into(),
            (_, Family::V4) => (std::net::Ipv4Addr::LOCALHOST, DIVERTED).into(),
            (_, Family::V6) => (std::net::Ipv6Addr::LOCALHOST, DIVERTED).into(),
        }
    }
}

impl System for FtpGw {
    fn name(&self) -> &'static str {
        match self {
            FtpGw::Direct => "ftp-gw",
            FtpGw::Transparent => "ftp-gw-transparent",
        }
    }

    fn label(&self) -> &'static str {
        match self {
            FtpGw::Direct => "ftp-gw, named by clients",
            FtpGw::Transparent => "ftp-gw, transparent",
        }
    }

    fn topology(&self, _: Topology) -> Topology {
        Topology::Proxy
    }

    fn stands_in(&self, _: Topology) -> bool {
        true
    }

    fn takes(&self, kind: Option<Kind>, transport: Transport) -> bool {
        transport == Transport::Tcp && matches!(kind, Some(Kind::Ftp | Kind::FtpBulk))
    }

    fn way(&self) -> Way {
        if *self == FtpGw::Direct { Way::Named } else { Way::Straight }
    }

    fn programs(&self) -> Vec<String> {
        let mut programs = vec![beside("ftp-gw").display().to_string()];
        if *self == FtpGw::Transparent {
            programs.push(pfctl().display().to_string());
        }
        programs
    }

    fn configuration(&self, rules: &Rules) -> String {
        let (server, door) = (rules.server(), self.door(rules.family));
        let key = if *self == FtpGw::Direct { "listen" } else { "transparent" };
        let mut text = format!("{key} = [\"{door}\"]\ndata-ports = \"{DATA}\"\n");
        text += "[limits]\nsessions = 5000\nsessions-per-client = 5000\n";
        text += &rules.lines(|port| {
            format!("[[rule]]\naction = \"deny\"\nto = [\"{server}\"]\nports = [{port}]")
        });
        text += &format!("[[rule]]\naction = \"allow\"\nto = [\"{server}\"]\n");
        if *self == FtpGw::Transparent {
            let inet = if rules.family == Family::V4 { "inet" } else { "inet6" };
            let ports = DATA.replace('-', ":");
            text += &format!(
                "{FILTER}pass\npass in quick on lan0 {inet} proto tcp to {server} port {{ 21, {ports} }} \
                 divert-to {} port {DIVERTED}\n",
                door.ip()
            );
        }
        text
    }

    fn hooks(&self, _: Topology) -> Vec<String> {
        let mut hooks = vec!["a process on the host in the middle, for each byte".to_owned()];
        if *self == FtpGw::Transparent {
            hooks.insert(0, "tcx ingress of lan0".to_owned());
            hooks.push("tcx egress of wan0".to_owned());
        }
        hooks
    }

    fn install(&self, device: &Host, rules: &Rules, configuration: &str) -> anyhow::Result<()> {
        let (gateway, filter) = match configuration.split_once(FILTER) {
            Some((gateway, filter)) => (gateway, Some(filter)),
            None => (configuration, None),
        };
        if let Some(filter) = filter {
            device.run(Command::new(pfctl()).args(["-q", "-f", "-"]), filter)?;
            device.run(Command::new(pfctl()).args(["-q", "-e"]), "")?;
        }
        let mut command = Command::new(beside("ftp-gw"));
        command.args(["-d", "-D", "3", "-f", "/dev/stdin"]);
        device.start(command, gateway)?;
        await_listener(device, self.door(rules.family))
    }
}
