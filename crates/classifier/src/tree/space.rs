//! The fields of a header that trees cut along, and how a box is written into a leaf.

use std::ops::Range;

use super::cell::WORDS;
use super::region::Region;

/// A family's fields.
#[derive(Debug)]
pub struct Space<const N: usize> {
    /// Every header there can be.
    pub whole: Region<N>,
    /// Where the words of the source and of the destination address are.
    pub addresses: [Range<usize>; 2],
    /// Words of a rule in a leaf.
    pub(super) leaf_words: usize,
    pub(super) write: fn(&Region<N>, &mut [u32]),
    pub(super) holds: fn(&[u32], &[u32; N]) -> bool,
}

/// IPv4: source, destination, source port, destination port (of ICMP: type and code), protocol, class of
/// interface.
pub const INET: Space<6> = Space {
    whole: Region { low: [0; 6], high: [u32::MAX, u32::MAX, 0xffff, 0xffff, 0xff, 0xff] },
    addresses: [0..1, 1..2],
    leaf_words: WORDS / 2,
    write: |region, words| {
        words[..4].copy_from_slice(&[region.low[0], region.high[0], region.low[1], region.high[1]]);
        write_rest(&region.low[2..], &region.high[2..], &mut words[4..]);
    },
    holds: |words, point| {
        (words[0]..=words[1]).contains(&point[0])
            && (words[2]..=words[3]).contains(&point[1])
            && rest_holds(&words[4..], &point[2..])
    },
};

/// IPv6: the four words of the source, of the destination, and the rest as IPv4 has it. An address is a prefix;
/// who has a range covers it by one.
pub const INET6: Space<12> = Space {
    whole: Region {
        low: [0; 12],
        high: [
            u32::MAX,
            u32::MAX,
            u32::MAX,
            u32::MAX,
            u32::MAX,
            u32::MAX,
            u32::MAX,
            u32::MAX,
            0xffff,
            0xffff,
            0xff,
            0xff,
        ],
    },
    addresses: [0..4, 4..8],
    leaf_words: WORDS,
    write: |region, words| {
        words[..8].copy_from_slice(&region.low[..8]);
        write_rest(&region.low[8..], &region.high[8..], &mut words[8..]);
        words[11] = fixed_bits(region, 0..4) | fixed_bits(region, 4..8) << 8;
    },
    holds: |words, point| {
        let lengths = [words[11] & 0xff, words[11] >> 8];
        (0..8).all(|word| {
            let fixed = lengths[word / 4].saturating_sub(32 * (word as u32 % 4)).min(32);
            let mask = (u64::from(u32::MAX) << (32 - fixed)) as u32;
            (words[word] ^ point[word]) & mask == 0
        }) && rest_holds(&words[8..], &point[8..])
    },
};

/// Ports, protocol and interface, in three words.
fn write_rest(low: &[u32], high: &[u32], words: &mut [u32]) {
    words[0] = low[0] | high[0] << 16;
    words[1] = low[1] | high[1] << 16;
    words[2] = low[2] | high[2] << 8 | low[3] << 16 | high[3] << 24;
}

fn rest_holds(words: &[u32], point: &[u32]) -> bool {
    let between = |value: u32, low: u32, high: u32| (low..=high).contains(&value);
    between(point[0], words[0] & 0xffff, words[0] >> 16)
        && between(point[1], words[1] & 0xffff, words[1] >> 16)
        && between(point[2], words[2] & 0xff, words[2] >> 8 & 0xff)
        && between(point[3], words[2] >> 16 & 0xff, words[2] >> 24)
}

/// How many leading bits of an address all headers of a box have in common.
pub(super) fn fixed_bits<const N: usize>(region: &Region<N>, address: Range<usize>) -> u32 {
    let mut bits = 0;
    for word in address {
        let same = (region.low[word] ^ region.high[word]).leading_zeros();
        bits += same;
        if same < 32 {
            break;
        }
    }
    bits
}
