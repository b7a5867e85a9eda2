//! Reassembly and fragmentation of packets from the device for fragments.

use std::hash::{BuildHasher, RandomState};

use skipstep_abi::handoff::{HANDOFF_NO_REASON, Handoff, handoff_order};
use skipstep_kernel::FragmentCounters;
use skipstep_reassembly::{FragmentFate, Piece, Reassembler, fragments};
use skipstep_ruleset::Reason;
use zerocopy::{FromBytes, IntoBytes};

use crate::task::FragmentLimits;

/// Bytes of the longest frame: a packet, a link header, and a handoff label.
pub const LONGEST_FRAME: usize = 65_535 + 64 + size_of::<Handoff>();

/// Largest fragment in bytes if the sizes of the received fragments are unknown; each IPv6 link
/// carries such packets.
const USUAL: usize = 1280;

/// Bytes of the link header that the device adds to packets without one.
const MADE_UP: usize = 14;

/// Incomplete datagrams, and the state for new fragments.
pub struct Fragments {
    reassembler: Reassembler,
    ids: RandomState,
    drawn: u64,
    nonce: u64,
    foreign: u64,
}

impl Fragments {
    /// Makes an empty reassembler with these limits. Frames of the data plane carry `nonce`.
    pub fn new(limits: FragmentLimits, nonce: u64) -> Self {
        let reassembler = Reassembler::new(limits.pieces, limits.timeout);
        Fragments { reassembler, ids: RandomState::new(), drawn: 0, nonce, foreign: 0 }
    }

    /// Sets other limits.
    pub fn configure(&mut self, limits: FragmentLimits) {
        self.reassembler.configure(limits.pieces, limits.timeout);
    }

    /// Drops incomplete datagrams that have timed out. `now` is in seconds of the boot clock.
    pub fn expire(&mut self, now: u32) {
        self.reassembler.expire(now);
    }

    /// Returns the number of waiting fragments.
    pub fn pieces(&self) -> usize {
        self.reassembler.pieces()
    }

    /// Returns the counters since the start.
    pub fn counters(&self) -> FragmentCounters {
        let pieces = self.reassembler.pieces();
        FragmentCounters::new(pieces, self.reassembler.counters(), self.foreign)
    }

    /// Returns the frames to send back for a frame of the device. A frame without the nonce is not
    /// the data plane's, so it is only counted.
    // Differs from OpenBSD: linux.md, "Fragments"
    pub fn answer(&mut self, frame: &[u8], now: u32) -> Vec<Vec<u8>> {
        let Some((frame, handoff)) = frame
            .len()
            .checked_sub(size_of::<Handoff>())
            .map(|at| frame.split_at(at))
            .and_then(|(frame, handoff)| Some((frame, Handoff::read_from_bytes(handoff).ok()?)))
            .filter(|(_, handoff)| handoff.nonce == self.nonce)
        else {
            self.foreign += 1;
            return Vec::new();
        };
        let link_header = match handoff.link_header {
            0 => MADE_UP,
            length => usize::from(length),
        };
        let Some((link, packet)) = frame.split_at_checked(link_header) else {
            return Vec::new();
        };
        match handoff.order {
            handoff_order::FRAGMENT => {
                self.piece(link, packet, &handoff, now).into_iter().collect()
            }
            handoff_order::REFRAGMENT => self.fragments(link, packet, &handoff),
            _ => Vec::new(),
        }
    }

    fn piece(
        &mut self,
        link: &[u8],
        packet: &[u8],
        handoff: &Handoff,
        now: u32,
    ) -> Option<Vec<u8>> {
        let outcome = match Piece::parse(packet, handoff.rdomain) {
            Some(piece) => self.reassembler.add(piece, now),
            None => FragmentFate::Dropped(Some(Reason::Fragment)),
        };
        match outcome {
            FragmentFate::Queued => None,
            FragmentFate::Complete(whole) => {
                let longest = u16::try_from(whole.longest).unwrap_or(u16::MAX);
                let back = Handoff { order: handoff_order::WHOLE, longest, ..*handoff };
                Some(frame(link, &whole.bytes, &back))
            }
            FragmentFate::Dropped(reason) => {
                let reason = reason.map_or(HANDOFF_NO_REASON, |reason| reason as u8);
                let back = Handoff { order: handoff_order::REFUSED, reason, ..*handoff };
                Some(frame(link, packet, &back))
            }
        }
    }

    fn fragments(&mut self, link: &[u8], packet: &[u8], handoff: &Handoff) -> Vec<Vec<u8>> {
        let longest = match handoff.longest {
            0 => USUAL,
            longest => usize::from(longest),
        };
        self.drawn += 1;
        let id = self.ids.hash_one(self.drawn) as u32;
        let fragments = fragments(packet, longest, id).unwrap_or_default();
        let back = Handoff { order: handoff_order::SEND, ..*handoff };
        fragments.iter().map(|fragment| frame(link, fragment, &back)).collect()
    }
}

fn frame(link: &[u8], packet: &[u8], handoff: &Handoff) -> Vec<u8> {
    [link, packet, handoff.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use skipstep_abi::verdict::direction;

    use super::*;

    const LINK: [u8; 14] = [2; 14];

    const LIMITS: FragmentLimits = FragmentLimits { pieces: 5000, timeout: 60 };

    const NONCE: u64 = 0x0706_0504_0302_0100;

    fn handoff(order: u8) -> Handoff {
        Handoff {
            nonce: NONCE,
            ifindex: 5,
            mark: 0x1234,
            order,
            direction: direction::IN,
            link_header: 14,
            ..Handoff::default()
        }
    }

    fn ipv4(offset: u16, more: bool, data: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 7, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet[2..4].copy_from_slice(&(20 + data.len() as u16).to_be_bytes());
        packet[6..8].copy_from_slice(&((offset / 8) | (u16::from(more) << 13)).to_be_bytes());
        packet.extend(data);
        packet
    }

    #[test]
    fn fragments_become_a_datagram_and_fragments_again() {
        let mut fragments = Fragments::new(LIMITS, NONCE);
        let order = handoff(handoff_order::FRAGMENT);
        // bytes behind the packet are padding of the link
        let first = [ipv4(0, true, &[1; 16]), vec![0; 10]].concat();
        assert_eq!(fragments.answer(&frame(&LINK, &first, &order), 0), Vec::<Vec<u8>>::new());
        assert_eq!(fragments.pieces(), 1);
        let back = fragments.answer(&frame(&LINK, &ipv4(16, false, &[2; 4]), &order), 0);
        let whole = Handoff { order: handoff_order::WHOLE, longest: 36, ..order };
        let datagram = ipv4(0, false, &[vec![1; 16], vec![2; 4]].concat());
        assert_eq!(back, [frame(&LINK, &datagram, &whole)]);

        let again = Handoff { order: handoff_order::REFRAGMENT, longest: 36, ..order };
        let back = fragments.answer(&frame(&LINK, &datagram, &again), 0);
        assert_eq!(back.len(), 2);
        for (sent, (offset, more)) in back.iter().zip([(0, true), (16, false)]) {
            let piece = Piece::parse(&sent[14..], 0).unwrap();
            assert_eq!((piece.id, piece.offset, piece.more), (7, offset, more));
            assert!(sent.ends_with(Handoff { order: handoff_order::SEND, ..again }.as_bytes()));
        }
    }

    #[test]
    fn refused_fragments_are_returned_with_a_reason() {
        let mut fragments = Fragments::new(LIMITS, NONCE);
        let order = handoff(handoff_order::FRAGMENT);
        let bad = ipv4(8, true, &[0; 7]);
        let refused =
            Handoff { order: handoff_order::REFUSED, reason: Reason::Fragment as u8, ..order };
        let back = fragments.answer(&frame(&LINK, &bad, &order), 0);
        assert_eq!(back, [frame(&LINK, &bad, &refused)]);
    }

    #[test]
    fn frames_without_the_nonce_are_counted_and_do_nothing() {
        let mut fragments = Fragments::new(LIMITS, NONCE);
        let sound = frame(&LINK, &ipv4(0, true, &[1; 16]), &handoff(handoff_order::FRAGMENT));
        for length in 0..sound.len() {
            fragments.answer(&sound[..length], 0);
        }
        // flip one bit in each byte of the nonce
        for byte in 0..size_of::<u64>() {
            let nonce = NONCE ^ (1 << (8 * byte + byte));
            let order = Handoff { nonce, ..handoff(handoff_order::FRAGMENT) };
            fragments.answer(&frame(&LINK, &ipv4(0, true, &[1; 16]), &order), 0);
        }
        let FragmentCounters { pieces, searches, foreign, .. } = fragments.counters();
        assert_eq!((pieces, searches, foreign), (0, 0, sound.len() as u64 + 8));
        fragments.answer(&sound, 0);
        assert_eq!(fragments.counters().pieces, 1);
    }
}
