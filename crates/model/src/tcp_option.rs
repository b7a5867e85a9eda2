//! Search for options in a TCP header (RFC 9293 section 3.2).

use std::ops::Range;

const MSS: u8 = 2;
const MSS_LEN: usize = 4;
const TIMESTAMP: u8 = 8;
const TIMESTAMP_LEN: usize = 10;
const SACK: u8 = 5;
const SACK_BLOCK: usize = 8;
const WINDOW_SCALE: u8 = 3;
const WINDOW_SCALE_LEN: usize = 3;

/// The largest valid shift (RFC 7323 section 2.3).
const MAX_SHIFT: u8 = 14;

/// Returns the ranges of the values of all options of `kind` with at least `least` bytes, cut off
/// there.
fn values(options: &[u8], kind: u8, least: usize) -> impl Iterator<Item = Range<usize>> {
    whole(options, kind, least).map(move |option| option.start + 2..option.start + least)
}

/// Returns the ranges of all options of `kind` with at least `least` bytes. A range may end beyond
/// the header. As PF, it continues behind an end-of-options byte, because some systems write one in
/// place of padding.
fn whole(options: &[u8], kind: u8, least: usize) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while options.len() >= at + least {
            if options[at] <= 1 {
                at += 1;
                continue;
            }
            let start = at;
            let length = usize::from(options[at + 1]);
            at += length.max(2);
            if options[start] == kind && length >= least {
                return Some(start..start + length);
            }
        }
        None
    })
}

/// Returns the shift of the last window scale option, `None` without one.
pub(crate) fn window_scale(options: &[u8]) -> Option<u8> {
    values(options, WINDOW_SCALE, WINDOW_SCALE_LEN)
        .last()
        .map(|value| options[value.start].min(MAX_SHIFT))
}

/// Returns the ranges of the values of MSS options.
pub(crate) fn mss(options: &[u8]) -> Vec<Range<usize>> {
    values(options, MSS, MSS_LEN).collect()
}

/// Returns the ranges of the values of timestamp options: a timestamp and an echo, 4 bytes each.
pub(crate) fn timestamps(options: &[u8]) -> Vec<Range<usize>> {
    values(options, TIMESTAMP, TIMESTAMP_LEN).collect()
}

/// Returns the ranges of the edges of the blocks in SACK options, 4 bytes each.
pub(crate) fn sack_edges(options: &[u8]) -> Vec<Range<usize>> {
    let blocks = whole(options, SACK, 2 + SACK_BLOCK).flat_map(|option| {
        let end = option.end.min(options.len());
        (option.start + 2..).step_by(SACK_BLOCK).take_while(move |at| at + SACK_BLOCK <= end)
    });
    blocks.flat_map(|at| [at..at + 4, at + 4..at + 8]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_behind_padding() {
        assert_eq!(window_scale(&[1, 0, 3, 3, 7, 0]), Some(7));
        assert_eq!(window_scale(&[3, 3, 200]), Some(14));
        assert_eq!(window_scale(&[3, 3, 2, 3, 3, 5]), Some(5), "the last one counts");
        assert_eq!(window_scale(&[3, 2, 7, 7]), None, "too short an option");
        assert_eq!(window_scale(&[2, 4, 5, 180]), None);
        assert_eq!(mss(&[4, 2, 2, 4, 5, 180]).first(), Some(&(4..6)));
    }

    #[test]
    fn blocks_of_sack() {
        let mut options = vec![1, 1, 5, 18];
        options.extend([0; 16]);
        assert_eq!(sack_edges(&options), [4..8, 8..12, 12..16, 16..20]);
        options.truncate(19);
        assert_eq!(sack_edges(&options), [4..8, 8..12], "a block must be whole");
        assert!(sack_edges(&[5, 9, 0, 0, 0, 0, 0, 0, 0, 0]).is_empty());
    }

    #[test]
    fn a_length_of_zero_does_not_go_on_forever() {
        assert_eq!(window_scale(&[8, 0, 8, 0, 3, 3, 1]), Some(1));
        assert!(mss(&[9, 255, 2, 4]).is_empty());
    }
}
