//! Input: any text as a configuration of ftp-gw, and as a list of accounts. A mistake in the
//! configuration is reported with its line and a correction. examples/ftp-gw.conf is a good first
//! corpus.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skipstep_ftp::gateway::accounts::Accounts;
use skipstep_ftp::gateway::config::Config;

fuzz_target!(|text: &str| {
    if let Err(mistake) = Config::parse("file", text) {
        let told = mistake.to_string();
        assert!(told.starts_with("file:") && told.contains("\nhelp: "), "{told}");
    }
    if let Err(problem) = Accounts::parse("file", text) {
        assert!(problem.to_string().starts_with("file:"), "{problem}");
    }
});
