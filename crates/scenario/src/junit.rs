//! Results as JUnit XML for CI systems.

use std::fmt::Write;

use crate::run::{CaseResult, report};

/// Returns an XML document with a test suite for each file, given as name and results.
pub fn document(suites: &[(String, Vec<CaseResult>)]) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for (name, outcomes) in suites {
        suite(&mut text, name, outcomes);
    }
    text + "</testsuites>\n"
}

fn suite(text: &mut String, name: &str, outcomes: &[CaseResult]) {
    let failures =
        outcomes.iter().filter(|outcome| !outcome.passed() && outcome.error.is_none()).count();
    let errors = outcomes.iter().filter(|outcome| outcome.error.is_some()).count();
    let _ = writeln!(
        text,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\">",
        escape(name),
        outcomes.len()
    );
    for outcome in outcomes {
        let _ = write!(
            text,
            "    <testcase classname=\"{}\" name=\"{}\"",
            escape(&outcome.engine),
            escape(&outcome.title)
        );
        let element = if outcome.error.is_some() { "error" } else { "failure" };
        let _ = if outcome.passed() {
            writeln!(text, "/>")
        } else {
            writeln!(text, "><{element}>{}</{element}></testcase>", escape(&report(outcome, name)))
        };
    }
    text.push_str("  </testsuite>\n");
}

/// Escapes text for an XML element or attribute. Control characters become `?`.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(character),
            character if character.is_control() => escaped.push('?'),
            character => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Finding;

    #[test]
    fn a_failure_is_reported_and_escaped() {
        let outcome = CaseResult {
            title: "a < b".into(),
            engine: "model".into(),
            error: None,
            findings: vec![Finding {
                step: 0,
                line: 7,
                differences: vec!["verdict: expected \"pass\"".into()],
            }],
        };
        let text = document(&[("x.scn".into(), vec![outcome])]);
        assert!(text.contains("tests=\"1\" failures=\"1\" errors=\"0\""), "{text}");
        assert!(text.contains("name=\"a &lt; b\""), "{text}");
        assert!(text.contains("x.scn:7: verdict: expected &quot;pass&quot;"), "{text}");
    }
}
