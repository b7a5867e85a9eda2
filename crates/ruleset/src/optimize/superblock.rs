//! Superblocks: neighbouring rules that do the same to a packet.

use super::fields::{self, Role};
use crate::{Action, InterfaceMatch, Rule};

/// Cuts a rule set into its superblocks.
pub fn split(rules: Vec<Rule>) -> Vec<Vec<Rule>> {
    let lengths = lengths(&rules);
    if lengths.len() == 1 {
        return vec![rules];
    }
    let mut rules = rules.into_iter();
    lengths.into_iter().map(|length| rules.by_ref().take(length).collect()).collect()
}

/// How many rules each superblock has.
fn lengths(rules: &[Rule]) -> Vec<usize> {
    let mut lengths = Vec::new();
    let (mut first, mut limits) = (None, Limits::default());
    for rule in rules {
        match (first, lengths.last_mut()) {
            (Some(first), Some(length)) if belongs(first, rule) && limits.admit(rule) => {
                *length += 1
            }
            _ => {
                (first, limits) = (Some(rule), Limits::of(rule));
                lengths.push(1);
            }
        }
    }
    lengths
}

/// Whether `rule` belongs to the superblock that begins with `first`. Rules that ask for a tag
/// leave it to the state, even if another one makes it, so that of `quick` ones the same must be
/// asked first; pfctl moves those, too.
fn belongs(first: &Rule, rule: &Rule) -> bool {
    let (group, first_group) = (group(rule), group(first));
    !fields::is_barrier(rule)
        && (group.is_none() && first_group.is_none() || group == first_group)
        && fields::agree(first, rule, Role::Break)
        && fields::kind(first) == fields::kind(rule)
        && (!rule.quick || first.tagged == rule.tagged)
}

/// `min-ttl` and `max-mss` of a superblock. They add up over `match` rules, so that some rules may
/// do without, but none may have another value. pfctl does not look at them at all.
#[derive(Default)]
struct Limits {
    min_ttl: Option<u8>,
    max_mss: Option<u16>,
}

impl Limits {
    fn of(rule: &Rule) -> Self {
        Limits { min_ttl: rule.scrub.min_ttl, max_mss: rule.scrub.max_mss }
    }

    /// Whether `rule` goes with them; they are then those of the rule, too.
    fn admit(&mut self, rule: &Rule) -> bool {
        let Limits { min_ttl, max_mss } = Limits::of(rule);
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

/// The interface group of a rule, as far as its name tells: interfaces end in a digit. Who is in a
/// group may change, so pfctl keeps its rules apart from all others.
fn group(rule: &Rule) -> Option<&str> {
    match &rule.interface.as_ref()?.value {
        InterfaceMatch::Any => Some("any"),
        InterfaceMatch::Named(name) if !name.ends_with(|last: char| last.is_ascii_digit()) => {
            Some(name)
        }
        InterfaceMatch::Named(_) | InterfaceMatch::Rdomain(_) => None,
    }
}
