//! All rules of a rule set in one list: those of the main rule set, then those of each anchor.

use std::collections::BTreeMap;
use std::ops::{Deref, Range};

use skipstep_ruleset::{AnchorCall, Rule, RuleId, Ruleset};

/// The list.
#[derive(Debug, Clone)]
pub(crate) struct Rulebook {
    rules: Vec<Entry>,
    main: Range<usize>,
}

/// A rule with its place in the list.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Its index in the list.
    pub place: usize,
    /// Path of the anchor it is in; empty in the main rule set.
    pub path: String,
    /// The rule sets that an anchor rule calls, one after the other.
    pub calls: Vec<Range<usize>>,
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
        RuleId { anchor: self.path.clone(), number: self.rule.number }
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
        let mut sets: BTreeMap<&str, Range<usize>> = BTreeMap::new();
        let mut rules = Vec::new();
        for (anchor, rule) in ruleset.all_rules() {
            let place = rules.len();
            let set = sets.entry(anchor).or_insert(place..place);
            set.end = place + 1;
            let calls = Vec::new();
            rules.push(Entry { place, path: anchor.to_owned(), calls, rule: rule.clone() });
        }
        for entry in &mut rules {
            if let Some(call) = &entry.rule.anchor {
                entry.calls = called(call, &sets);
            }
        }
        Rulebook { rules, main: sets.get("").cloned().unwrap_or_default() }
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Where the main rule set is.
    pub fn main(&self) -> Range<usize> {
        self.main.clone()
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
        self.rules.iter().find(|entry| entry.path == id.anchor && entry.number == id.number)
    }
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
