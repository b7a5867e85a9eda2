//! Legacy rules, as FreeBSD has them: translation and normalization rules in lists of their own,
//! which are evaluated before the filter rules (pf-features section 12).

use serde::{Deserialize, Serialize};

use crate::address::{Address, Endpoint, Host};
use crate::rule::{Direction, Log};
use crate::translation::{Pool, PoolAddress, PoolKind, PoolPorts};
use crate::{Rule, RuleId, Ruleset};

/// A legacy translation or normalization rule. The first rule of a list that matches decides.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LegacyRule {
    /// The statement that the rule was written as.
    pub kind: LegacyKind,
    /// `no nat`, `no scrub`: matching packets are not changed.
    pub no: bool,
    /// `nat pass`: no filter rule is evaluated for matching packets.
    pub pass: bool,
    /// `fragment no reassemble` of a `scrub` rule.
    pub leave_fragments: bool,
    /// Criteria and options. The field `rdr` has the pool of an `rdr` rule, the field `nat` that of
    /// a `nat` or `binat` rule. The action is `match`.
    pub rule: Rule,
}

/// The statements of legacy rules. The rules of each kind are numbered from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say all")]
pub enum LegacyKind {
    Scrub,
    Nat,
    Binat,
    Rdr,
}

impl LegacyKind {
    /// All kinds in the order in which FreeBSD lists them.
    pub const ALL: [LegacyKind; 4] =
        [LegacyKind::Scrub, LegacyKind::Nat, LegacyKind::Rdr, LegacyKind::Binat];

    /// True if rules of this kind change addresses or ports.
    pub fn translates(self) -> bool {
        self != LegacyKind::Scrub
    }

    /// Returns the keyword in pf.conf.
    pub fn name(self) -> &'static str {
        match self {
            LegacyKind::Scrub => "scrub",
            LegacyKind::Nat => "nat",
            LegacyKind::Binat => "binat",
            LegacyKind::Rdr => "rdr",
        }
    }
}

/// A list of legacy rules as packets are evaluated against it. `binat` translates in both
/// directions, and so makes two lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LegacyList {
    /// `nat` rules: outbound packets get a new source.
    Nat,
    /// `rdr` rules: inbound packets get a new destination.
    Rdr,
    /// `binat` rules for outbound packets, which get a new source.
    BinatOut,
    /// `binat` rules for inbound packets, which get a new destination.
    BinatIn,
    /// `scrub` rules: packets are normalized.
    Scrub,
}

impl LegacyList {
    /// All lists.
    pub const ALL: [LegacyList; 5] = [
        LegacyList::Nat,
        LegacyList::Rdr,
        LegacyList::BinatOut,
        LegacyList::BinatIn,
        LegacyList::Scrub,
    ];

    /// Returns the kind of the rules in the list.
    pub fn kind(self) -> LegacyKind {
        match self {
            LegacyList::Nat => LegacyKind::Nat,
            LegacyList::Rdr => LegacyKind::Rdr,
            LegacyList::BinatOut | LegacyList::BinatIn => LegacyKind::Binat,
            LegacyList::Scrub => LegacyKind::Scrub,
        }
    }

    /// Returns the lists for packets of a direction in order of evaluation. The last list is
    /// evaluated only if no rule of the second translates.
    pub fn walked(direction: Direction) -> [LegacyList; 3] {
        match direction {
            Direction::In => [LegacyList::Scrub, LegacyList::Rdr, LegacyList::BinatIn],
            Direction::Out => [LegacyList::Scrub, LegacyList::BinatOut, LegacyList::Nat],
        }
    }
}

impl LegacyRule {
    /// Returns the identity of the rule in an anchor.
    pub fn id(&self, anchor: &str) -> RuleId {
        RuleId { old: Some(self.kind), ..RuleId::new(anchor, self.rule.number) }
    }

    /// True for a `scrub` rule that reassembles fragments.
    pub fn reassembles(&self) -> bool {
        self.kind == LegacyKind::Scrub && !self.no && !self.leave_fragments
    }

    /// Returns the rule as it is evaluated in a list: a `match` rule, with `quick` for `pass`. `log
    /// (matches)` has no effect in these lists.
    pub fn seen_in(&self, list: LegacyList) -> Rule {
        let rule = Rule {
            quick: self.pass,
            log: self.rule.log.map(|log| Log { matches: false, ..log }),
            ..self.rule.clone()
        };
        match list {
            LegacyList::Nat | LegacyList::Rdr => rule,
            // `log` of a scrub rule is about damaged packets, which are always logged
            LegacyList::Scrub => Rule { log: None, ..rule },
            LegacyList::BinatOut => {
                let nat = rule.nat.clone().map(|pool| Box::new(one_to_one(pool.address)));
                Rule { nat, ..rule }
            }
            LegacyList::BinatIn => arriving(rule),
        }
    }
}

/// Returns a `binat` rule for inbound packets: the destination becomes the source, and the
/// translated address becomes the destination. The latter is any for `no binat`, which translates
/// nothing.
fn arriving(rule: Rule) -> Rule {
    let given = rule.nat.as_ref().map_or(Address::Any, |pool| as_criterion(&pool.address));
    let own = as_pool(&rule.source.host.address);
    Rule {
        rdr: rule.nat.as_ref().map(|_| Box::new(one_to_one(own))),
        nat: None,
        source: rule.destination.clone(),
        destination: Endpoint { host: Host { negated: false, address: given }, ports: None },
        ..rule
    }
}

/// Returns a pool that maps each address of a network to one of the other network.
fn one_to_one(address: PoolAddress) -> Pool {
    Pool {
        address,
        kind: PoolKind::Bitmask,
        sticky: false,
        ports: PoolPorts::Static,
        endpoint_independent: false,
        prefer_ipv6: false,
    }
}

/// Returns the criterion for a pool's addresses: a network, or an interface's addresses.
fn as_criterion(pool: &PoolAddress) -> Address {
    match pool {
        PoolAddress::Net(net) => Address::Net(*net),
        PoolAddress::Dynamic(address) => Address::Dynamic(address.clone()),
        _ => Address::Any,
    }
}

fn as_pool(criterion: &Address) -> PoolAddress {
    match criterion {
        Address::Net(net) => PoolAddress::Net(*net),
        Address::Dynamic(address) => PoolAddress::Dynamic(address.clone()),
        _ => PoolAddress::Any,
    }
}

impl Ruleset {
    /// Returns the legacy rules of an anchor, or of the main rule set if the path is empty.
    pub fn legacy_rules_of(&self, path: &str) -> &[LegacyRule] {
        match path {
            "" => &self.legacy_rules,
            _ => self.anchors.get(path).map_or(&[], |anchor| &anchor.legacy_rules),
        }
    }

    /// Returns the legacy rules of the main rule set, and then of all anchors, with their paths.
    pub fn all_legacy_rules(&self) -> impl Iterator<Item = (&str, &LegacyRule)> {
        let paths = std::iter::once("").chain(self.anchors.keys().map(String::as_str));
        paths.flat_map(|path| self.legacy_rules_of(path).iter().map(move |legacy| (path, legacy)))
    }

    /// Returns all filter rules, followed by all legacy rules, with the paths of their anchors.
    pub fn every_rule(&self) -> impl Iterator<Item = (&str, &Rule)> {
        self.all_rules().chain(self.all_legacy_rules().map(|(path, legacy)| (path, &legacy.rule)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binat_is_reversed_for_inbound_packets() {
        let net = |text: &str| text.parse().unwrap();
        let host = |address| Endpoint {
            host: Host { negated: false, address: Address::Net(net(address)) },
            ports: None,
        };
        let pool = one_to_one(PoolAddress::Net(net("192.0.2.0/24")));
        let rule = Rule {
            source: host("10.0.0.0/24"),
            destination: host("198.51.100.0/24"),
            nat: Some(Box::new(pool)),
            ..Rule::default()
        };
        let legacy = |no, rule| LegacyRule {
            kind: LegacyKind::Binat,
            no,
            pass: true,
            leave_fragments: false,
            rule,
        };
        let seen = legacy(false, rule.clone()).seen_in(LegacyList::BinatIn);
        assert!(seen.quick && seen.nat.is_none());
        assert_eq!(seen.source, host("198.51.100.0/24"));
        assert_eq!(seen.destination, host("192.0.2.0/24"));
        assert_eq!(seen.rdr.unwrap().address, PoolAddress::Net(net("10.0.0.0/24")));
        let exception = legacy(true, Rule { nat: None, ..rule }).seen_in(LegacyList::BinatIn);
        assert_eq!((exception.destination, exception.rdr), (Endpoint::default(), None));
    }
}
