//! First step: rules go if another of their superblock matches whatever they match.
//!
//! pfctl compares each rule with each. Here a rule is a row of numbers, 0 where it does not look,
//! and those that would cover it are looked up: for each *shape* that some rule has (where it
//! looks, and how long its prefixes are) there is one row of that shape that covers it.

use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use super::fields;
use super::hashing::{Map, Numbers, Set, map_for};
use crate::{Address, Endpoint, Rule, skip};

/// Which of `rules` stay: those that no other covers, and of equals the first.
///
/// Rules whose pools have a memory stay, too, if they decide before one that covers them: what a
/// packet gets of a pool hangs on what others got of it, and each rule has one of its own. pfctl
/// removes these as well.
pub fn kept(rules: &[Rule]) -> Vec<bool> {
    let Table { rows, hosts } = Table::of(rules);
    let mut places: Map<Row, Places> = map_for(rows.len());
    for (index, row) in rows.iter().enumerate() {
        places.entry(*row).or_insert(Places { first: index, last: index }).last = index;
    }
    let shapes = Shapes::of(&rows, &hosts);
    let (any_will_do, quick) = match rules.first() {
        Some(rule) => (!fields::has_memory(rule), rule.quick),
        None => return Vec::new(),
    };
    let decides_before = |wider: &Places, index| match quick {
        true => wider.first < index,
        false => wider.last > index,
    };
    let are_one = shapes.are_one();
    let is_covered = |index, row: &Row| {
        let mut wider = shapes.above(row).filter_map(|row| places.get(&row));
        wider.any(|wider| any_will_do || decides_before(wider, index))
    };
    let stays = |(index, row): (usize, &Row)| {
        places[row].first == index && (are_one || !is_covered(index, row))
    };
    rows.iter().enumerate().map(stays).collect()
}

/// Whether the rule at `index` matches whatever any of `rules` matches.
pub fn covers_all(rules: &[Rule], index: usize) -> bool {
    let Table { rows, hosts } = Table::of(rules);
    rows.iter().all(|row| rows[index].covers(row, &hosts))
}

/// Where rules with one row stand.
struct Places {
    first: usize,
    last: usize,
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
    /// Interface, direction, family, protocol, flags and both ports; 0 does not look. Then whether
    /// the rule lacks `min-ttl` and `max-mss` of its superblock: only one that has them does as
    /// much.
    criteria: [u32; CRITERIA],
    /// Source and destination, as [`Hosts`] numbers them.
    hosts: [u32; 2],
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
    fn covers(&self, other: &Row, hosts: &[Hosts; 2]) -> bool {
        let mut criteria = self.criteria.iter().zip(other.criteria);
        let covers = |side: usize| {
            let [own, other] = [self, other].map(|row| hosts[side].row(row.hosts[side]));
            other.widened(own.shape()) == own
        };
        self.rest == other.rest
            && criteria.all(|(own, other)| *own == 0 || *own == other)
            && covers(0)
            && covers(1)
    }

    /// Which criteria it looks at, a bit each.
    fn looks(&self) -> u16 {
        (0..CRITERIA).filter(|&i| self.criteria[i] != 0).fold(0, |set, i| set | 1 << i)
    }

    /// The row with these hosts that looks at no more criteria than these.
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

/// The hosts that occur on one side of rules, each under a number.
struct Hosts {
    numbers: Numbers<HostRow>,
    /// What the numbers stand for, from 1.
    rows: Vec<HostRow>,
    /// The shapes that they have.
    shapes: Vec<HostShape>,
}

impl Hosts {
    /// None yet, with room for those of so many rules.
    fn new(rules: usize) -> Self {
        Hosts { numbers: Numbers::new(rules), rows: Vec::new(), shapes: Vec::new() }
    }

    fn number(&mut self, host: HostRow) -> u32 {
        let number = self.numbers.of(host);
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

    /// The hosts that cover the one with that number and do occur, itself among them.
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
                () => self.numbers.known(&host.widened(shape)),
            };
            wider.map(|number| (shape, number))
        };
        self.shapes.iter().filter_map(of_shape).collect()
    }
}

/// The shapes that rows have.
struct Shapes<'a> {
    /// What the criteria of the rows look like, by the shapes of source and destination.
    by_hosts: Map<[HostShape; 2], Vec<u16>>,
    hosts: &'a [Hosts; 2],
}

impl<'a> Shapes<'a> {
    fn of(rows: &[Row], hosts: &'a [Hosts; 2]) -> Self {
        let mut shapes = Shapes { by_hosts: Map::default(), hosts };
        for shape in rows.iter().map(|row| shapes.shape(row)).collect::<Set<_>>() {
            shapes.by_hosts.entry(shape.hosts).or_default().push(shape.looks);
        }
        shapes
    }

    /// Whether all rows look alike, as in most long lists: equals apart, none covers another then.
    fn are_one(&self) -> bool {
        self.by_hosts.values().map(Vec::len).sum::<usize>() == 1
    }

    fn shape(&self, row: &Row) -> Shape {
        let hosts = [0, 1].map(|side| self.hosts[side].row(row.hosts[side]).shape());
        Shape { looks: row.looks(), hosts }
    }

    /// What would cover a row: for each shape but its own that may, the one row of that shape.
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

/// Rules as rows.
struct Table {
    rows: Vec<Row>,
    /// What occurs as source and as destination.
    hosts: [Hosts; 2],
}

impl Table {
    fn of<'a>(rules: &'a [Rule]) -> Self {
        let (mut rests, mut manners) = (Numbers::new(0), Numbers::new(0));
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
                rest: rests.of(Rest(rule)),
                manner: manners
                    .of((rule.block_return, state.as_ref().map(|state| &state.timeouts))),
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
                hosts: [0, 1].map(|side| hosts[side].number(ends[side])),
            }
        };
        let rows = rules.iter().map(row).collect();
        Table { rows, hosts }
    }
}

/// Of a negated prefix the wider is the one that matches less; pfctl takes it for the one that
/// covers.
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
#[derive(Clone, Copy)]
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
