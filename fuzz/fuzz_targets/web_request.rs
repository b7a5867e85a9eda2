//! Input: any bytes on the broker's socket. The broker accepts only requests that survive writing
//! and reading, and no field of them is an option of pfctl.
#![no_main]

use clap::Parser;
use libfuzzer_sys::fuzz_target;
use skipstep_web::broker::{Command, Options, read_request};

fuzz_target!(|bytes: &[u8]| {
    let Ok(envelope) = read_request(bytes) else { return };
    let line = serde_json::to_string(&envelope).expect("a request that was read") + "\n";
    assert_eq!(read_request(line.as_bytes()), Ok(envelope.clone()));
    let options = Options::parse_from(["skipstep-broker"]);
    if let Some(command) = Command::for_request(&envelope.request, &options) {
        let ours =
            ["-s", "-a", "-t", "-T", "-v", "-k", "-f", "-", "--json", "--confirm", "--write"];
        let options = command.arguments.iter().filter(|word| word.starts_with('-'));
        for option in options {
            assert!(ours.contains(&option.as_str()), "{option}");
        }
    }
});
