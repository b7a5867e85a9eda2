//! CPU times of processes, from /proc.

use std::fs;
use std::time::Duration;

/// The unit of times in `/proc/PID/stat`: 1/USER_HZ.
const TICK: Duration = Duration::from_millis(10);

/// Returns the user CPU time of all threads of a process, or None if there is no such process.
pub fn user_time(process: u32) -> Option<Duration> {
    let line = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // the program's name is in parentheses and may contain spaces
    let ticks = line.rsplit_once(')')?.1.split_whitespace().nth(11)?.parse::<u32>().ok()?;
    Some(TICK * ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_time_of_a_process_is_read() {
        assert!(user_time(std::process::id()).is_some());
        assert_eq!(user_time(u32::MAX), None);
    }
}
