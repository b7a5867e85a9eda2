//! Resolved rule sets: all lists are expanded, and all names are resolved.
//!
//! `pfconf` makes a [`Ruleset`] from text, `classifier` compiles it to the kernel's image, and
//! `model` evaluates it directly. The crate depends neither on the text nor on the kernel.

pub mod address;
pub mod anchor;
pub mod automatic;
pub mod failsafe;
pub mod fingerprint;
pub mod interface;
pub mod legacy;
mod made_up;
mod many;
pub mod next;
pub mod optimize;
pub mod options;
pub mod queue;
pub mod reason;
mod references;
pub mod rule;
pub mod skip;
pub mod table;
pub mod translation;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use address::{Address, Endpoint, Family, Host, PortMatch, Ports};
pub use anchor::{Anchor, AnchorCall, RuleId};
pub use automatic::AutomaticTables;
pub use fingerprint::{Fingerprint, OsMatch};
pub use legacy::{LegacyKind, LegacyList, LegacyRule};
pub use next::{Next, RulesChange};
pub use optimize::{Counted, Optimizer, TablesMade};
pub use options::{
    BlockPolicy, Evaluator, FastForward, Limits, Optimization, Options, StatePolicy,
    SyncookieMarks, Syncookies, Timeout, Timeouts, Unattached,
};
pub use queue::{Limiter, LimiterUse, Queue, ServiceCurve};
pub use reason::Reason;
pub use rule::{
    Action, BlockReturn, Direction, IcmpMatch, InterfaceMatch, InterfaceName, KeepKind, Log, Not,
    Overload, Owner, Rule, Scrub, SourceTrack, StateOptions, TcpFlags,
};
pub use table::{Table, TableEntry, TableName};
pub use translation::{AfTo, Divert, Pool, PoolAddress, PoolKind, PoolPorts, Route, RouteKind};

/// A resolved pf.conf: the unit that `pfctl -f` loads.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ruleset {
    /// Settings of the `set` statements.
    pub options: Options,
    /// Filter rules of the main rule set in order of evaluation; `rules[i].number == i`.
    #[serde(deserialize_with = "crate::many::read")]
    pub rules: Vec<Rule>,
    /// Legacy translation and scrub rules of the main rule set, in order.
    pub legacy_rules: Vec<LegacyRule>,
    /// Tables of the main rule set in order of definition, including those that rules only mention.
    pub tables: Vec<Table>,
    /// Anchors by path (`a/b`, without a leading slash): those in braces and those of `load
    /// anchor`. The rule set in force also has those that `pfctl -a` loaded. An anchor that rules
    /// only call has no entry.
    pub anchors: BTreeMap<String, Anchor>,
    /// `queue` statements in order.
    pub queues: Vec<Queue>,
    /// `state limiter` and `source limiter` statements in order.
    pub limiters: Vec<Limiter>,
    /// Fingerprints, empty if no rule says `os`. The first that matches a SYN counts.
    pub fingerprints: Vec<Fingerprint>,
    /// The meaning of each name behind `os`.
    pub systems: BTreeMap<String, OsMatch>,
}

impl Ruleset {
    /// Returns the table called `name` of the main rule set, if it is defined or mentioned there.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// Returns the filter rules of an anchor, or of the main rule set if the path is empty.
    pub fn rules_of(&self, path: &str) -> &[Rule] {
        match path {
            "" => &self.rules,
            _ => self.anchors.get(path).map_or(&[], |anchor| &anchor.rules),
        }
    }

    /// Returns the paths of anchors with contents that the main rule set calls, also indirectly.
    pub fn called_anchors(&self) -> BTreeSet<&str> {
        let mut called = BTreeSet::new();
        let mut to_look_at = vec![""];
        while let Some(path) = to_look_at.pop() {
            let legacy = self.legacy_rules_of(path).iter().map(|legacy| &legacy.rule);
            for call in
                self.rules_of(path).iter().chain(legacy).filter_map(|rule| rule.anchor.as_ref())
            {
                let meant = |other: &&str| {
                    *other == call.path
                        || call.wildcard
                            && other.rsplit_once('/').is_some_and(|(above, _)| above == call.path)
                };
                for anchor in self.anchors.keys().map(String::as_str).filter(meant) {
                    if called.insert(anchor) {
                        to_look_at.push(anchor);
                    }
                }
            }
        }
        called
    }

    /// True if a rule that the main rule set or a called anchor contains names a port of SCTP.
    /// FreeBSD's pf reads SCTP ports. OpenBSD's pf treats SCTP as a protocol without ports; so does
    /// skipstep if this is false.
    pub fn names_sctp_ports(&self) -> bool {
        const SCTP: u8 = 132;
        let called = self.called_anchors();
        let names = |rule: &Rule| {
            rule.protocol == Some(SCTP)
                && (rule.source.ports.is_some() || rule.destination.ports.is_some())
        };
        self.every_rule()
            .any(|(path, rule)| (path.is_empty() || called.contains(path)) && names(rule))
    }

    /// Returns the names behind `os` in all rules, including legacy rules.
    pub fn os_names(&self) -> BTreeSet<String> {
        self.every_rule().filter_map(|(_, rule)| rule.os.clone()).collect()
    }

    /// Returns the tables of an anchor, or of the main rule set if the path is empty.
    pub fn tables_of(&self, path: &str) -> &[Table] {
        match path {
            "" => &self.tables,
            _ => self.anchors.get(path).map_or(&[], |anchor| &anchor.tables),
        }
    }

    /// Returns the rule with this identity.
    pub fn rule(&self, id: &RuleId) -> Option<&Rule> {
        match id.old {
            None => self.rules_of(&id.anchor).get(id.number as usize),
            Some(kind) => {
                let mut rules = self.legacy_rules_of(&id.anchor).iter();
                let is_meant =
                    |legacy: &&LegacyRule| legacy.kind == kind && legacy.rule.number == id.number;
                rules.find(is_meant).map(|legacy| &legacy.rule)
            }
        }
    }

    /// Returns the table that rules of an anchor mean by `name`. An anchor's own table counts if
    /// the anchor defines it, otherwise that of the main rule set.
    pub fn table_seen_from(&self, path: &str, name: &str) -> Option<(TableName, &Table)> {
        let find = |path: &str| self.tables_of(path).iter().find(|table| table.name == name);
        match find(path).filter(|own| own.defined) {
            Some(own) => Some((TableName::new(path, name), own)),
            None => Some((name.into(), find("")?)),
        }
    }

    /// Returns all tables with the paths of their anchors, those of the main rule set first.
    pub fn all_tables(&self) -> impl Iterator<Item = (&str, &Table)> {
        let main = self.tables.iter().map(|table| ("", table));
        let anchors = self
            .anchors
            .iter()
            .flat_map(|(path, anchor)| anchor.tables.iter().map(move |t| (path.as_str(), t)));
        main.chain(anchors)
    }

    /// Returns the filter rules of the main rule set, and then of all anchors, with their paths.
    pub fn all_rules(&self) -> impl Iterator<Item = (&str, &Rule)> {
        let main = self.rules.iter().map(|rule| ("", rule));
        let anchors = self
            .anchors
            .iter()
            .flat_map(|(path, anchor)| anchor.rules.iter().map(move |rule| (path.as_str(), rule)));
        main.chain(anchors)
    }
}
