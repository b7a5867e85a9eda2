//! The header fields that trees branch by, and the encoding of a rectangle in a leaf.

use std::ops::Range;

use skipstep_abi::tree_set::{NODE_RULES, NODE_WORDS, RULE_WORDS};

use super::rect::Rect;

/// The axes of a family, with or without the metadata dimension.
#[derive(Debug)]
pub struct Space<const N: usize> {
    /// The rectangle of all headers.
    pub whole: Rect<N>,
    /// Axes of the source and of the destination address, one for each 32-bit word.
    pub addresses: [Range<usize>; 2],
    /// Prefix lengths to try as the boundary between wide and narrow addresses.
    pub(super) borders: &'static [u32],
    /// 32-bit words of a rule in a leaf.
    pub(super) rule_words: usize,
    pub(super) write: fn(&Rect<N>, &mut [u32]),
    pub(super) holds: fn(&[u32], &[u32; N]) -> bool,
}

impl<const N: usize> Space<N> {
    /// Returns the axis of the protocol, which follows those of the ports.
    pub(crate) fn protocol(&self) -> usize {
        self.addresses[1].end + 2
    }

    /// Returns the axis of the metadata dimension, if the space has one.
    pub(crate) fn metadata_axis(&self) -> Option<usize> {
        let axis = self.protocol() + 2;
        (axis < N).then_some(axis)
    }

    /// Returns the number of rules that fit in a leaf node, behind its first two words.
    pub(super) fn rules_of_a_node(&self) -> usize {
        (NODE_WORDS - NODE_RULES) / self.rule_words
    }
}

/// IPv4: source, destination, source port, destination port (for ICMP: type and code), protocol,
/// class of interface. For each address, a leaf stores the prefix that covers the rectangle.
pub const INET: Space<6> = inet([u32::MAX, u32::MAX, 0xffff, 0xffff, 0xff, 0xff]);

/// IPv4 with the metadata dimension, which leaves do not store.
pub const INET_METADATA: Space<7> =
    inet([u32::MAX, u32::MAX, 0xffff, 0xffff, 0xff, 0xff, u32::MAX]);

/// IPv6: the four words of the source and of the destination, then the other axes of IPv4. An
/// address is a prefix; a range becomes the prefix that covers it.
pub const INET6: Space<12> = inet6(highest6());

/// IPv6 with the metadata dimension.
pub const INET6_METADATA: Space<13> = inet6(highest6());

const fn inet<const N: usize>(high: [u32; N]) -> Space<N> {
    Space {
        whole: Rect { low: [0; N], high },
        addresses: [0..1, 1..2],
        borders: &[4, 12, 20, 0],
        rule_words: RULE_WORDS,
        write: |rect, words| write(rect, &[0..1, 1..2], words),
        holds: |words, point| {
            let rest = words[4];
            same_prefix(&words[..1], &point[..1], rest >> 16 & 0xff)
                && same_prefix(&words[1..2], &point[1..2], rest >> 24)
                && rest_holds(&words[2..], &point[2..])
        },
    }
}

const fn inet6<const N: usize>(high: [u32; N]) -> Space<N> {
    Space {
        whole: Rect { low: [0; N], high },
        addresses: [0..4, 4..8],
        // A site usually gets a network of 32 to 48 bits.
        borders: &[4, 36, 44, 52, 0],
        rule_words: 2 * RULE_WORDS,
        write: |rect, words| write(rect, &[0..4, 4..8], words),
        holds: |words, point| {
            let rest = words[10];
            same_prefix(&words[..4], &point[..4], rest >> 16 & 0xff)
                && same_prefix(&words[4..8], &point[4..8], rest >> 24)
                && rest_holds(&words[8..], &point[8..])
        },
    }
}

/// Returns the highest value of each axis: address words, ports, protocol, class of interface. Any
/// further axis has `u32::MAX`.
const fn highest6<const N: usize>() -> [u32; N] {
    let mut high = [u32::MAX; N];
    (high[8], high[9], high[10], high[11]) = (0xffff, 0xffff, 0xff, 0xff);
    high
}

/// Encodes a rectangle for a leaf: addresses, then ports, protocol and interface.
fn write<const N: usize>(rect: &Rect<N>, addresses: &[Range<usize>; 2], words: &mut [u32]) {
    let behind = addresses[1].end;
    words[..behind].copy_from_slice(&rect.low[..behind]);
    let (low, high, words) = (&rect.low[behind..], &rect.high[behind..], &mut words[behind..]);
    words[0] = low[0] | high[0] << 16;
    words[1] = low[1] | high[1] << 16;
    let [source, destination] = addresses.clone().map(|address| fixed_bits(rect, address));
    let [protocol, interface] = [2, 3].map(|axis| only_value(low[axis], high[axis]));
    words[2] = protocol | interface << 8 | source << 16 | destination << 24;
}

/// Encodes a protocol or class of interface; 0 means any.
fn only_value(low: u32, high: u32) -> u32 {
    debug_assert!((low == high && low > 0) || (low, high) == (0, 0xff), "{low} to {high}");
    if low == high { low } else { 0 }
}

fn same_prefix(one: &[u32], other: &[u32], bits: u32) -> bool {
    one.iter().zip(other).zip(0..).all(|((one, other), word)| {
        let fixed = bits.saturating_sub(32 * word).min(32);
        u64::from(one ^ other) >> (32 - fixed) == 0
    })
}

fn rest_holds(words: &[u32], point: &[u32]) -> bool {
    let between = |value: u32, range: u32| (range & 0xffff..=range >> 16).contains(&value);
    let is = |value: u32, want: u32| want == 0 || want == value;
    between(point[0], words[0])
        && between(point[1], words[1])
        && is(point[2], words[2] & 0xff)
        && is(point[3], words[2] >> 8 & 0xff)
}

/// Returns the number of leading bits of an address that are the same in all headers of a
/// rectangle.
pub(super) fn fixed_bits<const N: usize>(rect: &Rect<N>, address: Range<usize>) -> u32 {
    let mut bits = 0;
    for word in address {
        let same = (rect.low[word] ^ rect.high[word]).leading_zeros();
        bits += same;
        if same < 32 {
            break;
        }
    }
    bits
}
