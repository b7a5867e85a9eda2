//! Input: any bytes as a capture file. A workload is derived from the capture, or there is a reason
//! why not. A derived workload can be parsed.
#![no_main]

use fwlab_load::workload::{derive, parse};
use libfuzzer_sys::fuzz_target;

/// Puts the head of a pcap file in front of the bytes, so that more inputs pass the first check.
/// The first byte selects the link type.
fn file(bytes: &[u8]) -> Vec<u8> {
    let links = [1, 12, 101, 113, 117, 276];
    let link = links[usize::from(bytes.first().copied().unwrap_or(0)) % links.len()];
    let head = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, link];
    let mut file: Vec<u8> = head.into_iter().flat_map(u32::to_le_bytes).collect();
    file.extend(bytes.get(1..).unwrap_or_default());
    file
}

fuzz_target!(|bytes: &[u8]| {
    for file in [bytes.to_vec(), file(bytes)] {
        match derive(&file, None) {
            Ok(text) => assert!(parse(&text).expect("what was made").commands() >= 1),
            Err(why) => assert!(!why.to_string().is_empty()),
        }
    }
});
