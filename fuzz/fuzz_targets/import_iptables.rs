//! Any text is converted or refused with a reason, and what a conversion prints is a pf.conf that its
//! parser accepts. examples/host.iptables is a good corpus to begin with.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skipstep_import::iptables;
use skipstep_pfconf::{Context, load};
use skipstep_scenario::host;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    match iptables::import(&text, "input") {
        Ok(imported) => {
            let host = host::standard();
            if let Err(refused) = load(&imported.conf, &Context::new(&host)) {
                panic!("{}\n{}", refused.diagnostics[0].explain(), imported.conf);
            }
        }
        Err(messages) => {
            assert!(messages.iter().any(|message| !message.kind.is_harmless()));
            for message in messages {
                message.explain();
            }
        }
    }
});
