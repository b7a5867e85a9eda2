//! All rules in one list: first what decides if no rule does, then those of the main rule set,
//! those of each anchor, and old rules in the same order; behind them those that were loaded later.

use std::collections::{BTreeMap, HashMap};
use std::ops::{Deref, Range};

use skipstep_ruleset::{AnchorCall, Next, OldKind, OldList, Rule, RuleId, Ruleset};

/// The list. Rules that are gone stay in it, for the states and the sources that they have.
#[derive(Debug, Clone)]
pub(crate) struct Rulebook {
    /// By place; the default rule is the first.
    rules: Vec<Entry>,
    filter: Sets,
    /// By [`OldList`].
    old: [Sets; OldList::ALL.len()],
    /// Rules ask for ports of SCTP.
    pub names_sctp_ports: bool,
}

/// Where the rule sets in force are, by the paths of their anchors.
type Sets = BTreeMap<String, Range<usize>>;

/// Where what decides if no rule does stands.
const DEFAULT: usize = 0;

/// A rule with its place in the list.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// What it is known by to states and counters: its index in the list, and for a rule that is
    /// there twice that of the first.
    pub place: usize,
    /// What it is about if it is an old rule.
    pub old: Option<OldKind>,
    /// Path of the anchor it is in; empty in the main rule set.
    pub path: String,
    /// The rule sets that an anchor rule calls, one after the other.
    pub calls: Vec<Range<usize>>,
    /// `scrub … fragment no reassemble`
    pub leave_fragments: bool,
    /// Its rule set was replaced: no packet asks it any more, and it has no number.
    pub gone: bool,
    rule: Rule,
}

impl Deref for Entry {
    type Target = Rule;

    fn deref(&self) -> &Rule {
        &self.rule
    }
}

impl Entry {
    fn new(
        place: usize,
        old: Option<OldKind>,
        path: &str,
        leave_fragments: bool,
        rule: Rule,
    ) -> Self {
        let (path, calls) = (path.to_owned(), Vec::new());
        Entry { place, old, path, calls, leave_fragments, gone: false, rule }
    }

    /// How others name it, or did as long as it was in force.
    pub fn id(&self) -> RuleId {
        RuleId { anchor: self.path.clone(), old: self.old, number: self.rule.number }
    }

    /// Its number, unless it is gone.
    pub fn number(&self) -> Option<u32> {
        (!self.gone).then_some(self.rule.number)
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

    /// Whether it says the same as another one of its rule set, wherever they stand there.
    pub fn is_like(&self, other: &Entry) -> bool {
        let said = |rule: &Rule| Rule { number: 0, line: 0, file: None, ..rule.clone() };
        (&self.path, self.old, self.leave_fragments)
            == (&other.path, other.old, other.leave_fragments)
            && said(&self.rule) == said(&other.rule)
    }

    /// `quick` of an anchor rule. PF heeds it only if the rule calls a single anchor.
    pub fn ends_the_walk(&self) -> bool {
        self.rule.quick && self.rule.anchor.as_ref().is_some_and(|call| !call.wildcard)
    }
}

impl Rulebook {
    pub fn new(ruleset: &Ruleset) -> Self {
        let default = Entry::new(DEFAULT, None, "", false, Rule::default());
        let mut rulebook = Rulebook {
            rules: vec![default],
            filter: Sets::new(),
            old: Default::default(),
            names_sctp_ports: false,
        };
        rulebook.replace(&Next::main(&Ruleset::default(), ruleset.clone()));
        rulebook
    }

    /// Puts other rules in force. Those of anchors that are not replaced stay where they are.
    pub fn replace(&mut self, next: &Next) {
        let first = self.rules.len();
        let new = |path: &&str| next.replaces(path);
        let filter = next.ruleset.all_rules().map(|(path, rule)| (path, false, rule.clone()));
        let filter = filter.filter(|(path, ..)| new(path)).collect();
        add(&mut self.rules, &mut self.filter, None, filter, next);
        for list in OldList::ALL {
            let those = next.ruleset.all_old_rules().filter(|(_, old)| old.kind == list.kind());
            let seen = those.map(|(path, old)| (path, old.leave_fragments, old.seen_in(list)));
            let seen = seen.filter(|(path, ..)| new(path)).collect();
            add(&mut self.rules, &mut self.old[list as usize], Some(list.kind()), seen, next);
        }
        let places: HashMap<RuleId, usize> =
            self.rules[first..].iter().rev().map(|entry| (entry.id(), entry.place)).collect();
        for entry in &mut self.rules[first..] {
            entry.place = places[&entry.id()];
        }
        for sets in std::iter::once(&self.filter).chain(&self.old) {
            for place in sets.values().cloned().flatten() {
                let entry = &mut self.rules[place];
                let call = entry.rule.anchor.as_ref();
                entry.calls = call.map_or_else(Vec::new, |call| called(call, sets));
            }
        }
        self.names_sctp_ports = next.ruleset.names_sctp_ports();
    }

    /// How many places there are.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Where the main rule set is.
    pub fn main(&self) -> Range<usize> {
        self.filter.get("").cloned().unwrap_or_default()
    }

    /// Where a list of old rules of the main rule set is.
    pub fn old(&self, list: OldList) -> Range<usize> {
        self.old[list as usize].get("").cloned().unwrap_or_default()
    }

    /// What decides about a packet that no rule matches.
    pub fn default_rule(&self) -> &Entry {
        &self.rules[DEFAULT]
    }

    /// The rule at a place, unless that is the default rule.
    pub fn written(&self, place: usize) -> Option<&Entry> {
        Some(self.at(place)).filter(|rule| rule.place != DEFAULT)
    }

    /// The rules of a rule set.
    pub fn rules(&self, set: &Range<usize>) -> &[Entry] {
        &self.rules[set.clone()]
    }

    /// The rule at a place.
    pub fn at(&self, place: usize) -> &Entry {
        &self.rules[place]
    }

    /// The rules in force, but for the default rule.
    pub fn in_force(&self) -> impl Iterator<Item = &Entry> {
        self.rules[DEFAULT + 1..].iter().filter(|entry| !entry.gone)
    }

    /// Those from a place on.
    pub fn since(&self, place: usize) -> &[Entry] {
        &self.rules[place..]
    }

    /// The rule of this name that is in force.
    pub fn find(&self, id: &RuleId) -> Option<&Entry> {
        self.in_force().find(|entry| entry.id() == *id)
    }
}

/// Replaces the rule sets of one kind: their rules with the paths of their anchors, and whether
/// they leave fragments alone, those of the main rule set first.
fn add(
    rules: &mut Vec<Entry>,
    sets: &mut Sets,
    old: Option<OldKind>,
    list: Vec<(&str, bool, Rule)>,
    next: &Next,
) {
    sets.retain(|path, set| {
        let stays = !next.replaces(path);
        rules[set.clone()].iter_mut().for_each(|entry| entry.gone = !stays);
        stays
    });
    for (path, leave_fragments, rule) in list {
        let place = rules.len();
        sets.entry(path.to_owned()).or_insert(place..place).end = place + 1;
        rules.push(Entry::new(place, old, path, leave_fragments, rule));
    }
}

/// The rule sets that a call means and that have rules, in the order in which they are asked.
fn called(call: &AnchorCall, sets: &Sets) -> Vec<Range<usize>> {
    if !call.wildcard {
        return sets.get(&call.path).cloned().into_iter().collect();
    }
    let is_child = |path: &str| match path.rsplit_once('/') {
        Some((parent, _)) => parent == call.path,
        None => call.path.is_empty() && !path.is_empty(),
    };
    sets.iter().filter(|(path, _)| is_child(path)).map(|(_, set)| set.clone()).collect()
}
