//! Checks of the filter itself: it exists, is enabled, and has rules and a guard.

use skipstep_kernel::Error;

use super::finding::Finding;
use super::{Filter, Inputs, Words};

const SUBJECT: &str = "filter";

/// The state of the filter.
pub enum Facts {
    /// Only root may read the filter.
    Hidden,
    /// No rules were loaded yet.
    Absent,
    /// The filter cannot be read.
    Broken {
        /// The reason.
        why: String,
        /// True if only a new filter helps.
        is_lost: bool,
    },
    /// The filter as it is.
    Present(Present),
}

/// A filter that can be read.
pub struct Present {
    running: bool,
    /// Number of rules, those of anchors included.
    rules: usize,
    generation: u32,
    guard: Guard,
}

/// The guard, which drops packets of interfaces that the filter is not attached to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Guard {
    /// It is attached.
    On,
    /// It is not attached, though the rules need it.
    Missing,
    /// The rules have `set unattached pass`, or the filter is disabled.
    Off,
}

/// Reads the facts.
pub fn collect(inputs: &Inputs) -> Facts {
    match &inputs.filter {
        Filter::Hidden => Facts::Hidden,
        Filter::Absent => Facts::Absent,
        Filter::Broken(error) => Facts::Broken {
            why: format!("{error:#}"),
            is_lost: matches!(
                error.downcast_ref(),
                Some(Error::Version { .. } | Error::Forgotten { .. })
            ),
        },
        Filter::Open(open) => {
            let (instance, loaded, status) = &**open;
            Facts::Present(Present {
                running: status.running,
                rules: loaded.ruleset.all_rules().count(),
                generation: loaded.generation,
                guard: match (instance.is_guarded(), instance.lacks_guard()) {
                    (true, _) => Guard::On,
                    (false, true) => Guard::Missing,
                    (false, false) => Guard::Off,
                },
            })
        }
    }
}

/// Judges the facts.
pub fn judge(facts: &Facts, words: &Words) -> Vec<Finding> {
    let Words { pfctl, file, .. } = words;
    match facts {
        Facts::Hidden => {
            let finding = Finding::unseen(SUBJECT, "only root may read the filter");
            vec![finding.mended_by(format!("sudo {pfctl} doctor"))]
        }
        Facts::Absent => {
            let text = "no rules are loaded: all packets pass";
            vec![Finding::fail(SUBJECT, text).mended_by(format!("{pfctl} -ef {file}"))]
        }
        Facts::Broken { why, is_lost } => {
            let finding = Finding::fail(SUBJECT, format!("cannot be read: {why}"));
            let command = format!("{pfctl} --remove && {pfctl} -ef {file}");
            vec![if *is_lost { finding.mended_by(command) } else { finding }]
        }
        Facts::Present(present) => present.findings(words),
    }
}

impl Present {
    fn findings(&self, words: &Words) -> Vec<Finding> {
        let Words { pfctl, file, .. } = words;
        let mut findings = vec![match (self.running, self.rules) {
            (false, _) => Finding::fail(SUBJECT, "disabled: all packets pass")
                .mended_by(format!("{pfctl} -e")),
            (true, 0) => Finding::fail(SUBJECT, "enabled without rules: all packets pass")
                .mended_by(format!("{pfctl} -f {file}")),
            (true, rules) => {
                let generation = self.generation;
                Finding::ok(SUBJECT, format!("enabled, {rules} rules, generation {generation}"))
            }
        }];
        match self.guard {
            Guard::On => findings
                .push(Finding::ok("guard", "attached: drops packets that bypass the filter")),
            Guard::Missing => findings.push(
                Finding::warn("guard", "not attached: new interfaces are open until attached")
                    .mended_by(format!("{pfctl} -e")),
            ),
            Guard::Off if self.running => {
                let text = "off: `set unattached pass` opens new interfaces until attached";
                findings.push(Finding::ok("guard", text));
            }
            Guard::Off => {}
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn words() -> Words {
        let [pfctl, file] = ["pfctl -p lab", "my.conf"].map(str::to_owned);
        Words { pfctl, file, ..Words::usual() }
    }

    fn present() -> Present {
        Present { running: true, rules: 7, generation: 2, guard: Guard::On }
    }

    #[test]
    fn a_filter_that_filters_is_well() {
        let findings = judge(&Facts::Present(present()), &words());
        assert!(findings.iter().all(|finding| finding.level == Level::Ok), "{findings:?}");
        assert_eq!(findings[0].text, "enabled, 7 rules, generation 2");
    }

    #[test]
    fn a_filter_that_does_not_filter_fails_with_a_command() {
        for (facts, command) in [
            (Facts::Absent, "pfctl -p lab -ef my.conf"),
            (
                Facts::Broken { why: "other version".to_owned(), is_lost: true },
                "pfctl -p lab --remove && pfctl -p lab -ef my.conf",
            ),
            (
                Facts::Present(Present { running: false, guard: Guard::Off, ..present() }),
                "pfctl -p lab -e",
            ),
            (Facts::Present(Present { rules: 0, ..present() }), "pfctl -p lab -f my.conf"),
        ] {
            let findings = judge(&facts, &words());
            assert_eq!(findings[0].level, Level::Fail);
            assert_eq!(findings[0].command.as_deref(), Some(command));
        }
    }

    #[test]
    fn a_filter_is_not_removed_for_an_error_that_may_pass() {
        let locked = Facts::Broken { why: "locked by process 7".to_owned(), is_lost: false };
        let findings = judge(&locked, &words());
        assert_eq!((findings[0].level, &findings[0].command), (Level::Fail, &None));
        assert_eq!(findings[0].text, "cannot be read: locked by process 7");
    }

    #[test]
    fn a_user_without_rights_gets_the_command_of_root() {
        let findings = judge(&Facts::Hidden, &words());
        assert_eq!(findings[0].command.as_deref(), Some("sudo pfctl -p lab doctor"));
        assert_eq!((findings[0].level, findings[0].seen), (Level::Warn, false));
    }

    #[test]
    fn the_guard_is_missed_unless_the_rules_do_without_it() {
        for (guard, level) in [(Guard::Missing, Level::Warn), (Guard::Off, Level::Ok)] {
            let findings = judge(&Facts::Present(Present { guard, ..present() }), &words());
            assert_eq!((findings.len(), findings[1].level), (2, level));
        }
    }
}
