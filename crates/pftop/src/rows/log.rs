//! Rows of logged packets of one rule.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use chrono::Local;
use pfctl::log::file::Follower;
use pfctl::log::rule_sets::RuleSet;
use pfctl::log::{Record, is_missing};
use skipstep_kernel::instance::Loaded;
use skipstep_ruleset::RuleId;
use skipstep_wire::print;

use super::arrange;
use crate::order::Order;
use crate::table::{Cell, Column, Rows, Subject, Tone};

/// Most records that are kept.
const MOST_KEPT: usize = 1000;
/// Most records that are read at once, so that a large file does not stop the keys.
const RECORDS_A_TURN: usize = 20_000;

const COLUMNS: [Column; 6] = [
    Column::left("TIME", 8, 8),
    Column::left("ACTION", 6, 6),
    Column::left("DIR", 3, 3),
    Column::left("IFACE", 6, 15).later(),
    Column::left("REASON", 8, 16).later(),
    Column::left("PACKET", 20, 400),
];

/// The log of a rule, since its rule set was loaded.
pub struct RuleLog {
    rule: RuleId,
    rule_set: RuleSet,
    path: PathBuf,
    follower: Option<Follower>,
    records: VecDeque<Rc<Record>>,
}

impl RuleLog {
    /// Makes the log of a rule that logs to the file `path`. The rule is in the rule set `loaded`.
    pub fn new(rule: RuleId, loaded: Loaded, path: PathBuf) -> RuleLog {
        RuleLog {
            rule,
            rule_set: RuleSet::new(loaded),
            path,
            follower: None,
            records: VecDeque::new(),
        }
    }

    /// Returns the rule.
    pub fn rule(&self) -> &RuleId {
        &self.rule
    }

    /// Reads more records of the file. Returns true if more follow.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or if it is no log.
    pub fn follow(&mut self) -> Result<bool> {
        let name = self.path.display().to_string();
        if self.follower.is_none() {
            // skipstepd makes the file when it logs the first packet
            if is_missing(&self.path) {
                return Ok(false);
            }
            self.follower = Some(Follower::open(&self.path, true).with_context(|| name.clone())?);
        }
        let Some(follower) = &mut self.follower else { return Ok(false) };
        for _ in 0..RECORDS_A_TURN {
            let Some((header, bytes)) = follower.next_record().with_context(|| name.clone())?
            else {
                return Ok(false);
            };
            let Some(record) = Record::parse(&header, &bytes) else {
                bail!("{name}: is not a pflog file");
            };
            if self.rule_set.rule(&record).as_ref() == Some(&self.rule) {
                self.records.push_front(Rc::new(record));
                self.records.truncate(MOST_KEPT);
            }
        }
        Ok(true)
    }

    /// Makes the rows, the latest packet first.
    pub fn rows(&self) -> Log {
        let rows = (0..self.records.len() as u32).collect();
        Log { records: self.records.iter().cloned().collect(), rows }
    }
}

/// The logged packets of a rule.
pub struct Log {
    records: Vec<Rc<Record>>,
    rows: Vec<u32>,
}

impl Log {
    fn record(&self, place: usize) -> &Record {
        &self.records[self.rows[place] as usize]
    }
}

impl Rows for Log {
    fn columns(&self) -> &[Column] {
        &COLUMNS
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn arrange(&mut self, _: Order, reverse: bool, end: usize) {
        arrange(&mut self.rows, reverse, end, None);
    }

    fn cell(&self, place: usize, column: usize, _: usize) -> Cell {
        let record = self.record(place);
        Cell::plain(match column {
            0 => record.time.with_timezone(&Local).format("%T").to_string(),
            1 => {
                let tone = if record.action == "block" { Tone::Block } else { Tone::Pass };
                return Cell::Text(record.action.to_owned(), tone);
            }
            2 => record.direction.to_owned(),
            3 => record.interface.clone(),
            4 => record.reason.to_owned(),
            _ => print::line(&record.packet),
        })
    }

    fn details(&self, place: usize) -> [String; 2] {
        let record = self.record(place);
        let time = record.time.with_timezone(&Local).format("%F %T%.6f");
        let uid = record.uid.map(|uid| format!(", uid {uid}")).unwrap_or_default();
        [
            print::line(&record.packet),
            format!("{time} {} {} on {}{uid}", record.action, record.direction, record.interface),
        ]
    }

    fn subject(&self, _: usize) -> Subject {
        Subject::Other
    }
}
