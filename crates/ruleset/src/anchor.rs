//! Anchors: rule sets with a path, which rules of other rule sets call (pf-features section 11).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{LegacyKind, LegacyRule, Rule, Table};

/// Greatest depth of nested anchor calls. A packet that would exceed it is dropped.
pub const DEEPEST: usize = 64;

/// The contents of an anchor. The path is the key in [`crate::Ruleset::anchors`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Anchor {
    /// Filter rules in order of evaluation; `rules[i].number == i`.
    #[serde(deserialize_with = "crate::many::read")]
    pub rules: Vec<Rule>,
    /// Legacy translation and scrub rules.
    pub legacy_rules: Vec<LegacyRule>,
    /// Tables that the anchor defines or mentions.
    pub tables: Vec<Table>,
}

/// The target of an `anchor` rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AnchorCall {
    /// Path from the main rule set, without a leading slash. The path of `relayd/*` is `relayd`.
    /// Empty for the main rule set.
    pub path: String,
    /// `/*`: calls all anchors directly below the path, in the order of their names.
    pub wildcard: bool,
    /// Name as pf prints it, such as `"relayd/*"` or `"../x"`. Empty for an unnamed anchor in
    /// braces, whose path ends in a generated name such as `_1`.
    pub name: String,
    /// True if the rules of the anchor follow in braces.
    pub braces: bool,
}

impl AnchorCall {
    /// True if the last part of the path is a generated name.
    pub fn is_unnamed(&self) -> bool {
        self.path.rsplit('/').next().is_some_and(|name| name.starts_with('_'))
    }
}

/// The identity of a rule. Each rule set numbers its filter rules from 0, and each of its lists of
/// legacy rules, too. As text: `2` in the main rule set, `relayd/2` in an anchor, `relayd/nat:2`
/// for a legacy rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RuleId {
    /// Path of the rule's anchor; empty for the main rule set.
    pub anchor: String,
    /// Kind of a legacy rule; `None` for filter rules.
    pub old: Option<LegacyKind>,
    /// Number of the rule in its list, from 0.
    pub number: u32,
}

impl RuleId {
    /// Returns the identity of a filter rule of an anchor.
    pub fn new(anchor: &str, number: u32) -> Self {
        RuleId { anchor: anchor.to_owned(), old: None, number }
    }
}

/// The identity of a filter rule of the main rule set.
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
        let kinds = LegacyKind::ALL.into_iter();
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
