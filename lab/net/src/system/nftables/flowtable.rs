//! Connection tracking with a flowtable: packets of established connections bypass the rules.

use super::conntrack::FLOWS_STAY;
use super::way::{RuleStyle, list};
use crate::rules::Rules;
use crate::topology::{End, Topology};

/// A flowtable and one list.
pub(super) struct Flowtable;

impl RuleStyle for Flowtable {
    const NAMES: [&'static str; 2] = ["nft-flowtable", "nftables, flowtable and one list"];
    const KEEPS_STATES: bool = true;
    const SETTINGS: &'static [(&'static str, &'static str)] = FLOWS_STAY;

    fn needs(_: Topology) -> Option<&'static str> {
        Some("flowtables (CONFIG_NF_FLOW_TABLE_INET)")
    }

    fn objects(rules: &Rules) -> String {
        let legs = legs(rules.topology).join(", ");
        format!("\tflowtable fast {{\n\t\thook ingress priority 0; devices = {{ {legs} }};\n\t}}\n")
    }

    fn chain(rules: &Rules) -> String {
        "\t\tmeta l4proto { tcp, udp } ct state established flow add @fast\n".to_owned()
            + &list(rules)
    }

    fn hooks(family: &str) -> Vec<String> {
        vec![
            "netdev ingress: flowtable, and transmission to the neighbour if the flow is offloaded"
                .to_owned(),
            format!("otherwise {family} prerouting, {family} forward and {family} postrouting"),
        ]
    }

    fn supports(topology: Topology) -> bool {
        // bridges do not support flowtables
        matches!(topology, Topology::Router | Topology::ThreeLegged)
    }
}

/// Returns the interfaces of the host in the middle.
fn legs(topology: Topology) -> Vec<&'static str> {
    let dmz = (topology == Topology::ThreeLegged).then_some(End::Dmz);
    [End::Client, End::Server].into_iter().chain(dmz).map(End::leg).collect()
}
