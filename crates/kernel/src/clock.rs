//! The boot clock, which stamps records of the data plane, and its conversion to the wall clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};

/// Returns the boot clock in nanoseconds, or 0 if it cannot be read.
pub fn boot_time() -> u64 {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(0, |now| Duration::from(now).as_nanos() as u64)
}

/// Converts `boot_time`, in nanoseconds of the boot clock, to the time since 1970. The difference
/// of the clocks is read now, because the wall clock can have been set since boot.
pub fn wall_time(boot_time: u64) -> Duration {
    let wall_now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let age = Duration::from_nanos(self::boot_time().saturating_sub(boot_time));
    wall_now.saturating_sub(age)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_time_of_5_seconds_ago_is_5_seconds_ago() {
        let boot_now = Duration::from(clock_gettime(ClockId::CLOCK_BOOTTIME).unwrap());
        let wall_now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let ago = wall_now - wall_time(boot_now.as_nanos() as u64 - 5_000_000_000);
        assert!((4900..5100).contains(&ago.as_millis()), "{ago:?}");
    }
}
