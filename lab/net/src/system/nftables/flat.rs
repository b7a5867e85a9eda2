//! A rule for each port, as in a conversion from iptables.

use super::way::{RuleStyle, list};
use crate::rules::Rules;

/// One list of rules.
pub(super) struct Flat;

impl RuleStyle for Flat {
    const NAMES: [&'static str; 2] = ["nft-flat", "nftables, one list"];

    fn chain(rules: &Rules) -> String {
        list(rules)
    }
}
