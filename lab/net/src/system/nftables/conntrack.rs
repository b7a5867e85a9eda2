//! A rule for each port behind connection tracking: packets of established connections do not reach
//! the rules.

use super::way::{RuleStyle, list};
use crate::rules::Rules;
use crate::topology::Topology;

/// Timeouts of connections in seconds. By default the kernel forgets UDP flows after two minutes,
/// and one-way TCP flows after five. Some rounds take longer. The generator sends answers before
/// the first round only, so a forgotten flow would never be established again.
pub(super) const FLOWS_STAY: &[(&str, &str)] = &[
    ("net/netfilter/nf_conntrack_tcp_timeout_unacknowledged", "3600"),
    ("net/netfilter/nf_conntrack_udp_timeout", "3600"),
    ("net/netfilter/nf_conntrack_udp_timeout_stream", "3600"),
];

/// Connection tracking and one list.
pub(super) struct Conntrack;

impl RuleStyle for Conntrack {
    const NAMES: [&'static str; 2] = ["nft-conntrack", "nftables, conntrack and one list"];
    const KEEPS_STATES: bool = true;
    const SETTINGS: &'static [(&'static str, &'static str)] = FLOWS_STAY;

    fn needs(topology: Topology) -> Option<&'static str> {
        (topology == Topology::Bridge)
            .then_some("connection tracking on bridges (CONFIG_NF_CONNTRACK_BRIDGE)")
    }

    fn chain(rules: &Rules) -> String {
        "\t\tct state vmap { established : accept, related : accept, invalid : drop }\n".to_owned()
            + &list(rules)
    }

    fn hooks(family: &str) -> Vec<String> {
        vec![
            format!("{family} prerouting: conntrack"),
            format!("{family} forward"),
            format!("{family} postrouting: conntrack"),
        ]
    }
}
