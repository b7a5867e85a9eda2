//! Local delivery of diverted packets: a policy rule for their mark, and a routing table that makes
//! every address local.

use std::io::ErrorKind;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::route::{
    RouteAttribute, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use skipstep_abi::mark;
use skipstep_ruleset::{Divert, Ruleset};

use crate::error::{Error, Result};
use crate::netlink::Rtnetlink;

/// Priority of the policy rule: after the table of the host's own addresses (0), before all others.
const PRIORITY: u32 = 1;

/// Index of the loopback interface in every network namespace.
const LOOPBACK: u32 = 1;

/// True if rules divert packets to sockets.
pub(crate) fn is_used(ruleset: &Ruleset) -> bool {
    ruleset
        .all_rules()
        .any(|(_, rule)| matches!(rule.divert, Some(Divert::To { .. } | Divert::Reply)))
}

/// Makes the policy rule and the routing table in the current network namespace, for the families
/// that the namespace has.
// Differs from OpenBSD: linux.md, "Diverted packets"
pub(crate) fn set_up() -> Result<()> {
    let mut netlink = Rtnetlink::open()?;
    for family in families() {
        for message in [
            RouteNetlinkMessage::NewRoute(route(family)),
            RouteNetlinkMessage::NewRule(rule(family)),
        ] {
            match netlink.order(message, NLM_F_CREATE | NLM_F_EXCL) {
                Err(Error::System { cause, .. }) if cause.kind() == ErrorKind::AlreadyExists => {}
                done => done?,
            }
        }
    }
    Ok(())
}

/// Removes the policy rule and the routing table, if they exist.
pub(crate) fn tear_down() {
    let Ok(mut netlink) = Rtnetlink::open() else { return };
    for family in families() {
        // an instance that never diverted has neither rule nor route
        let _ = netlink.order(RouteNetlinkMessage::DelRule(rule(family)), 0);
        let _ = netlink.order(RouteNetlinkMessage::DelRoute(route(family)), 0);
    }
}

fn families() -> impl Iterator<Item = AddressFamily> {
    let inet6 = std::path::Path::new("/proc/sys/net/ipv6").exists();
    std::iter::once(AddressFamily::Inet).chain(inet6.then_some(AddressFamily::Inet6))
}

/// Returns the route of `ip route add local default dev lo table …`.
fn route(family: AddressFamily) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family;
    message.header.protocol = RouteProtocol::Static;
    message.header.scope = RouteScope::Host;
    message.header.kind = RouteType::Local;
    message.attributes.push(RouteAttribute::Table(mark::DIVERT_TABLE));
    message.attributes.push(RouteAttribute::Oif(LOOPBACK));
    message
}

/// Returns the rule of `ip rule add priority … fwmark … lookup …`.
fn rule(family: AddressFamily) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header.family = family;
    message.header.action = RuleAction::ToTable;
    message.attributes.push(RuleAttribute::Priority(PRIORITY));
    message.attributes.push(RuleAttribute::FwMark(mark::DIVERTED));
    message.attributes.push(RuleAttribute::FwMask(mark::DIVERTED_MASK));
    message.attributes.push(RuleAttribute::Table(mark::DIVERT_TABLE));
    message
}
