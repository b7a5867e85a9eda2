//! A limit on the lines about similar packets, so that a flood does not flood the terminal.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Largest number of lines about similar packets in a second.
const LINES: u32 = 20;
/// Interval in which lines are counted.
pub const SECOND: Duration = Duration::from_secs(1);

/// Counts lines by kind of packet.
pub struct Limiter<K> {
    seconds: BTreeMap<K, Second>,
}

/// The second that began with a packet.
struct Second {
    began: Instant,
    lines: u32,
    /// Number of packets without a line.
    more: u64,
}

impl<K> Default for Limiter<K> {
    /// Makes a limiter that has seen no packet.
    fn default() -> Self {
        Limiter { seconds: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> Limiter<K> {
    /// Counts a packet. Returns true if it gets a line.
    pub fn admits(&mut self, kind: &K, now: Instant) -> bool {
        let new = Second { began: now, lines: 0, more: 0 };
        let second = self.seconds.entry(kind.clone()).or_insert(new);
        let is_admitted = second.lines < LINES;
        match is_admitted {
            true => second.lines += 1,
            false => second.more += 1,
        }
        is_admitted
    }

    /// Ends the seconds that are over at `now`. Returns the kinds of which packets got no line, and
    /// the number of these packets.
    pub fn end_seconds(&mut self, now: Instant) -> Vec<(K, u64)> {
        let ended = self.seconds.extract_if(.., |_, second| now - second.began >= SECOND);
        ended.filter(|(_, second)| second.more > 0).map(|(kind, s)| (kind, s.more)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_twenty_lines_a_second() {
        let mut limiter = Limiter::default();
        let now = Instant::now();
        let lines = |limiter: &mut Limiter<_>, kind, now| {
            (0..50).filter(|_| limiter.admits(&kind, now)).count()
        };
        assert_eq!(lines(&mut limiter, "a", now), 20);
        assert_eq!(lines(&mut limiter, "b", now + SECOND / 2), 20, "each kind by itself");
        assert_eq!(limiter.end_seconds(now + SECOND / 2), []);
        assert_eq!(limiter.end_seconds(now + SECOND), [("a", 30)]);
        assert_eq!(lines(&mut limiter, "a", now + SECOND), 20, "another second");
        assert_eq!(limiter.end_seconds(now + 3 * SECOND), [("a", 30), ("b", 30)]);
        assert_eq!(limiter.end_seconds(now + 4 * SECOND), []);
    }

    #[test]
    fn a_few_packets_all_have_lines() {
        let mut limiter = Limiter::default();
        let now = Instant::now();
        assert!(limiter.admits(&1, now) && limiter.admits(&1, now));
        assert_eq!(limiter.end_seconds(now + SECOND), []);
    }
}
