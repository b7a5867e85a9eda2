//! Anchors: rule sets with a path of their own, called by rules of others (pf-features section 11).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{OldKind, OldRule, Rule, Table};

/// Deepest nesting of calls; a packet that would go deeper is dropped.
pub const DEEPEST: usize = 64;

/// The contents of an anchor. Its path is its key in [`crate::Ruleset::anchors`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Anchor {
    /// Filter rules in order; `rules[i].number == i`.
    #[serde(deserialize_with = "crate::many::read")]
    pub rules: Vec<Rule>,
    /// Translation and scrub rules of old times.
    pub old_rules: Vec<OldRule>,
    /// Tables defined or mentioned in it.
    pub tables: Vec<Table>,
}

/// What an `anchor` rule calls.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AnchorCall {
    /// Path from the main rule set, without a slash in front; for `relayd/*` it is `relayd`. Empty
    /// is the main rule set.
    pub path: String,
    /// `/*`: all that stand directly below the path, in the order of their names.
    pub wildcard: bool,
    /// As pf prints it: `"relayd/*"`, `"../x"`; empty for an anchor that has braces and no name,
    /// whose path ends in `_1` and the like.
    pub name: String,
    /// The rules stand in braces behind it.
    pub braces: bool,
}

impl AnchorCall {
    /// Whether the anchor has only the name that the language gave it.
    pub fn is_unnamed(&self) -> bool {
        self.path.rsplit('/').next().is_some_and(|name| name.starts_with('_'))
    }
}

/// Which rule: each rule set counts its own from 0, and so does each of its lists of old rules.
/// Written `relayd/2`, and `2` in the main rule set; old ones `relayd/nat:2`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RuleId {
    /// Path of the anchor it is in; empty in the main rule set.
    pub anchor: String,
    /// The list of old rules that it is in; `None` for filter rules.
    pub old: Option<OldKind>,
    /// Its number there.
    pub number: u32,
}

impl RuleId {
    /// A filter rule of an anchor.
    pub fn new(anchor: &str, number: u32) -> Self {
        RuleId { anchor: anchor.to_owned(), old: None, number }
    }
}

/// A rule of the main rule set.
impl From<u32> for RuleId {
    fn from(number: u32) -> Self {
        RuleId::new("", number)
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.anchor.is_empty() {
            write!(f, "{}/", self.anchor)?;
        }
        if let Some(kind) = self.old {
            write!(f, "{}:", kind.name())?;
        }
        write!(f, "{}", self.number)
    }
}

impl FromStr for RuleId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (anchor, own) = text.rsplit_once('/').unwrap_or(("", text));
        let kinds = OldKind::ALL.into_iter();
        let named = own.split_once(':').and_then(|(name, number)| {
            let kind = kinds.clone().find(|kind| kind.name() == name)?;
            Some((Some(kind), number))
        });
        let (old, number) = named.unwrap_or((None, own));
        Ok(RuleId { anchor: anchor.to_owned(), old, number: number.parse()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_named_by_path_and_number() {
        for text in ["0", "relayd/2", "a/_1/13", "nat:0", "relayd/binat:3"] {
            assert_eq!(text.parse::<RuleId>().unwrap().to_string(), text);
        }
        assert_eq!("7".parse::<RuleId>().unwrap(), RuleId::from(7));
        assert!("relayd".parse::<RuleId>().is_err());
        assert!("map:1".parse::<RuleId>().is_err());
    }
}
