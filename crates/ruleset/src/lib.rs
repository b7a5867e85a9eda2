//! Rule sets after parsing: every list expanded, every name resolved, nothing left to guess.
//!
//! `pfconf` makes a [`Ruleset`] from text, `classifier` turns it into the image the kernel walks,
//! `model` evaluates it directly. This crate knows neither text nor kernel.

pub mod address;
pub mod anchor;
pub mod automatic;
pub mod fingerprint;
pub mod interface;
mod many;
pub mod next;
pub mod old;
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
pub use fingerprint::{Fingerprint, Wanted};
pub use next::{Next, RulesChange};
pub use old::{OldKind, OldList, OldRule};
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

/// A whole pf.conf: what `pfctl -f` loads in one piece.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ruleset {
    /// What the `set` lines say.
    pub options: Options,
    /// Filter rules in order; `rules[i].number == i`.
    #[serde(deserialize_with = "crate::many::read")]
    pub rules: Vec<Rule>,
    /// Translation and scrub rules of old times, in order.
    pub old_rules: Vec<OldRule>,
    /// Tables in order of definition, those that rules only mention included.
    pub tables: Vec<Table>,
    /// Anchors by path (`a/b`, no slash in front): those in braces, those of `load anchor`, and
    /// once loaded also those that `pfctl -a` brought. One that rules only call has no entry.
    pub anchors: BTreeMap<String, Anchor>,
    /// `queue` statements in order.
    pub queues: Vec<Queue>,
    /// `state limiter` and `source limiter` statements in order.
    pub limiters: Vec<Limiter>,
    /// What systems look like, if a rule says `os`: the first that fits counts.
    pub fingerprints: Vec<Fingerprint>,
    /// What the names behind `os` mean, each once.
    pub systems: BTreeMap<String, Wanted>,
}

impl Ruleset {
    /// The table called `name` of the main rule set, if it is defined or mentioned there.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// The rules of the anchor with this path, those of the main rule set if it is empty.
    pub fn rules_of(&self, path: &str) -> &[Rule] {
        match path {
            "" => &self.rules,
            _ => self.anchors.get(path).map_or(&[], |anchor| &anchor.rules),
        }
    }

    /// Paths of the anchors with contents that the main rule set calls, itself or by others.
    pub fn called_anchors(&self) -> BTreeSet<&str> {
        let mut called = BTreeSet::new();
        let mut to_look_at = vec![""];
        while let Some(path) = to_look_at.pop() {
            let old = self.old_rules_of(path).iter().map(|old| &old.rule);
            for call in
                self.rules_of(path).iter().chain(old).filter_map(|rule| rule.anchor.as_ref())
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

    /// Whether a rule that packets meet names a port of SCTP. FreeBSD's pf reads them; to OpenBSD's
    /// SCTP is a protocol without ports, and so it is here as long as no rule asks.
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

    /// The names behind `os` in all rules, old ones too.
    pub fn os_names(&self) -> BTreeSet<String> {
        self.every_rule().filter_map(|(_, rule)| rule.os.clone()).collect()
    }

    /// The tables of the anchor with this path, those of the main rule set if it is empty.
    pub fn tables_of(&self, path: &str) -> &[Table] {
        match path {
            "" => &self.tables,
            _ => self.anchors.get(path).map_or(&[], |anchor| &anchor.tables),
        }
    }

    /// A rule, if there is such a one.
    pub fn rule(&self, id: &RuleId) -> Option<&Rule> {
        match id.old {
            None => self.rules_of(&id.anchor).get(id.number as usize),
            Some(kind) => {
                let mut rules = self.old_rules_of(&id.anchor).iter();
                let is_meant = |old: &&OldRule| old.kind == kind && old.rule.number == id.number;
                rules.find(is_meant).map(|old| &old.rule)
            }
        }
    }

    /// The table that the rules of an anchor mean by `name`: the anchor's if it defines one, else
    /// that of the main rule set.
    pub fn table_seen_from(&self, path: &str, name: &str) -> Option<(TableName, &Table)> {
        let find = |path: &str| self.tables_of(path).iter().find(|table| table.name == name);
        match find(path).filter(|own| own.defined) {
            Some(own) => Some((TableName::new(path, name), own)),
            None => Some((name.into(), find("")?)),
        }
    }

    /// All tables, those of the main rule set first, each with the path of its anchor.
    pub fn all_tables(&self) -> impl Iterator<Item = (&str, &Table)> {
        let main = self.tables.iter().map(|table| ("", table));
        let anchors = self
            .anchors
            .iter()
            .flat_map(|(path, anchor)| anchor.tables.iter().map(move |t| (path.as_str(), t)));
        main.chain(anchors)
    }

    /// The rules of the main rule set (path empty) and then of every anchor, each with its path.
    pub fn all_rules(&self) -> impl Iterator<Item = (&str, &Rule)> {
        let main = self.rules.iter().map(|rule| ("", rule));
        let anchors = self
            .anchors
            .iter()
            .flat_map(|(path, anchor)| anchor.rules.iter().map(move |rule| (path.as_str(), rule)));
        main.chain(anchors)
    }
}
