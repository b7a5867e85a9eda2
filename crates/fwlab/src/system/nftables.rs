//! nftables: a rule for each port, as one comes from iptables; all ports in one verdict map, as its manual advises;
//! a rule for each port behind connection tracking; and the same with established connections offloaded to a flowtable.

use std::process::Command;

use super::{Rules, System};
use crate::host::Host;
use crate::topology::{End, Family, Topology};

/// One way to write the rules.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nftables {
    Flat,
    Maps,
    Conntrack,
    Flowtable,
}

/// All ways.
pub(super) fn all() -> Vec<Box<dyn System>> {
    let ways = [Nftables::Flat, Nftables::Maps, Nftables::Conntrack, Nftables::Flowtable];
    ways.into_iter().map(|way| -> Box<dyn System> { Box::new(way) }).collect()
}

/// Interfaces of the host in the middle.
fn legs(topology: Topology) -> Vec<&'static str> {
    let dmz = (topology == Topology::ThreeLegged).then_some(End::Dmz);
    [End::Client, End::Server].into_iter().chain(dmz).map(End::leg).collect()
}

/// The family of its table.
fn family(rules: &Rules) -> &'static str {
    if rules.topology == Topology::Bridge { "bridge" } else { "inet" }
}

impl System for Nftables {
    fn name(&self) -> &'static str {
        match self {
            Nftables::Flat => "nft-flat",
            Nftables::Maps => "nft-maps",
            Nftables::Conntrack => "nft-conntrack",
            Nftables::Flowtable => "nft-flowtable",
        }
    }

    fn label(&self) -> &'static str {
        match self {
            Nftables::Flat => "nftables, one list",
            Nftables::Maps => "nftables, a verdict map",
            Nftables::Conntrack => "nftables, conntrack and one list",
            Nftables::Flowtable => "nftables, flowtable and one list",
        }
    }

    fn programs(&self) -> Vec<String> {
        vec!["nft".to_owned()]
    }

    fn configuration(&self, rules: &Rules) -> String {
        let (server, protocol) = (rules.server(), rules.protocol());
        let ip = if rules.family == Family::V4 { "ip" } else { "ip6" };
        let list =
            || rules.lines(|port| format!("\t\t{ip} daddr {server} {protocol} dport {port} drop"));
        let (map, body) = match self {
            Nftables::Flat => (String::new(), list()),
            Nftables::Maps => {
                let entries: Vec<_> =
                    rules.ports().map(|port| format!("{protocol} . {port} : drop")).collect();
                let elements = match entries.is_empty() {
                    true => String::new(),
                    false => format!("\t\telements = {{ {} }}\n", entries.join(", ")),
                };
                (
                    format!(
                        "\tmap ports {{\n\t\ttype inet_proto . inet_service : verdict\n{elements}\t}}\n"
                    ),
                    format!("\t\t{ip} daddr {server} meta l4proto . th dport vmap @ports\n"),
                )
            }
            Nftables::Flowtable => (
                format!(
                    "\tflowtable fast {{\n\t\thook ingress priority 0; devices = {{ {} }};\n\t}}\n",
                    legs(rules.topology).join(", ")
                ),
                "\t\tmeta l4proto { tcp, udp } ct state established flow add @fast\n".to_owned()
                    + &list(),
            ),
            Nftables::Conntrack => (
                String::new(),
                "\t\tct state vmap { established : accept, related : accept, invalid : drop }\n"
                    .to_owned()
                    + &list(),
            ),
        };
        format!(
            "table {} fwlab {{\n{map}\tchain forward {{\n\
             \t\ttype filter hook forward priority 0; policy accept;\n{body}\t}}\n}}\n",
            family(rules)
        )
    }

    fn hooks(&self, topology: Topology) -> Vec<String> {
        let family = if topology == Topology::Bridge { "bridge" } else { "ip" };
        let forward = format!("{family} forward");
        match self {
            Nftables::Conntrack => vec![
                format!("{family} prerouting: conntrack"),
                forward,
                format!("{family} postrouting: conntrack"),
            ],
            Nftables::Flowtable => vec![
                "netdev ingress: flowtable, and out by neighbour if it is offloaded".to_owned(),
                format!("otherwise {family} prerouting, {forward} and {family} postrouting"),
            ],
            _ => vec![forward],
        }
    }

    fn install(&self, device: &Host, _: &Rules, configuration: &str) -> anyhow::Result<()> {
        device.run(Command::new("nft").args(["-f", "-"]), configuration).map(drop)
    }

    fn reset(&self) -> Option<&'static str> {
        Some(
            "nft delete table, then nft -f: its chain leaves the hook and comes again; meanwhile all packets pass",
        )
    }

    fn restart(&self, device: &Host, rules: &Rules, configuration: &str) -> anyhow::Result<()> {
        device.run(Command::new("nft").args(["delete", "table", family(rules), "fwlab"]), "")?;
        self.install(device, rules, configuration)
    }

    fn keeps_states(&self) -> bool {
        matches!(self, Nftables::Conntrack | Nftables::Flowtable)
    }

    fn stands_in(&self, topology: Topology) -> bool {
        match self {
            // bridges have none
            Nftables::Flowtable => matches!(topology, Topology::Router | Topology::ThreeLegged),
            _ => topology != Topology::Proxy,
        }
    }
}
