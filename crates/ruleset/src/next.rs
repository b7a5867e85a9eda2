//! The rule set that results from a change, and the parts of it that are new.

use std::collections::BTreeSet;

use crate::{Anchor, Ruleset, Table, failsafe};

/// A change that pfctl makes to the rules in force.
#[derive(Debug, Clone, PartialEq)]
pub enum RulesChange {
    /// `pfctl -f`: replaces the rule set of this path (empty for the main one) and its anchors.
    Load(String, Box<Ruleset>),
    /// `pfctl -F rules`: the rules of this path are removed.
    Flush(String),
}

impl RulesChange {
    /// Returns the rule set that the change makes of the previous one.
    pub fn next(&self, previous: &Ruleset) -> Next {
        match self {
            RulesChange::Load(path, new) if path.is_empty() => {
                Next::main(previous, (**new).clone())
            }
            RulesChange::Load(path, new) => Next::anchors(previous, [(path.as_str(), &**new)]),
            RulesChange::Flush(path) if path.is_empty() => Next::emptied(previous),
            RulesChange::Flush(path) => {
                Next::anchors(previous, [(path.as_str(), &Ruleset::default())])
            }
        }
    }
}

/// The rule set that the next commit makes valid.
#[derive(Debug, Clone)]
pub struct Next {
    /// The main rule set and all anchors.
    pub ruleset: Ruleset,
    /// Paths of the anchors whose rules and tables are replaced or removed; empty for the main rule
    /// set. All other anchors keep their counters and states.
    pub replaced: BTreeSet<String>,
    /// Path of the anchor that loses its legacy translation rules and keeps all its other rules.
    pub untranslated: Option<String>,
}

impl Next {
    /// Returns the result of `pfctl -f`. The main rule set and the anchors in `new` are replaced;
    /// anchors that `pfctl -a` loaded stay. The previous failsafe list goes.
    pub fn main(previous: &Ruleset, new: Ruleset) -> Self {
        let mut ruleset = new;
        let mut replaced: BTreeSet<String> = ruleset.anchors.keys().cloned().collect();
        let had_list = previous.has_failsafe_list();
        let goes = |path: &str| is_unnamed(path) || had_list && path == failsafe::ANCHOR;
        for (path, anchor) in previous.anchors.iter().filter(|(path, _)| !goes(path)) {
            ruleset.anchors.entry(path.clone()).or_insert_with(|| anchor.clone());
        }
        replaced.extend(previous.anchors.keys().filter(|path| goes(path)).cloned());
        replaced.insert(String::new());
        keep_systems(&mut ruleset, previous);
        Next { ruleset, replaced, untranslated: None }
    }

    /// Returns the result of one or several `pfctl -a path -f`. Each anchor, and the anchors in its
    /// rule set, are replaced. An anchor without contents is removed.
    pub fn anchors<'a>(
        previous: &Ruleset,
        changes: impl IntoIterator<Item = (&'a str, &'a Ruleset)>,
    ) -> Self {
        let mut next = Self::same(previous);
        for (path, new) in changes {
            next.replace(path, new);
        }
        keep_systems(&mut next.ruleset, previous);
        next
    }

    fn replace(&mut self, path: &str, new: &Ruleset) {
        self.remove(path);
        let Ruleset { rules, legacy_rules, tables, anchors, fingerprints, systems, .. } =
            new.clone();
        self.replaced.extend(anchors.keys().cloned());
        self.ruleset.anchors.extend(anchors);
        let anchor = Anchor { rules, legacy_rules, tables };
        if anchor != Anchor::default() {
            self.ruleset.anchors.insert(path.to_owned(), anchor);
        }
        if !fingerprints.is_empty() {
            self.ruleset.fingerprints = fingerprints;
        }
        self.ruleset.systems.extend(systems);
    }

    /// Removes an anchor and its unnamed anchors, which no other rule can call; others stay.
    fn remove(&mut self, path: &str) {
        let below = |other: &str| {
            other.strip_prefix(path).and_then(|rest| rest.strip_prefix('/')).is_some_and(is_unnamed)
        };
        let anchors = self.ruleset.anchors.keys();
        let goes = anchors.filter(|other| *other == path || below(other)).cloned();
        let gone: Vec<String> = goes.chain([path.to_owned()]).collect();
        for path in gone {
            self.ruleset.anchors.remove(&path);
            self.replaced.insert(path);
        }
    }

    /// Returns the result of `pfctl -F rules`. The main rule set loses its rules, and the tables
    /// that are not persistent; options stay.
    pub fn emptied(previous: &Ruleset) -> Self {
        Self::main(previous, Ruleset { options: previous.options.clone(), ..Ruleset::default() })
    }

    /// Returns the previous rule set unchanged.
    pub fn same(previous: &Ruleset) -> Self {
        Next { ruleset: previous.clone(), replaced: BTreeSet::new(), untranslated: None }
    }

    /// Returns the result of `pfctl -F nat`: the anchor loses its legacy rules other than `scrub`.
    pub fn without_translation(previous: &Ruleset, path: &str) -> Self {
        let mut next = Self::same(previous);
        let ruleset = &mut next.ruleset;
        let legacy_rules = match path {
            "" => Some(&mut ruleset.legacy_rules),
            path => ruleset.anchors.get_mut(path).map(|anchor| &mut anchor.legacy_rules),
        };
        if let Some(legacy_rules) = legacy_rules {
            legacy_rules.retain(|rule| !rule.kind.translates());
        }
        next.untranslated = Some(path.to_owned());
        next
    }

    /// Returns the result of `pfctl -T load`: the rule set of `path` keeps its rules and its
    /// anchors, and gets the tables that statements of `new` define. Its other tables keep their
    /// entries.
    pub fn tables(previous: &Ruleset, path: &str, new: &[Table]) -> Self {
        let mut next = Self::same(previous);
        let mut tables = previous.tables_of(path).to_vec();
        let stated = || new.iter().filter(|table| table.stated);
        tables.retain(|table| stated().all(|stated| stated.name != table.name));
        tables.iter_mut().for_each(|table| table.initialized = false);
        tables.extend(stated().cloned());
        if path.is_empty() {
            next.ruleset.tables = tables;
        } else if next.ruleset.anchors.contains_key(path) || !tables.is_empty() {
            next.ruleset.anchors.entry(path.to_owned()).or_default().tables = tables;
        }
        next.replaced.insert(path.to_owned());
        next
    }

    /// True if the rules and tables of an anchor are replaced or removed.
    pub fn replaces(&self, path: &str) -> bool {
        self.replaced.contains(path)
    }
}

/// Keeps the meaning of `os` names that unchanged anchors use, and removes unused names.
fn keep_systems(ruleset: &mut Ruleset, previous: &Ruleset) {
    for (name, wanted) in &previous.systems {
        ruleset.systems.entry(name.clone()).or_insert_with(|| wanted.clone());
    }
    let asked = ruleset.os_names();
    ruleset.systems.retain(|name, _| asked.contains(name));
    if ruleset.fingerprints.is_empty() && !asked.is_empty() {
        ruleset.fingerprints = previous.fingerprints.clone();
    }
}

/// True if a part of the path is a generated name. Generated names begin with `_`.
fn is_unnamed(path: &str) -> bool {
    path.split('/').any(|name| name.starts_with('_'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LegacyKind, LegacyRule, Rule};

    fn ruleset(paths: &[&str]) -> Ruleset {
        let anchor = Anchor { rules: vec![Rule::default()], ..Anchor::default() };
        let anchors = paths.iter().map(|path| ((*path).to_owned(), anchor.clone()));
        Ruleset { anchors: anchors.collect(), ..Ruleset::default() }
    }

    fn paths(next: &Next) -> (Vec<&str>, Vec<&str>) {
        let anchors = next.ruleset.anchors.keys().map(String::as_str);
        (anchors.collect(), next.replaced.iter().map(String::as_str).collect())
    }

    #[test]
    fn a_new_main_rule_set_keeps_anchors_loaded_separately() {
        let next = Next::main(&ruleset(&["_1", "_1/a", "a", "a/b"]), ruleset(&["_1", "a"]));
        assert_eq!(paths(&next), (vec!["_1", "a", "a/b"], vec!["", "_1", "_1/a", "a"]));
    }

    #[test]
    fn the_failsafe_list_goes_with_the_main_rule_set_that_began_with_it() {
        let mut previous = ruleset(&["a", failsafe::ANCHOR]);
        let kept = Next::main(&previous, Ruleset::default());
        assert_eq!(paths(&kept).0, ["a", failsafe::ANCHOR], "an anchor of pfctl -a");
        previous.rules = vec![failsafe::call()];
        for next in [Next::main(&previous, Ruleset::default()), Next::emptied(&previous)] {
            assert_eq!(paths(&next), (vec!["a"], vec!["", failsafe::ANCHOR]));
        }
        let again = Next::main(&previous, previous.clone());
        assert_eq!(paths(&again).0, ["a", failsafe::ANCHOR]);
    }

    #[test]
    fn replacing_an_anchor_removes_only_its_unnamed_anchors() {
        let previous = ruleset(&["a", "a/_1", "a/b", "ab/_1"]);
        let next = Next::anchors(&previous, [("a", &Ruleset::default())]);
        assert_eq!(paths(&next), (vec!["a/b", "ab/_1"], vec!["a", "a/_1"]));
        let mut new = ruleset(&["a/c"]);
        new.rules.push(Rule::default());
        let next = Next::anchors(&previous, [("a", &new)]);
        assert_eq!(paths(&next), (vec!["a", "a/b", "a/c", "ab/_1"], vec!["a", "a/_1", "a/c"]));
        let next = Next::anchors(&previous, [("a", &new), ("ab/_1", &Ruleset::default())]);
        assert_eq!(paths(&next), (vec!["a", "a/b", "a/c"], vec!["a", "a/_1", "a/c", "ab/_1"]));
    }

    #[test]
    fn a_load_of_tables_changes_tables_only() {
        let table = |name: &str| Table {
            name: name.into(),
            defined: true,
            stated: true,
            ..Table::default()
        };
        let mut previous = ruleset(&["a", "a/_1", "b"]);
        let anchor = previous.anchors.get_mut("a").unwrap();
        anchor.legacy_rules.push(LegacyRule {
            kind: LegacyKind::Nat,
            no: false,
            pass: false,
            leave_fragments: false,
            rule: Rule::default(),
        });
        anchor.tables = vec![table("kept"), table("replaced")];
        let mut expected = previous.clone();
        let mentioned = Table { name: "kept".into(), ..Table::default() };
        let next = Next::tables(&previous, "a", &[table("replaced"), mentioned]);
        expected.anchors.get_mut("a").unwrap().tables = next.ruleset.tables_of("a").to_vec();
        assert_eq!(next.ruleset, expected);
        assert_eq!(next.replaced, ["a".to_owned()].into());
        let names = next.ruleset.tables_of("a").iter().map(|table| &table.name[..]);
        assert_eq!(names.collect::<Vec<_>>(), ["kept", "replaced"]);

        let next = Next::tables(&previous, "", &[table("new")]);
        assert_eq!((next.ruleset.tables.len(), &next.ruleset.anchors), (1, &previous.anchors));
        assert_eq!(Next::tables(&previous, "c", &[]).ruleset, previous);
    }
}
