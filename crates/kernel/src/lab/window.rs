//! The window of recent serial numbers, with the frames that are missing.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Words of 64 serial numbers in a window.
const WORDS: usize = 65_536 / 64;

/// `struct lab_window` of bpf/lab/lab.h.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Window {
    /// Highest serial number received, plus one.
    pub next: u64,
    /// Number of the trial whose frames count.
    pub trial: u32,
    /// Always 0.
    pub pad: u32,
    /// Time when the highest serial number came, in nanoseconds of the monotonic clock.
    pub came: u64,
    /// Serial number before the last frame that came ahead of a missing frame. This number may have
    /// come later.
    pub hole: u64,
    /// Due time of that last frame in nanoseconds, 0 if there is none.
    pub hole_end: u64,
    /// Index of the last word that left the window with some numbers missing.
    pub lost_word: u64,
    /// Missing numbers of this word, a bit each.
    pub lost_bits: u64,
    /// Number of frames missing in a row, in the gap with the longest time.
    pub gap_frames: u64,
    /// Nanoseconds between the frames before and after this gap.
    pub gap: u64,
    /// A bit for each serial number received, up to the highest.
    pub seen: [u64; WORDS],
}

impl Window {
    /// The empty window: no frame received.
    pub const EMPTY: Window = Window {
        next: 0,
        trial: 0,
        pad: 0,
        came: 0,
        hole: 0,
        hole_end: 0,
        lost_word: 0,
        lost_bits: 0,
        gap_frames: 0,
        gap: 0,
        seen: [0; WORDS],
    };

    /// Returns the serial number of the last of `sent` frames that is missing, or `None`. A frame
    /// counts as lost if it comes after 65,536 others.
    pub fn last_missing(&self, sent: u64) -> Option<u64> {
        if self.next < sent {
            return Some(sent - 1);
        }
        let last = self.next.checked_sub(1)? / 64;
        let first = last.saturating_sub(WORDS as u64 - 1);
        // the last word has only the numbers up to the highest
        let mut missing = !0 >> (63 - (self.next - 1) % 64);
        for word in (first..=last).rev() {
            missing &= !self.seen[word as usize % WORDS];
            if missing != 0 {
                return Some(highest(word, missing));
            }
            missing = !0;
        }
        (self.lost_bits != 0).then(|| highest(self.lost_word, self.lost_bits))
    }
}

/// Returns the highest serial number in a word, of which at least one bit is set.
fn highest(word: u64, bits: u64) -> u64 {
    word * 64 + u64::from(63 - bits.leading_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(next: u64, but: &[u64]) -> Window {
        let mut window = Window { next, ..Window::EMPTY };
        for number in (next.saturating_sub(65_536)..next).filter(|number| !but.contains(number)) {
            window.seen[number as usize / 64 % WORDS] |= 1 << (number % 64);
        }
        window
    }

    #[test]
    fn the_last_that_is_missing_is_found_wherever_it_is() {
        assert_eq!(with(0, &[]).last_missing(0), None);
        assert_eq!(with(0, &[]).last_missing(5), Some(4), "none came");
        for next in [1, 63, 64, 65, 1000, 65_536, 65_600, 200_000] {
            assert_eq!(with(next, &[]).last_missing(next), None, "{next}");
            assert_eq!(with(next, &[]).last_missing(next + 3), Some(next + 2), "{next}");
        }
        assert_eq!(with(1000, &[0]).last_missing(1000), Some(0));
        assert_eq!(with(1000, &[3, 998]).last_missing(1000), Some(998));
        assert_eq!(with(200_000, &[199_936, 150_000]).last_missing(200_000), Some(199_936));
        let old = Window { lost_word: 3, lost_bits: 0b110, ..with(200_000, &[]) };
        assert_eq!(old.last_missing(200_000), Some(194));
        let both = Window { lost_word: 3, lost_bits: 1, ..with(200_000, &[170_000]) };
        assert_eq!(both.last_missing(200_000), Some(170_000));
    }
}
