//! Legacy statements (pf-features section 12).

use skipstep_ruleset::LegacyKind;

use super::{Pool, RuleStatement};

/// A `nat`, `rdr`, `binat` or `scrub` statement, or one of their anchors (`nat-anchor` and so on).
#[derive(Debug, Clone, PartialEq)]
pub struct LegacyStatement {
    /// The list to which the rule belongs.
    pub kind: LegacyKind,
    /// True for `no nat` and so on: matching packets are not changed.
    pub no: bool,
    /// True for `nat pass` and so on: no filter rule is evaluated.
    pub pass: bool,
    /// Name of the anchor that the rule calls.
    pub anchor: Option<String>,
    /// Criteria and options.
    pub rule: RuleStatement,
    /// The pool behind `->`.
    pub pool: Option<Pool>,
    /// True for `fragment no reassemble`.
    pub leave_fragments: bool,
}

impl LegacyStatement {
    /// Returns a statement that has only a rule.
    pub fn new(rule: RuleStatement) -> Self {
        LegacyStatement {
            kind: LegacyKind::Nat,
            no: false,
            pass: false,
            anchor: None,
            rule,
            pool: None,
            leave_fragments: false,
        }
    }
}
