//! Packets with different fates under two rule sets, one for each pair of deciding rules.

use std::collections::BTreeMap;
use std::collections::HashSet;

use serde_json::json;
use skipstep_model::Firewall;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Address, InterfaceMatch, Rule};
use skipstep_scenario::case::Arrival;

use super::Side;
use super::classes::classes;
use super::fate::ObservedFate;
use super::packet::Rank;
use super::rules::Change;
use crate::explain::add_interface;

/// Most rule evaluations over all packets, for both rule sets together. It bounds the time.
const EFFORT: usize = 20_000_000;
/// Upper and lower bound of the number of packets that are tried.
const PACKETS: (usize, usize) = (60_000, 500);

/// A packet with its fates under both rule sets.
#[derive(Debug, Clone)]
pub struct Example {
    arrival: Arrival,
    draw: u32,
    old: ObservedFate,
    new: ObservedFate,
}

/// Finds at most `limit` packets on which `changes` have an effect.
///
/// Only packets that match a changed rule can have another fate, so only these are tried. If there
/// are few combinations of values, all are tried. Otherwise the tried combinations are spread
/// evenly.
pub fn find(old: &Side, new: &Side, changes: &[Change], host: &Host, limit: usize) -> Vec<Example> {
    let host = with_named_interfaces(host, [old, new]);
    let changed = changed_rules(old, new, changes);
    let all = classes(old, new, &changed, &host);
    let firewalls = [old, new].map(|side| Firewall::new(side.ruleset.clone(), host.clone()));
    let rules = old.ruleset.rules.len() + new.ruleset.rules.len() + 1;
    let packets = (EFFORT / rules).clamp(PACKETS.1, PACKETS.0);
    let share = packets.div_ceil(changed.len().max(1));

    let mut tried = HashSet::new();
    let mut found: BTreeMap<(String, String), (Rank, Example)> = BTreeMap::new();
    for rule in &changed {
        let classes = all.within(rule, [old, new], &host);
        for index in spread(classes.size(), share) {
            let Some(point) = classes.point(index) else { continue };
            if tried.len() >= packets || !tried.insert(point.clone()) {
                continue;
            }
            let arrival = point.arrival();
            let [before, after] =
                [0, 1].map(|side| ObservedFate::observe(&firewalls[side], &arrival, point.draw));
            if !before.differs(&after) {
                continue;
            }
            let pair = (before.decision(), after.decision());
            let rank = point.rank(&host);
            if found.get(&pair).is_none_or(|(best, _)| rank < *best) {
                let example = Example { arrival, draw: point.draw, old: before, new: after };
                found.insert(pair, (rank, example));
            }
        }
    }
    found.into_values().map(|(_, example)| example).take(limit).collect()
}

/// Returns at most `count` evenly spread numbers below `size`.
fn spread(size: u128, count: usize) -> impl Iterator<Item = u128> {
    // a step of the golden section of `size` keeps successive numbers far apart
    let step = if size <= count as u128 { 1 } else { (size / 1000 * 618).max(1) | 1 };
    let count = size.min(count as u128);
    (0..count).map(move |number| number.wrapping_mul(step) % size)
}

/// Returns the changed rules, and all rules that use a changed table. A changed setting can affect
/// each packet, so it adds a rule without criteria.
fn changed_rules<'a>(old: &'a Side, new: &'a Side, changes: &[Change]) -> Vec<&'a Rule> {
    static ANY: std::sync::LazyLock<Rule> = std::sync::LazyLock::new(Rule::default);
    let mut rules: Vec<&Rule> = Vec::new();
    for change in changes {
        for (side, statement) in [old, new].into_iter().zip(change.statements()) {
            let Some(statement) = statement else { continue };
            match (&statement.table, statement.rule(&side.ruleset)) {
                (_, Some(rule)) => rules.push(rule),
                (Some(table), None) => rules.extend(
                    side.ruleset.all_rules().map(|(_, rule)| rule).filter(|rule| uses(rule, table)),
                ),
                (None, None) => rules.push(&ANY),
            }
        }
    }
    let mut seen = HashSet::new();
    rules.retain(|rule| seen.insert(std::ptr::from_ref(*rule)));
    rules
}

fn uses(rule: &Rule, table: &str) -> bool {
    [&rule.source, &rule.destination]
        .iter()
        .any(|end| matches!(&end.host.address, Address::Table(name) if name == table))
}

/// Returns the host with all interfaces that rules name; missing interfaces are added.
fn with_named_interfaces(host: &Host, sides: [&Side; 2]) -> Host {
    let mut host = host.clone();
    for side in sides {
        for (_, rule) in side.ruleset.all_rules() {
            for on in rule.interface.iter().chain(rule.received_on.as_deref()) {
                if let InterfaceMatch::Named(name) = &on.value
                    && host.members(name).next().is_none()
                {
                    add_interface(&mut host, name);
                }
            }
        }
    }
    host
}

impl Example {
    /// Prints the packet in the notation of scenario files, with both fates behind it.
    pub fn text(&self, old: &Side, new: &Side) -> String {
        let draw = match self.draw {
            0 => String::new(),
            draw => format!("random {draw}\n"),
        };
        format!(
            "{draw}{}   {}  →  {}\n",
            self.arrival,
            self.old.text(old, &self.new),
            self.new.text(new, &self.old)
        )
    }

    /// Returns an object with the packet and both fates.
    pub fn json(&self, old: &Side, new: &Side) -> serde_json::Value {
        json!({
            "packet": self.arrival.to_string(),
            "random": self.draw,
            "old": self.old.json(old),
            "new": self.new.json(new),
        })
    }
}
