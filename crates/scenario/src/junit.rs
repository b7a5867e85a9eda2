//! Results as JUnit XML for CI systems.

use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};

use crate::run::{CaseResult, report};

/// Returns an XML document with a test suite for each file, given as name and results.
///
/// # Errors
/// Fails if the XML cannot be written.
pub fn document(suites: &[(String, Vec<CaseResult>)]) -> Result<String, SerializeError> {
    let mut document = Report::new("scenarios");
    for (name, results) in suites {
        let mut suite = TestSuite::new(name.as_str());
        suite.add_test_cases(results.iter().map(|result| case(result, name)));
        document.add_test_suite(suite);
    }
    document.to_string()
}

fn case(result: &CaseResult, file: &str) -> TestCase {
    let status = if result.passed() {
        TestCaseStatus::success()
    } else {
        let is_error = result.error.is_some();
        let kind = if is_error { NonSuccessKind::Error } else { NonSuccessKind::Failure };
        let mut status = TestCaseStatus::non_success(kind);
        status.set_description(report(result, file));
        status
    };
    let mut case = TestCase::new(result.title.as_str(), status);
    case.set_classname(result.engine.as_str());
    case
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
        let text = document(&[("x.scn".into(), vec![outcome])]).unwrap();
        assert!(text.contains("tests=\"1\" disabled=\"0\" errors=\"0\" failures=\"1\""), "{text}");
        assert!(text.contains("name=\"a &lt; b\""), "{text}");
        assert!(text.contains("x.scn:7: verdict: expected &quot;pass&quot;"), "{text}");
    }
}
