//! ftp-gw, skipstep's application proxy for FTP. Clients name the server to it, or skipstep diverts
//! them to it.

mod text;

use std::process::Command;

use super::{System, await_listener, skipstep};
use crate::host::Host;
use crate::program::beside;
use crate::rules::Rules;
use crate::topology::Topology;
use crate::traffic::{ServerAddress, TrafficKind};
use crate::transport::Transport;

/// A configuration of ftp-gw.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FtpGw {
    Direct,
    Transparent,
}

/// Returns all configurations of ftp-gw.
pub(super) fn all() -> Vec<Box<dyn System>> {
    vec![Box::new(FtpGw::Direct), Box::new(FtpGw::Transparent)]
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

    fn supports(&self, _: Topology) -> bool {
        true
    }

    fn takes(&self, kind: Option<TrafficKind>, transport: Transport) -> bool {
        transport == Transport::Tcp && matches!(kind, Some(TrafficKind::Ftp | TrafficKind::FtpBulk))
    }

    fn server_address(&self) -> ServerAddress {
        if *self == FtpGw::Direct { ServerAddress::Named } else { ServerAddress::Straight }
    }

    fn programs(&self) -> Vec<String> {
        let gateway = vec![beside("ftp-gw").display().to_string()];
        if *self == FtpGw::Direct { gateway } else { [gateway, skipstep::programs()].concat() }
    }

    fn configuration(&self, rules: &Rules) -> String {
        text::written(*self, rules)
    }

    fn hooks(&self, _: Topology) -> Vec<String> {
        let gateway = "a process on the host in the middle, for each byte";
        let hooks = match self {
            FtpGw::Direct => vec![gateway],
            FtpGw::Transparent => vec!["tcx ingress of lan0", gateway, "tcx egress of wan0"],
        };
        hooks.into_iter().map(str::to_owned).collect()
    }

    fn install(&self, device: &Host, rules: &Rules, configuration: &str) -> anyhow::Result<()> {
        let (gateway, filter) = text::parts(configuration);
        if let Some(filter) = filter {
            skipstep::load(device, filter)?;
        }
        let mut command = Command::new(beside("ftp-gw"));
        command.args(["-d", "-D", "3", "-f", "/dev/stdin"]);
        device.start(command, gateway)?;
        await_listener(device, self.listen_address(rules.family))
    }
}
