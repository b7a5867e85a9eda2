//! `-s nat`: prints the legacy translation rules (`nat`, `rdr`, `binat`) in FreeBSD's order and
//! syntax. `-s rules` begins with the legacy `scrub` rules.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use skipstep_pfconf::identity::Identities;
use skipstep_pfconf::{Names, PrintOptions, print};
use skipstep_ruleset::{AnchorCall, LegacyKind, LegacyRule};
use skipstep_views::RuleCounters;

use super::Detail;
use super::rules::{Inserted, children, counters_line, inserted_line};
use crate::anchors::is_below;

/// The legacy rules of a rule set and of its anchors.
pub struct LegacyRulesView<'a> {
    /// The legacy rules by anchor path; the main rule set has the empty path.
    pub sets: BTreeMap<&'a str, LegacyRuleSet<'a>>,
    /// Path of the rule set to show.
    pub path: &'a str,
    /// True for `-a '*'`: called anchors are shown, too.
    pub recursive: bool,
    /// True for `nat`, `rdr` and `binat` rules, false for `scrub` rules.
    pub translation: bool,
    /// Number of the only rules to show (`-R`).
    pub only: Option<u32>,
    /// Names to print for ports (`-P`).
    pub port_names: Option<&'a Names>,
    /// The stable identities of the rules (JSON only).
    pub identities: &'a Identities,
}

/// The legacy rules of one anchor or of the main rule set.
pub struct LegacyRuleSet<'a> {
    /// Rules in order.
    pub rules: &'a [LegacyRule],
    /// Counters of the rules, in the same order.
    pub counters: Vec<RuleCounters>,
    /// User and process that loaded the rules.
    pub inserted: Inserted,
}

impl LegacyRuleSet<'_> {
    fn of_kind(&self, kind: LegacyKind) -> impl Iterator<Item = (&LegacyRule, &RuleCounters)> {
        self.rules.iter().zip(&self.counters).filter(move |(old, _)| old.kind == kind)
    }
}

impl LegacyRulesView<'_> {
    /// Returns the kinds of rules to show, in the order in which packets meet them.
    fn kinds(&self) -> impl Iterator<Item = LegacyKind> {
        let wanted = |kind: &LegacyKind| (*kind != LegacyKind::Scrub) == self.translation;
        LegacyKind::ALL.into_iter().filter(wanted)
    }

    fn is_wanted(&self, old: &LegacyRule) -> bool {
        self.only.is_none_or(|only| only == old.rule.number)
    }

    fn options(&self, numbers: bool) -> PrintOptions<'_> {
        PrintOptions {
            numbers,
            port_names: self.port_names.is_some(),
            names: self.port_names.unwrap_or(Names::builtin()),
            ..PrintOptions::default()
        }
    }
}

/// Prints the rules kind by kind, with the lines of counters that `detail` selects.
pub fn text(view: &LegacyRulesView, detail: Detail) -> String {
    let options = view.options(detail.very_verbose() || detail.debug);
    let mut printer = Printer { view, detail, options, text: String::new() };
    for kind in view.kinds() {
        printer.list(view.path, kind, 0);
    }
    printer.text
}

struct Printer<'a> {
    view: &'a LegacyRulesView<'a>,
    detail: Detail,
    options: PrintOptions<'a>,
    text: String,
}

impl Printer<'_> {
    /// Prints the rules of one kind in a rule set. `depth` is the number of enclosing anchors.
    fn list(&mut self, path: &str, kind: LegacyKind, depth: usize) {
        let view = self.view;
        let Some(set) = view.sets.get(path) else { return };
        let indentation = self.detail.indentation(depth);
        for (old, counters) in set.of_kind(kind) {
            if depth == 0 && !view.is_wanted(old) {
                continue;
            }
            let called = old.rule.anchor.as_ref().filter(|_| view.recursive);
            let brace = if called.is_some() { " {" } else { "" };
            let rule = print::legacy::rule(old, &self.options);
            self.text += &format!("{indentation}{rule}{brace}\n");
            if self.detail.verbose() {
                self.text += &counters_line(counters);
                self.text += &inserted_line(set.inserted, counters);
            }
            if let Some(call) = called {
                self.called(call, kind, depth + 1);
                self.text += &format!("{indentation}}}\n");
            }
        }
    }

    /// Prints the rules of a called anchor. A call that ends in `/*` prints all anchors directly
    /// below.
    fn called(&mut self, call: &AnchorCall, kind: LegacyKind, depth: usize) {
        if !call.wildcard {
            return self.list(&call.path, kind, depth);
        }
        let view = self.view;
        let indentation = self.detail.indentation(depth);
        for child in children(&view.sets, &call.path) {
            if view.sets[child].of_kind(kind).next().is_none() {
                continue;
            }
            let name = child.rsplit('/').next().unwrap_or(child);
            self.text += &format!("{indentation}{}-anchor \"{name}\" all {{\n", kind.name());
            self.list(child, kind, depth + 1);
            self.text += &format!("{indentation}}}\n");
        }
    }
}

/// Returns a list with an object for each rule of the rule set. If the view is recursive, rules of
/// all anchors below are included.
pub fn json(view: &LegacyRulesView) -> Value {
    let options = view.options(false);
    let wanted = |path: &str| path == view.path || view.recursive && is_below(path, view.path);
    let sets = view.sets.iter().filter(|(path, _)| wanted(path));
    let rules = sets.flat_map(|(path, set)| {
        let lists = view.kinds().flat_map(|kind| set.of_kind(kind));
        lists.map(move |(old, counters)| (path, set, old, counters))
    });
    rules
        .filter(|(_, _, old, _)| view.is_wanted(old))
        .map(|(path, set, old, counters)| {
            json!({
                "anchor": path,
                "kind": old.kind.name(),
                "number": old.rule.number,
                "id": view.identities.find(path, Some(old.kind), old.rule.number),
                "file": old.rule.file,
                "line": old.rule.line,
                "rule": print::legacy::rule(old, &options),
                "calls": old.rule.anchor.as_ref().map(|call| &call.path),
                "evaluations": counters.evaluations,
                "packets": counters.packets[0] + counters.packets[1],
                "bytes": counters.bytes[0] + counters.bytes[1],
                "states": counters.states,
                "inserted": { "uid": set.inserted.uid, "pid": set.inserted.pid },
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use skipstep_ruleset::{Anchor, Ruleset};

    use super::*;

    /// Returns a view of the translation rules of a rule set and its anchors. All counters are 0.
    fn view(ruleset: &Ruleset, recursive: bool) -> LegacyRulesView<'_> {
        let paths = ruleset.anchors.keys().map(String::as_str).chain([""]);
        let sets = paths.map(|path| {
            let rules = ruleset.legacy_rules_of(path);
            let counters = vec![RuleCounters::default(); rules.len()];
            (path, LegacyRuleSet { rules, counters, inserted: Inserted::default() })
        });
        LegacyRulesView {
            sets: sets.collect(),
            path: "",
            recursive,
            translation: true,
            only: None,
            port_names: None,
            identities: Box::leak(Box::default()),
        }
    }

    #[test]
    fn rules_of_anchors_stand_below_their_calls() {
        let host = skipstep_scenario::host::standard();
        let context = skipstep_pfconf::Context::new(&host);
        let load = |text| skipstep_pfconf::load(text, &context).unwrap().ruleset;
        let mut ruleset = load("nat-anchor \"a/*\"\nnat-anchor \"b\"\nrdr-anchor \"a/*\"\n");
        let inner = load("nat on em1 from 10.0.1.5 to any -> 192.0.2.5\nnat-anchor \"c\"\n");
        for path in ["a/one", "b"] {
            let anchor = Anchor { legacy_rules: inner.legacy_rules.clone(), ..Anchor::default() };
            ruleset.anchors.insert(path.to_string(), anchor);
        }
        let view = view(&ruleset, true);
        let expected = "nat-anchor \"a/*\" all {\n  nat-anchor \"one\" all {\n    \
            nat on em1 inet from 10.0.1.5 to any -> 192.0.2.5\n    nat-anchor \"c\" all {\n    }\n  \
            }\n}\nnat-anchor \"b\" all {\n  nat on em1 inet from 10.0.1.5 to any -> 192.0.2.5\n  \
            nat-anchor \"c\" all {\n  }\n}\nrdr-anchor \"a/*\" all {\n}\n";
        assert_eq!(text(&view, Detail::default()), expected);
        assert_eq!(json(&view).as_array().unwrap().len(), 7);
        let view = LegacyRulesView { path: "b", recursive: false, ..view };
        assert_eq!(text(&view, Detail::default()).lines().count(), 2);
        assert_eq!(json(&view).as_array().unwrap().len(), 2);
    }

    #[test]
    fn each_kind_of_rule_is_numbered_from_0() {
        let host = skipstep_scenario::host::standard();
        let text_of_rules = "binat on em1 from 10.0.1.5 to any -> 192.0.2.5\n\
                             scrub in all\nrdr pass on em1 from any to 192.0.2.1 -> 10.0.1.5\n\
                             nat-anchor \"a/*\"\nno nat on em1 from 10.0.1.5 to any\npass\n";
        let context = skipstep_pfconf::Context::new(&host);
        let ruleset = skipstep_pfconf::load(text_of_rules, &context).unwrap().ruleset;
        let view = view(&ruleset, false);
        let very = Detail { verbose: 2, debug: false };
        let printed = text(&view, very);
        let rules: Vec<&str> = printed.lines().filter(|line| !line.starts_with(' ')).collect();
        let expected = [
            "@0 nat-anchor \"a/*\" all",
            "@1 no nat on em1 inet from 10.0.1.5 to any",
            "@0 rdr pass on em1 inet from any to 192.0.2.1 -> 10.0.1.5",
            "@0 binat on em1 inet from 10.0.1.5 to any -> 192.0.2.5",
        ];
        assert_eq!(rules, expected);
        assert_eq!(printed.matches("[ Evaluations:").count(), 4);
        let view = LegacyRulesView { translation: false, ..view };
        assert_eq!(text(&view, Detail::default()), "scrub in all fragment reassemble\n");
        let view = LegacyRulesView { translation: true, ..view };
        assert_eq!(
            text(&LegacyRulesView { only: Some(1), ..view }, Detail::default()).lines().count(),
            1
        );
    }
}
