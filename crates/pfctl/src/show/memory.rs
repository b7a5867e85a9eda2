//! `-s memory`: prints the hard limits.

use serde_json::{Value, json};
use skipstep_ruleset::Limits;

/// Returns the limits by their names in pf.conf; `u32::MAX` means unlimited.
pub(super) fn rows(limits: &Limits) -> [(&'static str, u32); 7] {
    [
        ("states", limits.states),
        ("src-nodes", limits.src_nodes),
        ("frags", limits.frags),
        ("tables", limits.tables),
        ("table-entries", limits.table_entries),
        ("pktdelay-pkts", limits.pktdelay_pkts),
        ("anchors", limits.anchors),
    ]
}

/// Prints a line for each limit; `u32::MAX` means unlimited.
pub fn text(limits: &Limits) -> String {
    let line = |(name, limit)| match limit {
        u32::MAX => format!("{name:<13} unlimited\n"),
        limit => format!("{name:<13} hard limit {limit:>8}\n"),
    };
    rows(limits).into_iter().map(line).collect()
}

/// Returns an object with a number for each limit.
pub fn json(limits: &Limits) -> Value {
    rows(limits).into_iter().map(|(name, limit)| (name.to_string(), json!(limit))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unlimited_limit_is_printed_as_unlimited() {
        let limits = Limits { states: u32::MAX, ..Limits::default() };
        assert!(
            text(&limits)
                .starts_with("states        unlimited\nsrc-nodes     hard limit    10000\n")
        );
    }
}
