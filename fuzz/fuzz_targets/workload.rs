//! Input: any text as a workload, which is read, or refused with its position. A printed workload
//! is read back as the same. docs/reference/workload.md has examples.
#![no_main]

use fwlab_load::workload::{Random, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    match parse(&text) {
        Ok(job) => {
            let printed = job.to_string();
            assert_eq!(parse(&printed).expect("what was printed").to_string(), printed);
            assert!(job.commands() >= 1);
        }
        Err(mistake) => assert!(mistake.explain("input", &text).contains('^')),
    }
    if let Ok(seed) = <[u8; 4]>::try_from(&bytes[..bytes.len().min(4)]) {
        let gap = Random::new(u32::from_ne_bytes(seed)).between(1.0, 2.0);
        assert!((1.0..=2.0).contains(&gap));
    }
});
