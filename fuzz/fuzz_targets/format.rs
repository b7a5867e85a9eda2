//! Input: any text. If it loads, the formatted text means the same. Formatting it again changes
//! nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skipstep_pfconf::format::format;
use skipstep_pfconf::{Context, load};
use skipstep_scenario::host;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let formatted = format(&text);
    let host = host::standard();
    let context = Context { random: &|| 7, ..Context::new(&host) };
    let Ok(loaded) = load(&text, &context) else { return };
    match load(&formatted, &context) {
        Ok(again) => assert_eq!(again.echo, loaded.echo, "{formatted}"),
        Err(refused) => panic!("{formatted}\nrefused: {:?}", refused.diagnostics),
    }
    assert_eq!(format(&formatted), formatted);
});
