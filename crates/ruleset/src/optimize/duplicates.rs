//! First step: remove rules if another rule of the superblock matches all their packets.
//!
//! pfctl compares each rule with all others. Here a rule is a row of numbers, where 0 is no
//! criterion, and rows that could cover it are looked up. The *shape* of a row is its set of
//! criteria and the lengths of its prefixes. For each shape of the superblock, one row of that
//! shape would cover the rule.

use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use super::fields;
use super::hashing::{Map, Numbers, Set, map_for};
use crate::{Address, Endpoint, Rule, skip};

/// Returns true for each rule that stays, because no other rule covers it and no earlier rule is
/// equal.
///
/// A rule whose pool has a memory also stays if the rule decides before the rule that covers it.
/// The address that a packet gets depends on earlier packets, and each rule has its own pool. pfctl
/// removes such rules, too.
// Differs from OpenBSD: linux.md, "Rule set optimizer"
pub fn kept(rules: &[Rule]) -> Vec<bool> {
    let RuleRows { rows, hosts } = RuleRows::from_rules(rules);
    let mut index_ranges: Map<Row, IndexRange> = map_for(rows.len());
    for (index, row) in rows.iter().enumerate() {
        index_ranges.entry(*row).or_insert(IndexRange { first: index, last: index }).last = index;
    }
    let shapes = Shapes::from_rows(&rows, &hosts);
    let (any_will_do, quick) = match rules.first() {
        Some(rule) => (!fields::has_memory(rule), rule.quick),
        None => return Vec::new(),
    };
    let decides_before = |wider: &IndexRange, index| match quick {
        true => wider.first < index,
        false => wider.last > index,
    };
    let are_one = shapes.are_one();
    let is_covered = |index, row: &Row| {
        let mut wider = shapes.above(row).filter_map(|row| index_ranges.get(&row));
        wider.any(|wider| any_will_do || decides_before(wider, index))
    };
    let stays = |(index, row): (usize, &Row)| {
        index_ranges[row].first == index && (are_one || !is_covered(index, row))
    };
    rows.iter().enumerate().map(stays).collect()
}

/// True if the rule at `index` matches all packets that any of `rules` matches.
pub fn covers_all(rules: &[Rule], index: usize) -> bool {
    let RuleRows { rows, hosts } = RuleRows::from_rules(rules);
    rows.iter().all(|row| rows[index].covers(row, &hosts))
}

/// The first and last index of the rules with one row.
struct IndexRange {
    first: usize,
    last: usize,
}

/// Number of criteria of a row, addresses apart.
const CRITERIA: usize = 9;

/// The criteria of a rule. Rules with the same number have the same criterion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Row {
    /// Number of the fields that must be equal in a rule and the rule that covers it.
    equal_fields: u32,
    /// Number of the ICMP answer and the state timeouts, which may differ.
    manner: u32,
    /// Numbers of interface, direction, family, protocol, flags and both ports; 0 for no criterion.
    /// The last two are 1 if the rule lacks the `min-ttl` or `max-mss` of its superblock. Such a
    /// rule covers only rules that also lack it.
    criteria: [u32; CRITERIA],
    /// Source and destination, as numbered by [`Hosts`].
    hosts: [u32; 2],
}

/// An address criterion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum HostRow {
    /// Matches all addresses.
    Everyone,
    /// Matches a prefix: its length, and its bits from the highest.
    Prefix(u8, u128),
    /// Another criterion, covered only by an equal one and by `Everyone`.
    Other(u32),
}

/// A row without the values of its criteria.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Shape {
    /// Bitmap of the criteria that the row has.
    looks: u16,
    hosts: [HostShape; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum HostShape {
    Everyone,
    Prefix(u8),
    Other,
}

impl Row {
    /// True if the rule matches all packets of the other; answers and timeouts may differ.
    fn covers(&self, other: &Row, hosts: &[Hosts; 2]) -> bool {
        let mut criteria = self.criteria.iter().zip(other.criteria);
        let covers = |side: usize| {
            let [own, other] = [self, other].map(|row| hosts[side].row(row.hosts[side]));
            other.widened(own.shape()) == own
        };
        self.equal_fields == other.equal_fields
            && criteria.all(|(own, other)| *own == 0 || *own == other)
            && covers(0)
            && covers(1)
    }

    /// Returns the bitmap of the row's criteria.
    fn looks(&self) -> u16 {
        (0..CRITERIA).filter(|&i| self.criteria[i] != 0).fold(0, |set, i| set | 1 << i)
    }

    /// Returns the row with these hosts, and with the criteria in the bitmap `looks` only.
    fn widened(&self, looks: u16, hosts: [u32; 2]) -> Row {
        let mut row = Row { hosts, ..*self };
        for (i, criterion) in row.criteria.iter_mut().enumerate() {
            if looks & 1 << i == 0 {
                *criterion = 0;
            }
        }
        row
    }
}

impl HostRow {
    fn shape(self) -> HostShape {
        match self {
            HostRow::Everyone => HostShape::Everyone,
            HostRow::Prefix(length, _) => HostShape::Prefix(length),
            HostRow::Other(_) => HostShape::Other,
        }
    }

    fn widened(self, shape: HostShape) -> HostRow {
        match (self, shape) {
            (HostRow::Prefix(own, bits), HostShape::Prefix(length)) if length < own => {
                HostRow::Prefix(length, bits & !u128::MAX.checked_shr(length.into()).unwrap_or(0))
            }
            (_, HostShape::Everyone) => HostRow::Everyone,
            _ => self,
        }
    }
}

/// The address criteria on one side of the rules, with their numbers.
struct Hosts {
    numbers: Numbers<HostRow>,
    /// Address criteria by number, from 1.
    rows: Vec<HostRow>,
    /// The shapes of these address criteria.
    shapes: Vec<HostShape>,
}

impl Hosts {
    /// Returns an empty set with room for the criteria of this number of rules.
    fn new(rules: usize) -> Self {
        Hosts { numbers: Numbers::new(rules), rows: Vec::new(), shapes: Vec::new() }
    }

    fn number(&mut self, host: HostRow) -> u32 {
        let number = self.numbers.number(host);
        if number as usize > self.rows.len() {
            self.rows.push(host);
            if !self.shapes.contains(&host.shape()) {
                self.shapes.push(host.shape());
            }
        }
        number
    }

    fn row(&self, number: u32) -> HostRow {
        self.rows[number as usize - 1]
    }

    /// Returns the criteria in the set that cover the one with this number, including itself.
    fn wider(&self, number: u32) -> Vec<(HostShape, u32)> {
        let host = self.row(number);
        let of_shape = |&shape: &HostShape| {
            let possible = match (shape, host) {
                (HostShape::Everyone, _) | (HostShape::Other, HostRow::Other(_)) => true,
                (HostShape::Prefix(wide), HostRow::Prefix(length, _)) => wide <= length,
                _ => false,
            };
            let wider = match () {
                () if !possible => None,
                () if shape == host.shape() => Some(number),
                () => self.numbers.get(&host.widened(shape)),
            };
            wider.map(|number| (shape, number))
        };
        self.shapes.iter().filter_map(of_shape).collect()
    }
}

/// The shapes of all rows.
struct Shapes<'a> {
    /// Bitmaps of criteria of the rows, by the shapes of source and destination.
    by_hosts: Map<[HostShape; 2], Vec<u16>>,
    hosts: &'a [Hosts; 2],
}

impl<'a> Shapes<'a> {
    fn from_rows(rows: &[Row], hosts: &'a [Hosts; 2]) -> Self {
        let mut shapes = Shapes { by_hosts: Map::default(), hosts };
        for shape in rows.iter().map(|row| shapes.shape(row)).collect::<Set<_>>() {
            shapes.by_hosts.entry(shape.hosts).or_default().push(shape.looks);
        }
        shapes
    }

    /// True if all rows have one shape, as in most long lists. Then a row covers equal rows only.
    fn are_one(&self) -> bool {
        self.by_hosts.values().map(Vec::len).sum::<usize>() == 1
    }

    fn shape(&self, row: &Row) -> Shape {
        let hosts = [0, 1].map(|side| self.hosts[side].row(row.hosts[side]).shape());
        Shape { looks: row.looks(), hosts }
    }

    /// Returns rows that would cover a row: one for each other shape with a subset of its criteria.
    fn above(&self, row: &Row) -> impl Iterator<Item = Row> {
        let (row, own) = (*row, self.shape(row));
        let [sources, destinations] = [0, 1].map(|side| self.hosts[side].wider(row.hosts[side]));
        let pairs = sources
            .into_iter()
            .flat_map(move |source| destinations.clone().into_iter().map(move |to| [source, to]));
        pairs
            .filter_map(|pair| Some((pair, self.by_hosts.get(&pair.map(|(shape, _)| shape))?)))
            .flat_map(|(pair, looks)| looks.iter().map(move |&looks| (pair, looks)))
            .filter(move |&(pair, looks)| {
                let shape = Shape { looks, hosts: pair.map(|(shape, _)| shape) };
                looks & !own.looks == 0 && shape != own
            })
            .map(move |(pair, looks)| row.widened(looks, pair.map(|(_, number)| number)))
    }
}

/// The rules as rows.
struct RuleRows {
    rows: Vec<Row>,
    /// The address criteria of sources and destinations.
    hosts: [Hosts; 2],
}

impl RuleRows {
    fn from_rules<'a>(rules: &'a [Rule]) -> Self {
        let (mut equal_fields, mut manners) = (Numbers::new(0), Numbers::new(0));
        let (mut interfaces, mut flags) = (Numbers::new(0), Numbers::new(0));
        let (mut ports, mut addresses) = (Numbers::new(rules.len()), Numbers::new(0));
        let mut hosts = [Hosts::new(rules.len()), Hosts::new(rules.len())];
        let min_ttl = rules.iter().any(|rule| rule.scrub.min_ttl.is_some());
        let max_mss = rules.iter().any(|rule| rule.scrub.max_mss.is_some());
        let row = |rule: &'a Rule| {
            let Rule { direction, family, protocol, tcp_flags, source, destination, .. } = rule;
            let Rule { scrub, state, .. } = rule;
            let ends = [host(source, &mut addresses), host(destination, &mut addresses)];
            Row {
                equal_fields: equal_fields.number(EqualFields(rule)),
                manner: manners
                    .number((rule.block_return, state.as_ref().map(|state| &state.timeouts))),
                criteria: [
                    skip::interface(rule).map_or(0, |value| interfaces.number(value)),
                    direction.map_or(0, |direction| direction as u32 + 1),
                    family.map_or(0, |family| family as u32 + 1),
                    protocol.map_or(0, |protocol| u32::from(protocol) + 1),
                    tcp_flags.map_or(0, |value| flags.number(value)),
                    source.ports.map_or(0, |value| ports.number(value)),
                    destination.ports.map_or(0, |value| ports.number(value)),
                    u32::from(min_ttl && scrub.min_ttl.is_none()),
                    u32::from(max_mss && scrub.max_mss.is_none()),
                ],
                hosts: [0, 1].map(|side| hosts[side].number(ends[side])),
            }
        };
        let rows = rules.iter().map(row).collect();
        RuleRows { rows, hosts }
    }
}

/// Returns the address criterion of a side. A negated prefix is `Other`, because a wider negated
/// prefix matches fewer packets. pfctl treats the wider one as covering.
// Differs from OpenBSD: linux.md, "Rule set optimizer"
fn host<'a>(end: &'a Endpoint, addresses: &mut Numbers<&'a Address>) -> HostRow {
    match &end.host.address {
        address if fields::is_everyone(address) && !end.host.negated => HostRow::Everyone,
        Address::Net(net) if !end.host.negated => {
            let bits = match net.network() {
                IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
                IpAddr::V6(address) => address.to_bits(),
            };
            HostRow::Prefix(net.prefix_len(), bits)
        }
        address => HostRow::Other(addresses.number(address)),
    }
}

/// The fields of a rule that must be equal in a rule that covers it.
#[derive(Clone, Copy)]
struct EqualFields<'a>(&'a Rule);

impl EqualFields<'_> {
    /// Returns the negations of `on` and of the addresses, and the routing domain. A rule without
    /// `on` does not cover a routing domain.
    fn negations(&self) -> impl Eq + Hash {
        let Rule { source, destination, .. } = self.0;
        let on = (skip::negated(self.0), skip::rdomain(self.0));
        (on, source.host.negated, destination.host.negated)
    }

    fn others(&self) -> impl Eq + Hash + '_ {
        let Rule { os, user, group, icmp, tos, tagged, .. } = self.0;
        (os, user, group, icmp, tos, tagged)
    }
}

impl Hash for EqualFields<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.negations().hash(state);
        self.others().hash(state);
    }
}

impl PartialEq for EqualFields<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.negations() == other.negations() && self.others() == other.others()
    }
}

impl Eq for EqualFields<'_> {}
