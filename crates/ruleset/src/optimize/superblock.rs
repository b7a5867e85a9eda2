//! Superblocks: neighbouring rules with the same effect on a packet.

use super::fields::{self, Role};
use crate::{Action, InterfaceMatch, Rule};

/// Splits a rule set into its superblocks.
pub fn split(rules: Vec<Rule>) -> Vec<Vec<Rule>> {
    let lengths = lengths(&rules);
    if lengths.len() == 1 {
        return vec![rules];
    }
    let mut rules = rules.into_iter();
    lengths.into_iter().map(|length| rules.by_ref().take(length).collect()).collect()
}

/// Returns the number of rules in each superblock.
fn lengths(rules: &[Rule]) -> Vec<usize> {
    let mut lengths = Vec::new();
    let (mut first, mut limits) = (None, Limits::default());
    for rule in rules {
        match (first, lengths.last_mut()) {
            (Some(first), Some(length)) if belongs(first, rule) && limits.add_if_equal(rule) => {
                *length += 1
            }
            _ => {
                (first, limits) = (Some(rule), Limits::from_rule(rule));
                lengths.push(1);
            }
        }
    }
    lengths
}

/// True if `rule` belongs to the superblock that begins with `first`. Evaluating `tagged` copies
/// the packet's tag to the state, even if another rule creates the state. So `quick` rules must
/// have the same `tagged` criterion as the first; pfctl moves those rules, too.
// Differs from OpenBSD: linux.md, "Rule set optimizer"
fn belongs(first: &Rule, rule: &Rule) -> bool {
    let (group, first_group) = (group(rule), group(first));
    !fields::is_barrier(rule)
        && (group.is_none() && first_group.is_none() || group == first_group)
        && fields::agree(first, rule, Role::Break)
        && fields::kind(first) == fields::kind(rule)
        && (!rule.quick || first.tagged == rule.tagged)
}

/// The `min-ttl` and `max-mss` of a superblock. `match` rules accumulate them, so a rule may lack
/// them, but may not have other values. pfctl ignores both.
// Differs from OpenBSD: linux.md, "Rule set optimizer"
#[derive(Default)]
struct Limits {
    min_ttl: Option<u8>,
    max_mss: Option<u16>,
}

impl Limits {
    fn from_rule(rule: &Rule) -> Self {
        Limits { min_ttl: rule.scrub.min_ttl, max_mss: rule.scrub.max_mss }
    }

    /// Adds a rule if its values agree, and returns true. Its values then hold for the superblock.
    fn add_if_equal(&mut self, rule: &Rule) -> bool {
        let Limits { min_ttl, max_mss } = Limits::from_rule(rule);
        let adds_up = rule.action == Action::Match;
        if goes_with(self.min_ttl, min_ttl, adds_up) && goes_with(self.max_mss, max_mss, adds_up) {
            self.min_ttl = self.min_ttl.or(min_ttl);
            self.max_mss = self.max_mss.or(max_mss);
            return true;
        }
        false
    }
}

fn goes_with<T: PartialEq>(known: Option<T>, new: Option<T>, adds_up: bool) -> bool {
    known == new || adds_up && (known.is_none() || new.is_none())
}

/// Returns the interface group of a rule, judged by the name: names of interfaces end in a digit.
/// The members of a group may change, so pfctl separates its rules from all others.
fn group(rule: &Rule) -> Option<&str> {
    match &rule.interface.as_ref()?.value {
        InterfaceMatch::Any => Some("any"),
        InterfaceMatch::Named(name) if !name.ends_with(|last: char| last.is_ascii_digit()) => {
            Some(name)
        }
        InterfaceMatch::Named(_) | InterfaceMatch::Rdomain(_) => None,
    }
}
