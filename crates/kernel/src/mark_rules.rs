//! Policy rules of other programs (`ip rule`) that compare the filter's bits of the packet's mark.

use netlink_packet_route::rule::{RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use skipstep_abi::mark;
pub use skipstep_abi::mark::MASK;

use crate::error::Result;
use crate::netlink::Rtnetlink;

/// A policy rule with `fwmark`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarkRule {
    /// True for a rule of IPv6.
    pub inet6: bool,
    /// Priority of the rule.
    pub priority: u32,
    /// Mark to compare with.
    pub mark: u32,
    /// Bits that are compared.
    pub mask: u32,
    /// Number of the routing table.
    pub table: u32,
    /// True if the rule has further criteria.
    pub has_more: bool,
}

/// Returns the policy rules of the current network namespace that compare the upper half of the
/// mark, without the filter's own.
///
/// # Errors
/// Fails if rtnetlink cannot be opened or refuses the request.
pub fn read() -> Result<Vec<MarkRule>> {
    let rules = Rtnetlink::open()?.dump(RouteNetlinkMessage::GetRule(RuleMessage::default()))?;
    let rules = rules.iter().filter_map(|object| match object {
        RouteNetlinkMessage::NewRule(message) => mark_rule(message),
        _ => None,
    });
    Ok(rules.filter(|rule| rule.mask & MASK != 0 && !is_ours(rule)).collect())
}

fn is_ours(rule: &MarkRule) -> bool {
    (rule.mark, rule.mask) == (mark::DIVERTED, mark::DIVERTED_MASK)
}

/// Returns the rule of a message, or `None` if the rule compares no mark.
fn mark_rule(message: &RuleMessage) -> Option<MarkRule> {
    let mut rule = MarkRule {
        inet6: message.header.family == AddressFamily::Inet6,
        table: message.header.table.into(),
        has_more: message.header.src_len != 0 || message.header.dst_len != 0,
        ..MarkRule::default()
    };
    for attribute in &message.attributes {
        match attribute {
            RuleAttribute::Priority(priority) => rule.priority = *priority,
            RuleAttribute::FwMark(mark) => rule.mark = *mark,
            RuleAttribute::FwMask(mask) => rule.mask = *mask,
            RuleAttribute::Table(table) => rule.table = *table,
            RuleAttribute::Iifname(_)
            | RuleAttribute::Oifname(_)
            | RuleAttribute::UidRange(_)
            | RuleAttribute::IpProtocol(_)
            | RuleAttribute::SourcePortRange(_)
            | RuleAttribute::DestinationPortRange(_) => rule.has_more = true,
            _ => {}
        }
    }
    (rule.mask != 0).then_some(rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_read_from_its_attributes() {
        let mut message = RuleMessage::default();
        message.header.family = AddressFamily::Inet6;
        assert_eq!(mark_rule(&message), None);
        message.attributes = vec![
            RuleAttribute::Priority(100),
            RuleAttribute::FwMark(7),
            RuleAttribute::FwMask(u32::MAX),
            RuleAttribute::Table(1000),
        ];
        let rule = MarkRule {
            inet6: true,
            priority: 100,
            mark: 7,
            mask: u32::MAX,
            table: 1000,
            has_more: false,
        };
        assert_eq!(mark_rule(&message), Some(rule.clone()));
        message.attributes.push(RuleAttribute::Iifname("lan0".to_owned()));
        assert_eq!(mark_rule(&message), Some(MarkRule { has_more: true, ..rule }));
    }

    #[test]
    fn the_rule_of_diverted_packets_is_ours() {
        let rule =
            MarkRule { mark: mark::DIVERTED, mask: mark::DIVERTED_MASK, ..MarkRule::default() };
        assert!(is_ours(&rule) && !is_ours(&MarkRule { mask: MASK, ..rule }));
    }
}
