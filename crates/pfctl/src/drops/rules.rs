//! The rules in force, by the numbers in the records of dropped packets.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Result;
use skipstep_abi::LogRecord;
use skipstep_kernel::Instance;
use skipstep_kernel::instance::Loaded;
use skipstep_kernel::record::Load;
use skipstep_pfconf::identity::Identities;
use skipstep_ruleset::RuleId;

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

impl DecidingRule {
    /// Returns the file and the line of the rule; `None` for a generated rule.
    pub fn place(&self) -> Option<String> {
        match (&self.file, self.line) {
            (_, 0) => None,
            (Some(file), line) => Some(format!("{file}:{line}")),
            (None, line) => Some(format!("line {line}")),
        }
    }
}

impl fmt::Display for DecidingRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels = self.labels.iter().map(|label| format!("label {label}"));
        let details: Vec<String> = self.place().into_iter().chain(labels).collect();
        match details.is_empty() {
            true => write!(f, "{}", self.id),
            false => write!(f, "{} ({})", self.id, details.join(", ")),
        }
    }
}

/// The rules in force.
pub struct RulesInForce {
    /// The rules, and the loads of the rule sets.
    pub loaded: Loaded,
    identities: Identities,
    /// Path of each rule set, by its number in records.
    paths: BTreeMap<u32, String>,
}

impl RulesInForce {
    /// Reads the rules of an instance.
    ///
    /// # Errors
    /// Fails if the records of the instance cannot be read.
    pub fn read(instance: &Instance) -> Result<RulesInForce> {
        let paths = instance.origins()?.into_iter().map(|(number, (path, _))| (number, path));
        Ok(RulesInForce::new(instance.loaded()?, paths.collect()))
    }

    /// Makes the rules of a load. `paths` has the path of each rule set, by its number in records.
    pub fn new(loaded: Loaded, paths: BTreeMap<u32, String>) -> RulesInForce {
        RulesInForce { identities: Identities::of(&loaded.ruleset), loaded, paths }
    }

    /// Returns the rule of a record, if it is in force. A record does not have its generation, so
    /// a record from just before a load may get a rule of the load.
    pub fn deciding(&self, record: &LogRecord) -> Option<DecidingRule> {
        let number = u32::try_from(record.rule).ok()?;
        self.describe(&RuleId::new(self.paths.get(&record.anchor)?, number))
    }

    /// Returns the place and the labels of a rule, if it is in force.
    pub fn describe(&self, id: &RuleId) -> Option<DecidingRule> {
        let rule = self.loaded.ruleset.rule(id)?;
        let file = rule.file.clone().or_else(|| self.is_main(&id.anchor).then(|| MAIN_FILE.into()));
        Some(DecidingRule {
            id: id.clone(),
            identity: self.identities.get(id)?.to_owned(),
            file,
            line: rule.line,
            labels: rule.labels.clone(),
        })
    }

    /// True for the main rule set, and for an anchor in braces, which is loaded with it.
    fn is_main(&self, path: &str) -> bool {
        let Loaded { uid, pid, loaded_at, anchors, .. } = &self.loaded;
        let is_same = |load: &Load| {
            (load.uid, load.pid) == (*uid, *pid)
                && UNIX_EPOCH + Duration::from_secs(load.at) == *loaded_at
        };
        anchors.get(path).is_none_or(is_same)
    }

    /// Parses rules for a test.
    #[cfg(test)]
    pub fn from_text(text: &str) -> RulesInForce {
        let host = skipstep_scenario::host::standard();
        let context = skipstep_pfconf::Context::new(&host);
        let ruleset = skipstep_pfconf::load(text, &context).unwrap().ruleset;
        let anchors: Vec<String> = ruleset.anchors.keys().cloned().collect();
        let paths = (0..).zip(std::iter::once(String::new()).chain(anchors.clone())).collect();
        let loaded = Loaded {
            ruleset,
            generation: 1,
            loaded_at: UNIX_EPOCH,
            uid: 0,
            pid: 0,
            anchors: anchors.into_iter().map(|path| (path, Load::default())).collect(),
        };
        RulesInForce::new(loaded, paths)
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
        rules.loaded.anchors.insert("ssh".into(), Load { pid: 7, ..Load::default() });
        assert_eq!(deciding(&rules, 1, 0).as_deref(), Some("ssh/0 (line 3)"));
    }
}
