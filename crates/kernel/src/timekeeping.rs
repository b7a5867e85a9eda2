//! The system's clock: whether a time service sets it, and how long the kernel takes to read it.

use std::fs;
use std::mem::zeroed;

use nix::libc;

/// The source of time in use.
const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Returns true if a time service sets the clock, and false if none does; `None` if the system does
/// not say.
pub fn is_synchronized() -> Option<bool> {
    // SAFETY: a structure of numbers, for which zero is valid; mode 0 changes nothing
    let mut state: libc::timex = unsafe { zeroed() };
    // SAFETY: the structure lives until the call returns
    match unsafe { libc::adjtimex(&raw mut state) } {
        -1 => None,
        libc::TIME_ERROR => Some(false),
        _ => Some(true),
    }
}

/// Returns the name of the source that the kernel reads the time from.
pub fn source() -> Option<String> {
    Some(fs::read_to_string(SOURCE).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_user_may_read_the_clock() {
        assert!(is_synchronized().is_some());
    }
}
