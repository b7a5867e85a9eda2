//! `-s References`: prints the references that keep the filter enabled, as macOS's pfctl does.

use serde_json::{Value, json};
use skipstep_kernel::EnableReference;

use super::duration;

/// Prints a line for each reference, with the time since it was taken. `now` is in seconds since
/// 1970.
pub fn text(references: &[EnableReference], now: u64) -> String {
    if references.is_empty() {
        return "No pf starter references held\n".into();
    }
    let line = |pid: &str, process: &str, token: &str, time: &str| {
        format!("{pid:<8} {process:<28} {token:<24} {time}\n")
    };
    let head = line("PID", "Process Name", "TOKEN", "TIMESTAMP");
    let rows = references.iter().map(|held| {
        let time = duration(now.saturating_sub(held.since));
        line(&held.pid.to_string(), &held.process, &held.token.to_string(), &time)
    });
    format!("TOKENS:\n{head}{}", rows.collect::<String>())
}

/// Returns an object for each reference.
pub fn json(references: &[EnableReference]) -> Value {
    let object = |held: &EnableReference| {
        json!({
            "token": held.token.to_string(),
            "pid": held.pid,
            "process": held.process,
            "since": held.since,
        })
    };
    references.iter().map(object).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_printed_as_macos_does() {
        let held =
            |token, pid, since| EnableReference { token, pid, process: "pfctl".into(), since };
        assert_eq!(text(&[], 0), "No pf starter references held\n");
        let two = [held(9_084_387_343_160_548_126, 4077, 100), held(15, 4063, 34)];
        assert_eq!(
            text(&two, 100),
            "TOKENS:\n\
             PID      Process Name                 TOKEN                    TIMESTAMP\n\
             4077     pfctl                        9084387343160548126      0 days 00:00:00\n\
             4063     pfctl                        15                       0 days 00:01:06\n"
        );
    }
}
