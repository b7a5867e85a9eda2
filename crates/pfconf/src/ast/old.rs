//! Rules of old times, in lists of their own (pf-features section 12).

use skipstep_ruleset::OldKind;

use super::{Pool, RuleStatement};

/// `nat`, `rdr`, `binat` or `scrub` as a statement, or a `nat-anchor` and its like.
#[derive(Debug, Clone, PartialEq)]
pub struct OldStatement {
    /// Which of them.
    pub kind: OldKind,
    /// `no`
    pub no: bool,
    /// `pass`
    pub pass: bool,
    /// Name of the anchor it calls.
    pub anchor: Option<String>,
    /// Which packets, and the options.
    pub rule: RuleStatement,
    /// `-> pool`
    pub pool: Option<Pool>,
    /// `fragment no reassemble`
    pub leave_fragments: bool,
}

impl OldStatement {
    /// A statement that is nothing but its rule.
    pub fn new(rule: RuleStatement) -> Self {
        OldStatement {
            kind: OldKind::Nat,
            no: false,
            pass: false,
            anchor: None,
            rule,
            pool: None,
            leave_fragments: false,
        }
    }
}
