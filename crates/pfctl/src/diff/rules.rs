//! Comparison of the statements of two rule sets by their meaning.

use std::collections::HashMap;
use std::fmt;

use serde_json::json;
use similar::{Algorithm, DiffTag, capture_diff_slices};
use skipstep_pfconf::{PrintOptions, print, queues};
use skipstep_ruleset::anchor::RuleId;
use skipstep_ruleset::{LegacyRule, Rule, Ruleset, Table};

use super::automatic::{Lists, is_automatic};
use super::{Side, printed, settings};

/// A statement that differs between the rule sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A statement of the old rule set only.
    Removed(Statement),
    /// A statement of the new rule set only.
    Added(Statement),
    /// A statement of both rule sets, at different positions: the old one, the new one.
    Moved(Statement, Statement),
}

/// A statement in canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The statement as pf prints it.
    pub text: String,
    /// All properties of the statement but its location. Statements with equal meanings are the
    /// same.
    meaning: String,
    /// `file:line`, or empty if no line of the file defines the statement.
    location: String,
    /// Path of the anchor that contains the statement; empty for the main rule set.
    anchor: String,
    /// Number of the rule in its anchor; `None` if the statement is no filter rule.
    rule: Option<usize>,
    /// Name of the table that the statement defines or fills.
    pub table: Option<String>,
}

/// Returns the changes from `old` to `new`, in the order of pf.conf: settings, queues, tables,
/// rules.
pub fn changes(old: &Side, new: &Side) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut compare =
        |old: Vec<Statement>, new: Vec<Statement>| changes.extend(moved(differences(old, new)));
    let settings = |side: &Side| {
        settings::lines(&side.ruleset.options).into_iter().map(without_location).collect()
    };
    compare(settings(old), settings(new));
    compare(others(&old.ruleset), others(&new.ruleset));
    compare(tables("", &old.ruleset.tables), tables("", &new.ruleset.tables));
    compare(
        legacy_rules(old, "", &old.ruleset.legacy_rules),
        legacy_rules(new, "", &new.ruleset.legacy_rules),
    );
    compare(rules(old, "", &old.ruleset.rules), rules(new, "", &new.ruleset.rules));
    let mut paths: Vec<_> = old.ruleset.anchors.keys().chain(new.ruleset.anchors.keys()).collect();
    paths.sort();
    paths.dedup();
    for path in paths {
        let [before, after] =
            [old, new].map(|side| side.ruleset.anchors.get(path).cloned().unwrap_or_default());
        compare(tables(path, &before.tables), tables(path, &after.tables));
        compare(
            legacy_rules(old, path, &before.legacy_rules),
            legacy_rules(new, path, &after.legacy_rules),
        );
        compare(rules(old, path, &before.rules), rules(new, path, &after.rules));
    }
    changes
}

fn differences(old: Vec<Statement>, new: Vec<Statement>) -> Vec<Change> {
    let meanings = |list: &[Statement]| -> Vec<String> {
        list.iter().map(|statement| statement.meaning.clone()).collect()
    };
    let operations = capture_diff_slices(Algorithm::Myers, &meanings(&old), &meanings(&new));
    let mut changes = Vec::new();
    for operation in operations.iter().filter(|operation| operation.tag() != DiffTag::Equal) {
        changes.extend(old[operation.old_range()].iter().cloned().map(Change::Removed));
        changes.extend(new[operation.new_range()].iter().cloned().map(Change::Added));
    }
    changes
}

/// Joins the removal and addition of equal statements to [`Change::Moved`].
fn moved(changes: Vec<Change>) -> Vec<Change> {
    let mut removed: HashMap<String, Vec<Statement>> = HashMap::new();
    for change in &changes {
        if let Change::Removed(statement) = change {
            removed.entry(statement.meaning.clone()).or_default().insert(0, statement.clone());
        }
    }
    let mut moved_from = Vec::new();
    let mut result = Vec::new();
    for change in changes {
        result.push(match change {
            Change::Added(new) => match removed.get_mut(&new.meaning).and_then(Vec::pop) {
                Some(old) => {
                    moved_from.push(old.clone());
                    Change::Moved(old, new)
                }
                None => Change::Added(new),
            },
            other => other,
        });
    }
    result.retain(|change| !matches!(change, Change::Removed(old) if moved_from.contains(old)));
    result
}

fn rules(side: &Side, anchor: &str, rules: &[Rule]) -> Vec<Statement> {
    let lists = Lists::from_tables(side.ruleset.tables_of(anchor));
    let statement = |(number, rule): (usize, &Rule)| Statement {
        text: lists.spell_out(printed(rule), '<', '>'),
        meaning: lists.spell_out(meaning(rule), '"', '"'),
        location: side.location(rule),
        anchor: anchor.to_string(),
        rule: Some(number),
        table: None,
    };
    rules.iter().enumerate().map(statement).collect()
}

fn legacy_rules(side: &Side, anchor: &str, rules: &[LegacyRule]) -> Vec<Statement> {
    let statement = |old: &LegacyRule| Statement {
        text: print::legacy::rule(old, &PrintOptions::default()),
        meaning: format!("{:?} {} {} {}", old.kind, old.no, old.pass, meaning(&old.rule)),
        location: side.location(&old.rule),
        anchor: anchor.to_string(),
        rule: None,
        table: None,
    };
    rules.iter().map(statement).collect()
}

/// Returns all properties of a rule but its number, file and line.
fn meaning(rule: &Rule) -> String {
    let anywhere = Rule { number: 0, line: 0, file: None, ..rule.clone() };
    format!("{anywhere:?}")
}

/// Makes a statement without a location.
fn without_location(text: String) -> Statement {
    Statement {
        meaning: text.clone(),
        text,
        location: String::new(),
        anchor: String::new(),
        rule: None,
        table: None,
    }
}

/// Returns a statement for each table and for each of its entries. Automatic tables are left out.
fn tables(anchor: &str, tables: &[Table]) -> Vec<Statement> {
    let mut statements = Vec::new();
    let mut sorted: Vec<&Table> = tables.iter().filter(|table| !is_automatic(table)).collect();
    sorted.sort_by_key(|table| &table.name);
    for table in sorted {
        let flags = [
            (table.persist, " persist"),
            (table.constant, " const"),
            (table.counters, " counters"),
        ];
        let flags: String =
            flags.into_iter().filter(|(set, _)| *set).map(|(_, flag)| flag).collect();
        let head = format!("table <{}>{flags}", table.name);
        let mut entries = table.entries.clone();
        entries.sort();
        let lines = entries.iter().map(|entry| {
            let sign = if entry.negated { "!" } else { "" };
            format!("table <{}> {{ {sign}{} }}", table.name, entry.net)
        });
        statements.extend(std::iter::once(head).chain(lines).map(|text| Statement {
            anchor: anchor.to_string(),
            table: Some(table.name.clone()),
            ..without_location(text)
        }));
    }
    statements
}

/// Returns the statements of queues and limiters.
fn others(ruleset: &Ruleset) -> Vec<Statement> {
    let queues = ruleset.queues.iter().map(queues::line);
    queues.chain(ruleset.limiters.iter().map(queues::limiter)).map(without_location).collect()
}

impl Statement {
    /// Returns the filter rule of `ruleset` that the statement stands for, if any.
    pub fn rule<'a>(&self, ruleset: &'a Ruleset) -> Option<&'a Rule> {
        let number = self.rule? as u32;
        ruleset.rule(&RuleId::new(&self.anchor, number))
    }

    fn json(&self) -> serde_json::Value {
        json!({ "text": self.text, "place": self.location, "anchor": self.anchor })
    }

    /// Returns the anchor's path and a colon, or an empty text for the main rule set.
    fn path(&self) -> String {
        if self.anchor.is_empty() { String::new() } else { format!("{}: ", self.anchor) }
    }
}

impl Change {
    /// Returns the statement in the old rule set and in the new one.
    pub fn statements(&self) -> [Option<&Statement>; 2] {
        match self {
            Change::Removed(old) => [Some(old), None],
            Change::Added(new) => [None, Some(new)],
            Change::Moved(old, new) => [Some(old), Some(new)],
        }
    }

    /// Returns an object with the kind of change and both statements.
    pub fn json(&self) -> serde_json::Value {
        let [old, new] = self.statements().map(|side| side.map(Statement::json));
        let change = match self {
            Change::Removed(_) => "removed",
            Change::Added(_) => "added",
            Change::Moved(..) => "moved",
        };
        json!({ "change": change, "old": old, "new": new })
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, statement, location) = match self {
            Change::Removed(old) => ('-', old, old.location.clone()),
            Change::Added(new) => ('+', new, new.location.clone()),
            Change::Moved(old, new) => {
                ('>', new, format!("from {} to {}", old.location, new.location))
            }
        };
        write!(f, "{sign} {}{}", statement.path(), statement.text)?;
        if location.is_empty() { Ok(()) } else { write!(f, "  # {location}") }
    }
}
