//! Rates of events: `max-pkt-rate` and `max-src-conn-rate` (pf-semantics section 5).

/// One event in units of [`Rate::thousandths`].
const EVENT: u32 = 1000;

/// A count of events that fades with the time between them, and is 0 after the whole period of the
/// limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Rate {
    thousandths: u32,
    /// Second of the last event.
    last: u32,
}

impl Rate {
    /// Counts an event. Returns true if there are now more than `limit` in `seconds`.
    pub fn exceeds(&mut self, (limit, seconds): (u32, u32), now: u32) -> bool {
        let elapsed = now.wrapping_sub(self.last);
        let left = match elapsed < seconds {
            true => self.thousandths - self.faded(elapsed, seconds),
            false => 0,
        };
        *self = Rate { thousandths: left.saturating_add(EVENT), last: now };
        u64::from(self.thousandths) > u64::from(limit) * u64::from(EVENT)
    }

    /// Returns the count in thousandths of events, and the second of the last event.
    pub fn parts(&self) -> (u32, u32) {
        (self.thousandths, self.last)
    }

    fn faded(&self, elapsed: u32, seconds: u32) -> u32 {
        (u64::from(self.thousandths) * u64::from(elapsed) / u64::from(seconds)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_reached_by_one_more_than_it_allows() {
        let mut rate = Rate::default();
        let exceeded: Vec<bool> = (0..4).map(|_| rate.exceeds((3, 10), 5)).collect();
        assert_eq!(exceeded, [false, false, false, true]);
    }

    #[test]
    fn counted_events_fade() {
        let mut rate = Rate::default();
        for _ in 0..4 {
            rate.exceeds((3, 10), 5);
        }
        assert!(rate.exceeds((3, 10), 6), "3.6 and one more");
        assert!(rate.exceeds((3, 10), 11), "2.3 and one more");
        assert!(!rate.exceeds((3, 10), 18), "0.99 and one more");
        assert!(!rate.exceeds((3, 10), 28), "one");
        assert_eq!(rate, Rate { thousandths: 1000, last: 28 });
    }
}
