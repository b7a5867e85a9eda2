//! Stable identities of rules. A load that does not change a rule leaves its identity as it is,
//! also if the rule's number changes.
//!
//! The identity of a rule with labels is its label; several labels are joined by a blank. Rules
//! with the same label share an identity. The identity of another rule is a hash of its anchor and
//! of its text, as `pfctl -sr` prints it without a number: the first 8 bytes of MD5, in hexadecimal
//! digits. Equal rules of an anchor are told apart by their order: the hash of the second rule ends
//! in `-2`.
//!
//! Identities are stored in databases of metrics, so a new version of skipstep must not change
//! them. The test `identities_are_those_of_earlier_versions` has samples.

use std::collections::{BTreeMap, HashMap};

use md5::{Digest, Md5};
use skipstep_ruleset::automatic::PREFIX;
use skipstep_ruleset::{LegacyKind, RuleId, Ruleset, TableEntry};

use crate::{PrintOptions, print};

/// Bytes of a hash in an identity.
const HASH_BYTES: usize = 8;
/// Beginning of a key of `source-hash` in a rule's text.
const KEY: &str = "source-hash 0x";
/// Hexadecimal digits of such a key.
const KEY_DIGITS: usize = 32;

/// The identities of all rules of a rule set and its anchors.
#[derive(Debug, Clone, Default)]
pub struct Identities(BTreeMap<String, Lists>);

/// Identities in the order of the rules' numbers, by kind; filter rules have no kind.
type Lists = BTreeMap<Option<LegacyKind>, Vec<Identity>>;

/// The identity of a rule.
#[derive(Debug, Clone)]
struct Identity {
    /// The label, if the rule has one.
    label: Option<String>,
    /// Hash of anchor and text. No other rule has it.
    hash: String,
}

impl Identities {
    /// Computes the identities of all rules.
    pub fn of(ruleset: &Ruleset) -> Self {
        let mut identities = Identities::default();
        // an anchor stands behind the anchor that it is in, whose rules its stable path needs
        for path in std::iter::once("").chain(ruleset.anchors.keys().map(String::as_str)) {
            let place = identities.stable_path(ruleset, path);
            let text = |text: String| with_contents(ruleset, path, &without_keys(&text));
            let options = PrintOptions::default();
            let filter = ruleset.rules_of(path).iter();
            let filter = filter.map(|rule| (&rule.labels[..], text(print::rule(rule, &options))));
            let mut lists = Lists::from([(None, list(&place, filter))]);
            for kind in LegacyKind::ALL {
                let legacy = ruleset.legacy_rules_of(path).iter().filter(|rule| rule.kind == kind);
                let legacy = legacy.map(|legacy| {
                    (&legacy.rule.labels[..], text(print::legacy::rule(legacy, &options)))
                });
                lists.insert(Some(kind), list(&place, legacy));
            }
            identities.0.insert(path.to_owned(), lists);
        }
        identities
    }

    /// Returns the identity of a rule, or `None` if the rule set does not have the rule.
    pub fn get(&self, rule: &RuleId) -> Option<&str> {
        self.find(&rule.anchor, rule.old, rule.number)
    }

    /// Returns the identity of a rule by the path of its anchor, its kind and its number.
    pub fn find(&self, anchor: &str, kind: Option<LegacyKind>, number: u32) -> Option<&str> {
        let Identity { label, hash } = self.identity(anchor, kind, number)?;
        Some(label.as_ref().unwrap_or(hash))
    }

    fn identity(&self, anchor: &str, kind: Option<LegacyKind>, number: u32) -> Option<&Identity> {
        self.0.get(anchor)?.get(&kind)?.get(number as usize)
    }

    /// Returns the path of an anchor with the hash of the calling rule in place of each generated
    /// name. Generated names are numbered, so an anchor in front would change them.
    fn stable_path(&self, ruleset: &Ruleset, path: &str) -> String {
        let (mut above, mut stable) = (String::new(), String::new());
        for name in path.split('/') {
            let begin = if above.is_empty() { "" } else { "/" };
            let here = format!("{above}{begin}{name}");
            let calls = ruleset.rules_of(&above).iter().filter(|_| name.starts_with('_'));
            let mut calls = calls.filter(|rule| {
                rule.anchor.as_ref().is_some_and(|call| call.is_unnamed() && call.path == here)
            });
            let caller = calls.next().and_then(|rule| self.identity(&above, None, rule.number));
            stable += begin;
            stable += caller.map_or(name, |caller| &caller.hash);
            above = here;
        }
        stable
    }
}

/// Returns the identity of a rule with these labels; `None` if there are no labels.
pub fn of_labels(labels: &[String]) -> Option<String> {
    (!labels.is_empty()).then(|| labels.join(" "))
}

/// Returns the identities of a list of rules in the anchor `place`, from their labels and texts.
fn list<'a>(place: &str, rules: impl Iterator<Item = (&'a [String], String)>) -> Vec<Identity> {
    let mut seen: HashMap<String, u32> = HashMap::new();
    rules
        .map(|(labels, text)| {
            let hash = hash(place, &text);
            let count = seen.entry(hash.clone()).or_default();
            *count += 1;
            let hash = if *count == 1 { hash } else { format!("{hash}-{count}") };
            Identity { label: of_labels(labels), hash }
        })
        .collect()
}

fn hash(place: &str, text: &str) -> String {
    let hash = Md5::digest(format!("{place}\n{text}"));
    hash[..HASH_BYTES].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Removes the keys of `source-hash` from the text of a rule. A load draws a key if none is
/// written.
fn without_keys(text: &str) -> String {
    let mut parts = text.split(KEY);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out += "source-hash";
        out += part.get(KEY_DIGITS..).unwrap_or_default();
    }
    out
}

/// Replaces the names of generated tables in the text of a rule by the contents of the tables. Each
/// load makes other names.
fn with_contents(ruleset: &Ruleset, path: &str, text: &str) -> String {
    let begin = format!("<{PREFIX}");
    let mut parts = text.split(&begin);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (end, behind) = part.split_once('>').unwrap_or((part, ""));
        let name = format!("{PREFIX}{end}");
        let own = ruleset.tables_of(path).iter();
        let mut tables = own.chain(ruleset.all_tables().map(|(_, table)| table));
        match tables.find(|table| table.name == name) {
            Some(table) => out += &contents(&table.entries),
            None => out += &format!("<{name}>"),
        }
        out += behind;
    }
    out
}

fn contents(entries: &[TableEntry]) -> String {
    let mut entries: Vec<&TableEntry> = entries.iter().collect();
    entries.sort();
    let text = |entry: &&TableEntry| {
        let TableEntry { negated, net, weight } = entry;
        format!(" {}{net} {weight}", if *negated { "!" } else { "" })
    };
    format!("{{{} }}", entries.iter().map(text).collect::<String>())
}
