//! The figures of the filter in the second line of the screen.

use std::time::Instant;

use skipstep_kernel::report::InstanceStatus;

use crate::number::amount;
use crate::speed::{Counted, Speed, Speeds};
use crate::table::Tone;

/// Counters whose rates are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Figure {
    Inserts,
    Removals,
    Searches,
}

/// The state of the filter, and its rates.
#[derive(Default)]
pub struct Status {
    /// True if packets are filtered; `None` if no rules are loaded.
    pub is_enabled: Option<bool>,
    states: u32,
    capacity: u32,
    /// Rates of new states, of ended states, and of lookups.
    rates: Vec<Speed>,
    speeds: Speeds<Figure>,
    /// Seconds until a load on trial goes back.
    pub seconds_to_confirm: Option<u32>,
    /// Dropped packets that the view does not show: packets that came too fast to be read, and
    /// packets of too many kinds.
    pub drops_without_row: (u64, u64),
}

impl Status {
    /// Takes the figures that were read at `now`.
    pub fn read(&mut self, status: &InstanceStatus, seconds_to_confirm: Option<u32>, now: Instant) {
        let engine = &status.engine;
        let figures = [
            (Figure::Inserts, engine.inserts),
            (Figure::Removals, engine.removals),
            (Figure::Searches, engine.searches),
        ];
        let counted = |(figure, packets)| (figure, Counted { packets, bytes: 0 });
        self.rates = self.speeds.update(now, figures.into_iter().map(counted));
        self.is_enabled = Some(status.running);
        (self.states, self.capacity) = (status.states, status.capacity);
        self.seconds_to_confirm = seconds_to_confirm;
    }

    /// Returns the parts of the line, each with its tone.
    pub fn parts(&self) -> Vec<(String, Tone)> {
        let mut parts = Vec::new();
        match self.is_enabled {
            None => return vec![("no rules are loaded".into(), Tone::Block)],
            Some(false) => parts.push(("filter disabled".to_owned(), Tone::Block)),
            Some(true) => {}
        }
        if let Some(seconds) = self.seconds_to_confirm {
            parts.push((format!("on trial: {seconds} s to pfctl confirm"), Tone::Block));
        }
        let (lost, others) = self.drops_without_row;
        if lost > 0 {
            parts.push((format!("{lost} drops came too fast"), Tone::Block));
        }
        if others > 0 {
            parts.push((format!("{others} drops of other kinds"), Tone::Block));
        }
        parts.push((format!("{} of {} states", self.states, self.capacity), Tone::Plain));
        for (speed, what) in self.rates.iter().zip(["new", "ended", "lookups"]) {
            if let Some(rate) = speed.packets {
                parts.push((format!("{} {what}/s", amount(rate, 4, 1000)), Tone::Plain));
            }
        }
        parts
    }
}
