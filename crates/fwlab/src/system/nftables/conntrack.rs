//! A rule for each port behind connection tracking: what belongs to a connection does not come to
//! the list.

use super::way::{Way, list};
use crate::rules::Rules;
use crate::topology::Topology;

/// Seconds that a flow is known. The kernel forgets datagrams after two minutes and one-way
/// segments after five, which is sooner than some rounds come back to a system, and then all of its
/// packets would be new ones: their answers came before the first round.
pub(super) const FLOWS_STAY: &[(&str, &str)] = &[
    ("net/netfilter/nf_conntrack_tcp_timeout_unacknowledged", "3600"),
    ("net/netfilter/nf_conntrack_udp_timeout", "3600"),
    ("net/netfilter/nf_conntrack_udp_timeout_stream", "3600"),
];

/// States and one list.
pub(super) struct Conntrack;

impl Way for Conntrack {
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
