//! `-s rules`: prints the rules of a rule set, and of the anchors that the rules call.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use skipstep_pfconf::identity::Identities;
use skipstep_pfconf::print::{self, DynamicSizes, TableSizes};
use skipstep_pfconf::{Names, PrintOptions};
use skipstep_ruleset::skip::{Skip, skip_steps};
use skipstep_ruleset::{AnchorCall, Rule};
use skipstep_views::RuleCounters;

use super::Detail;
use crate::anchors::is_below;

/// The rules of a rule set and of its anchors, with everything that is printed about them.
pub struct RulesView<'a> {
    /// The rules by anchor path; the main rule set has the empty path.
    pub sets: BTreeMap<&'a str, RuleSet<'a>>,
    /// Path of the rule set to show.
    pub path: &'a str,
    /// True for `-a '*'`: called anchors with names are shown, too.
    pub recursive: bool,
    /// Number of the only rule to show (`-R`).
    pub only: Option<u32>,
    /// Names to print for ports (`-P`).
    pub port_names: Option<&'a Names>,
    /// Returns the number of addresses in a table, by anchor path and name (`-vv`). `None` means
    /// that the table is not defined.
    pub table_sizes: &'a dyn Fn(&str, &str) -> Option<usize>,
    /// Returns the number of addresses of an interface in parentheses (`-vv`).
    pub dynamic_sizes: DynamicSizes<'a>,
    /// Numbers of queues by name (`-g`).
    pub queue_numbers: BTreeMap<String, u16>,
    /// The stable identities of the rules (JSON only).
    pub identities: &'a Identities,
}

/// The rules of one anchor or of the main rule set.
pub struct RuleSet<'a> {
    /// Rules in order.
    pub rules: &'a [Rule],
    /// Counters of the rules, in the same order.
    pub counters: Vec<RuleCounters>,
    /// User and process that loaded the rules.
    pub inserted: Inserted,
}

/// The user and process that loaded a rule set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Inserted {
    /// User id.
    pub uid: u32,
    /// Process id.
    pub pid: u32,
}

/// Prints the rules, each with the lines of counters that `detail` selects. As in OpenBSD's `-s
/// all`, `title` stands above each rule set, including rule sets in braces.
pub fn text(view: &RulesView, detail: Detail, title: Option<&str>) -> String {
    let mut printer = Printer { view, detail, title, text: String::new() };
    printer.set(view.path, 0, view.only);
    printer.text
}

struct Printer<'a> {
    view: &'a RulesView<'a>,
    detail: Detail,
    title: Option<&'a str>,
    text: String,
}

impl Printer<'_> {
    /// Prints a rule set. `depth` is the number of enclosing anchors.
    fn set(&mut self, path: &str, depth: usize, only: Option<u32>) {
        let view = self.view;
        if let Some(title) = self.title {
            let before = if depth > 0 { "\n" } else { "" };
            self.text += &format!("{before}{title}\n");
        }
        let Some(set) = view.sets.get(path) else { return };
        let all = self.detail.very_verbose() || self.detail.debug;
        let table_sizes = |name: &str| (view.table_sizes)(path, name);
        let options = PrintOptions {
            numbers: all,
            port_names: view.port_names.is_some(),
            names: view.port_names.unwrap_or(Names::builtin()),
            table_sizes: all.then_some(&table_sizes as TableSizes),
            dynamic_sizes: all.then_some(view.dynamic_sizes),
        };
        let steps = if self.detail.debug { skip_steps(set.rules) } else { Vec::new() };
        for (i, (rule, counters)) in set.rules.iter().zip(&set.counters).enumerate() {
            if only.is_some_and(|only| only != rule.number) {
                continue;
            }
            self.text += &self.detail.indentation(depth);
            if counters.expired && !all {
                continue;
            }
            self.text += &print::rule(rule, &options);
            self.text += if counters.expired { " # expired" } else { "" };
            let inner = rule.anchor.as_ref().filter(|call| view.recursive || call.is_unnamed());
            self.text += if inner.is_some() { " {\n" } else { "\n" };
            if self.detail.debug {
                self.text += &skip_line(i, &steps[i], set.rules.len());
                self.text += &queue_line(rule, &view.queue_numbers);
            }
            if self.detail.verbose() {
                self.text += &counters_line(counters);
                if !self.detail.debug {
                    self.text += &inserted_line(set.inserted, counters);
                }
            }
            if let Some(call) = inner {
                self.called(call, depth + 1);
                self.text += &self.detail.indentation(depth);
                self.text += "}\n";
            }
        }
    }

    /// Prints the rules of a called anchor. A wildcard call of an anchor without rules prints all
    /// anchors directly below.
    fn called(&mut self, call: &AnchorCall, depth: usize) {
        let own = self.view.sets.get(call.path.as_str());
        if !call.wildcard || own.is_some_and(|set| !set.rules.is_empty()) {
            return self.set(&call.path, depth, None);
        }
        for child in children(&self.view.sets, &call.path) {
            let name = child.rsplit('/').next().unwrap_or(child);
            self.text += &format!("{}anchor \"{name}\" all {{\n", self.detail.indentation(depth));
            self.set(child, depth + 1, None);
            self.text += &format!("{}}}\n", self.detail.indentation(depth));
        }
    }
}

/// Returns the paths of the anchors directly below `path`.
pub(super) fn children<'a, T>(
    sets: &'a BTreeMap<&'a str, T>,
    path: &'a str,
) -> impl Iterator<Item = &'a str> {
    sets.keys().copied().filter(move |child| {
        let name = child.strip_prefix(path).and_then(|rest| rest.strip_prefix('/'));
        name.is_some_and(|name| !name.contains('/'))
    })
}

/// Prints the skip steps of a rule: the next rule to evaluate if a parameter does not match. Steps
/// to the very next rule are left out.
fn skip_line(rule: usize, steps: &[u32; Skip::COUNT], rules: usize) -> String {
    let mut line = "  [ Skip steps: ".to_string();
    for skip in Skip::ALL {
        let next = steps[skip as usize] as usize;
        if next == rules {
            line += &format!("{}=end ", skip.name());
        } else if next != rule + 1 {
            line += &format!("{}={next} ", skip.name());
        }
    }
    line + "]\n"
}

/// Prints the queues of a rule. Without a second queue, the first is used for all packets.
fn queue_line(rule: &Rule, numbers: &BTreeMap<String, u16>) -> String {
    let (name, second) = match rule.set_queue.as_deref() {
        Some((name, second)) => (name.as_str(), second.as_deref().unwrap_or_default()),
        None => ("", ""),
    };
    let number = |name| numbers.get(name).copied().unwrap_or(0);
    let last = if second.is_empty() { number(name) } else { number(second) };
    let first = number(name);
    format!("  [ queue: qname={name} qid={first} pqname={second} pqid={last} ]\n")
}

pub(super) fn counters_line(counters: &RuleCounters) -> String {
    format!(
        "  [ Evaluations: {:<8}  Packets: {:<8}  Bytes: {:<10}  States: {:<6}]\n",
        counters.evaluations,
        counters.packets[0] + counters.packets[1],
        counters.bytes[0] + counters.bytes[1],
        counters.states,
    )
}

pub(super) fn inserted_line(inserted: Inserted, counters: &RuleCounters) -> String {
    format!(
        "  [ Inserted: uid {} pid {} State Creations: {:<6}]\n",
        inserted.uid, inserted.pid, counters.states_created
    )
}

/// Returns a list with an object for each rule of the rule set. If the view is recursive, rules of
/// all anchors below are included.
pub fn json(view: &RulesView) -> Value {
    let options = PrintOptions {
        port_names: view.port_names.is_some(),
        names: view.port_names.unwrap_or(Names::builtin()),
        ..PrintOptions::default()
    };
    let wanted = |path: &str| path == view.path || view.recursive && is_below(path, view.path);
    let sets = view.sets.iter().filter(|(path, _)| wanted(path));
    let rules = sets.flat_map(|(path, set)| {
        set.rules.iter().zip(&set.counters).map(move |both| (path, set, both))
    });
    rules
        .filter(|(.., (rule, _))| view.only.is_none_or(|only| only == rule.number))
        .map(|(path, set, (rule, counters))| {
            json!({
                "anchor": path,
                "number": rule.number,
                "id": view.identities.find(path, None, rule.number),
                "file": rule.file,
                "line": rule.line,
                "rule": print::rule(rule, &options),
                "calls": rule.anchor.as_ref().map(|call| &call.path),
                "labels": rule.labels,
                "evaluations": counters.evaluations,
                "packets_in": counters.packets[0],
                "bytes_in": counters.bytes[0],
                "packets_out": counters.packets[1],
                "bytes_out": counters.bytes[1],
                "states": counters.states,
                "states_created": counters.states_created,
                "expired": counters.expired,
                "inserted": { "uid": set.inserted.uid, "pid": set.inserted.pid },
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use skipstep_ruleset::{Anchor, Ruleset};

    use super::*;

    const RULES: &str = "block
        anchor \"a\" {
            pass in proto tcp
            anchor {
                block quick
            }
        }
        anchor \"b/*\"";

    fn load(text: &str) -> Ruleset {
        let host = skipstep_scenario::host::standard();
        skipstep_pfconf::load(text, &skipstep_pfconf::Context::new(&host)).unwrap().ruleset
    }

    /// Returns the output of `-sr` for [`RULES`], with all counters 0. `pass out` is loaded as
    /// `b/c`.
    fn shown(path: &str, recursive: bool, detail: Detail) -> String {
        let mut ruleset = load(RULES);
        let anchor = Anchor { rules: load("pass out").rules, ..Anchor::default() };
        ruleset.anchors.insert("b/c".to_owned(), anchor);
        let paths = ruleset.anchors.keys().map(String::as_str).chain([""]);
        let set = |path| {
            let rules = ruleset.rules_of(path);
            let counters = vec![RuleCounters::default(); rules.len()];
            (path, RuleSet { rules, counters, inserted: Inserted::default() })
        };
        let view = RulesView {
            sets: paths.map(set).collect(),
            path,
            recursive,
            only: None,
            port_names: None,
            table_sizes: &|_, _| None,
            dynamic_sizes: &|_, _| 0,
            queue_numbers: BTreeMap::new(),
            identities: &Identities::default(),
        };
        text(&view, detail, None)
    }

    #[test]
    fn anchors_without_a_name_are_always_shown() {
        assert_eq!(
            shown("", false, Detail::default()),
            "block drop all\nanchor \"a\" all\nanchor \"b/*\" all\n"
        );
        assert_eq!(
            shown("a", false, Detail::default()),
            "pass in proto tcp all flags S/SA\nanchor all {\n  block drop quick all\n}\n"
        );
    }

    #[test]
    fn named_anchors_are_shown_by_recursion_only() {
        let expected = "block drop all
anchor \"a\" all {
  pass in proto tcp all flags S/SA
  anchor all {
    block drop quick all
  }
}
anchor \"b/*\" all {
  anchor \"c\" all {
    pass out all flags S/SA
  }
}
";
        assert_eq!(shown("", true, Detail::default()), expected);
    }

    #[test]
    fn rules_with_counters_are_not_indented() {
        let detail = Detail { verbose: 1, debug: false };
        let text = shown("a", false, detail);
        assert!(text.lines().any(|line| line == "block drop quick all"), "{text}");
        assert_eq!(text.matches("[ Evaluations:").count(), 3);
    }
}
