//! `-s labels`: counters of the rules that have a label, for programs to read.

use serde_json::{Value, json};
use skipstep_ruleset::Rule;
use skipstep_scenario::engine::RuleCounters;

fn labelled<'a>(
    rules: &'a [(&Rule, RuleCounters)],
) -> impl Iterator<Item = (String, &'a RuleCounters)> {
    rules
        .iter()
        .filter(|(rule, _)| !rule.labels.is_empty())
        .map(|(rule, counters)| (rule.labels.join(" "), counters))
}

/// Label, evaluations, packets, bytes, then packets and bytes in and out, and states made.
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

/// A list with an object for each labelled rule.
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
