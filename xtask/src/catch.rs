//! Panics of evaluators, caught so that other evaluators continue. A panic is a test result.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs a function that may panic.
///
/// # Errors
/// Fails with message and position of the panic.
pub fn catching<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            MESSAGE.with(|text| *text.borrow_mut() = info.to_string().replace('\n', " "));
        }));
    });
    catch_unwind(AssertUnwindSafe(run)).map_err(|_| MESSAGE.with(|text| text.borrow().clone()))
}
