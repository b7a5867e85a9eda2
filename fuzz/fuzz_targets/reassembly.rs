//! Input: any bytes as fragments, in any order. No more fragments are held than the limit allows. A
//! reassembled datagram is no fragment. Its new fragments are reassembled to a datagram of the same
//! length.
//!
//! Each packet follows a byte of time and two bytes of length.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skipstep_fuzz::frames;
use skipstep_reassembly::{
    FragmentFate, Fragmentation, Piece, Reassembler, refragment, refragment_ipv4,
};

/// Number of fragments that may wait.
const LIMIT: usize = 32;

/// Seconds until an incomplete datagram is dropped.
const TIMEOUT: u32 = 60;

/// Splits a packet into fragments of at most `longest` bytes; `None` if it cannot be split.
fn fragments(packet: &[u8], longest: usize) -> Option<Vec<Vec<u8>>> {
    match packet.first()? >> 4 {
        4 => refragment_ipv4(packet, longest),
        _ => refragment(packet, &Fragmentation::for_packet(packet, longest)?, 7),
    }
}

/// Reassembles the fragments of one datagram.
fn joined(fragments: &[Vec<u8>]) -> Option<Vec<u8>> {
    let mut reassembler = Reassembler::new(usize::MAX, TIMEOUT);
    let mut whole = None;
    for fragment in fragments {
        if let FragmentFate::Complete(found) = reassembler.add(Piece::parse(fragment, 0)?, 0) {
            whole = Some(found.bytes);
        }
    }
    whole
}

fuzz_target!(|input: &[u8]| {
    let mut reassembler = Reassembler::new(LIMIT, TIMEOUT);
    let mut now = 0;
    for (how, packet) in frames(input) {
        now += u32::from(how & 0x3f);
        reassembler.expire(now);
        let Some(piece) = Piece::parse(packet, u32::from(how >> 6)) else { continue };
        let outcome = reassembler.add(piece, now);
        assert!(reassembler.pieces() <= LIMIT);
        let FragmentFate::Complete(whole) = outcome else { continue };
        assert!(whole.longest <= packet.len().max(usize::from(u16::MAX)));
        assert!(Piece::parse(&whole.bytes, 0).is_none(), "a whole datagram is no fragment");
        // the reassembler accepts 64 fragments in 4096 bytes, which shorter fragments would exceed
        for longest in [whole.longest, 1280, 576] {
            let Some(fragments) = fragments(&whole.bytes, longest) else { continue };
            assert!(fragments.iter().all(|fragment| fragment.len() <= longest));
            if fragments.len() > 1 {
                let again = joined(&fragments).expect("fragments of ours are whole together");
                assert_eq!(again.len(), whole.bytes.len());
            }
        }
    }
    reassembler.expire(now + TIMEOUT + 1);
    assert_eq!(reassembler.pieces(), 0);
});
