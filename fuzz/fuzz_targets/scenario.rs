//! Input: any text as a scenario file, which is read, or refused with its line. A printed scenario
//! file is read back as the same, and its packets can be built. tests/scenarios is a good first
//! corpus: `cargo run --release --bin scenario -- corpus/scenario ../tests/scenarios`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skipstep_scenario::case::Action;
use skipstep_scenario::parse;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let file = match parse::file(&text, "input") {
        Ok(file) => file,
        Err(refused) => {
            let _ = refused.to_string();
            return;
        }
    };
    let printed = file.to_string();
    match parse::file(&printed, "printed") {
        Ok(again) => assert_eq!(again, file, "{printed}"),
        Err(refused) => panic!("{refused}\n{printed}"),
    }
    for step in file.cases.iter().flat_map(|case| &case.steps) {
        if let Action::Packet(arrival, _) = &step.action {
            arrival.packet.bytes();
        }
    }
});
