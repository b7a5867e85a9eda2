//! The rule sets that were in force while a log is followed. They give the rule of a record its
//! stable identity.

use std::collections::{BTreeMap, BTreeSet};

use skipstep_kernel::Instance;
use skipstep_kernel::instance::Loaded;
use skipstep_pfconf::identity::Identities;
use skipstep_ruleset::{LegacyKind, RuleId};

use super::record::{Record, log_name};
use crate::access;
use crate::request::Args;
use crate::views::seconds;

/// Number of rule sets that are remembered. A record is read a moment after the packet, so it may
/// name a rule of the rule set before the last load.
const REMEMBERED: usize = 2;

/// The rule set in force, and the one before.
pub struct RuleSets<'a> {
    args: &'a Args,
    instance: Option<Instance>,
    /// The rule sets, the latest first.
    known: Vec<RuleSet>,
}

impl<'a> RuleSets<'a> {
    /// Opens the instance that `args` name. Without an instance, or without the right to read it,
    /// no rule has an identity.
    pub fn new(args: &'a Args) -> Self {
        RuleSets { args, instance: access::open(args).ok().flatten(), known: Vec::new() }
    }

    /// Returns the identity of the rule that logged a record. Returns `None` for the default rule,
    /// and if the rule set that logged the record is not known.
    pub fn identity(&mut self, record: &Record) -> Option<String> {
        record.rule?;
        self.follow();
        let find = |known: &[RuleSet]| {
            known.iter().find_map(|set| set.identity(record).map(str::to_owned))
        };
        find(&self.known).or_else(|| {
            self.reopen();
            self.follow();
            find(&self.known)
        })
    }

    /// Reads the rule set in force, unless it is known.
    fn follow(&mut self) {
        let Some(instance) = &self.instance else { return };
        let generation = instance.generation();
        if self.known.first().is_some_and(|known| known.loaded.generation == generation) {
            return;
        }
        if let Ok(loaded) = instance.loaded() {
            self.known.insert(0, RuleSet::new(loaded));
            self.known.truncate(REMEMBERED);
        }
    }

    /// Opens the instance again if it was removed, or if there was none.
    fn reopen(&mut self) {
        if self.instance.as_ref().is_none_or(|instance| !instance.is_current()) {
            self.instance = access::open(self.args).ok().flatten();
        }
    }
}

/// A rule set that is or was in force.
pub struct RuleSet {
    loaded: Loaded,
    identities: Identities,
    /// Paths of the anchors that the rules with a number call, in whatever anchor the rules are.
    calls: BTreeMap<u32, BTreeSet<String>>,
}

impl RuleSet {
    /// Makes the rule set of a load.
    pub fn new(loaded: Loaded) -> Self {
        let identities = Identities::of(&loaded.ruleset);
        let mut calls: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
        for (_, rule) in loaded.ruleset.every_rule() {
            let Some(call) = &rule.anchor else { continue };
            let is_below = |path: &str| {
                call.wildcard && path.rsplit_once('/').is_some_and(|(above, _)| above == call.path)
            };
            let called = loaded.ruleset.anchors.keys();
            let called = called.filter(|path| **path == call.path || is_below(path));
            calls.entry(rule.number).or_default().extend(called.cloned());
        }
        RuleSet { loaded, identities, calls }
    }

    /// Returns the identity of a record's rule, if a rule of this rule set logged the record.
    fn identity(&self, record: &Record) -> Option<&str> {
        self.identities.get(&self.rule(record)?)
    }

    /// Returns the rule of a record, if a rule of this rule set logged the record.
    pub fn rule(&self, record: &Record) -> Option<RuleId> {
        let number = record.anchor.as_ref().map_or(record.rule, |(_, number)| Some(*number))?;
        let path = self.path(record)?;
        // a record of a state names no anchor and the load of the main rule set
        let is_of_state = record.anchor.as_ref().is_some_and(|(name, _)| name.is_empty());
        let (loaded_at, uid, pid) = self.load(if is_of_state { "" } else { path });
        let (later, ..) = self.load(path);
        let is_logged =
            record.loaded_by == (uid, pid) && record.time.timestamp() >= loaded_at.max(later);
        let old = LegacyKind::ALL.into_iter().find(|kind| kind.name() == record.action);
        is_logged.then(|| RuleId { anchor: path.to_owned(), old, number })
    }

    /// Returns the path of the anchor with a record's rule, or `None` if several anchors may be
    /// meant.
    fn path(&self, record: &Record) -> Option<&str> {
        let Some((name, _)) = &record.anchor else { return Some("") };
        let called = self.calls.get(&record.rule?)?.iter();
        let mut meant = called.filter(|path| name.is_empty() || log_name(path) == *name);
        let path = meant.next()?.as_str();
        meant.next().is_none().then_some(path)
    }

    /// Returns the time of the load of an anchor, in seconds since 1970, its user and its process.
    fn load(&self, path: &str) -> (i64, u32, u32) {
        match self.loaded.anchors.get(path) {
            Some(load) => (load.at as i64, load.uid, load.pid),
            None => (seconds(self.loaded.loaded_at), self.loaded.uid, self.loaded.pid),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use chrono::DateTime;
    use skipstep_kernel::record::Load;
    use skipstep_pfconf::Context;

    use super::*;

    const RULES: &str = "block\nanchor web {\npass in\nanchor \"long-name-of-an-anchor\" {\n\
        pass out label outer\n}\n}\nanchor \"more/*\"";

    /// Returns [`RULES`], loaded by process 7 in second 100, with `more/a`, loaded by process 8 in
    /// second 200.
    fn rule_set() -> RuleSet {
        let host = skipstep_scenario::host::standard();
        let load = |text| skipstep_pfconf::load(text, &Context::new(&host)).unwrap().ruleset;
        let mut ruleset = load(RULES);
        let more = skipstep_ruleset::Anchor { rules: load("pass").rules, ..Default::default() };
        ruleset.anchors.insert("more/a".into(), more);
        let main = Load { at: 100, uid: 0, pid: 7 };
        let mut anchors: BTreeMap<String, Load> =
            ruleset.anchors.keys().map(|path| (path.clone(), main)).collect();
        anchors.insert("more/a".into(), Load { at: 200, uid: 0, pid: 8 });
        let loaded_at = UNIX_EPOCH + Duration::from_secs(100);
        RuleSet::new(Loaded { ruleset, generation: 4, loaded_at, uid: 0, pid: 7, anchors })
    }

    fn record(rule: u32, anchor: Option<(&str, u32)>, pid: u32) -> Record {
        Record {
            time: DateTime::from_timestamp(300, 0).unwrap(),
            rule: Some(rule),
            anchor: anchor.map(|(name, number)| (name.to_owned(), number)),
            reason: "match",
            action: "pass",
            direction: "in",
            interface: "em0".into(),
            uid: None,
            loaded_by: (0, pid),
            length: 0,
            packet: Vec::new(),
        }
    }

    #[test]
    fn rules_of_anchors_are_found_by_their_caller() {
        let set = rule_set();
        let id = |path, number| set.identities.find(path, None, number);
        let found = |rule, anchor, pid| set.identity(&record(rule, anchor, pid));
        assert_eq!(found(0, None, 7), id("", 0));
        assert_eq!(found(1, Some(("web", 0)), 7), id("web", 0));
        // the log has the first 15 bytes of the name
        assert_eq!(found(1, Some(("long-name-of-an", 0)), 7), Some("outer"));
        assert_eq!(found(2, Some(("a", 0)), 8), id("more/a", 0));
        // of a state, which does not remember the anchor
        assert_eq!(found(2, Some(("", 0)), 7), id("more/a", 0));
        assert!(id("web", 0).is_some() && id("more/a", 0).is_some());
    }

    #[test]
    fn other_rule_sets_give_no_identity() {
        let set = rule_set();
        for (rule, anchor, pid) in
            [(0, None, 6), (9, None, 7), (0, Some(("web", 0)), 7), (1, Some(("web", 9)), 7)]
        {
            assert_eq!(set.identity(&record(rule, anchor, pid)), None, "{rule} {anchor:?}");
        }
        // "web" and the anchor below are called by rules with the number 1
        assert_eq!(set.identity(&record(1, Some(("", 0)), 7)), None);
        let earlier = |second| DateTime::from_timestamp(second, 0).unwrap();
        let before = Record { time: earlier(99), ..record(0, None, 7) };
        assert_eq!(set.identity(&before), None);
        let before = Record { time: earlier(199), ..record(2, Some(("", 0)), 7) };
        assert_eq!(set.identity(&before), None);
    }
}
