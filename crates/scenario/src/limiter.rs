//! `check state-limiter 1 …`, `check source-limiter 2 …`: the counters of a limiter.

use std::fmt;

use skipstep_views::LimiterView;

use crate::differences::Differences;
use crate::line::{Line, Parsed};
use crate::write::word;

/// Expected counters of a limiter. `None` is not compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimiterCheck {
    /// True for a source limiter.
    pub source: bool,
    /// Number of the limiter.
    pub id: u32,
    /// Current number of states.
    pub states: Option<u64>,
    /// Current number of sources.
    pub sources: Option<u64>,
    /// Number of states that the limiter admitted.
    pub admitted: Option<u64>,
    /// Number of packets refused by `limit`.
    pub hard: Option<u64>,
    /// Number of packets refused by `rate`.
    pub rate: Option<u64>,
    /// Number of packets refused by `entries`.
    pub entries: Option<u64>,
    /// Number of sources ever added.
    pub made: Option<u64>,
}

impl LimiterCheck {
    /// Returns a check of all counters of a limiter.
    pub fn complete(view: &LimiterView) -> Self {
        let of_sources = |count: u64| view.limiter.source.then_some(count);
        LimiterCheck {
            source: view.limiter.source,
            id: view.limiter.id,
            states: Some(view.states.into()),
            sources: of_sources(view.sources.len() as u64),
            admitted: Some(view.counts.admitted),
            hard: Some(view.counts.hard_limited),
            rate: Some(view.counts.rate_limited),
            entries: of_sources(view.sources_limited),
            made: of_sources(view.sources_made),
        }
    }

    pub(crate) fn compare(&self, views: &[LimiterView], differences: &mut Differences) {
        let is_meant =
            |view: &&LimiterView| view.limiter.source == self.source && view.limiter.id == self.id;
        let Some(view) = views.iter().find(is_meant) else {
            differences.compare("limiter", &Some("one of this number"), "none");
            return;
        };
        let found = LimiterCheck::complete(view);
        for (name, expected, found) in [
            ("states", self.states, found.states),
            ("sources", self.sources, found.sources),
            ("admitted", self.admitted, found.admitted),
            ("hard", self.hard, found.hard),
            ("rate", self.rate, found.rate),
            ("entries", self.entries, found.entries),
            ("made", self.made, found.made),
        ] {
            differences.compare(name, &expected, found.unwrap_or_default());
        }
    }

    /// Reads the words behind `state-limiter` or `source-limiter`.
    pub(crate) fn parse(source: bool, line: &mut Line) -> Parsed<Self> {
        let mut check = LimiterCheck { source, id: line.number("a number")?, ..Self::default() };
        while let Some(word) = line.next() {
            let counter = match word.text.as_str() {
                "," => continue,
                "states" => &mut check.states,
                "sources" => &mut check.sources,
                "admitted" => &mut check.admitted,
                "hard" => &mut check.hard,
                "rate" => &mut check.rate,
                "entries" => &mut check.entries,
                "made" => &mut check.made,
                other => return Err(word.fault(format!("`{other}` is not a counter of a limiter"))),
            };
            *counter = Some(line.number("a number")?);
        }
        Ok(check)
    }
}

impl fmt::Display for LimiterCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-limiter {}", if self.source { "source" } else { "state" }, self.id)?;
        word(f, "states", self.states)?;
        word(f, "sources", self.sources)?;
        word(f, "admitted", self.admitted)?;
        word(f, "hard", self.hard)?;
        word(f, "rate", self.rate)?;
        word(f, "entries", self.entries)?;
        word(f, "made", self.made)
    }
}
