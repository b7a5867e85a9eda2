//! The failsafe list: rules of a file that come before the rules of every main rule set.

use crate::{Anchor, AnchorCall, Rule, Ruleset};

/// The file with the rules of the list.
pub const FILE: &str = "/etc/pf.failsafe";

/// Path of the anchor with the rules of the list.
pub const ANCHOR: &str = "failsafe";

/// Returns the rule `anchor "failsafe" quick`, the first rule of a main rule set with the list. It
/// has the file of the list and no line, because no file contains it.
pub fn call() -> Rule {
    let call = AnchorCall {
        path: ANCHOR.to_owned(),
        wildcard: false,
        name: ANCHOR.to_owned(),
        braces: false,
    };
    Rule { file: Some(FILE.into()), anchor: Some(Box::new(call)), quick: true, ..Rule::default() }
}

/// True if `path` is the anchor of the list, or an anchor below it.
pub fn is_reserved(path: &str) -> bool {
    path.split('/').next() == Some(ANCHOR)
}

impl Ruleset {
    /// True if the rules begin with the failsafe list.
    pub fn has_failsafe_list(&self) -> bool {
        self.rules.first().is_some_and(|first| *first == call())
    }

    /// Returns the failsafe list, or `None` if the rules do not begin with it.
    pub fn failsafe_list(&self) -> Option<&Anchor> {
        self.anchors.get(ANCHOR).filter(|_| self.has_failsafe_list())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_generated_rule_begins_a_list() {
        let ruleset = |rule| Ruleset { rules: vec![rule], ..Ruleset::default() };
        assert!(ruleset(call()).has_failsafe_list());
        for rule in [
            Rule { line: 1, ..call() },
            Rule { file: None, ..call() },
            Rule { quick: false, ..call() },
            Rule::default(),
        ] {
            assert!(!ruleset(rule.clone()).has_failsafe_list(), "{rule:?}");
        }
        assert!(!Ruleset::default().has_failsafe_list());
    }

    #[test]
    fn the_anchor_and_those_below_it_are_reserved() {
        assert!(is_reserved("failsafe") && is_reserved("failsafe/a"));
        assert!(!is_reserved("failsafes") && !is_reserved("a/failsafe") && !is_reserved(""));
    }
}
