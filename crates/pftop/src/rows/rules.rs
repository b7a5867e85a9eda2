//! Rows of rules, with bars of their hits.

use std::collections::BTreeMap;
use std::rc::Rc;

use pfctl::drops::rules::RulesInForce;
use skipstep_pfconf::PrintOptions;
use skipstep_pfconf::print::rule as print_rule;
use skipstep_ruleset::rule::Action;
use skipstep_ruleset::{Rule, RuleId, Ruleset};
use skipstep_views::RuleCounters;

use super::{arrange, bytes, largest, number, rate};
use crate::order::Order;
use crate::speed::{Counted, Speed};
use crate::table::{Cell, Column, Rows, Subject, Tone};
use crate::view::View;

/// A column of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Number,
    Hits,
    Packets,
    Bytes,
    PacketRate,
    Rate,
    States,
    Evaluations,
    Place,
    Label,
    Text,
}

impl Field {
    const fn column(self) -> Column {
        match self {
            Field::Number => Column::left("RULE", 6, 12).later(),
            Field::Hits => Column::left("HITS", 8, 8).later(),
            Field::Packets => Column::right("PKTS", 5, 10).later(),
            Field::Bytes => Column::right("BYTES", 5, 12).later(),
            Field::PacketRate => Column::right("PKT/S", 5, 8).later(),
            Field::Rate => Column::right("BYTE/S", 6, 10).later(),
            Field::States => Column::right("STATES", 6, 8).later(),
            Field::Evaluations => Column::right("EVALS", 5, 12).later(),
            Field::Place => Column::left("LINE", 10, 30).later(),
            Field::Label => Column::left("LABEL", 16, 40),
            Field::Text => Column::left("TEXT", 20, 1000),
        }
    }
}

/// Returns the fields of a view.
fn fields(view: View) -> &'static [Field] {
    use Field::*;
    match view {
        View::Label => &[
            Number,
            Label,
            Packets,
            Bytes,
            States,
            PacketRate,
            Rate,
            Evaluations,
            Hits,
            Place,
            Text,
        ],
        _ => &[Number, Hits, Packets, PacketRate, Bytes, States, Text],
    }
}

/// A rule with its counters.
struct Row {
    id: RuleId,
    counters: RuleCounters,
    speed: Speed,
}

/// The rules of the main rule set and of the anchors that it calls.
pub struct Rules {
    rules: Rc<RulesInForce>,
    listed: Vec<Row>,
    /// Packets of the rule with the most packets.
    most: u64,
    fields: &'static [Field],
    columns: Vec<Column>,
    rows: Vec<u32>,
}

impl Rules {
    /// Makes the rows of a view. `counters` has the counters of each rule set by path, and `speeds`
    /// the rates in the order of [`listed`].
    pub fn new(
        view: View,
        rules: Rc<RulesInForce>,
        ids: Vec<RuleId>,
        counters: &BTreeMap<String, Vec<RuleCounters>>,
        speeds: &[Speed],
    ) -> Rules {
        let row = |(id, speed): (RuleId, &Speed)| {
            let counters = counters_of(counters, &id);
            Row { id, counters, speed: *speed }
        };
        let listed: Vec<Row> = ids.into_iter().zip(speeds).map(row).collect();
        let most = listed.iter().map(|row| counted(&row.counters).packets).max().unwrap_or(0);
        let fields = fields(view);
        let columns = fields.iter().map(|field| field.column()).collect();
        let rows = (0..listed.len() as u32).collect();
        Rules { rules, listed, most, fields, columns, rows }
    }

    fn row(&self, place: usize) -> (&Row, Option<&Rule>) {
        let row = &self.listed[self.rows[place] as usize];
        (row, self.rules.loaded.ruleset.rule(&row.id))
    }

    fn text(rule: Option<&Rule>) -> String {
        rule.map(|rule| print_rule(rule, &PrintOptions::default())).unwrap_or_default()
    }
}

/// Returns the counters of a rule by its number.
pub fn counters_of(counters: &BTreeMap<String, Vec<RuleCounters>>, id: &RuleId) -> RuleCounters {
    let set = counters.get(&id.anchor);
    set.and_then(|set| set.get(id.number as usize)).copied().unwrap_or_default()
}

/// Returns the packets and bytes of a rule.
pub fn counted(counters: &RuleCounters) -> Counted {
    Counted::sum(counters.packets, counters.bytes)
}

/// Returns the rules in the order of evaluation: the rules of an anchor follow the first rule that
/// calls it. Rules of anchors that no rule calls come last.
pub fn listed(ruleset: &Ruleset) -> Vec<RuleId> {
    let mut lister = Lister { ruleset, visited: Vec::new(), ids: Vec::new() };
    lister.list("");
    for path in ruleset.anchors.keys() {
        lister.list(path);
    }
    lister.ids
}

struct Lister<'a> {
    ruleset: &'a Ruleset,
    visited: Vec<&'a str>,
    ids: Vec<RuleId>,
}

impl<'a> Lister<'a> {
    fn list(&mut self, path: &'a str) {
        if self.visited.contains(&path) {
            return;
        }
        self.visited.push(path);
        for rule in self.ruleset.rules_of(path) {
            self.ids.push(RuleId::new(path, rule.number));
            let Some(call) = &rule.anchor else { continue };
            let calls = |path: &&String| {
                let below = path.strip_prefix(call.path.as_str());
                let below = below.and_then(|rest| rest.strip_prefix('/'));
                **path == call.path
                    || call.wildcard && below.is_some_and(|name| !name.contains('/'))
            };
            let called: Vec<&String> = self.ruleset.anchors.keys().filter(calls).collect();
            called.into_iter().for_each(|path| self.list(path));
        }
    }
}

impl Rows for Rules {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn arrange(&mut self, order: Order, reverse: bool, end: usize) {
        let listed = &self.listed;
        let rows = &mut self.rows;
        let by = |value: fn(&Row) -> Option<u64>| largest(move |row| value(&listed[row]));
        let compare = match order {
            Order::Packets => by(|row| Some(counted(&row.counters).packets)),
            Order::Bytes => by(|row| Some(counted(&row.counters).bytes)),
            Order::Rate => by(|row| row.speed.bytes),
            Order::States => by(|row| Some(row.counters.states)),
            _ => return arrange(rows, reverse, end, None),
        };
        arrange(rows, reverse, end, Some(&compare));
    }

    fn cell(&self, place: usize, column: usize, width: usize) -> Cell {
        let (Row { id, counters, speed }, rule) = self.row(place);
        let counted = counted(counters);
        Cell::plain(match self.fields[column] {
            Field::Number => id.to_string(),
            Field::Hits => return Cell::Bar(counted.packets as f64 / self.most.max(1) as f64),
            Field::Packets => number(counted.packets, width),
            Field::Bytes => bytes(counted.bytes, width),
            Field::PacketRate => rate(speed.packets, width, 1000),
            Field::Rate => rate(speed.bytes, width, 1024),
            Field::States => number(counters.states, width),
            Field::Evaluations => number(counters.evaluations, width),
            Field::Place => {
                self.rules.describe(id).and_then(|rule| rule.place()).unwrap_or_default()
            }
            Field::Label => rule.map(|rule| rule.labels.join(" ")).unwrap_or_default(),
            Field::Text => return Cell::Text(Self::text(rule), tone(rule)),
        })
    }

    fn details(&self, place: usize) -> [String; 2] {
        let (Row { id, counters, .. }, rule) = self.row(place);
        let described = self.rules.describe(id);
        let described = described.map_or_else(|| id.to_string(), |rule| rule.to_string());
        let packets = counted(counters).packets;
        let RuleCounters { evaluations, states, states_created, expired, .. } = counters;
        let expired = if *expired { ", expired" } else { "" };
        [
            Self::text(rule),
            format!(
                "rule {described}: packets {packets}, evaluations {evaluations}, \
                 states {states}/{states_created}{expired}"
            ),
        ]
    }

    fn subject(&self, place: usize) -> Subject {
        Subject::Rule(self.row(place).0.id.clone())
    }

    fn place_of(&self, rule: &RuleId) -> Option<usize> {
        self.rows.iter().position(|row| self.listed[*row as usize].id == *rule)
    }
}

/// Returns the tone of a rule: of its action, if the rule decides.
fn tone(rule: Option<&Rule>) -> Tone {
    match rule {
        Some(Rule { anchor: Some(_), .. }) | None => Tone::Plain,
        Some(Rule { action: Action::Pass, .. }) => Tone::Pass,
        Some(Rule { action: Action::Block, .. }) => Tone::Block,
        Some(Rule { action: Action::Match, .. }) => Tone::Plain,
    }
}
