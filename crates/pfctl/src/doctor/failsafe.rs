//! Checks of the failsafe list: the file has no errors, and the rules in force begin with it.

use skipstep_ruleset::failsafe::{ANCHOR, FILE};
use skipstep_ruleset::{Rule, Ruleset};

use super::finding::Finding;
use super::{Inputs, Words};
use crate::load;

const SUBJECT: &str = "failsafe";

/// The list in its file, and in the rules in force.
pub struct Facts {
    file: File,
    /// The list in force, `None` if the rules do not begin with a list. `None` also if no rules are
    /// loaded, or if this user may not read them.
    in_force: Option<Option<Vec<Rule>>>,
}

/// The file of the list.
enum File {
    Absent,
    /// The first error of the file.
    Broken(String),
    Rules(Vec<Rule>),
}

/// Reads the facts.
pub fn collect(inputs: &Inputs) -> Facts {
    let file = match load::failsafe_list(inputs.args, &inputs.host) {
        None => File::Absent,
        Some(Ok(list)) => File::Rules(list.ruleset.rules),
        Some(Err(rejected)) => {
            File::Broken(rejected.diagnostics.first().map(ToString::to_string).unwrap_or_default())
        }
    };
    let rules_of = |ruleset: &Ruleset| ruleset.failsafe_list().map(|list| list.rules.clone());
    Facts { file, in_force: inputs.open().map(|(_, loaded, _)| rules_of(&loaded.ruleset)) }
}

/// Judges the facts.
pub fn judge(facts: &Facts, words: &Words) -> Vec<Finding> {
    let Words { pfctl, file, .. } = words;
    let load = format!("{pfctl} -f {file}");
    vec![match (&facts.file, &facts.in_force) {
        (File::Absent, Some(Some(_))) => {
            let text = format!("{FILE} is gone: the next load goes without the list");
            Finding::warn(SUBJECT, text)
        }
        (File::Absent, _) => Finding::ok(SUBJECT, format!("no list: there is no {FILE}")),
        (File::Broken(error), _) => {
            Finding::fail(SUBJECT, format!("pfctl refuses all loads of the main rules: {error}"))
        }
        (File::Rules(rules), _) if rules.is_empty() => {
            Finding::warn(SUBJECT, format!("{FILE} has no rules"))
        }
        (File::Rules(_), Some(None)) => {
            let text = format!("the rules in force do not begin with {FILE}");
            Finding::fail(SUBJECT, text).mended_by(load)
        }
        (File::Rules(rules), Some(Some(in_force))) if !are_alike(rules, in_force) => {
            let text = format!("{FILE} has other rules than anchor \"{ANCHOR}\" in force");
            Finding::warn(SUBJECT, text).mended_by(load)
        }
        (File::Rules(rules), Some(Some(_))) => {
            Finding::ok(SUBJECT, format!("{} rules of {FILE}, in force", rules.len()))
        }
        (File::Rules(rules), None) => {
            Finding::ok(SUBJECT, format!("{} rules in {FILE}", rules.len()))
        }
    }]
}

/// True if the rules are the same, on whatever lines.
fn are_alike(rules: &[Rule], others: &[Rule]) -> bool {
    let text = |rules: &[Rule]| -> Vec<Rule> {
        rules.iter().map(|rule| Rule { line: 0, ..rule.clone() }).collect()
    };
    text(rules) == text(others)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn rules(lines: &[u32]) -> Vec<Rule> {
        lines.iter().map(|line| Rule { line: *line, ..Rule::default() }).collect()
    }

    #[test]
    fn the_list_in_force_is_compared_with_the_file() {
        let list = || File::Rules(rules(&[3, 4]));
        for (file, in_force, level, text, mends) in [
            (File::Absent, Some(None), Level::Ok, "no list", false),
            (File::Absent, None, Level::Ok, "no list", false),
            (File::Absent, Some(Some(rules(&[1]))), Level::Warn, "is gone", false),
            (File::Broken("x:1: y".into()), Some(None), Level::Fail, "x:1: y", false),
            (File::Rules(Vec::new()), Some(Some(Vec::new())), Level::Warn, "no rules", false),
            (list(), Some(None), Level::Fail, "do not begin", true),
            (list(), Some(Some(rules(&[1]))), Level::Warn, "other rules", true),
            (list(), Some(Some(rules(&[1, 9]))), Level::Ok, "2 rules of", false),
            (list(), None, Level::Ok, "2 rules in", false),
        ] {
            let findings = judge(&Facts { file, in_force }, &Words::usual());
            let [finding] = findings.as_slice() else { panic!("{findings:?}") };
            assert_eq!(finding.level, level, "{text}");
            assert!(finding.text.contains(text), "{finding:?}");
            let command = mends.then_some("pfctl -f /etc/pf.conf");
            assert_eq!(finding.command.as_deref(), command);
        }
    }
}
