//! Rates, from the counters at two times.

use std::time::{Duration, Instant};

/// Counters of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes.
    pub bytes: u64,
}

impl Counted {
    /// Sums the counters of both directions.
    pub fn sum(packets: [u64; 2], bytes: [u64; 2]) -> Counted {
        Counted {
            packets: packets[0].saturating_add(packets[1]),
            bytes: bytes[0].saturating_add(bytes[1]),
        }
    }
}

/// Rates of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Speed {
    /// Packets a second since the last reading; `None` at the first reading.
    pub packets: Option<u64>,
    /// Bytes a second since the last reading; `None` at the first reading.
    pub bytes: Option<u64>,
    /// Highest rate of bytes so far.
    pub peak: Option<u64>,
}

/// Readings within this time have the rates of the reading before, because the difference of two
/// counters says little about so short a time.
const LEAST_INTERVAL: Duration = Duration::from_millis(500);

/// Computes the rates of rows, which have keys.
pub struct Speeds<K> {
    read_at: Option<Instant>,
    /// Rows of the last reading, by key.
    past: Vec<(K, Counted, Speed)>,
}

impl<K> Default for Speeds<K> {
    /// Makes rates that nothing was read for.
    fn default() -> Self {
        Speeds { read_at: None, past: Vec::new() }
    }
}

impl<K: Ord> Speeds<K> {
    /// Returns the rates since the last reading, in the order of `rows`. A row that was not there
    /// counts from 0, because it is new.
    pub fn update(&mut self, now: Instant, rows: impl Iterator<Item = (K, Counted)>) -> Vec<Speed> {
        let passed = self.read_at.map(|at| now.saturating_duration_since(at));
        if passed.is_some_and(|passed| passed < LEAST_INTERVAL) {
            let last = |key: &K| self.find(key).map_or(Speed::default(), |(_, speed)| speed);
            return rows.map(|(key, _)| last(&key)).collect();
        }
        let mut present = Vec::new();
        let mut speeds = Vec::new();
        for (key, counted) in rows {
            let (old, last) = self.find(&key).unwrap_or_default();
            let speed = speed(passed, counted, old, last.peak);
            speeds.push(speed);
            present.push((key, counted, speed));
        }
        present.sort_by(|a, b| a.0.cmp(&b.0));
        (self.read_at, self.past) = (Some(now), present);
        speeds
    }

    /// Returns the counters and rates of a row at the last reading.
    fn find(&self, key: &K) -> Option<(Counted, Speed)> {
        let place = self.past.binary_search_by(|(old, ..)| old.cmp(key)).ok()?;
        let (_, counted, speed) = &self.past[place];
        Some((*counted, *speed))
    }
}

/// Returns the rates of a row whose counters were `old` before the time `passed`.
fn speed(passed: Option<Duration>, new: Counted, old: Counted, peak: Option<u64>) -> Speed {
    let per_second = |new: u64, old: u64| {
        passed.map(|passed| (new.saturating_sub(old) as f64 / passed.as_secs_f64()) as u64)
    };
    let bytes = per_second(new.bytes, old.bytes);
    Speed { packets: per_second(new.packets, old.packets), bytes, peak: peak.max(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_need_two_readings() {
        let mut speeds = Speeds::default();
        let begin = Instant::now();
        let row = |key, packets, bytes| (key, Counted { packets, bytes });
        let none = Speed::default();
        assert_eq!(speeds.update(begin, [row("b", 5, 500)].into_iter()), [none]);
        let later = begin + Duration::from_secs(2);
        let both = speeds.update(later, [row("b", 9, 900), row("a", 2, 60)].into_iter());
        let speed = |packets, bytes, peak| Speed {
            packets: Some(packets),
            bytes: Some(bytes),
            peak: Some(peak),
        };
        assert_eq!(both, [speed(2, 200, 200), speed(1, 30, 30)]);
        let later = later + Duration::from_secs(1);
        let slow = speeds.update(later, [row("a", 2, 60), row("b", 0, 0)].into_iter());
        assert_eq!(slow, [speed(0, 0, 30), speed(0, 0, 200)], "cleared counters are no rate");
        let soon = later + LEAST_INTERVAL / 2;
        let same = speeds.update(soon, [row("a", 1000, 9000), row("c", 1, 1)].into_iter());
        assert_eq!(same, [speed(0, 0, 30), none], "too soon");
    }
}
