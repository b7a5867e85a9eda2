//! All rules in one list: the default rule, the main rule set, the rule set of each anchor, and
//! legacy rules in the same order. Rules of later loads follow.

use std::collections::{BTreeMap, HashMap};
use std::ops::{Deref, Range};

use skipstep_ruleset::{AnchorCall, LegacyKind, LegacyList, Rule, RuleId, Ruleset};

/// The list of rules. Orphaned rules stay in it, for their states and sources.
#[derive(Debug, Clone)]
pub(crate) struct Rulebook {
    /// All rules by index; the default rule is the first.
    rules: Vec<Entry>,
    filter: Sets,
    /// Ranges of legacy rules, by [`LegacyList`].
    legacy: [Sets; LegacyList::ALL.len()],
    /// True if rules have ports of SCTP.
    pub names_sctp_ports: bool,
}

/// The ranges of the rule sets in force, by the paths of their anchors.
type Sets = BTreeMap<String, Range<usize>>;

/// Index of the default rule.
const DEFAULT: usize = 0;

/// A rule with its index in the list.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Index of the rule for states and counters. A rule that is listed twice has the index of its
    /// first entry.
    pub index: usize,
    /// Kind of a legacy rule, `None` for a filter rule.
    pub legacy: Option<LegacyKind>,
    /// Path of the rule's anchor; empty in the main rule set.
    pub path: String,
    /// Ranges of the rule sets that an anchor rule calls, in order.
    pub calls: Vec<Range<usize>>,
    /// `scrub … fragment no reassemble`
    pub leave_fragments: bool,
    /// True if the rule set was replaced: the rule is no longer evaluated, and has no number.
    pub orphaned: bool,
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
        index: usize,
        legacy: Option<LegacyKind>,
        path: &str,
        leave_fragments: bool,
        rule: Rule,
    ) -> Self {
        let (path, calls) = (path.to_owned(), Vec::new());
        Entry { index, legacy, path, calls, leave_fragments, orphaned: false, rule }
    }

    /// Returns the name of the rule, or its last name if it is orphaned.
    pub fn id(&self) -> RuleId {
        RuleId { anchor: self.path.clone(), old: self.legacy, number: self.rule.number }
    }

    /// Returns the number of the rule, `None` if it is orphaned.
    pub fn number(&self) -> Option<u32> {
        (!self.orphaned).then_some(self.rule.number)
    }

    /// Returns true if the rule translates packets; `no nat` does not.
    pub fn translates(&self) -> bool {
        self.rule.nat.is_some() || self.rule.rdr.is_some()
    }

    /// Returns the queue of `set queue` for an ordinary or an urgent packet.
    pub fn queue(&self, urgent: bool) -> Option<String> {
        let (ordinary, second) = self.rule.set_queue.as_deref()?;
        Some(second.as_ref().filter(|_| urgent).unwrap_or(ordinary).clone())
    }

    /// Returns true if both rules have the same contents and rule set, whatever their positions.
    pub fn has_same_contents(&self, other: &Entry) -> bool {
        let said = |rule: &Rule| Rule { number: 0, line: 0, file: None, ..rule.clone() };
        (&self.path, self.legacy, self.leave_fragments)
            == (&other.path, other.legacy, other.leave_fragments)
            && said(&self.rule) == said(&other.rule)
    }

    /// Returns true if `quick` of an anchor rule applies. PF honours it only if the rule calls a
    /// single anchor.
    pub fn ends_evaluation(&self) -> bool {
        self.rule.quick && self.rule.anchor.as_ref().is_some_and(|call| !call.wildcard)
    }
}

impl Rulebook {
    pub fn new(ruleset: &Ruleset) -> Self {
        let default = Entry::new(DEFAULT, None, "", false, Rule::default());
        let mut rulebook = Rulebook {
            rules: vec![default],
            filter: Sets::new(),
            legacy: Default::default(),
            names_sctp_ports: false,
        };
        rulebook.replace(ruleset, |_| true);
        rulebook
    }

    /// Commits other rules. Rules of the anchors that `replaces` rejects keep their indexes.
    pub fn replace(&mut self, ruleset: &Ruleset, replaces: impl Fn(&str) -> bool) {
        let first = self.rules.len();
        let new = ruleset.all_rules().filter(|(path, _)| replaces(path));
        let filter = new.map(|(path, rule)| (path, false, rule.clone())).collect();
        add(&mut self.rules, &mut self.filter, None, filter, &replaces);
        for list in LegacyList::ALL {
            let (kind, sets) = (list.kind(), &mut self.legacy[list as usize]);
            let new = ruleset.all_legacy_rules().filter(|(path, _)| replaces(path));
            let those = new.filter(|(_, old)| old.kind == kind);
            let seen = those.map(|(path, old)| (path, old.leave_fragments, old.seen_in(list)));
            add(&mut self.rules, sets, Some(kind), seen.collect(), &replaces);
        }
        let indexes: HashMap<RuleId, usize> =
            self.rules[first..].iter().rev().map(|entry| (entry.id(), entry.index)).collect();
        for entry in &mut self.rules[first..] {
            entry.index = indexes[&entry.id()];
        }
        for sets in std::iter::once(&self.filter).chain(&self.legacy) {
            for index in sets.values().cloned().flatten() {
                let entry = &mut self.rules[index];
                let call = entry.rule.anchor.as_ref();
                entry.calls = call.map_or_else(Vec::new, |call| called(call, sets));
            }
        }
        self.names_sctp_ports = ruleset.names_sctp_ports();
    }

    /// Puts the rule sets of an earlier list in force again. Rules of later loads are orphaned.
    pub fn go_back_to(&mut self, before: &Rulebook) {
        for entry in &mut self.rules[before.len()..] {
            entry.orphaned = true;
        }
        self.rules[..before.len()].clone_from_slice(&before.rules);
        self.filter.clone_from(&before.filter);
        self.legacy.clone_from(&before.legacy);
        self.names_sctp_ports = before.names_sctp_ports;
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Returns the range of the main rule set.
    pub fn main(&self) -> Range<usize> {
        self.filter.get("").cloned().unwrap_or_default()
    }

    /// Returns the range of a legacy list of the main rule set.
    pub fn legacy_list(&self, list: LegacyList) -> Range<usize> {
        self.legacy[list as usize].get("").cloned().unwrap_or_default()
    }

    /// Returns the rule that decides about a packet that no rule matches.
    pub fn default_rule(&self) -> &Entry {
        &self.rules[DEFAULT]
    }

    /// Returns the rule at `index`, or `None` for the default rule.
    pub fn non_default(&self, index: usize) -> Option<&Entry> {
        Some(self.at(index)).filter(|rule| rule.index != DEFAULT)
    }

    /// Returns the rules of a rule set.
    pub fn rules(&self, set: &Range<usize>) -> &[Entry] {
        &self.rules[set.clone()]
    }

    /// Returns the rule at `index`.
    pub fn at(&self, index: usize) -> &Entry {
        &self.rules[index]
    }

    /// Returns the rules in force, without the default rule.
    pub fn in_force(&self) -> impl Iterator<Item = &Entry> {
        self.rules[DEFAULT + 1..].iter().filter(|entry| !entry.orphaned)
    }

    /// Returns the rules from `index` on.
    pub fn since(&self, index: usize) -> &[Entry] {
        &self.rules[index..]
    }

    /// Returns the rule in force with this name.
    pub fn find(&self, id: &RuleId) -> Option<&Entry> {
        self.in_force().find(|entry| entry.id() == *id)
    }
}

/// Replaces the rule sets of one kind. An item of `list` has the anchor's path, `leave_fragments`
/// and the rule; the main rule set comes first.
fn add(
    rules: &mut Vec<Entry>,
    sets: &mut Sets,
    legacy: Option<LegacyKind>,
    list: Vec<(&str, bool, Rule)>,
    replaces: impl Fn(&str) -> bool,
) {
    sets.retain(|path, set| {
        let stays = !replaces(path);
        rules[set.clone()].iter_mut().for_each(|entry| entry.orphaned = !stays);
        stays
    });
    for (path, leave_fragments, rule) in list {
        let index = rules.len();
        sets.entry(path.to_owned()).or_insert(index..index).end = index + 1;
        rules.push(Entry::new(index, legacy, path, leave_fragments, rule));
    }
}

/// Returns the rule sets with rules that a call means, in the order of evaluation.
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
