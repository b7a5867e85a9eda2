//! Input: any text, which is loaded, or refused with a reason. The printed form of a loaded rule
//! set loads again and is printed the same. tests/conf is a good first corpus: `cargo run --release
//! --bin pfconf -- corpus/pfconf ../tests/conf`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skipstep_pfconf::{Context, load};
use skipstep_scenario::host;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let host = host::standard();
    let context = Context { random: &|| 7, ..Context::new(&host) };
    match load(&text, &context) {
        Err(refused) => {
            assert!(!refused.diagnostics.is_empty());
            for diagnostic in refused.diagnostics {
                diagnostic.explain();
            }
        }
        Ok(loaded) => match load(&loaded.echo, &context) {
            Ok(again) => assert_eq!(again.echo, loaded.echo),
            Err(refused) => panic!("{}\nrefused: {:?}", loaded.echo, refused.diagnostics),
        },
    }
});
