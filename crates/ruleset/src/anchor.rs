//! Anchors: rule sets with a path of their own, called by rules of others (pf-features section 11).

use serde::{Deserialize, Serialize};

use crate::{OldRule, Rule, Table};

/// Deepest nesting of calls; a packet that would go deeper is dropped.
pub const DEEPEST: usize = 64;

/// The contents of an anchor. Its path is its key in [`crate::Ruleset::anchors`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Anchor {
    /// Filter rules in order; `rules[i].number == i`.
    pub rules: Vec<Rule>,
    /// Translation and scrub rules of old times.
    pub old_rules: Vec<OldRule>,
    /// Tables defined or mentioned in it.
    pub tables: Vec<Table>,
}

/// What an `anchor` rule calls.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AnchorCall {
    /// Path from the main rule set, without a slash in front; for `relayd/*` it is `relayd`. Empty is
    /// the main rule set.
    pub path: String,
    /// `/*`: all that stand directly below the path, in the order of their names.
    pub wildcard: bool,
    /// As pf prints it: `"relayd/*"`, `"../x"`; empty for an anchor that has braces and no name, whose
    /// path ends in `_1` and the like.
    pub name: String,
    /// The rules stand in braces behind it.
    pub braces: bool,
}
