//! Input: any bytes as a frame from the device for diverted packets, and as a message of a program.
//! An accepted message keeps its packet. A frame that passes a program without a change keeps its
//! label and its packet.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skipstep_abi::diverted::Diverted;
use skipstep_fuzz::NONCE;
use skipstepd::envelope::{self, Envelope};
use zerocopy::{FromBytes, IntoBytes};

/// Length of an Ethernet header.
const ETHERNET: usize = 14;

/// Overwrites the first bytes with the nonce, which only the data plane knows.
fn with_nonce(bytes: &[u8]) -> Vec<u8> {
    let mut frame = bytes.to_vec();
    let length = frame.len().min(size_of_val(&NONCE));
    frame[..length].copy_from_slice(&NONCE.as_bytes()[..length]);
    frame
}

/// Checks that a message of a program becomes a frame with all bytes of the packet, or is refused.
fn check(message: &[u8]) {
    let Some(frame) = envelope::to_frame(message, NONCE) else { return };
    let label = Diverted::read_from_prefix(&frame[ETHERNET..]).expect("a label").0;
    assert_eq!(label.nonce, NONCE);
    let packet = message.len() - size_of::<Envelope>();
    assert_eq!(frame.len(), ETHERNET + size_of::<Diverted>() + packet);
}

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    if let Some((envelope, packet)) = envelope::from_frame(&with_nonce(bytes), NONCE) {
        assert!(usize::from(envelope.link_length) <= ETHERNET);
        check(&[envelope.as_bytes(), packet].concat());
    }
    envelope::from_frame(bytes, NONCE);
});
