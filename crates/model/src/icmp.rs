//! ICMP and ICMPv6 messages with states of their own: queries and their answers, neighbour and
//! listener discovery (pf-semantics sections 6 and 9).
//!
//! A query's state has the query's identifier as one port and its type as the other. The answer has
//! the type of the query, with the ports swapped. Types without an identifier have 0. Neighbour and
//! listener discovery have a number folded from the address in the message.

use std::net::{IpAddr, Ipv6Addr};

use skipstep_ruleset::Family;
use skipstep_wire::protocol;

use crate::packet::Icmp;
use crate::packet::icmp6_type::{
    ECHO_REPLY, ECHO_REQUEST, LISTENER_QUERY, LISTENER_REPORT, NEIGHBOR_ADVERT, NEIGHBOR_SOLICIT,
};

/// All nodes on the link: each node may answer a query to this address.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// The relation of a message to states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// True if the message never creates a state: it belongs to another packet's state, or to none.
    /// Errors and neighbour advertisements are such messages.
    pub stateless: bool,
    /// True if the message answers a query.
    pub reply: bool,
    /// Identifier, real or computed.
    pub id: u16,
    /// ICMP type of the query.
    pub kind: u16,
}

impl Mapping {
    /// Returns the relation of a query of type `kind`, or of the answer to one.
    fn query(icmp: &Icmp, kind: u8, id: u16) -> Self {
        Mapping { stateless: false, reply: icmp.kind != kind, id, kind: kind.into() }
    }

    /// Returns true for an echo request or its answer, the only messages whose id is translated.
    pub fn is_echo(&self, family: Family) -> bool {
        self.kind == if family == Family::Inet { 8 } else { ECHO_REQUEST.into() }
    }

    /// Returns the numbers in place of the source and destination port.
    pub fn ports(&self) -> (u16, u16) {
        if self.reply { (self.kind, self.id) } else { (self.id, self.kind) }
    }
}

/// Returns the relation of a message of `family` to states.
pub(crate) fn mapping(family: Family, icmp: &Icmp) -> Mapping {
    match family {
        Family::Inet => mapping_inet(icmp),
        Family::Inet6 => mapping_inet6(icmp),
    }
}

fn mapping_inet(icmp: &Icmp) -> Mapping {
    let query = |kind, id| Mapping::query(icmp, kind, id);
    match icmp.kind {
        0 | 8 => query(8, icmp.id),
        13 | 14 => query(13, icmp.id), // timestamp
        15 | 16 => query(15, icmp.id), // information
        17 | 18 => query(17, icmp.id), // address mask
        33 | 34 => query(33, 0),       // IPv6 where-are-you
        35 | 36 => query(35, 0),       // mobile registration
        9 | 10 => query(10, 0),        // router solicitation
        // unreachable, source quench, redirect, time exceeded, parameter problem
        3 | 4 | 5 | 11 | 12 => Mapping { stateless: true, ..query(icmp.kind, 0) },
        other => query(other, 0),
    }
}

fn mapping_inet6(icmp: &Icmp) -> Mapping {
    let query = |kind, id| Mapping::query(icmp, kind, id);
    match icmp.kind {
        ECHO_REQUEST | ECHO_REPLY => query(ECHO_REQUEST, icmp.id),
        // a report needs no query, and its destination is not the query's source
        LISTENER_QUERY | LISTENER_REPORT => {
            Mapping { reply: false, ..query(LISTENER_QUERY, fold(icmp.target)) }
        }
        NEIGHBOR_SOLICIT => query(NEIGHBOR_SOLICIT, fold(icmp.target)),
        NEIGHBOR_ADVERT => {
            Mapping { stateless: true, ..query(NEIGHBOR_SOLICIT, fold(icmp.target)) }
        }
        139 | 140 => query(139, 0), // node information
        200 | 201 => query(201, 0), // multicast traceroute; the answer has the lower number
        // unreachable, too big, time exceeded, parameter problem
        1..=4 => Mapping { stateless: true, ..query(icmp.kind, 0) },
        other => query(other, 0),
    }
}

/// Returns an address folded to 16 bits.
fn fold(address: Ipv6Addr) -> u16 {
    address.segments().into_iter().fold(0, |folded, segment| folded ^ segment)
}

/// Returns source and destination in the key of a message. Neighbour discovery has its target in
/// the key. With `from_all` the source is the destination of a query to all nodes; neighbour
/// discovery has no such queries, so the result is `None`.
pub(crate) fn key_addresses(
    protocol: u8,
    icmp: &Icmp,
    source: IpAddr,
    destination: IpAddr,
    from_all: bool,
) -> Option<(IpAddr, IpAddr)> {
    if source.is_ipv4() || protocol != protocol::ICMP6 {
        return Some((source, destination));
    }
    match icmp.kind {
        NEIGHBOR_SOLICIT | NEIGHBOR_ADVERT if from_all => None,
        NEIGHBOR_SOLICIT => Some((source, icmp.target.into())),
        NEIGHBOR_ADVERT if destination.is_multicast() => {
            Some((icmp.target.into(), Ipv6Addr::UNSPECIFIED.into()))
        }
        NEIGHBOR_ADVERT => Some((icmp.target.into(), destination)),
        _ if from_all => Some((ALL_NODES.into(), destination)),
        _ => Some((source, destination)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8) -> Icmp {
        Icmp { kind, code: 0, id: 77, target: Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 5) }
    }

    #[test]
    fn an_answer_has_the_ports_of_its_query_swapped() {
        for (family, query, answer) in [
            (Family::Inet, 8, 0),
            (Family::Inet, 13, 14),
            (Family::Inet, 10, 9),
            (Family::Inet6, 128, 129),
        ] {
            let (query, answer) =
                (mapping(family, &message(query)), mapping(family, &message(answer)));
            assert_eq!(answer.ports(), (query.ports().1, query.ports().0));
            assert!(!query.reply && answer.reply);
        }
    }

    #[test]
    fn errors_and_advertisements_make_no_state() {
        for kind in [3, 4, 5, 11, 12] {
            assert!(mapping(Family::Inet, &message(kind)).stateless);
        }
        for kind in [1, 2, 3, 4, 136] {
            assert!(mapping(Family::Inet6, &message(kind)).stateless);
        }
        assert!(
            !mapping(Family::Inet6, &message(137)).stateless,
            "a redirect need not quote a packet"
        );
    }

    #[test]
    fn neighbour_discovery_is_about_its_target() {
        let (host, all): (IpAddr, IpAddr) =
            ("fe80::1".parse().unwrap(), "ff02::1".parse().unwrap());
        let addresses =
            |kind, destination| key_addresses(58, &message(kind), host, destination, false);
        let target: IpAddr = "fe80::5".parse().unwrap();
        assert_eq!(addresses(NEIGHBOR_SOLICIT, all), Some((host, target)));
        assert_eq!(addresses(NEIGHBOR_ADVERT, host), Some((target, host)));
        assert_eq!(addresses(NEIGHBOR_ADVERT, all), Some((target, "::".parse().unwrap())));
        assert_eq!(mapping(Family::Inet6, &message(NEIGHBOR_SOLICIT)).id, 0xfe85);
    }
}
