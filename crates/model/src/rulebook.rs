//! All rules of a rule set in one list: those of the main rule set, then those of each anchor, then old
//! rules in the same order, and last what decides if no rule does.

use std::collections::{BTreeMap, HashMap};
use std::ops::{Deref, Range};

use skipstep_ruleset::{AnchorCall, OldKind, OldList, Rule, RuleId, Ruleset};

/// The list.
#[derive(Debug, Clone)]
pub(crate) struct Rulebook {
    rules: Vec<Entry>,
    main: Range<usize>,
    /// By [`OldList`].
    old: [Range<usize>; OldList::ALL.len()],
}

/// A rule with its place in the list.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// What it is known by to states and counters: its index in the list, and for a rule that is there
    /// twice that of the first.
    pub place: usize,
    /// What it is about if it is an old rule.
    pub old: Option<OldKind>,
    /// Path of the anchor it is in; empty in the main rule set.
    pub path: String,
    /// The rule sets that an anchor rule calls, one after the other.
    pub calls: Vec<Range<usize>>,
    /// `scrub … fragment no reassemble`
    pub leave_fragments: bool,
    rule: Rule,
}

impl Deref for Entry {
    type Target = Rule;

    fn deref(&self) -> &Rule {
        &self.rule
    }
}

impl Entry {
    /// How others name it.
    pub fn id(&self) -> RuleId {
        RuleId { anchor: self.path.clone(), old: self.old, number: self.rule.number }
    }

    /// Whether it gives packets other ends; `no nat` does not.
    pub fn translates(&self) -> bool {
        self.rule.nat.is_some() || self.rule.rdr.is_some()
    }

    /// `set queue`: the queue of an ordinary or of an urgent packet.
    pub fn queue(&self, urgent: bool) -> Option<String> {
        let (ordinary, second) = self.rule.set_queue.as_deref()?;
        Some(second.as_ref().filter(|_| urgent).unwrap_or(ordinary).clone())
    }

    /// `quick` of an anchor rule. PF heeds it only if the rule calls a single anchor.
    pub fn ends_the_walk(&self) -> bool {
        self.rule.quick && self.rule.anchor.as_ref().is_some_and(|call| !call.wildcard)
    }
}

impl Rulebook {
    pub fn new(ruleset: &Ruleset) -> Self {
        let mut rules = Vec::new();
        let filter = ruleset.all_rules().map(|(path, rule)| (path, false, rule.clone()));
        let main = add(&mut rules, None, filter.collect());
        let old = OldList::ALL.map(|list| {
            let those = ruleset.all_old_rules().filter(|(_, old)| old.kind == list.kind());
            let seen = those.map(|(path, old)| (path, old.leave_fragments, old.seen_in(list)));
            add(&mut rules, Some(list.kind()), seen.collect())
        });
        let places: HashMap<RuleId, usize> =
            rules.iter().rev().map(|entry| (entry.id(), entry.place)).collect();
        for entry in &mut rules {
            entry.place = places[&entry.id()];
        }
        let place = rules.len();
        let (path, calls) = (String::new(), Vec::new());
        rules.push(Entry {
            place,
            old: None,
            path,
            calls,
            leave_fragments: false,
            rule: Rule::default(),
        });
        Rulebook { rules, main, old }
    }

    /// How many places there are.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Where the main rule set is.
    pub fn main(&self) -> Range<usize> {
        self.main.clone()
    }

    /// Where a list of old rules of the main rule set is.
    pub fn old(&self, list: OldList) -> Range<usize> {
        self.old[list as usize].clone()
    }

    /// What decides about a packet that no rule matches.
    pub fn default_rule(&self) -> &Entry {
        &self.rules[self.rules.len() - 1]
    }

    /// The rule at a place, unless that is the default rule.
    pub fn written(&self, place: usize) -> Option<&Entry> {
        Some(self.at(place)).filter(|rule| rule.place != self.default_rule().place)
    }

    /// The rules of a rule set.
    pub fn rules(&self, set: &Range<usize>) -> &[Entry] {
        &self.rules[set.clone()]
    }

    /// The rule at a place.
    pub fn at(&self, place: usize) -> &Entry {
        &self.rules[place]
    }

    /// The rule of this name.
    pub fn find(&self, id: &RuleId) -> Option<&Entry> {
        let written = &self.rules[..self.rules.len() - 1];
        written.iter().find(|entry| entry.id() == *id)
    }
}

/// Adds a list: rules with the paths of their anchors, and whether they leave fragments alone, those of the
/// main rule set first. Returns where these are.
fn add(
    rules: &mut Vec<Entry>,
    old: Option<OldKind>,
    list: Vec<(&str, bool, Rule)>,
) -> Range<usize> {
    let start = rules.len();
    let mut sets: BTreeMap<&str, Range<usize>> = BTreeMap::new();
    for (path, leave_fragments, rule) in list {
        let place = rules.len();
        sets.entry(path).or_insert(place..place).end = place + 1;
        let (path, calls) = (path.to_owned(), Vec::new());
        rules.push(Entry { place, old, path, calls, leave_fragments, rule });
    }
    for entry in &mut rules[start..] {
        if let Some(call) = &entry.rule.anchor {
            entry.calls = called(call, &sets);
        }
    }
    sets.get("").cloned().unwrap_or(start..start)
}

/// The rule sets that a call means and that have rules, in the order in which they are asked.
fn called(call: &AnchorCall, sets: &BTreeMap<&str, Range<usize>>) -> Vec<Range<usize>> {
    if !call.wildcard {
        return sets.get(call.path.as_str()).cloned().into_iter().collect();
    }
    let is_child = |path: &str| match path.rsplit_once('/') {
        Some((parent, _)) => parent == call.path,
        None => call.path.is_empty() && !path.is_empty(),
    };
    sets.iter().filter(|(path, _)| is_child(path)).map(|(_, set)| set.clone()).collect()
}
