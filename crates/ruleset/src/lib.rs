//! Rule sets after parsing: every list expanded, every name resolved, nothing left to guess.
//!
//! `pfconf` makes a [`Ruleset`] from text, `classifier` turns it into the image the kernel walks,
//! `model` evaluates it directly. This crate knows neither text nor kernel.

pub mod address;
pub mod anchor;
pub mod automatic;
pub mod interface;
pub mod options;
pub mod queue;
pub mod reason;
pub mod rule;
pub mod skip;
pub mod support;
pub mod table;
pub mod translation;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use address::{Address, Endpoint, Family, Host, PortMatch, Ports};
pub use anchor::{Anchor, AnchorCall};
pub use automatic::AutomaticTables;
pub use options::{
    BlockPolicy, Evaluator, Limits, Optimization, Options, StatePolicy, Syncookies, Timeout,
    Timeouts,
};
pub use queue::{Limiter, LimiterUse, Queue, ServiceCurve};
pub use reason::Reason;
pub use rule::{
    Action, BlockReturn, Direction, IcmpMatch, InterfaceMatch, InterfaceName, KeepKind, Log, Not,
    Overload, Owner, Rule, Scrub, SourceTrack, StateOptions, TcpFlags,
};
pub use table::{Table, TableEntry};
pub use translation::{
    AfTo, Divert, OldKind, OldRule, Pool, PoolAddress, PoolKind, PoolPorts, Route, RouteKind,
};

/// A whole pf.conf: what `pfctl -f` loads in one piece.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ruleset {
    /// What the `set` lines say.
    pub options: Options,
    /// Filter rules in order; `rules[i].number == i`.
    pub rules: Vec<Rule>,
    /// Translation and scrub rules of old times, in order.
    pub old_rules: Vec<OldRule>,
    /// Tables in order of definition, those that rules only mention included.
    pub tables: Vec<Table>,
    /// Anchors by path (`a/b`, no slash in front): those in braces, those of `load anchor`, and once
    /// loaded also those that `pfctl -a` brought. One that rules only call has no entry.
    pub anchors: BTreeMap<String, Anchor>,
    /// `queue` statements in order.
    pub queues: Vec<Queue>,
    /// `state limiter` and `source limiter` statements in order.
    pub limiters: Vec<Limiter>,
}

impl Ruleset {
    /// The table called `name` of the main rule set, if it is defined or mentioned there.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
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
