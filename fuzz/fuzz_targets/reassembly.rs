//! Any bytes are fragments, in any order: no more than the limit are held, a datagram that is whole
//! is no fragment, and becomes fragments again that are whole together.
//!
//! The input is one packet after the other, each behind a byte of time and two of length.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skipstep_fuzz::frames;
use skipstep_reassembly::{
    Fragmentation, Outcome, Piece, Reassembler, refragment, refragment_ipv4,
};

/// Fragments that may wait.
const LIMIT: usize = 32;

/// Seconds that each waits.
const TIMEOUT: u32 = 60;

/// Makes fragments of at most `longest` bytes.
fn fragments(packet: &[u8], longest: usize) -> Option<Vec<Vec<u8>>> {
    match packet.first()? >> 4 {
        4 => refragment_ipv4(packet, longest),
        _ => refragment(packet, &Fragmentation::of(packet, longest)?, 7),
    }
}

/// Puts fragments together, which are those of one datagram.
fn joined(fragments: &[Vec<u8>]) -> Option<Vec<u8>> {
    let mut reassembler = Reassembler::new(usize::MAX, TIMEOUT);
    let mut whole = None;
    for fragment in fragments {
        if let Outcome::Whole(found) = reassembler.add(Piece::parse(fragment, 0)?, 0) {
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
        let Outcome::Whole(whole) = outcome else { continue };
        assert!(whole.longest <= packet.len().max(usize::from(u16::MAX)));
        assert!(Piece::parse(&whole.bytes, 0).is_none(), "a whole datagram is no fragment");
        // the reassembler takes 64 fragments in 4096 bytes, so shorter ones would be too many
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
