//! The rules in force, by the numbers in the records of dropped packets.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use anyhow::Result;
use skipstep_abi::LogRecord;
use skipstep_kernel::Instance;
use skipstep_kernel::record::Load;
use skipstep_pfconf::identity::Identities;
use skipstep_ruleset::{RuleId, Ruleset};

/// Name of the file of rules that are in no included file.
const MAIN_FILE: &str = "pf.conf";

/// A rule that decided about a packet, and its place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DecidingRule {
    /// Anchor and number of the rule.
    pub id: RuleId,
    /// Stable identity of the rule.
    pub identity: String,
    /// The file with the rule; `None` for an anchor that was loaded by itself.
    pub file: Option<Arc<str>>,
    /// Line in the file; 0 for a generated rule.
    pub line: u32,
    /// Labels of the rule.
    pub labels: Vec<String>,
}

impl fmt::Display for DecidingRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match (&self.file, self.line) {
            (_, 0) => None,
            (Some(file), line) => Some(format!("{file}:{line}")),
            (None, line) => Some(format!("line {line}")),
        };
        let labels = self.labels.iter().map(|label| format!("label {label}"));
        let details: Vec<String> = place.into_iter().chain(labels).collect();
        match details.is_empty() {
            true => write!(f, "{}", self.id),
            false => write!(f, "{} ({})", self.id, details.join(", ")),
        }
    }
}

/// The rules in force.
pub struct RulesInForce {
    /// Generation of the rules.
    pub generation: u32,
    ruleset: Ruleset,
    identities: Identities,
    /// Path and load of each rule set, by its number in records.
    origins: BTreeMap<u32, (String, Load)>,
}

impl RulesInForce {
    /// Reads the rules of an instance.
    ///
    /// # Errors
    /// Fails if the records of the instance cannot be read.
    pub fn read(instance: &Instance) -> Result<RulesInForce> {
        let origins = instance.origins()?;
        let loaded = instance.loaded()?;
        Ok(RulesInForce::new(loaded.generation, loaded.ruleset, origins))
    }

    fn new(generation: u32, ruleset: Ruleset, origins: BTreeMap<u32, (String, Load)>) -> Self {
        RulesInForce { generation, identities: Identities::of(&ruleset), ruleset, origins }
    }

    /// Returns the rule of a record, if it is in force. A record does not have its generation, so
    /// a record from just before a load may get a rule of the load.
    pub fn deciding(&self, record: &LogRecord) -> Option<DecidingRule> {
        let number = u32::try_from(record.rule).ok()?;
        let (path, load) = self.origins.get(&record.anchor)?;
        let id = RuleId::new(path, number);
        let rule = self.ruleset.rule(&id)?;
        // an anchor in braces is loaded with the main rule set
        let is_main = self.origins.get(&0).is_some_and(|(_, main)| main == load);
        let file = rule.file.clone().or_else(|| is_main.then(|| MAIN_FILE.into()));
        let identity = self.identities.get(&id)?.to_owned();
        Some(DecidingRule { id, identity, file, line: rule.line, labels: rule.labels.clone() })
    }

    /// Parses rules for a test.
    #[cfg(test)]
    pub fn from_text(text: &str) -> RulesInForce {
        let host = skipstep_scenario::host::standard();
        let context = skipstep_pfconf::Context::new(&host);
        let ruleset = skipstep_pfconf::load(text, &context).unwrap().ruleset;
        let paths = std::iter::once(String::new()).chain(ruleset.anchors.keys().cloned());
        let origins = (0..).zip(paths.map(|path| (path, Load::default()))).collect();
        RulesInForce::new(1, ruleset, origins)
    }
}

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros;

    use super::*;

    fn deciding(rules: &RulesInForce, anchor: u32, rule: i32) -> Option<String> {
        let record = LogRecord { anchor, rule, ..LogRecord::new_zeroed() };
        rules.deciding(&record).map(|rule| rule.to_string())
    }

    #[test]
    fn a_rule_has_its_file_line_and_labels() {
        let mut rules = RulesInForce::from_text(
            "block label a\nanchor \"ssh\" {\n\tblock in proto tcp to port 22\n}\n",
        );
        assert_eq!(deciding(&rules, 0, 0).as_deref(), Some("0 (pf.conf:1, label a)"));
        assert_eq!(deciding(&rules, 1, 0).as_deref(), Some("ssh/0 (pf.conf:3)"));
        assert_eq!((deciding(&rules, 0, -1), deciding(&rules, 0, 7)), (None, None));
        assert_eq!(deciding(&rules, 9, 0), None);
        let record = LogRecord { anchor: 1, ..LogRecord::new_zeroed() };
        let rule = rules.deciding(&record).unwrap();
        assert_eq!(Some(rule.identity.as_str()), rules.identities.get(&rule.id));
        rules.origins.insert(1, ("ssh".into(), Load { pid: 7, ..Load::default() }));
        assert_eq!(deciding(&rules, 1, 0).as_deref(), Some("ssh/0 (line 3)"));
    }
}
