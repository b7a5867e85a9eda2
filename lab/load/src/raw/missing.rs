//! The time at which missing frames were sent. Frames carry serial numbers, and their times follow
//! from the numbers as long as the generator kept its pace.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use skipstep_kernel::lab::{Order, Progress, Window};

/// The missing frames of a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Missing {
    /// The time of the last missing frame, from the first frame of the trial. An upper bound if
    /// slots were skipped or frames were reordered.
    pub last: Option<Duration>,
    /// The time of the change of the rate, from the first frame.
    pub turn: Duration,
    /// The longest time between two received frames with missing ones in between.
    pub gap: Option<Gap>,
}

/// A gap: missing frames in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Number of missing frames.
    pub frames: u64,
    /// The time between the received frames before and after the gap. If no frame came after it,
    /// the time until the last frame was sent.
    pub time: Duration,
    /// True if a frame came after the gap.
    pub ended: bool,
}

/// The missing serial numbers as a sink knows them. Times are those that frames carry, by the
/// sender's clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holes {
    /// The highest received number plus one.
    pub next: u64,
    /// The highest missing number below `next`.
    pub last: Option<u64>,
    /// The number before the last frame that came directly after a gap, so the last missing number
    /// of that gap at the time.
    pub hole: u64,
    /// The time at which that frame after the gap was due, in nanoseconds of the sender's clock; 0
    /// if there is none.
    pub hole_end: u64,
}

impl From<&Window> for Holes {
    fn from(window: &Window) -> Holes {
        let Window { next, hole, hole_end, .. } = *window;
        Holes { next, last: window.last_missing(next), hole, hole_end }
    }
}

impl Holes {
    /// Returns the time at which the last missing frame was sent, from the first frame of the
    /// trial.
    pub fn last_lost(&self, order: &Order, progress: &Progress) -> Option<Duration> {
        let number = if self.next < progress.sent { progress.sent - 1 } else { self.last? };
        let after = if number + 1 == progress.sent {
            progress.last.saturating_sub(progress.start)
        } else if number == self.hole && self.hole_end > 0 {
            // sent one slot before the frame that came instead
            let next = self.hole_end.saturating_sub(progress.start);
            let gap = if next > order.due(order.turn) { order.second_gap } else { order.gap };
            next.saturating_sub(gap >> 10)
        } else {
            order.due((number + progress.skipped).min(order.slots.saturating_sub(1)))
        };
        Some(Duration::from_nanos(after))
    }
}

impl Missing {
    /// Returns the missing frames of a generator's trial, from a sink's window.
    pub fn from_window(order: &Order, progress: &Progress, window: &Window) -> Missing {
        let after = Duration::from_nanos;
        let closed = (window.gap > 0).then(|| Gap {
            frames: window.gap_frames,
            time: after(window.gap),
            ended: true,
        });
        let open = (0 < window.next && window.next < progress.sent).then(|| Gap {
            frames: progress.sent - window.next,
            time: after(progress.last.saturating_sub(window.came)),
            ended: false,
        });
        Missing {
            last: Holes::from(window).last_lost(order, progress),
            turn: after(order.due(order.turn)),
            gap: open.into_iter().chain(closed).max_by_key(|gap| gap.time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skipstep_kernel::lab::{Field, PATTERN};

    /// One frame a microsecond for a millisecond, then one every two.
    const ORDER: Order = Order {
        slots: 2000,
        gap: 1000 << 10,
        turn: 1000,
        second_gap: 2000 << 10,
        grace: 0,
        patience: 0,
        ifindex: 1,
        trial: 1,
        pattern_length: 1,
        pad: 0,
        fields: [Field::FIXED; 4],
        pattern: [0; PATTERN],
    };

    const SENT: Progress = Progress {
        slot: 2000,
        sent: 2000,
        late: 0,
        skipped: 0,
        idle: 0,
        failed: 0,
        start: 7_000_000,
        last: 7_000_000 + 2_998_000,
        worst: 0,
        random: 1,
    };

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    /// Returns the window after all numbers below `next` came, except those of `but`.
    fn window(next: u64, but: impl Fn(u64) -> bool) -> Window {
        let mut window = Window { next, ..Window::EMPTY };
        for number in (0..next).filter(|&number| !but(number)) {
            window.seen[number as usize / 64] |= 1 << (number % 64);
        }
        window
    }

    #[test]
    fn nothing_is_missing_of_what_came() {
        let missing = Missing::from_window(&ORDER, &SENT, &window(2000, |_| false));
        assert_eq!(missing, Missing { last: None, turn: micros(1000), gap: None });
    }

    #[test]
    fn the_last_one_and_the_longest_row_have_their_time() {
        let holes = window(2000, |n| (500..600).contains(&n) || n == 1100);
        let hole_end = SENT.start + ORDER.due(1101);
        let holes = Window { hole: 1100, hole_end, gap_frames: 100, gap: 101_000, ..holes };
        let missing = Missing::from_window(&ORDER, &SENT, &holes);
        assert_eq!(missing.last, Some(micros(1200)));
        let gap = Gap { frames: 100, time: micros(101), ended: true };
        assert_eq!(missing.gap, Some(gap));
    }

    #[test]
    fn late_frames_are_not_missing() {
        // 1500 was overtaken: it left the last hole, and came then
        let hole_end = SENT.start + ORDER.due(1501);
        let late = Window { hole: 1500, hole_end, ..window(2000, |n| n == 700) };
        assert_eq!(Missing::from_window(&ORDER, &SENT, &late).last, Some(micros(700)));
    }

    #[test]
    fn where_slots_were_skipped_the_next_that_came_has_the_time() {
        // slots 200 to 299 had no frame: number 400 was in slot 500
        let sent = Progress { sent: 1900, skipped: 100, ..SENT };
        let hole_end = SENT.start + ORDER.due(501);
        let holes = Window { hole: 400, hole_end, ..window(1900, |n| n == 400) };
        assert_eq!(Missing::from_window(&ORDER, &sent, &holes).last, Some(micros(500)));
        // without a hole the bound is as if all skips had been before it
        let holes = window(1900, |n| n == 100);
        assert_eq!(Missing::from_window(&ORDER, &sent, &holes).last, Some(micros(200)));
    }

    #[test]
    fn a_row_without_an_end_is_told_apart() {
        let came = SENT.start + ORDER.due(499) + 50_000;
        let cut = Window { came, gap: 1000, gap_frames: 1, ..window(500, |n| n == 7) };
        let missing = Missing::from_window(&ORDER, &SENT, &cut);
        assert_eq!(missing.last, Some(micros(2998)));
        let gap = Gap { frames: 1500, time: micros(2998 - 499 - 50), ended: false };
        assert_eq!(missing.gap, Some(gap));
        let none = Missing::from_window(&ORDER, &SENT, &Window::EMPTY);
        assert_eq!((none.last, none.gap), (Some(micros(2998)), None));
    }
}
