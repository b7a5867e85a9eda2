//! All ports in one verdict map, as the manual of nftables recommends.

use super::way::{RuleStyle, ip};
use crate::rules::Rules;

/// One rule and a map.
pub(super) struct Maps;

impl RuleStyle for Maps {
    const NAMES: [&'static str; 2] = ["nft-maps", "nftables, a verdict map"];

    fn objects(rules: &Rules) -> String {
        let protocol = rules.transport;
        let entries: Vec<_> =
            rules.ports().map(|port| format!("{protocol} . {port} : drop")).collect();
        let elements = match entries.is_empty() {
            true => String::new(),
            false => format!("\t\telements = {{ {} }}\n", entries.join(", ")),
        };
        format!("\tmap ports {{\n\t\ttype inet_proto . inet_service : verdict\n{elements}\t}}\n")
    }

    fn chain(rules: &Rules) -> String {
        let (ip, server) = (ip(rules), rules.server());
        format!("\t\t{ip} daddr {server} meta l4proto . th dport vmap @ports\n")
    }
}
