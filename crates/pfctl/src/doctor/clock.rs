//! Checks of the clocks: the system's, which the log uses, and the timer that removes expired
//! states.

use skipstep_kernel::timekeeping;

use super::finding::Finding;
use super::{Inputs, Words, has_systemd};
use crate::show::info::SWEEP_MAY_BE_LATE;

const SUBJECT: &str = "clock";

/// Sources that the kernel needs microseconds to read.
const SLOW: [&str; 4] = ["hpet", "acpi_pm", "pit", "jiffies"];

/// The clocks.
#[derive(Default)]
pub struct Facts {
    /// True if a time service sets the clock; `None` if the system does not say.
    synchronized: Option<bool>,
    /// Source of the kernel's time.
    source: Option<String>,
    /// True if systemd runs.
    has_systemd: bool,
    /// Seconds by which the timer of the sweep is overdue.
    sweep_late: u64,
    /// Number of failed starts of that timer, and the errno of the latest failure.
    timer_errors: (u32, u32),
}

/// Reads the facts.
pub fn collect(inputs: &Inputs) -> Facts {
    let running = inputs.open().map(|(.., status)| status).filter(|status| status.running);
    Facts {
        synchronized: timekeeping::is_synchronized(),
        source: timekeeping::source(),
        has_systemd: has_systemd(),
        sweep_late: running.map_or(0, |status| status.sweep_late_secs.into()),
        timer_errors: running.map_or((0, 0), |status| status.timer_errors),
    }
}

/// Judges the facts.
pub fn judge(facts: &Facts, words: &Words) -> Vec<Finding> {
    let source = facts.source.as_deref().unwrap_or("unknown");
    let mut findings = vec![match facts.synchronized {
        Some(true) => Finding::ok(SUBJECT, format!("set by a time service; source {source}")),
        Some(false) => {
            let text = "no time service (NTP) sets it, so times in the log may be wrong";
            let finding = Finding::warn(SUBJECT, text);
            // other systems have no common command that starts a time service
            let command = "timedatectl set-ntp true";
            if facts.has_systemd { finding.mended_by(command) } else { finding }
        }
        None => Finding::unseen(SUBJECT, "the kernel does not report if a time service sets it"),
    }];
    if SLOW.contains(&source) {
        let text = format!("its source {source} is slow, and the filter reads it for each packet");
        findings.push(Finding::warn(SUBJECT, text));
    }
    if facts.sweep_late > SWEEP_MAY_BE_LATE {
        let (errors, errno) = facts.timer_errors;
        let late = facts.sweep_late;
        let text = format!(
            "the timer that removes expired states is {late} seconds late; {errors} starts of it \
             failed (errno {errno})"
        );
        findings.push(Finding::fail("sweep", text).mended_by(format!("{} -e", words.pfctl)));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn levels(facts: &Facts) -> Vec<Level> {
        judge(facts, &Words::usual()).iter().map(|finding| finding.level).collect()
    }

    #[test]
    fn clocks_are_judged() {
        let well = Facts {
            synchronized: Some(true),
            source: Some("tsc".to_owned()),
            has_systemd: true,
            sweep_late: SWEEP_MAY_BE_LATE,
            timer_errors: (3, 12),
        };
        assert_eq!(levels(&well), [Level::Ok], "an earlier error is over");
        let alone = Facts { synchronized: Some(false), ..Facts::default() };
        assert_eq!(levels(&alone), [Level::Warn]);
        assert_eq!(judge(&alone, &Words::usual())[0].command, None, "without systemd");
        let alone = Facts { has_systemd: true, ..alone };
        let command = judge(&alone, &Words::usual())[0].command.clone();
        assert_eq!(command.as_deref(), Some("timedatectl set-ntp true"));
        assert!(!judge(&Facts::default(), &Words::usual())[0].seen);
        let slow = Facts { source: Some("hpet".to_owned()), ..well };
        assert_eq!(levels(&slow), [Level::Ok, Level::Warn]);
    }

    #[test]
    fn a_late_sweep_fails() {
        let late = Facts { synchronized: Some(true), sweep_late: 40, ..Facts::default() };
        let finding = judge(&late, &Words::usual()).pop().unwrap();
        assert_eq!((finding.level, finding.subject.as_str()), (Level::Fail, "sweep"));
        assert_eq!(finding.command.as_deref(), Some("pfctl -e"));
    }
}
