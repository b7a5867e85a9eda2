//! A rule for each port behind connection tracking: what belongs to a connection does not come to the list.

use super::super::Rules;
use super::way::{Way, list};

/// States and one list.
pub(super) struct Conntrack;

impl Way for Conntrack {
    const NAMES: [&'static str; 2] = ["nft-conntrack", "nftables, conntrack and one list"];
    const KEEPS_STATES: bool = true;

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
