//! Expectations of a tracked source: `source nat-to 10.0.1.5 chosen 10.0.2.1 held-by 2`.

use std::fmt::{self, Display};
use std::net::IpAddr;

use skipstep_ruleset::RuleId;
use skipstep_views::{NodeKind, SourceView};

use crate::differences::Differences;
use crate::write::{pair, rule, word};

/// A source and its expected properties. `None` is not compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceWords {
    /// Purpose of the source node.
    pub kind: NodeKind,
    /// Address of the source.
    pub source: IpAddr,
    /// `from-rule`: the rule that tracks the source; needed if several rules do.
    pub rule: Option<Option<RuleId>>,
    /// `chosen`: the address that a pool chose for the source, or `none`.
    pub chosen: Option<Option<IpAddr>>,
    /// `held-by`: number of states.
    pub states: Option<u32>,
    /// `connected`: number of these states with an established connection.
    pub connections: Option<u32>,
    /// `packets`: in the direction of their states, and against it.
    pub packets: Option<[u64; 2]>,
    /// `bytes`: in the same order.
    pub bytes: Option<[u64; 2]>,
}

impl SourceWords {
    /// Returns an expectation that compares only the existence of the source.
    pub(crate) fn new(kind: NodeKind, source: IpAddr) -> Self {
        SourceWords {
            kind,
            source,
            rule: None,
            chosen: None,
            states: None,
            connections: None,
            packets: None,
            bytes: None,
        }
    }

    /// Returns an expectation that compares everything.
    pub(crate) fn complete(view: &SourceView) -> Self {
        SourceWords {
            rule: Some(view.rule.clone()),
            chosen: Some(view.chosen),
            states: Some(view.states),
            connections: Some(view.connections),
            packets: Some(view.packets),
            bytes: Some(view.bytes),
            ..SourceWords::new(view.kind, view.source)
        }
    }

    /// Adds the differences from the sources that exist.
    pub(crate) fn compare(&self, sources: &[SourceView], differences: &mut Differences) {
        let meant = |view: &&SourceView| {
            (view.kind, view.source) == (self.kind, self.source)
                && self.rule.as_ref().is_none_or(|rule| *rule == view.rule)
        };
        let mut wrong = sources.iter().filter(meant).map(|view| self.differences(view));
        let Some(first) = wrong.next() else {
            let name = format!("source {} {}", kind_name(self.kind), self.source);
            differences.0.push(format!("{name}: expected one, found none"));
            return;
        };
        // Orphaned rules look the same here, so one matching source suffices.
        if !first.is_empty() && !wrong.any(|others| others.is_empty()) {
            differences.0.extend(first);
        }
    }

    fn differences(&self, view: &SourceView) -> Vec<String> {
        let name = format!("source {} {}", kind_name(self.kind), self.source);
        let mut differences = Differences::default();
        differences.compare(&format!("{name} chosen"), &self.chosen, view.chosen);
        differences.compare(&format!("{name} held by"), &self.states, view.states);
        differences.compare(&format!("{name} connected"), &self.connections, view.connections);
        differences.compare(&format!("{name} packets"), &self.packets, view.packets);
        differences.compare(&format!("{name} bytes"), &self.bytes, view.bytes);
        differences.0
    }
}

impl Display for SourceWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "source {} {}", kind_name(self.kind), self.source)?;
        word(f, "from-rule", self.rule.as_ref().map(rule))?;
        let chosen = |chosen: Option<IpAddr>| chosen.map_or("none".into(), |it| it.to_string());
        word(f, "chosen", self.chosen.map(chosen))?;
        word(f, "held-by", self.states)?;
        word(f, "connected", self.connections)?;
        word(f, "packets", self.packets.map(pair))?;
        word(f, "bytes", self.bytes.map(pair))
    }
}

const KINDS: [(NodeKind, &str); 4] = [
    (NodeKind::Track, "track"),
    (NodeKind::Nat, "nat-to"),
    (NodeKind::Rdr, "rdr-to"),
    (NodeKind::Route, "route-to"),
];

fn kind_name(kind: NodeKind) -> &'static str {
    KINDS.iter().find(|(known, _)| *known == kind).map_or("", |(_, name)| name)
}

/// Returns the purpose called `track`, `nat-to`, `rdr-to` or `route-to`.
pub(crate) fn kind_by_name(text: &str) -> Option<NodeKind> {
    KINDS.iter().find(|(_, name)| *name == text).map(|(kind, _)| *kind)
}
