//! `-s labels`: prints the counters of rules with labels, for programs to read.

use serde_json::{Value, json};
use skipstep_ruleset::Rule;
use skipstep_views::RuleCounters;

fn labelled<'a>(
    rules: &'a [(&Rule, RuleCounters)],
) -> impl Iterator<Item = (String, &'a RuleCounters)> {
    rules
        .iter()
        .filter(|(rule, _)| !rule.labels.is_empty())
        .map(|(rule, counters)| (rule.labels.join(" "), counters))
}

/// Prints a line for each rule with labels: label, evaluations, packets, bytes, packets in, bytes
/// in, packets out, bytes out, states created.
pub fn text(rules: &[(&Rule, RuleCounters)]) -> String {
    labelled(rules)
        .map(|(label, counters)| {
            let RuleCounters { evaluations, packets, bytes, states_created, .. } = counters;
            format!(
                "{label} {evaluations} {} {} {} {} {} {} {states_created}\n",
                packets[0] + packets[1],
                bytes[0] + bytes[1],
                packets[0],
                bytes[0],
                packets[1],
                bytes[1],
            )
        })
        .collect()
}

/// Returns a list with an object for each rule with labels.
pub fn json(rules: &[(&Rule, RuleCounters)]) -> Value {
    labelled(rules)
        .map(|(label, counters)| {
            json!({
                "label": label,
                "evaluations": counters.evaluations,
                "packets_in": counters.packets[0],
                "bytes_in": counters.bytes[0],
                "packets_out": counters.packets[1],
                "bytes_out": counters.bytes[1],
                "states_created": counters.states_created,
            })
        })
        .collect()
}
