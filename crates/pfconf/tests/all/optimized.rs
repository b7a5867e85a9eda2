//! OpenBSD's cases of rule sets in the kernel, as loaded and as optimized (pf-regress.md). Rules
//! and skip steps must be the same.

use std::io;
use std::path::Path;

use crate::common::regression_host;
use skipstep_pfconf::{Context, Names, PrintOptions, load, print};
use skipstep_ruleset::skip::{Skip, skip_steps};
use skipstep_ruleset::{Optimization, Rule, Ruleset, Table};

#[test]
#[ignore = "needs ../shared"]
fn shared_rules_and_skip_steps_are_as_in_openbsds_kernel() {
    let directory =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/pf-regress/openbsd");
    let (mut equal, mut differences) = (0, Vec::new());
    for entry in directory.read_dir().unwrap() {
        let file = entry.unwrap().path();
        let level = match file.extension().and_then(|extension| extension.to_str()) {
            Some("loaded") => Optimization::None,
            Some("optimized") => Optimization::Basic,
            _ => continue,
        };
        let input = std::fs::read_to_string(file.with_extension("in")).unwrap();
        let expected = shown(&std::fs::read_to_string(&file).unwrap());
        let name = file.file_name().unwrap().to_string_lossy().to_string();
        let got = rules(&input, level);
        if got == expected {
            equal += 1;
        } else {
            differences
                .push(format!("--- {name}\n{input}\n--- expected\n{expected}\n--- got\n{got}"));
        }
    }
    println!("{equal} equal, {} different", differences.len());
    for difference in &differences {
        println!("{difference}");
    }
    assert!(differences.is_empty(), "{} cases differ", differences.len());
}

/// Returns the rules and skip steps of a listing, without numbers of interface addresses.
fn shown(listing: &str) -> String {
    let lines = listing.lines().map(|line| line.trim_end_matches(" {"));
    let kept = lines.filter(|line| line.starts_with('@') || line.starts_with("  [ Skip"));
    kept.map(|line| without_dynamic_sizes(line) + "\n").collect()
}

/// Replaces `(lo0:2)` and `(lo0:*)` with `(lo0)`.
fn without_dynamic_sizes(line: &str) -> String {
    let is_size = |text: &str| text == "*" || text.parse::<u32>().is_ok();
    let mut parts: Vec<&str> = line.split(')').collect();
    if let Some((_, in_parentheses)) = parts.split_last_mut() {
        for part in in_parentheses {
            *part = part
                .rsplit_once(':')
                .filter(|(_, size)| is_size(size))
                .map_or(*part, |(name, _)| name);
        }
    }
    parts.join(")")
}

/// Returns the listing of a rule set as it would be loaded.
fn rules(input: &str, level: Optimization) -> String {
    let host = regression_host();
    let read_file = |name: &str| {
        if name == "/dev/null" { Ok(String::new()) } else { Err(io::ErrorKind::NotFound.into()) }
    };
    let names = Names::builtin()
        .clone()
        .with_owners("root::0:\nbin::3:\n", "wheel::0:\nbin::7:\nsshd::27:\n");
    let context = Context {
        optimization: Some(level),
        read_file: &read_file,
        names: &names,
        ..Context::new(&host)
    };
    let ruleset = match load(input, &context) {
        Ok(loaded) => loaded.ruleset,
        Err(rejected) => panic!("{input}\n{}", rejected.diagnostics[0]),
    };
    let mut text = String::new();
    let named = level == Optimization::None;
    list(&ruleset.rules, &ruleset.tables, &ruleset, named, &mut text);
    text
}

/// Lists rules as `pfctl -gvvsr` does. Unnamed anchors are listed with their rules, and all anchors
/// with `-a '*'` (`named`).
fn list(rules: &[Rule], tables: &[Table], ruleset: &Ruleset, named: bool, text: &mut String) {
    let size = |name: &str| {
        let table = tables.iter().find(|table| table.name == name && table.defined);
        table.map(|table| table.entries.len())
    };
    let options =
        PrintOptions { numbers: true, table_sizes: Some(&size), ..PrintOptions::default() };
    for (rule, steps) in rules.iter().zip(skip_steps(rules)) {
        *text += &print::rule(rule, &options);
        *text += "\n  [ Skip steps:";
        for (skip, step) in Skip::ALL.iter().zip(steps) {
            if step as usize == rules.len() {
                *text += &format!(" {}=end", skip.name());
            } else if step != rule.number + 1 {
                *text += &format!(" {}={step}", skip.name());
            }
        }
        *text += " ]\n";
        let shown =
            rule.anchor.as_ref().filter(|call| call.braces && (named || call.name.is_empty()));
        if let Some(anchor) = shown.and_then(|call| ruleset.anchors.get(&call.path)) {
            list(&anchor.rules, &anchor.tables, ruleset, named, text);
        }
    }
}
