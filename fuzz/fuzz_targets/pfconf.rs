//! Any text is loaded or refused with a reason. tests/conf is a good corpus to begin with:
//! `cargo run --release --bin pfconf -- corpus/pfconf ../tests/conf`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skipstep_pfconf::{Context, load};
use skipstep_scenario::host;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let host = host::standard();
    if let Err(refused) = load(&text, &Context::new(&host)) {
        assert!(!refused.diagnostics.is_empty());
        for diagnostic in refused.diagnostics {
            diagnostic.explain();
        }
    }
});
