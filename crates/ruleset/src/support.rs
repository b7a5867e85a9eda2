//! What the language can say and the evaluators do not do yet. Such a rule set parses and prints, and
//! is refused when it is to be loaded or evaluated: nothing of it is left out silently.

use std::fmt;
use std::sync::Arc;

use crate::{Rule, Ruleset};

const SCTP: u8 = 132;

/// Something in a rule set that cannot be done yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The included file that the line is in; `None` is the pf.conf itself.
    pub file: Option<Arc<str>>,
    /// Line it was written on; 0 if it belongs to none.
    pub line: u32,
    /// Its name in pf.conf.
    pub feature: &'static str,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not built yet", self.feature)
    }
}

/// Everything in `ruleset` that the evaluators do not do yet, in the order of its rules. Anchors
/// that nobody calls may hold anything: no packet sees them, and who loads the rule that calls them
/// is refused.
pub fn refusals(ruleset: &Ruleset) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let mut refuse = |file: &Option<Arc<str>>, line, feature| {
        refusals.push(Refusal { file: file.clone(), line, feature });
    };
    let called = ruleset.called_anchors();
    let seen = |path: &str| path.is_empty() || called.contains(path);
    for (_, rule) in ruleset.all_rules().filter(|(path, _)| seen(path)) {
        if rule.protocol == Some(SCTP) && has_ports(rule) {
            refuse(&rule.file, rule.line, "port of sctp");
        }
    }
    refusals
}

fn has_ports(rule: &Rule) -> bool {
    rule.source.ports.is_some() || rule.destination.ports.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Anchor, AnchorCall, Endpoint, PortMatch, Ports};

    fn with_sctp_ports_in(path: &str, call: Option<(&str, bool)>) -> Ruleset {
        let ports = Some(Ports { op: PortMatch::Equal, low: 80, high: 80 });
        let destination = Endpoint { ports, ..Endpoint::default() };
        let rule = Rule { protocol: Some(SCTP), destination, ..Rule::default() };
        let anchor = Anchor { rules: vec![rule], ..Anchor::default() };
        let call = call.map(|(path, wildcard)| Rule {
            anchor: Some(Box::new(AnchorCall {
                path: path.to_owned(),
                wildcard,
                name: path.to_owned(),
                braces: false,
            })),
            ..Rule::default()
        });
        Ruleset {
            rules: call.into_iter().collect(),
            anchors: [(path.to_owned(), anchor)].into(),
            ..Ruleset::default()
        }
    }

    #[test]
    fn only_anchors_that_are_called_are_refused() {
        for (path, call, refused) in [
            ("a", None, 0),
            ("a", Some(("b", false)), 0),
            ("a", Some(("a", false)), 1),
            ("a/b", Some(("a", false)), 0),
            ("a/b", Some(("a", true)), 1),
            ("a/b/c", Some(("a", true)), 0),
        ] {
            assert_eq!(refusals(&with_sctp_ports_in(path, call)).len(), refused, "{path} {call:?}");
        }
    }
}
