//! What the kernel says of a process.

use std::fs;
use std::time::Duration;

/// The unit of times there: USER_HZ.
const TICK: Duration = Duration::from_millis(10);

/// CPU time that all threads of a process had outside of the kernel, if there is such a process.
pub fn user_time(process: u32) -> Option<Duration> {
    let line = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // the name of the program, which may have spaces, is in brackets
    let ticks = line.rsplit_once(')')?.1.split_whitespace().nth(11)?.parse::<u32>().ok()?;
    Some(TICK * ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_a_process_is_told() {
        assert!(user_time(std::process::id()).is_some());
        assert_eq!(user_time(u32::MAX), None);
    }
}
