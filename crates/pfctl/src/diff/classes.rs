//! Classes of packets that two rule sets can distinguish. For each property of a packet there are
//! values at the boundaries of the criteria, one value for each set of criteria that match.

use std::collections::HashSet;
use std::hash::Hash;
use std::net::IpAddr;

use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{
    Address, Direction, Endpoint, Family, InterfaceMatch, Not, Ports, Rule, Table,
};
use skipstep_wire::{protocol, tcp_flag};

use super::Side;
use super::address::{Addresses, addresses};
use super::packet::{Point, Shape, Transport};

/// Most boundary addresses that are tried for one endpoint, before [`distinct`] removes equivalent
/// ones.
const MAX_ADDRESSES: usize = 2048;
const MAX_CRITERIA: usize = 512;

/// The values of each property of packets, to be combined.
#[derive(Debug, Clone)]
pub struct Classes {
    directions: Vec<Direction>,
    interfaces: Vec<String>,
    sources: Vec<IpAddr>,
    destinations: Vec<IpAddr>,
    transports: Vec<Transport>,
    source_ports: Vec<u16>,
    destination_ports: Vec<u16>,
    tos: Vec<u8>,
    prios: Vec<u8>,
    tags: Vec<Option<String>>,
    received_on: Vec<Option<String>>,
    shapes: Vec<Shape>,
    draws: Vec<u32>,
}

/// The rules of both rule sets, changed rules first, and the context that their criteria need.
struct Criteria<'a> {
    rules: Vec<&'a Rule>,
    sides: [&'a Side; 2],
    host: &'a Host,
}

/// Returns the values that `old` and `new` distinguish on `host`. `changed` are the rules that
/// differ.
pub fn classes(old: &Side, new: &Side, changed: &[&Rule], host: &Host) -> Classes {
    let all =
        [old, new].into_iter().flat_map(|side| side.ruleset.all_rules().map(|(_, rule)| rule));
    let criteria =
        Criteria { rules: changed.iter().copied().chain(all).collect(), sides: [old, new], host };
    Classes {
        directions: vec![Direction::In, Direction::Out],
        interfaces: criteria.interfaces(),
        sources: criteria.addresses(|rule| &rule.source, &SOURCES),
        destinations: criteria.addresses(|rule| &rule.destination, &DESTINATIONS),
        transports: criteria.transports(),
        source_ports: criteria.ports(|rule| rule.source.ports, 4000),
        destination_ports: criteria.ports(|rule| rule.destination.ports, 80),
        tos: criteria.numbers(0, |rule| rule.tos),
        prios: criteria.numbers(3, |rule| rule.prio),
        tags: criteria.tags(),
        received_on: criteria.received_on(),
        shapes: criteria.shapes(),
        draws: criteria.draws(),
    }
}

/// Documentation addresses (RFC 5737, RFC 3849) as source and destination of packets for which no
/// criterion selects an address.
const SOURCES: [&str; 2] = ["192.0.2.1", "2001:db8::1"];
const DESTINATIONS: [&str; 2] = ["198.51.100.2", "2001:db8::2"];

/// Keeps the first value of each signature.
fn distinct<T, S: Hash + Eq>(
    values: impl IntoIterator<Item = T>,
    signature: impl Fn(&T) -> S,
) -> Vec<T> {
    let mut seen = HashSet::new();
    values.into_iter().filter(|value| seen.insert(signature(value))).collect()
}

impl<'a> Criteria<'a> {
    /// Returns the distinct criteria that `read` finds in the rules, [`MAX_CRITERIA`] at most.
    fn extract<T: PartialEq>(&self, read: impl Fn(&'a Rule) -> Option<T>) -> Vec<T> {
        let mut criteria = Vec::new();
        for criterion in self.rules.iter().filter_map(|rule| read(rule)) {
            if criteria.len() < MAX_CRITERIA && !criteria.contains(&criterion) {
                criteria.push(criterion);
            }
        }
        criteria
    }

    fn interfaces(&self) -> Vec<String> {
        let on = self.extract(|rule| rule.interface.as_ref().map(|on| &on.value));
        let by_route =
            self.rules.iter().any(|rule| rule.source.host.address == Address::UrpfFailed);
        let skipped = |name: &str| {
            self.sides.map(|side| {
                side.ruleset.options.skip.iter().any(|skip| is_or_in_group(self.host, name, skip))
            })
        };
        let mut interfaces: Vec<_> = self.host.interfaces.iter().collect();
        interfaces.sort_by_key(|interface| interface.loopback);
        let names = interfaces.into_iter().map(|interface| interface.name.clone());
        distinct(names, |name| {
            let meets: Vec<bool> =
                on.iter().map(|on| matches_interface(on, name, self.host)).collect();
            (meets, skipped(name), by_route.then(|| name.clone()))
        })
    }

    fn received_on(&self) -> Vec<Option<String>> {
        let criteria = self.extract(|rule| rule.received_on.as_ref().map(|on| &on.value));
        let names = self.host.interfaces.iter().map(|interface| Some(interface.name.clone()));
        distinct(std::iter::once(None).chain(names), |name| {
            criteria
                .iter()
                .map(|on| name.as_ref().is_some_and(|name| matches_interface(on, name, self.host)))
                .collect::<Vec<_>>()
        })
    }

    fn addresses(&self, end: impl Fn(&'a Rule) -> &'a Endpoint, ordinary: &[&str]) -> Vec<IpAddr> {
        let tables: Vec<&[Table]> = self.tables();
        let mut sets = Vec::new();
        for criterion in self.extract(|rule| Some(&end(rule).host.address)) {
            sets.extend(tables.iter().filter_map(|tables| addresses(criterion, tables, self.host)));
        }
        let by_route = sets.iter().any(|set| matches!(set, Addresses::Route));
        let ordinary = ordinary.iter().map(|text| text.parse().expect("a literal address"));
        let own = self
            .host
            .interfaces
            .iter()
            .flat_map(|interface| &interface.addresses)
            .map(|own| own.net.addr());
        let own: Vec<IpAddr> = own.filter(|_| by_route).collect();
        let edges = sets.iter().flat_map(Addresses::boundaries).filter(is_ordinary);
        distinct(ordinary.chain(edges.take(MAX_ADDRESSES)).chain(own), |address: &IpAddr| {
            let route = self.host.route(*address, 0).map(|route| route.interface.clone());
            let meets: Vec<bool> = sets.iter().map(|set| set.contains(*address)).collect();
            (address.is_ipv4(), meets, by_route.then_some(route))
        })
    }

    /// Returns the tables of both sides and of all their anchors, one slice for each rule set.
    /// Criteria are looked up in each slice, because a rule here does not name its anchor.
    fn tables(&self) -> Vec<&'a [Table]> {
        let mut tables = Vec::new();
        for side in self.sides {
            tables.push(side.ruleset.tables.as_slice());
            tables.extend(side.ruleset.anchors.values().map(|anchor| anchor.tables.as_slice()));
        }
        tables
    }

    fn transports(&self) -> Vec<Transport> {
        let mut values =
            vec![Transport::Tcp(tcp_flag::SYN), Transport::Tcp(tcp_flag::ACK), Transport::Udp];
        values.extend([Transport::Icmp(8, 0), Transport::Icmp6(128, 0)]);
        for flags in self.extract(|rule| rule.tcp_flags) {
            values.extend([
                Transport::Tcp(flags.set),
                Transport::Tcp(flags.set | flags.mask),
                Transport::Tcp(flags.mask & !flags.set),
            ]);
        }
        for (protocol, icmp) in self.extract(|rule| Some((rule.protocol?, rule.icmp?))) {
            let codes = [icmp.code.unwrap_or(0), icmp.code.map_or(0, |code| code.wrapping_add(1))];
            values.extend(codes.map(|code| match protocol {
                protocol::ICMP6 => Transport::Icmp6(icmp.kind, code),
                _ => Transport::Icmp(icmp.kind, code),
            }));
        }
        let named = self.extract(|rule| rule.protocol);
        values.extend(named.contains(&protocol::SCTP).then_some(Transport::Sctp));
        values.extend(
            named.iter().chain(&[47, 50, 253]).filter_map(|number| Transport::other(*number)),
        );
        let rules: Vec<&Rule> = self.rules.iter().copied().take(4 * MAX_CRITERIA).collect();
        let makes_state = |transport: &Transport| !matches!(transport, Transport::Tcp(flags) if *flags != tcp_flag::SYN);
        distinct(values, |transport| {
            let meets: Vec<bool> = rules.iter().map(|rule| transport.matches(rule)).collect();
            (meets, transport.protocol(), makes_state(transport))
        })
    }

    fn ports(&self, read: impl Fn(&'a Rule) -> Option<Ports>, ordinary: u16) -> Vec<u16> {
        let criteria = self.extract(read);
        let edges = criteria
            .iter()
            .flat_map(|ports| [ports.low, ports.high])
            .flat_map(|port| [port, port.saturating_sub(1), port.saturating_add(1)]);
        let values =
            std::iter::once(ordinary).chain(edges).chain([1, 65535]).filter(|port| *port != 0);
        distinct(values, |port| {
            criteria.iter().map(|ports| ports.contains(*port)).collect::<Vec<_>>()
        })
    }

    fn numbers(&self, ordinary: u8, read: impl Fn(&'a Rule) -> Option<u8>) -> Vec<u8> {
        let criteria = self.extract(read);
        distinct(std::iter::once(ordinary).chain(criteria), |number| *number)
    }

    fn tags(&self) -> Vec<Option<String>> {
        let criteria =
            self.extract(|rule| rule.tagged.as_ref().map(|tagged| Some(tagged.value.clone())));
        distinct(std::iter::once(None).chain(criteria), Clone::clone)
    }

    fn shapes(&self) -> Vec<Shape> {
        let mut shapes = vec![Shape::Whole];
        shapes.extend(self.rules.iter().any(|rule| rule.fragment).then_some(Shape::Fragment));
        shapes.extend(self.rules.iter().any(|rule| rule.allow_opts).then_some(Shape::WithOptions));
        shapes
    }

    /// Returns draws on both sides of each `probability`. A rule with probability p matches if p is
    /// greater than the draw plus 1.
    fn draws(&self) -> Vec<u32> {
        let criteria = self.extract(|rule| rule.probability);
        let edges = criteria.iter().flat_map(|p| [p.saturating_sub(2), p.saturating_sub(1)]);
        distinct(std::iter::once(0).chain(edges), |draw| {
            criteria.iter().map(|p| *p > draw.saturating_add(1)).collect::<Vec<_>>()
        })
    }
}

/// True if the filter does not drop packets for having this address.
fn is_ordinary(address: &IpAddr) -> bool {
    !address.is_unspecified() && !address.is_multicast()
}

fn is_or_in_group(host: &Host, interface: &str, name: &str) -> bool {
    interface == name
        || host.interface(interface).is_some_and(|interface| interface.has_name_or_group(name))
}

fn matches_interface(criterion: &InterfaceMatch, name: &str, host: &Host) -> bool {
    match criterion {
        InterfaceMatch::Any => !host.interface(name).is_some_and(|interface| interface.loopback),
        InterfaceMatch::Named(wanted) => is_or_in_group(host, name, wanted),
        InterfaceMatch::Rdomain(number) => host.rdomain(name) == *number,
    }
}

impl Classes {
    /// Keeps the values that match the criteria of `rule`. Only criteria that depend on a single
    /// value are evaluated.
    pub fn within(&self, rule: &Rule, sides: [&Side; 2], host: &Host) -> Classes {
        let mut classes = self.clone();
        let on = |criterion: &Option<Not<InterfaceMatch>>, name: &str| {
            criterion
                .as_ref()
                .is_none_or(|on| matches_interface(&on.value, name, host) != on.negated)
        };
        let family = |address: &IpAddr| {
            rule.family.is_none_or(|family| Family::from_address(*address) == family)
        };
        let host_of = |end: &Endpoint, address: &IpAddr| {
            let sets = sides.map(|side| addresses(&end.host.address, &side.ruleset.tables, host));
            let mut sets = sets.into_iter().flatten().peekable();
            let open = sets.peek().is_none_or(|set| matches!(set, Addresses::Route));
            open || sets.any(|set| set.contains(*address) != end.host.negated)
        };
        classes
            .directions
            .retain(|direction| rule.direction.is_none_or(|wanted| wanted == *direction));
        classes.interfaces.retain(|name| on(&rule.interface, name));
        classes.sources.retain(|address| family(address) && host_of(&rule.source, address));
        classes
            .destinations
            .retain(|address| family(address) && host_of(&rule.destination, address));
        classes.transports.retain(|transport| transport.matches(rule));
        let meets =
            |ports: Option<Ports>, port: u16| ports.is_none_or(|ports| ports.contains(port));
        classes.source_ports.retain(|port| meets(rule.source.ports, *port));
        classes.destination_ports.retain(|port| meets(rule.destination.ports, *port));
        classes.tos.retain(|tos| rule.tos.is_none_or(|wanted| wanted == *tos));
        classes.prios.retain(|prio| rule.prio.is_none_or(|wanted| wanted == *prio));
        classes.shapes.retain(|shape| !rule.fragment || *shape == Shape::Fragment);
        classes
    }

    /// Returns the number of all combinations, impossible ones included.
    pub fn size(&self) -> u128 {
        self.lengths().iter().map(|length| *length as u128).product()
    }

    fn lengths(&self) -> [usize; 13] {
        [
            self.directions.len(),
            self.interfaces.len(),
            self.sources.len(),
            self.destinations.len(),
            self.transports.len(),
            self.source_ports.len(),
            self.destination_ports.len(),
            self.tos.len(),
            self.prios.len(),
            self.tags.len(),
            self.received_on.len(),
            self.shapes.len(),
            self.draws.len(),
        ]
    }

    /// Returns combination number `index`, or `None` if its values exclude each other.
    pub fn point(&self, mut index: u128) -> Option<Point> {
        let lengths = self.lengths();
        let digits = lengths.map(|length| {
            let digit = index % length as u128;
            index /= length as u128;
            digit as usize
        });
        let point = Point {
            direction: self.directions[digits[0]],
            interface: self.interfaces[digits[1]].clone(),
            source: self.sources[digits[2]],
            destination: self.destinations[digits[3]],
            transport: self.transports[digits[4]],
            source_port: self.source_ports[digits[5]],
            destination_port: self.destination_ports[digits[6]],
            tos: self.tos[digits[7]],
            prio: self.prios[digits[8]],
            tag: self.tags[digits[9]].clone(),
            received_on: self.received_on[digits[10]].clone(),
            shape: self.shapes[digits[11]],
            draw: self.draws[digits[12]],
        };
        point.is_possible().then_some(point)
    }
}
