//! `-s nat`: the translation rules of old times, in FreeBSD's order and words. `-s rules` begins
//! with those that normalise.

use serde_json::{Value, json};
use skipstep_pfconf::{Names, PrintOptions, print};
use skipstep_ruleset::{OldKind, OldRule};
use skipstep_scenario::engine::RuleCounters;

use super::Detail;
use super::rules::{Inserted, counters_line, inserted_line};

/// The old rules of an anchor, or the main ones.
pub struct OldRulesView<'a> {
    /// In order.
    pub rules: &'a [OldRule],
    /// Their counters, in the same order.
    pub counters: Vec<RuleCounters>,
    /// User and process that loaded them.
    pub inserted: Inserted,
    /// Those that translate, else those that normalise.
    pub translation: bool,
    /// Only those with this number (`-R`).
    pub only: Option<u32>,
    /// Print ports by these names (`-P`).
    pub port_names: Option<&'a Names>,
}

impl OldRulesView<'_> {
    /// List by list.
    fn in_order(&self) -> impl Iterator<Item = (&OldRule, &RuleCounters)> {
        let wanted = |kind: &OldKind| (*kind != OldKind::Scrub) == self.translation;
        let kinds = OldKind::ALL.into_iter().filter(wanted);
        let rules = kinds.flat_map(|kind| {
            let all = self.rules.iter().zip(&self.counters);
            all.filter(move |(old, _)| old.kind == kind)
        });
        rules.filter(|(old, _)| self.only.is_none_or(|only| only == old.rule.number))
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

/// The rules, each with the lines of figures that `detail` asks for.
pub fn text(view: &OldRulesView, detail: Detail) -> String {
    let options = view.options(detail.very_verbose() || detail.debug);
    let mut text = String::new();
    for (old, counters) in view.in_order() {
        text += &print::old::rule(old, &options);
        text.push('\n');
        if detail.verbose() {
            text += &counters_line(counters);
            text += &inserted_line(view.inserted, counters);
        }
    }
    text
}

/// A list with an object for each rule.
pub fn json(view: &OldRulesView) -> Value {
    let options = view.options(false);
    let rules = view.in_order().map(|(old, counters)| {
        json!({
            "kind": old.kind.name(),
            "number": old.rule.number,
            "file": old.rule.file,
            "line": old.rule.line,
            "rule": print::old::rule(old, &options),
            "calls": old.rule.anchor.as_ref().map(|call| &call.path),
            "evaluations": counters.evaluations,
            "packets": counters.packets[0] + counters.packets[1],
            "bytes": counters.bytes[0] + counters.bytes[1],
            "states": counters.states,
            "inserted": { "uid": view.inserted.uid, "pid": view.inserted.pid },
        })
    });
    rules.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_by_list_each_with_its_numbers() {
        let host = skipstep_scenario::host::standard();
        let text_of_rules = "binat on em1 from 10.0.1.5 to any -> 192.0.2.5\n\
                             scrub in all\nrdr pass on em1 from any to 192.0.2.1 -> 10.0.1.5\n\
                             nat-anchor \"a/*\"\nno nat on em1 from 10.0.1.5 to any\npass\n";
        let context = skipstep_pfconf::Context::new(&host);
        let ruleset = skipstep_pfconf::load(text_of_rules, &context).unwrap().ruleset;
        let counters = vec![RuleCounters::default(); ruleset.old_rules.len()];
        let view = OldRulesView {
            rules: &ruleset.old_rules,
            counters,
            inserted: Inserted::default(),
            translation: true,
            only: None,
            port_names: None,
        };
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
        let view = OldRulesView { translation: false, ..view };
        assert_eq!(text(&view, Detail::default()), "scrub in all fragment reassemble\n");
        let view = OldRulesView { translation: true, ..view };
        assert_eq!(
            text(&OldRulesView { only: Some(1), ..view }, Detail::default()).lines().count(),
            1
        );
    }
}
