//! Metrics of rules: by their stable identity, and by their number as pf_exporter has them.

use std::collections::BTreeMap;

use skipstep_pfconf::{PrintOptions, print};
use skipstep_ruleset::{Action, Direction, Family, Rule};
use skipstep_views::RuleCounters;

use super::{Labels, Metric, MetricsView, counter, gauge, of};
use crate::show::rules::RuleSet;
use crate::show::states::protocol_name;

/// A rule with its anchor, its identity and its counters.
pub(super) struct RuleOf<'a> {
    path: &'a str,
    id: &'a str,
    rule: &'a Rule,
    counters: &'a RuleCounters,
}

/// Returns all rules in order. Rules with labels come first, because somebody wants to watch them.
pub(super) fn all<'a>(view: &'a MetricsView) -> Vec<RuleOf<'a>> {
    let of_set = |(path, set): (&&'a str, &'a RuleSet)| {
        let (path, identities) = (*path, &view.identities);
        set.rules.iter().zip(&set.counters).filter_map(move |(rule, counters)| {
            let id = identities.find(path, None, rule.number)?;
            Some(RuleOf { path, id, rule, counters })
        })
    };
    let mut rules: Vec<RuleOf> = view.rules.iter().flat_map(of_set).collect();
    rules.sort_by_key(|RuleOf { rule, .. }| rule.labels.is_empty());
    rules
}

/// Returns the counters of `rules` by identity. Counters of rules with the same label are added,
/// also if some of them are only in `all`.
pub(super) fn by_identity(rules: &[RuleOf], all: &[RuleOf]) -> Vec<Metric> {
    let mut sums: BTreeMap<&str, (String, RuleCounters)> = BTreeMap::new();
    for RuleOf { id, rule, .. } in rules {
        sums.entry(id).or_insert_with(|| (rule.labels.join(" "), RuleCounters::default()));
    }
    for RuleOf { id, counters, .. } in all {
        if let Some((_, sum)) = sums.get_mut(id) {
            sum.add(counters);
        }
    }
    let texts = rules.iter().map(|rule| (info_labels(rule), 1));
    let labels = |id: &str, label| vec![("id", id.to_owned()), ("label", label)];
    let sums = sums.into_iter();
    let rules: Vec<(Labels, RuleCounters)> =
        sums.map(|(id, (label, sum))| (labels(id, label), sum)).collect();
    vec![
        gauge("skipstep_rule_info", "Text and number of each rule. The value is 1.", texts),
        counter(
            "skipstep_rule_evaluations_total",
            "Evaluations of a rule.",
            of(&rules, |counters| counters.evaluations),
        ),
        counter(
            "skipstep_rule_packets_total",
            "Packets of a rule and of its states.",
            both(&rules, |counters| counters.packets),
        ),
        counter(
            "skipstep_rule_bytes_total",
            "Bytes of the packets of a rule and of its states.",
            both(&rules, |c| c.bytes),
        ),
        gauge("skipstep_rule_states", "States of a rule now.", of(&rules, |c| c.states)),
        counter(
            "skipstep_rule_states_created_total",
            "States that a rule created.",
            of(&rules, |counters| counters.states_created),
        ),
    ]
}

fn info_labels(RuleOf { path, id, rule, .. }: &RuleOf) -> Labels {
    vec![
        ("anchor", (*path).to_owned()),
        ("id", (*id).to_owned()),
        ("number", rule.number.to_string()),
        ("file", rule.file.as_deref().unwrap_or_default().to_owned()),
        ("line", rule.line.to_string()),
        ("rule", print::rule(rule, &PrintOptions::default())),
    ]
}

/// Makes the samples of a counter with one value for each direction.
fn both(
    rules: &[(Labels, RuleCounters)],
    values: impl Fn(&RuleCounters) -> [u64; 2],
) -> Vec<(Labels, u64)> {
    let of_rule = |(labels, counters): &(Labels, RuleCounters)| {
        let directions = ["in", "out"].into_iter().zip(values(counters));
        let labels = labels.clone();
        directions.map(move |(direction, value)| {
            let mut labels = labels.clone();
            labels.push(("direction", direction.to_owned()));
            (labels, value)
        })
    };
    rules.iter().flat_map(of_rule).collect()
}

/// Returns the counters by number, with the names and labels of pf_exporter, and the identity.
pub(super) fn by_number(rules: &[RuleOf]) -> Vec<Metric> {
    let rules: Vec<(Labels, &RuleCounters)> =
        rules.iter().map(|rule| (exporter_labels(rule), rule.counters)).collect();
    vec![
        counter(
            "pf_rule_evaluations_total",
            "Evaluations of a rule.",
            of(&rules, |counters| counters.evaluations),
        ),
        counter(
            "pf_rule_packets_in_total",
            "Inbound packets of a rule and of its states.",
            of(&rules, |c| c.packets[0]),
        ),
        counter(
            "pf_rule_packets_out_total",
            "Outbound packets of a rule and of its states.",
            of(&rules, |c| c.packets[1]),
        ),
        counter(
            "pf_rule_bytes_in_total",
            "Bytes of inbound packets of a rule and of its states.",
            of(&rules, |c| c.bytes[0]),
        ),
        counter(
            "pf_rule_bytes_out_total",
            "Bytes of outbound packets of a rule and of its states.",
            of(&rules, |c| c.bytes[1]),
        ),
        gauge("pf_rule_states_current", "States of a rule now.", of(&rules, |c| c.states)),
        counter(
            "pf_rule_states_total",
            "States that a rule created.",
            of(&rules, |counters| counters.states_created),
        ),
    ]
}

fn exporter_labels(RuleOf { path, id, rule, .. }: &RuleOf) -> Labels {
    let family = match rule.family {
        Some(Family::Inet) => "inet",
        Some(Family::Inet6) => "inet6",
        None => "",
    };
    let interface = rule
        .interface
        .as_ref()
        .map(|on| format!("{}{}", if on.negated { "! " } else { "" }, print::interface(&on.value)));
    let action = match rule.action {
        Action::Pass => "pass",
        Action::Block => "block",
        Action::Match => "match",
    };
    let direction = match rule.direction {
        Some(Direction::In) => "in",
        Some(Direction::Out) => "out",
        None => "",
    };
    vec![
        ("nr", rule.number.to_string()),
        ("af", family.to_owned()),
        ("proto", rule.protocol.map(protocol_name).unwrap_or_default()),
        ("rule", rule.labels.join(" ")),
        ("anchor", (*path).to_owned()),
        ("interface", interface.unwrap_or_default()),
        ("action", action.to_owned()),
        ("direction", direction.to_owned()),
        ("id", (*id).to_owned()),
    ]
}
