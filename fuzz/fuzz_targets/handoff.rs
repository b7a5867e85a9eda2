//! Input: any bytes as frames from the device for fragments. All answers carry the nonce of the
//! device. No more fragments are held than the limit allows.
//!
//! Each frame follows a byte of time and two bytes of length.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skipstep_abi::handoff::{Handoff, handoff_order};
use skipstep_fuzz::{NONCE, frames};
use skipstepd::fragments::Fragments;
use skipstepd::task::FragmentLimits;
use zerocopy::{FromBytes, IntoBytes};

const LIMITS: FragmentLimits = FragmentLimits { pieces: 32, timeout: 60 };

/// Adds the nonce, which only the data plane knows, unless the upper bit of `how` is set. Without
/// the nonce hardly any frame passes the first check.
fn with_nonce(how: u8, frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    if how & 0x80 == 0
        && let Some(at) = frame.len().checked_sub(size_of::<Handoff>())
    {
        frame[at..at + size_of_val(&NONCE)].copy_from_slice(NONCE.as_bytes());
    }
    frame
}

fuzz_target!(|input: &[u8]| {
    let mut fragments = Fragments::new(LIMITS, NONCE);
    let mut now = 0;
    for (how, frame) in frames(input) {
        now += u32::from(how & 0x3f);
        fragments.expire(now);
        for answer in fragments.answer(&with_nonce(how, frame), now) {
            let (_, handoff) = answer.split_at(answer.len() - size_of::<Handoff>());
            let handoff = Handoff::read_from_bytes(handoff).expect("of this length");
            assert_eq!(handoff.nonce, NONCE);
            let orders = [handoff_order::WHOLE, handoff_order::REFUSED, handoff_order::SEND];
            assert!(orders.contains(&handoff.order));
        }
        assert!(fragments.pieces() <= LIMITS.pieces);
    }
});
