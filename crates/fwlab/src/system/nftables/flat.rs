//! A rule for each port, as one comes from iptables.

use super::way::{Way, list};
use crate::rules::Rules;

/// One list.
pub(super) struct Flat;

impl Way for Flat {
    const NAMES: [&'static str; 2] = ["nft-flat", "nftables, one list"];

    fn chain(rules: &Rules) -> String {
        list(rules)
    }
}
