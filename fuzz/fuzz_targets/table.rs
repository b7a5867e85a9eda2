//! Input: any text as a file of table addresses, which is read, or refused with a reason. A table
//! that is printed entry by entry is read back as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skipstep_pfconf::{Context, table_file};
use skipstep_scenario::host;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let host = host::standard();
    let context = Context::new(&host);
    match table_file(&text, &context) {
        Err(refused) => {
            refused.explain();
        }
        Ok(entries) => {
            let lines = entries.iter().map(|entry| {
                let sign = if entry.negated { "!" } else { "" };
                let weight = match entry.weight {
                    0 => String::new(),
                    weight => format!(" weight {weight}"),
                };
                format!("{sign}{}{weight}\n", entry.net)
            });
            let printed: String = lines.collect();
            assert_eq!(table_file(&printed, &context).ok(), Some(entries), "{printed}");
        }
    }
});
