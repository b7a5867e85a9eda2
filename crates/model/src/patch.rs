//! Changes of bytes under a checksum without a read of all covered bytes (RFC 1624).
//!
//! Sums are kept in the machine's byte order, as in PF. One's complement sums are the same in both
//! orders, except that the choice between the two zeros depends on it.

/// The place of a checksum in a packet.
#[derive(Clone, Copy)]
pub(crate) struct Checksum {
    at: Option<usize>,
    udp: bool,
}

impl Checksum {
    /// No checksum.
    pub const NONE: Self = Checksum { at: None, udp: false };
    /// The checksum of an IPv4 header.
    pub const IPV4_HEADER: Self = Checksum::at(10);

    pub const fn at(at: usize) -> Self {
        Checksum { at: Some(at), udp: false }
    }

    /// Returns the place of a UDP checksum, where zero means no checksum.
    pub const fn of_udp(at: usize) -> Self {
        Checksum { at: Some(at), udp: true }
    }

    /// Replaces the 16-bit word at the even offset `at`, which the checksum covers.
    pub fn replace(self, bytes: &mut [u8], at: usize, new: [u8; 2]) {
        if bytes[at..at + 2] != new {
            self.replace_block(bytes, at, &new);
        }
    }

    /// Replaces words that the checksum covers.
    pub fn replace_block(self, bytes: &mut [u8], at: usize, new: &[u8]) {
        self.correct(bytes, at, new);
        bytes[at..at + new.len()].copy_from_slice(new);
    }

    /// Corrects the checksum for words that will be replaced.
    pub fn correct(self, bytes: &mut [u8], at: usize, new: &[u8]) {
        let old = bytes[at..at + new.len()].to_vec();
        self.exchange(bytes, &old, new);
    }

    /// Corrects the checksum for `new` words in place of `old` ones; their numbers may differ.
    pub fn exchange(self, bytes: &mut [u8], old: &[u8], new: &[u8]) {
        let Some(place) = self.at else { return };
        let word = |bytes: &[u8]| u16::from_ne_bytes([bytes[0], bytes[1]]);
        let before = word(&bytes[place..]);
        if self.udp && before == 0 {
            return;
        }
        let old = old.chunks_exact(2).map(|old| u32::from(word(old)));
        let new = new.chunks_exact(2).map(|new| u32::from(!word(new)));
        let sum = u32::from(before) + old.sum::<u32>() + new.sum::<u32>();
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = ((sum & 0xffff) + (sum >> 16)) as u16;
        let sum = if self.udp && sum == 0 { 0xffff } else { sum };
        bytes[place..place + 2].copy_from_slice(&sum.to_ne_bytes());
    }
}

/// Replaces the 16-bit word at the even offset `at` and corrects the checksum at `checksum`.
pub(crate) fn word(bytes: &mut [u8], checksum: usize, at: usize, new: [u8; 2]) {
    let old = [bytes[at], bytes[at + 1]];
    if old != new {
        bytes[at..at + 2].copy_from_slice(&new);
        correct(bytes, checksum, old, new);
    }
}

/// Replaces the byte at `at`. The checksum's words begin at `word_start`, because the value of a
/// TCP option may span two of them.
pub(crate) fn byte(bytes: &mut [u8], checksum: usize, word_start: usize, at: usize, new: u8) {
    let in_word = |value: u8| {
        if (at - word_start).is_multiple_of(2) { [value, 0] } else { [0, value] }
    };
    let old = std::mem::replace(&mut bytes[at], new);
    if old != new {
        correct(bytes, checksum, in_word(old), in_word(new));
    }
}

/// Replaces the 32-bit number at `at`; `word_start` as for [`byte`].
pub(crate) fn long(bytes: &mut [u8], checksum: usize, word_start: usize, at: usize, new: u32) {
    let new = new.to_be_bytes();
    if (at - word_start).is_multiple_of(2) {
        word(bytes, checksum, at, [new[0], new[1]]);
        word(bytes, checksum, at + 2, [new[2], new[3]]);
    } else {
        for (i, new) in new.into_iter().enumerate() {
            byte(bytes, checksum, word_start, at + i, new);
        }
    }
}

/// Corrects the checksum at `checksum` for a word that changes from `old` to `new`. The 16 bits
/// give at most one carry or borrow, and the addition of the upper half brings it back.
fn correct(bytes: &mut [u8], checksum: usize, old: [u8; 2], new: [u8; 2]) {
    let sum = u32::from(u16::from_ne_bytes([bytes[checksum], bytes[checksum + 1]]));
    let sum =
        (sum + u32::from(u16::from_ne_bytes(old))).wrapping_sub(u32::from(u16::from_ne_bytes(new)));
    let folded = sum.wrapping_add(sum >> 16) as u16;
    bytes[checksum..checksum + 2].copy_from_slice(&folded.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use skipstep_wire::build::{Tcp, ipv4};
    use skipstep_wire::checksum;

    #[test]
    fn the_sum_stays_right() {
        let mut packet =
            ipv4([10, 0, 0, 1], [10, 0, 0, 2]).tcp(&Tcp::new(1, 2).flags("S").mss(1460));
        word(&mut packet, 36, 34, [0x12, 0x34]);
        byte(&mut packet, 36, 20, 43, 0x01);
        byte(&mut packet, 36, 20, 42, 0x99);
        let mut recomputed = packet.clone();
        checksum::fix(&mut recomputed);
        assert_eq!(packet, recomputed);
    }
}
