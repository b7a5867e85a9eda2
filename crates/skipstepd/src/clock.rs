//! The boot clock, which the programs stamp everything with, and the wall clock at a moment of it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};

/// Nanosecond of the boot clock.
pub fn boot_time() -> u64 {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(0, |now| Duration::from(now).as_nanos() as u64)
}

/// Time since 1970 at `boot_time` nanoseconds of the boot clock, by the difference of the two
/// clocks now: the wall clock may have been set since the machine started.
pub fn wall_time(boot_time: u64) -> Duration {
    let wall_now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let age = Duration::from_nanos(self::boot_time().saturating_sub(boot_time));
    wall_now.saturating_sub(age)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_ago_is_a_moment_ago() {
        let boot_now = Duration::from(clock_gettime(ClockId::CLOCK_BOOTTIME).unwrap());
        let wall_now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let ago = wall_now - wall_time(boot_now.as_nanos() as u64 - 5_000_000_000);
        assert!((4900..5100).contains(&ago.as_millis()), "{ago:?}");
    }
}
