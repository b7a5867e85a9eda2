//! First step: rules go if another of their superblock matches whatever they match.
//!
//! pfctl compares each rule with each. Here a rule is a row of numbers, 0 where it does not look, and
//! those that would cover it are looked up: for each *shape* that some rule has (where it looks, and
//! how long its prefixes are) there is one row of that shape that covers it.

use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use super::hashing::{Map, Set};
use super::{fields, retain};
use crate::{Address, Endpoint, Rule, skip};

/// `rules` without those that others cover. Of equals the first stays.
pub fn remove(rules: Vec<Rule>) -> Vec<Rule> {
    let rows = rows(&rules);
    let mut first = Map::default();
    for (index, row) in rows.iter().enumerate() {
        first.entry(*row).or_insert(index);
    }
    let shapes = Shapes::of(&rows);
    let keep: Vec<bool> = rows
        .iter()
        .enumerate()
        .map(|(index, row)| {
            first[row] == index
                && !shapes.above(row).any(|shape| first.contains_key(&row.widened(shape)))
        })
        .collect();
    retain(rules, &keep)
}

/// Whether the rule at `index` matches whatever any of `rules` matches.
pub fn covers_all(rules: &[Rule], index: usize) -> bool {
    let rows = rows(rules);
    rows.iter().all(|row| rows[index].covers(row))
}

/// How many criteria of a row are looked at or not.
const CRITERIA: usize = 9;

/// What a rule looks at. Two rules with one number for a criterion have it in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Row {
    /// All that a rule must share with one that covers it, and
    rest: u32,
    /// the manner in which it does what it does.
    manner: u32,
    /// Interface, direction, family, protocol, flags and both ports; 0 does not look. Then whether the
    /// rule lacks `min-ttl` and `max-mss` of its superblock: only one that has them does as much.
    criteria: [u32; CRITERIA],
    /// Source and destination.
    hosts: [HostRow; 2],
}

/// An address criterion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum HostRow {
    /// does not look
    Everyone,
    /// a prefix: its length, and its bits from the top
    Prefix(u8, u128),
    /// covered by itself and by everyone only
    Other(u32),
}

/// How a row looks, without the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Shape {
    /// Which criteria are looked at, a bit each.
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
    /// Whether the rule matches whatever the other does, in whatever manner.
    fn covers(&self, other: &Row) -> bool {
        let mut criteria = self.criteria.iter().zip(other.criteria);
        self.rest == other.rest
            && criteria.all(|(own, other)| *own == 0 || *own == other)
            && self
                .hosts
                .iter()
                .zip(other.hosts)
                .all(|(own, other)| other.widened(own.shape()) == *own)
    }

    fn shape(&self) -> Shape {
        let looks = (0..CRITERIA).filter(|&i| self.criteria[i] != 0).fold(0, |set, i| set | 1 << i);
        Shape { looks, hosts: self.hosts.map(HostRow::shape) }
    }

    /// The row of that shape that covers this one. The shape is above the row's own.
    fn widened(&self, shape: Shape) -> Row {
        let mut row = *self;
        for (i, criterion) in row.criteria.iter_mut().enumerate() {
            if shape.looks & 1 << i == 0 {
                *criterion = 0;
            }
        }
        for (host, shape) in row.hosts.iter_mut().zip(shape.hosts) {
            *host = host.widened(shape);
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

/// The shapes that rows have.
struct Shapes {
    /// What the criteria of the rows look like, by the shapes of source and destination.
    by_hosts: Map<[HostShape; 2], Vec<u16>>,
    /// For source and destination, the shapes and the values that occur.
    hosts: [(Vec<HostShape>, Set<HostRow>); 2],
}

impl Shapes {
    fn of(rows: &[Row]) -> Self {
        let mut shapes = Shapes { by_hosts: Map::default(), hosts: Default::default() };
        for shape in rows.iter().map(Row::shape).collect::<Set<_>>() {
            shapes.by_hosts.entry(shape.hosts).or_default().push(shape.looks);
        }
        for (side, (kinds, values)) in shapes.hosts.iter_mut().enumerate() {
            values.extend(rows.iter().map(|row| row.hosts[side]));
            kinds.extend(values.iter().map(|host| host.shape()).collect::<Set<_>>());
        }
        shapes
    }

    /// The shapes other than the row's own that a row covering it may have.
    fn above(&self, row: &Row) -> impl Iterator<Item = Shape> {
        let own = row.shape();
        let [sources, destinations] = [0, 1].map(|side| self.wider_hosts(side, row.hosts[side]));
        let pairs = sources
            .into_iter()
            .flat_map(move |source| destinations.clone().into_iter().map(move |to| [source, to]));
        pairs
            .filter_map(|hosts| Some((hosts, self.by_hosts.get(&hosts)?)))
            .flat_map(|(hosts, looks)| looks.iter().map(move |&looks| Shape { looks, hosts }))
            .filter(move |shape| shape.looks & !own.looks == 0 && *shape != own)
    }

    /// The shapes of hosts on that side that cover `host` and do occur.
    fn wider_hosts(&self, side: usize, host: HostRow) -> Vec<HostShape> {
        let (kinds, values) = &self.hosts[side];
        let covers = |shape: &HostShape| {
            let possible = match (*shape, host) {
                (HostShape::Everyone, _) | (HostShape::Other, HostRow::Other(_)) => true,
                (HostShape::Prefix(wide), HostRow::Prefix(length, _)) => wide <= length,
                _ => false,
            };
            possible && values.contains(&host.widened(*shape))
        };
        kinds.iter().copied().filter(covers).collect()
    }
}

fn rows<'a>(rules: &'a [Rule]) -> Vec<Row> {
    let (mut rests, mut manners) = (Numbers::new(), Numbers::new());
    let (mut interfaces, mut flags) = (Numbers::new(), Numbers::new());
    let (mut ports, mut addresses) = (Numbers::new(), Numbers::new());
    let min_ttl = rules.iter().any(|rule| rule.scrub.min_ttl.is_some());
    let max_mss = rules.iter().any(|rule| rule.scrub.max_mss.is_some());
    let mut row = |rule: &'a Rule| {
        let Rule { direction, family, protocol, tcp_flags, source, destination, .. } = rule;
        let Rule { scrub, state, .. } = rule;
        Row {
            rest: rests.of(Rest(rule)),
            manner: manners.of((rule.block_return, state.as_ref().map(|state| &state.timeouts))),
            criteria: [
                skip::name(rule).map_or(0, |value| interfaces.of(value)),
                direction.map_or(0, |direction| direction as u32 + 1),
                family.map_or(0, |family| family as u32 + 1),
                protocol.map_or(0, |protocol| u32::from(protocol) + 1),
                tcp_flags.map_or(0, |value| flags.of(value)),
                source.ports.map_or(0, |value| ports.of(value)),
                destination.ports.map_or(0, |value| ports.of(value)),
                u32::from(min_ttl && scrub.min_ttl.is_none()),
                u32::from(max_mss && scrub.max_mss.is_none()),
            ],
            hosts: [source, destination].map(|end| host(end, &mut addresses)),
        }
    };
    rules.iter().map(&mut row).collect()
}

/// Gives each value a number, from 1.
struct Numbers<T>(Map<T, u32>);

impl<T: Eq + Hash> Numbers<T> {
    fn new() -> Self {
        Numbers(Map::default())
    }

    fn of(&mut self, value: T) -> u32 {
        let next = self.0.len() as u32 + 1;
        *self.0.entry(value).or_insert(next)
    }
}

/// Of a negated prefix the wider is the one that matches less; pfctl takes it for the one that covers.
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
        address => HostRow::Other(addresses.of(address)),
    }
}

/// A rule, as far as another of its superblock must be like it to cover it.
struct Rest<'a>(&'a Rule);

impl Rest<'_> {
    /// `!` of `on` and of the addresses, and the routing domain, which no rule without `on` covers.
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

impl Hash for Rest<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.negations().hash(state);
        self.others().hash(state);
    }
}

impl PartialEq for Rest<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.negations() == other.negations() && self.others() == other.others()
    }
}

impl Eq for Rest<'_> {}
