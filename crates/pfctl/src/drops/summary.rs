//! The number of dropped packets by reason and rule, printed at the end.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::record::{Cause, Dropped};
use super::rules::DecidingRule;
use crate::output::without_controls;

/// Counts dropped packets.
#[derive(Default)]
pub struct Summary {
    packets: BTreeMap<(Cause, Option<DecidingRule>), u64>,
}

impl Summary {
    /// Counts a packet.
    pub fn count(&mut self, dropped: &Dropped) {
        *self.packets.entry((dropped.cause, dropped.rule.clone())).or_default() += 1;
    }

    /// Prints a table of reasons, rules and packets, the most frequent first.
    pub fn text(&self) -> String {
        if self.packets.is_empty() {
            return "No such packet was dropped.\n".to_owned();
        }
        let rule = |rule: &Option<DecidingRule>| {
            rule.as_ref().map_or_else(|| "-".to_owned(), |rule| without_controls(&rule.to_string()))
        };
        let row = |((cause, of), packets): (&(Cause, Option<DecidingRule>), &u64)| {
            (cause.name(), rule(of), *packets)
        };
        let mut rows: Vec<_> = self.packets.iter().map(row).collect();
        rows.sort_by_key(|row| Reverse(row.2));
        let width = rows.iter().map(|row| row.1.chars().count()).max().unwrap_or(0).max(4);
        let mut text = format!("{:<15} {:<width$} {:>10}\n", "REASON", "RULE", "PACKETS");
        for (reason, rule, packets) in rows {
            text += &format!("{reason:<15} {rule:<width$} {packets:>10}\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use skipstep_ruleset::Reason;

    use super::super::record::tests::{dropped, packet};
    use super::*;

    #[test]
    fn the_most_frequent_comes_first() {
        let mut summary = Summary::default();
        assert_eq!(summary.text(), "No such packet was dropped.\n");
        summary.count(&dropped(&packet(Reason::Short, -1)));
        for _ in 0..12 {
            summary.count(&dropped(&packet(Reason::Match, 0)));
        }
        assert_eq!(
            summary.text(),
            "REASON          RULE                        PACKETS\n\
             match           0 (pf.conf:2, label ssh)         12\n\
             short           -                                 1\n"
        );
    }
}
