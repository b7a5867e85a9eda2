//! iptables, with its own kernel tables and with those of nftables. The rules are in one list, or
//! in a chain that only packets of their protocol enter by a jump.

use std::process::Command;

use super::System;
use crate::family::Family;
use crate::host::Host;
use crate::rules::Rules;
use crate::topology::Topology;

/// A configuration of iptables.
struct Iptables {
    name: &'static str,
    label: &'static str,
    /// `legacy` or `nft`
    variant: &'static str,
    jumps: bool,
}

/// Returns all configurations of iptables.
pub(super) fn all() -> Vec<Box<dyn System>> {
    let way = |name, label, variant, jumps| -> Box<dyn System> {
        Box::new(Iptables { name, label, variant, jumps })
    };
    vec![
        way("iptables-legacy", "iptables-legacy, one list", "legacy", false),
        way("iptables-legacy-jumps", "iptables-legacy, a jump by protocol", "legacy", true),
        way("iptables-nft", "iptables-nft, one list", "nft", false),
    ]
}

impl Iptables {
    fn restore(&self, family: Family) -> String {
        let command = if family == Family::V4 { "iptables" } else { "ip6tables" };
        format!("{command}-{}-restore", self.variant)
    }
}

impl System for Iptables {
    fn name(&self) -> &'static str {
        self.name
    }

    fn label(&self) -> &'static str {
        self.label
    }

    fn programs(&self) -> Vec<String> {
        vec![self.restore(Family::V4), self.restore(Family::V6)]
    }

    fn configuration(&self, rules: &Rules) -> String {
        let (server, protocol) = (rules.server(), rules.transport);
        let mut text = "*filter\n:INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\n".to_owned();
        let chain = if self.jumps {
            text += &format!(":{protocol}-ports -\n-A FORWARD -p {protocol} -j {protocol}-ports\n");
            format!("{protocol}-ports")
        } else {
            "FORWARD".to_owned()
        };
        text += &rules.lines(|port| {
            format!("-A {chain} -d {server} -p {protocol} -m {protocol} --dport {port} -j DROP")
        });
        text + "COMMIT\n"
    }

    fn translation(&self, rules: &Rules) -> Option<String> {
        let text = "*nat\n-A POSTROUTING -o wan0 -j MASQUERADE\nCOMMIT\n".to_owned();
        (rules.topology != Topology::Bridge).then_some(text)
    }

    fn hooks(&self, topology: Topology) -> Vec<String> {
        match topology {
            Topology::Bridge => vec!["bridge forward, by br_netfilter: ip forward".to_owned()],
            _ => vec!["ip forward".to_owned()],
        }
    }

    fn install(&self, device: &Host, rules: &Rules, configuration: &str) -> anyhow::Result<()> {
        if rules.topology == Topology::Bridge {
            // enables iptables on bridges; kernels without br_netfilter have no such file
            for key in ["iptables", "ip6tables"] {
                device.set(&format!("net/bridge/bridge-nf-call-{key}"), "1")?;
            }
        }
        device.run(&mut Command::new(self.restore(rules.family)), configuration).map(drop)
    }

    fn reset(&self) -> Option<&'static str> {
        Some("iptables-restore of empty chains, then of the rules; in between all packets pass")
    }

    fn restart(&self, device: &Host, rules: &Rules, configuration: &str) -> anyhow::Result<()> {
        let empty = "*filter\n:INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\nCOMMIT\n";
        device.run(&mut Command::new(self.restore(rules.family)), empty)?;
        self.install(device, rules, configuration)
    }
}
