//! Rules of old times, as FreeBSD has them: translation and normalisation in lists of their own,
//! which are asked before the filter rules (pf-features section 12).

use serde::{Deserialize, Serialize};

use crate::address::{Address, Endpoint, Host};
use crate::rule::{Direction, Log};
use crate::translation::{Pool, PoolAddress, PoolKind, PoolPorts};
use crate::{Rule, RuleId, Ruleset};

/// A translation or normalisation rule of old times: the first that matches wins.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OldRule {
    /// What it is about.
    pub kind: OldKind,
    /// `no nat`, `no scrub`: what matches is left alone.
    pub no: bool,
    /// `nat pass`: no filter rule is asked.
    pub pass: bool,
    /// `fragment no reassemble`, of scrub
    pub leave_fragments: bool,
    /// Criteria and options, and for translation the pool: `rdr` that of `rdr`, `nat` that of `nat`
    /// and `binat`. Its action is `match`.
    pub rule: Rule,
}

/// What old rules are about. Each has its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum OldKind {
    Scrub,
    Nat,
    Binat,
    Rdr,
}

impl OldKind {
    /// In the order in which FreeBSD lists them.
    pub const ALL: [OldKind; 4] = [OldKind::Scrub, OldKind::Nat, OldKind::Rdr, OldKind::Binat];

    /// Whether it gives packets new ends.
    pub fn translates(self) -> bool {
        self != OldKind::Scrub
    }

    /// Its word in pf.conf.
    pub fn name(self) -> &'static str {
        match self {
            OldKind::Scrub => "scrub",
            OldKind::Nat => "nat",
            OldKind::Binat => "binat",
            OldKind::Rdr => "rdr",
        }
    }
}

/// A list of old rules as packets walk it. `binat` means two things, and so makes two lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OldList {
    /// `nat`
    Nat,
    /// `rdr`
    Rdr,
    /// `binat` for packets that leave: a new source
    BinatOut,
    /// `binat` for packets that arrive: a new destination
    BinatIn,
    /// `scrub`
    Scrub,
}

impl OldList {
    /// All of them.
    pub const ALL: [OldList; 5] =
        [OldList::Nat, OldList::Rdr, OldList::BinatOut, OldList::BinatIn, OldList::Scrub];

    /// The rules that are in it.
    pub fn kind(self) -> OldKind {
        match self {
            OldList::Nat => OldKind::Nat,
            OldList::Rdr => OldKind::Rdr,
            OldList::BinatOut | OldList::BinatIn => OldKind::Binat,
            OldList::Scrub => OldKind::Scrub,
        }
    }

    /// The lists that packets of a direction walk, in this order: the last one if nothing of the
    /// one before it translates.
    pub fn walked(direction: Direction) -> [OldList; 3] {
        match direction {
            Direction::In => [OldList::Scrub, OldList::Rdr, OldList::BinatIn],
            Direction::Out => [OldList::Scrub, OldList::BinatOut, OldList::Nat],
        }
    }
}

impl OldRule {
    /// Its name as a rule of an anchor.
    pub fn id(&self, anchor: &str) -> RuleId {
        RuleId { old: Some(self.kind), ..RuleId::new(anchor, self.rule.number) }
    }

    /// Whether it is a `scrub` rule that has fragments put together.
    pub fn reassembles(&self) -> bool {
        self.kind == OldKind::Scrub && !self.no && !self.leave_fragments
    }

    /// The rule as a packet meets it in a list: a `match` rule, with `quick` for `pass`. Log
    /// options that are about other rules mean nothing in it.
    pub fn seen_in(&self, list: OldList) -> Rule {
        let rule = Rule {
            quick: self.pass,
            log: self.rule.log.map(|log| Log { matches: false, ..log }),
            ..self.rule.clone()
        };
        match list {
            OldList::Nat | OldList::Rdr => rule,
            // it logs what is bad in itself, which is always logged
            OldList::Scrub => Rule { log: None, ..rule },
            OldList::BinatOut => {
                let nat = rule.nat.clone().map(|pool| Box::new(one_to_one(pool.address)));
                Rule { nat, ..rule }
            }
            OldList::BinatIn => arriving(rule),
        }
    }
}

/// What `binat` means for packets that arrive: they come from whom it sends to, and are for the
/// address that it gives. `no binat` gives none, so it compares nothing with it.
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

/// Each address of a network has one of the other.
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

/// The language lets `binat` give networks and the address of an interface.
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
    /// The old rules of the anchor with this path, those of the main rule set if it is empty.
    pub fn old_rules_of(&self, path: &str) -> &[OldRule] {
        match path {
            "" => &self.old_rules,
            _ => self.anchors.get(path).map_or(&[], |anchor| &anchor.old_rules),
        }
    }

    /// Old rules of the main rule set (path empty) and then of every anchor, each with its path.
    pub fn all_old_rules(&self) -> impl Iterator<Item = (&str, &OldRule)> {
        let paths = std::iter::once("").chain(self.anchors.keys().map(String::as_str));
        paths.flat_map(|path| self.old_rules_of(path).iter().map(move |old| (path, old)))
    }

    /// All rules, the old ones behind the others.
    pub fn every_rule(&self) -> impl Iterator<Item = (&str, &Rule)> {
        self.all_rules().chain(self.all_old_rules().map(|(path, old)| (path, &old.rule)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binat_is_turned_round_for_packets_that_arrive() {
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
        let old = |no, rule| OldRule {
            kind: OldKind::Binat,
            no,
            pass: true,
            leave_fragments: false,
            rule,
        };
        let seen = old(false, rule.clone()).seen_in(OldList::BinatIn);
        assert!(seen.quick && seen.nat.is_none());
        assert_eq!(seen.source, host("198.51.100.0/24"));
        assert_eq!(seen.destination, host("192.0.2.0/24"));
        assert_eq!(seen.rdr.unwrap().address, PoolAddress::Net(net("10.0.0.0/24")));
        let exception = old(true, Rule { nat: None, ..rule }).seen_in(OldList::BinatIn);
        assert_eq!((exception.destination, exception.rdr), (Endpoint::default(), None));
    }
}
