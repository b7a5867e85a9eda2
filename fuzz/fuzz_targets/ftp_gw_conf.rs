//! Any text is a configuration of ftp-gw or has a mistake, which is told with its line and how it
//! would be right; any text is a list of accounts, too, or none. examples/ftp-gw.conf is a good
//! corpus to begin with.
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
