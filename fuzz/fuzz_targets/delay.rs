//! Input: any bytes as frames from the device for delayed packets. No more packets wait than the
//! limit allows. No packet leaves before its time, and all leave in the order of their times.
//!
//! Each frame follows a byte of time and two bytes of length.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skipstep_abi::delayed::{Delayed, delayed_order};
use skipstep_fuzz::{NONCE, frames};
use skipstepd::delay::Delays;
use zerocopy::{FromBytes, IntoBytes};

/// Length of an Ethernet header.
const ETHERNET: usize = 14;

/// Number of packets that may wait.
const LIMIT: u32 = 8;

/// Adds the nonce, which only the data plane knows, and a time that comes soon, unless the upper
/// bit of `how` is set.
fn with_nonce(how: u8, frame: &[u8]) -> Vec<u8> {
    match Delayed::read_from_prefix(frame) {
        Ok((label, rest)) if how & 0x80 == 0 => {
            let due = label.due % 64;
            [Delayed { nonce: NONCE, due, ..label }.as_bytes(), rest].concat()
        }
        _ => frame.to_vec(),
    }
}

fn label(frame: &[u8]) -> Delayed {
    Delayed::read_from_prefix(&frame[ETHERNET..]).expect("a label").0
}

fuzz_target!(|input: &[u8]| {
    let mut delays = Delays::new(LIMIT, NONCE);
    let mut now = 0;
    for (how, frame) in frames(input) {
        now += u64::from(how & 0x3f);
        if let Some(refusal) = delays.enqueue(&with_nonce(how, frame)) {
            assert_eq!(label(&refusal).order, delayed_order::REFUSED);
        }
        assert!(delays.counters().waiting <= LIMIT);
        let mut before = 0;
        while let Some(frame) = delays.next(now) {
            let label = label(&frame);
            assert!(label.due <= now && label.due >= before);
            assert_eq!(label.order, delayed_order::SEND);
            before = label.due;
        }
        assert!(delays.until_next(now).is_none_or(|left| !left.is_zero()));
    }
    while delays.next(u64::MAX).is_some() {}
    assert_eq!(delays.counters().waiting, 0);
});
