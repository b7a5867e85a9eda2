//! Input: any text, which is converted or refused. examples/host.iptables is a good first corpus.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skipstep_fuzz::is_accepted_or_refused;
use skipstep_import::iptables;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    is_accepted_or_refused(iptables::import(&text, "input"));
});
