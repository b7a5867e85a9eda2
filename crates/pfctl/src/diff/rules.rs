//! Comparison of the statements of two rule sets by their meaning.

use std::collections::HashMap;
use std::fmt;

use serde_json::json;
use similar::{Algorithm, DiffTag, capture_diff_slices};
use skipstep_pfconf::{PrintOptions, print, queues};
use skipstep_ruleset::anchor::RuleId;
use skipstep_ruleset::{OldRule, Rule, Ruleset, Table};

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
    place: String,
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
    let settings =
        |side: &Side| settings::lines(&side.ruleset.options).into_iter().map(placeless).collect();
    compare(settings(old), settings(new));
    compare(others(&old.ruleset), others(&new.ruleset));
    compare(tables("", &old.ruleset.tables), tables("", &new.ruleset.tables));
    compare(old_rules(old, "", &old.ruleset.old_rules), old_rules(new, "", &new.ruleset.old_rules));
    compare(rules(old, "", &old.ruleset.rules), rules(new, "", &new.ruleset.rules));
    let mut paths: Vec<_> = old.ruleset.anchors.keys().chain(new.ruleset.anchors.keys()).collect();
    paths.sort();
    paths.dedup();
    for path in paths {
        let [before, after] =
            [old, new].map(|side| side.ruleset.anchors.get(path).cloned().unwrap_or_default());
        compare(tables(path, &before.tables), tables(path, &after.tables));
        compare(old_rules(old, path, &before.old_rules), old_rules(new, path, &after.old_rules));
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
    let mut gone = Vec::new();
    let mut result = Vec::new();
    for change in changes {
        result.push(match change {
            Change::Added(new) => match removed.get_mut(&new.meaning).and_then(Vec::pop) {
                Some(old) => {
                    gone.push(old.clone());
                    Change::Moved(old, new)
                }
                None => Change::Added(new),
            },
            other => other,
        });
    }
    result.retain(|change| !matches!(change, Change::Removed(old) if gone.contains(old)));
    result
}

fn rules(side: &Side, anchor: &str, rules: &[Rule]) -> Vec<Statement> {
    let lists = Lists::of(side.ruleset.tables_of(anchor));
    let statement = |(number, rule): (usize, &Rule)| Statement {
        text: lists.spell_out(printed(rule), '<', '>'),
        meaning: lists.spell_out(meaning(rule), '"', '"'),
        place: side.place(rule),
        anchor: anchor.to_string(),
        rule: Some(number),
        table: None,
    };
    rules.iter().enumerate().map(statement).collect()
}

fn old_rules(side: &Side, anchor: &str, rules: &[OldRule]) -> Vec<Statement> {
    let statement = |old: &OldRule| Statement {
        text: print::old::rule(old, &PrintOptions::default()),
        meaning: format!("{:?} {} {} {}", old.kind, old.no, old.pass, meaning(&old.rule)),
        place: side.place(&old.rule),
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
fn placeless(text: String) -> Statement {
    Statement {
        meaning: text.clone(),
        text,
        place: String::new(),
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
            ..placeless(text)
        }));
    }
    statements
}

/// Returns the statements of queues and limiters.
fn others(ruleset: &Ruleset) -> Vec<Statement> {
    let queues = ruleset.queues.iter().map(queues::line);
    queues.chain(ruleset.limiters.iter().map(queues::limiter)).map(placeless).collect()
}

impl Statement {
    /// Returns the filter rule of `ruleset` that the statement stands for, if any.
    pub fn rule<'a>(&self, ruleset: &'a Ruleset) -> Option<&'a Rule> {
        let number = self.rule? as u32;
        ruleset.rule(&RuleId::new(&self.anchor, number))
    }

    fn json(&self) -> serde_json::Value {
        json!({ "text": self.text, "place": self.place, "anchor": self.anchor })
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
        let (sign, statement, place) = match self {
            Change::Removed(old) => ('-', old, old.place.clone()),
            Change::Added(new) => ('+', new, new.place.clone()),
            Change::Moved(old, new) => ('>', new, format!("from {} to {}", old.place, new.place)),
        };
        write!(f, "{sign} {}{}", statement.path(), statement.text)?;
        if place.is_empty() { Ok(()) } else { write!(f, "  # {place}") }
    }
}
