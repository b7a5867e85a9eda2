//! nftables. Each file has one way to write the rules; this one has their common part: a table with
//! a forward chain, and the load by nft.

mod conntrack;
mod flat;
mod flowtable;
mod maps;
mod way;

use std::process::Command;

use self::way::RuleStyle;
use super::System;
use crate::host::Host;
use crate::rules::Rules;
use crate::topology::Topology;

/// Returns all ways to write the rules.
pub(super) fn all() -> Vec<Box<dyn System>> {
    vec![
        Box::new(Nftables(flat::Flat)),
        Box::new(Nftables(maps::Maps)),
        Box::new(Nftables(conntrack::Conntrack)),
        Box::new(Nftables(flowtable::Flowtable)),
    ]
}

/// Returns the family of the table.
fn family(topology: Topology) -> &'static str {
    if topology == Topology::Bridge { "bridge" } else { "inet" }
}

/// nftables with rules that are written in way `W`.
struct Nftables<W>(W);

impl<W: RuleStyle> System for Nftables<W> {
    fn name(&self) -> &'static str {
        W::NAMES[0]
    }

    fn label(&self) -> &'static str {
        W::NAMES[1]
    }

    fn programs(&self) -> Vec<String> {
        vec!["nft".to_owned()]
    }

    fn configuration(&self, rules: &Rules) -> String {
        let setting = |(key, value): &(&str, &str)| format!("# {key}: {value}\n");
        let settings: String = W::SETTINGS.iter().map(setting).collect();
        format!(
            "{settings}table {} fwlab {{\n{}\tchain forward {{\n\
             \t\ttype filter hook forward priority 0; policy accept;\n{}\t}}\n}}\n",
            family(rules.topology),
            W::objects(rules),
            W::chain(rules)
        )
    }

    fn translation(&self, rules: &Rules) -> Option<String> {
        let chain = "type nat hook postrouting priority 100; oifname \"wan0\" masquerade";
        let text = format!("table inet translation {{ chain postrouting {{ {chain}; }}; }}\n");
        (rules.topology != Topology::Bridge).then_some(text)
    }

    fn hooks(&self, topology: Topology) -> Vec<String> {
        W::hooks(if topology == Topology::Bridge { "bridge" } else { "ip" })
    }

    fn install(&self, device: &Host, rules: &Rules, configuration: &str) -> anyhow::Result<()> {
        way::load(device, configuration, W::needs(rules.topology))?;
        // loading the table has enabled connection tracking, and with it these settings
        W::SETTINGS.iter().try_for_each(|(key, value)| device.set(key, value))
    }

    fn reset(&self) -> Option<&'static str> {
        Some(
            "nft delete table, then nft -f: the chain is detached from its hook and attached \
             again; in between all packets pass",
        )
    }

    fn restart(&self, device: &Host, rules: &Rules, configuration: &str) -> anyhow::Result<()> {
        let delete = ["delete", "table", family(rules.topology), "fwlab"];
        device.run(Command::new("nft").args(delete), "")?;
        self.install(device, rules, configuration)
    }

    fn keeps_states(&self) -> bool {
        W::KEEPS_STATES
    }

    fn supports(&self, topology: Topology) -> bool {
        W::supports(topology)
    }
}
