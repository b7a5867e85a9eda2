//! Kinds of packets, each of which has its own tree set.

use skipstep_abi as abi;
use skipstep_abi::tree_set::tree_set_of;

use crate::tree::{Covering, Space};

pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMP6: u8 = 58;
pub(crate) const SCTP: u8 = 132;

/// The properties that all packets of a tree set share.
pub(crate) struct Packets {
    pub direction: u8,
    pub family: u8,
    /// Protocol number of TCP or UDP, or 0 for all other protocols.
    pub protocol: u8,
    /// True if `protocol` 0 means every protocol.
    all_protocols: bool,
    /// True for TCP segments that do not begin a connection, and for answers to ICMP queries. No
    /// rule with `flags S/SA` matches such a segment; no rule that keeps state matches such an
    /// answer. If false, the kind has no such packets.
    pub follows: bool,
}

impl Packets {
    pub fn new(direction: u8, tree_set: usize) -> Self {
        let (family, kind) = match tree_set.checked_sub(tree_set_of::INET6) {
            Some(kind) => (abi::INET6, kind),
            None => (abi::INET, tree_set),
        };
        let (protocol, follows) = match kind {
            tree_set_of::TCP => (TCP, false),
            tree_set_of::TCP_FOLLOWS => (TCP, true),
            tree_set_of::UDP => (UDP, false),
            tree_set_of::OTHER => (0, false),
            _ => (0, true),
        };
        Packets { direction, family, protocol, all_protocols: false, follows }
    }

    /// Returns the kind with the first packets of every protocol, for the same direction and
    /// family.
    pub fn of_all_protocols(&self) -> Self {
        Packets { protocol: 0, all_protocols: true, follows: false, ..*self }
    }

    /// True if `rules` are exactly the rectangles in `all`, those of all protocols, that such
    /// packets can match.
    pub fn is_part_of<const N: usize>(
        &self,
        space: &Space<N>,
        all: &[Covering<N>],
        rules: &[Covering<N>],
    ) -> bool {
        let axis = space.protocol();
        let any = u32::from(u8::MAX);
        let ours = all.iter().filter(|rule| {
            let (low, high) = (rule.rect.low[axis], rule.rect.high[axis]);
            low != high || self.are_among(low as u8)
        });
        let seen = ours.map(|rule| {
            let mut rule = *rule;
            if self.protocol != 0 {
                (rule.rect.low[axis], rule.rect.high[axis]) = (0, any);
            }
            rule
        });
        seen.eq(rules.iter().copied())
    }

    /// True if the kind has packets of the protocol.
    fn are_among(&self, protocol: u8) -> bool {
        match protocol {
            _ if self.all_protocols => true,
            TCP | UDP => self.protocol == protocol,
            _ => self.protocol == 0,
        }
    }

    /// True if the rule requires a protocol that no packet of the kind has.
    pub fn have_not(&self, rule: &abi::Rule) -> bool {
        rule.protocol != 0 && !self.have(rule, rule.protocol)
    }

    /// True if the kind has packets of the protocol that the rule's protocol criterion accepts.
    pub fn have(&self, rule: &abi::Rule, protocol: u8) -> bool {
        self.are_among(protocol) && (rule.protocol == 0 || rule.protocol == protocol)
    }
}
