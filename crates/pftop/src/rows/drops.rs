//! Rows of dropped packets, by reason, rule and interface.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Instant;

use chrono::Local;
use pfctl::drops::record::{Dropped, Kind};
use pfctl::drops::rules::DecidingRule;

use super::{arrange, largest, number, rate};
use crate::order::Order;
use crate::speed::{Counted, Speed, Speeds};
use crate::table::{Cell, Column, Rows, Subject, Tone};

/// Most kinds of drops that are counted by themselves.
pub const MOST_KINDS: usize = 1000;

const COLUMNS: [Column; 7] = [
    Column::right("PKTS", 6, 10).later(),
    Column::right("PKT/S", 5, 8).later(),
    Column::left("REASON", 9, 16).later(),
    Column::left("DIR", 3, 3).later(),
    Column::left("IFACE", 6, 15).later(),
    Column::left("RULE", 11, 30).later(),
    Column::left("LAST PACKET", 20, 200),
];

/// The packets of one kind.
#[derive(Debug, Clone)]
struct Group {
    packets: u64,
    last: Rc<Dropped>,
}

/// Counts the packets that were dropped since the view was opened.
#[derive(Default)]
pub struct DropCounts {
    groups: BTreeMap<Kind, Group>,
    /// Packets of further kinds.
    others: u64,
    speeds: Speeds<Kind>,
}

impl DropCounts {
    /// Counts a packet.
    pub fn take(&mut self, dropped: Dropped) {
        let kind = dropped.kind();
        let is_full = self.groups.len() >= MOST_KINDS;
        match self.groups.get_mut(&kind) {
            Some(group) => {
                group.packets += 1;
                group.last = Rc::new(dropped);
            }
            None if is_full => self.others += 1,
            None => {
                self.groups.insert(kind, Group { packets: 1, last: Rc::new(dropped) });
            }
        }
    }

    /// Returns the number of packets that have no row, because there were too many kinds.
    pub fn others(&self) -> u64 {
        self.others
    }

    /// Makes the rows. The kind with the latest packet comes first.
    pub fn rows(&mut self, now: Instant) -> Drops {
        let counted = |(kind, group): (&Kind, &Group)| {
            (kind.clone(), Counted { packets: group.packets, bytes: 0 })
        };
        let speeds = self.speeds.update(now, self.groups.iter().map(counted));
        let mut groups: Vec<(Group, Speed)> = self.groups.values().cloned().zip(speeds).collect();
        groups.sort_by_key(|(group, _)| Reverse(group.last.time));
        let rows = (0..groups.len() as u32).collect();
        Drops { groups, rows }
    }
}

/// The rows of dropped packets.
pub struct Drops {
    groups: Vec<(Group, Speed)>,
    rows: Vec<u32>,
}

impl Rows for Drops {
    fn columns(&self) -> &[Column] {
        &COLUMNS
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn arrange(&mut self, order: Order, reverse: bool, end: usize) {
        let groups = &self.groups;
        let compare = largest(|row: usize| match order {
            Order::Packets => Some(groups[row].0.packets),
            _ => groups[row].1.packets,
        });
        let compare: Option<&dyn Fn(u32, u32) -> _> =
            if order == Order::None { None } else { Some(&compare) };
        arrange(&mut self.rows, reverse, end, compare);
    }

    fn cell(&self, place: usize, column: usize, width: usize) -> Cell {
        let (Group { packets, last }, speed) = &self.groups[self.rows[place] as usize];
        Cell::plain(match column {
            0 => number(*packets, width),
            1 => rate(speed.packets, width, 1000),
            2 => return Cell::Text(last.cause.name().to_owned(), Tone::Block),
            3 => super::states::direction(last.direction).to_owned(),
            4 => last.interface.clone(),
            5 => rule_text(last.rule.as_ref()),
            _ => last.described_packet(),
        })
    }

    fn details(&self, place: usize) -> [String; 2] {
        let (Group { last, .. }, _) = &self.groups[self.rows[place] as usize];
        let rule = match &last.rule {
            Some(rule) => format!("rule {rule}"),
            None => "no rule in force".to_owned(),
        };
        [
            last.described_packet(),
            format!(
                "{} at {}, {rule}",
                last.cause.name(),
                last.time.with_timezone(&Local).format("%T"),
            ),
        ]
    }

    fn subject(&self, place: usize) -> Subject {
        let (Group { last, .. }, _) = &self.groups[self.rows[place] as usize];
        Subject::Drop(last.rule.as_ref().map(|rule| rule.id.clone()))
    }
}

/// Prints the number and the place of a rule.
fn rule_text(rule: Option<&DecidingRule>) -> String {
    match rule {
        Some(rule) => format!("{} {}", rule.id, rule.place().unwrap_or_default()),
        None => "-".to_owned(),
    }
}
