//! Input: any text as a file of states (`pfctl -L`), which is read, or refused with a reason. A
//! restored state can be saved again, and survives another restoring and saving.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skipstep_kernel::record::{Memory, Record};
use skipstep_kernel::saved::SavedState;

/// The current time in seconds, on the clock of the states.
const NOW: u32 = 1_000_000;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let states = match pfctl::state_file::read(&text) {
        Ok((_, states)) => states,
        Err(refused) => return assert!(!format!("{refused:#}").is_empty()),
    };
    let (memory, record) = (Memory::default(), Record::default());
    for state in states {
        let Some(kept) = state.restored(&memory, &record, true, NOW) else { continue };
        let again = SavedState::from_kept(&kept, &memory, &record, NOW);
        let twice = again.restored(&memory, &record, true, NOW).expect("it was put in place");
        assert_eq!(SavedState::from_kept(&twice, &memory, &record, NOW), again);
    }
});
