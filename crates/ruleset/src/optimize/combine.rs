//! Second step: six or more rules that differ in one address become one rule with a table.

use std::hash::{Hash, Hasher};
use std::mem;

use super::fields::{self, Role};
use super::hashing::{Map, map_for};
use super::retain;
use crate::{Address, AutomaticTables, Endpoint, Rule, Table, TableEntry};

/// Number of rules from which a table is faster.
const WORTH_A_TABLE: usize = 6;

/// Returns `rules` with a rule and a table for each large group; appends the tables to `tables`.
pub fn into_tables(
    mut rules: Vec<Rule>,
    groups: Vec<Group>,
    names: &mut AutomaticTables,
    tables: &mut Vec<Table>,
) -> Vec<Rule> {
    let mut keep = vec![true; rules.len()];
    for Group { side, members } in groups {
        if members.len() < WORTH_A_TABLE {
            names.skip();
            continue;
        }
        let nets = members.iter().filter_map(|&index| net(side.endpoint(&rules[index])));
        let table = Table {
            name: names.next_name(),
            constant: true,
            defined: true,
            stated: true,
            initialized: true,
            entries: nets.map(TableEntry::from).collect(),
            ..Table::default()
        };
        side.endpoint_mut(&mut rules[members[0]]).host.address = Address::Table(table.name.clone());
        for &index in &members[1..] {
            keep[index] = false;
        }
        tables.push(table);
    }
    retain(rules, &keep)
}

/// Rules that differ in one address only. A rule is in one group at most.
pub struct Group {
    side: Side,
    members: Vec<usize>,
}

/// Returns the groups in order of their first rules. Each rule not yet in a group takes all later
/// rules that differ in the address of one side only. The side is the one in which the nearest of
/// these rules differs.
pub fn groups(rules: &[Rule]) -> Vec<Group> {
    let Buckets { mut buckets, bucket_indexes } = Buckets::from_rules(rules);
    let mut taken = vec![false; rules.len()];
    let mut groups = Vec::new();
    for (index, bucket_indexes) in bucket_indexes.into_iter().enumerate() {
        if taken[index] {
            continue;
        }
        let mut nearest: Option<(usize, Side, usize)> = None;
        for (side, bucket_index) in Side::BOTH.into_iter().zip(bucket_indexes) {
            let Some(bucket_index) = bucket_index.map(|bucket_index| bucket_index as usize) else {
                continue;
            };
            let bucket = &mut buckets[bucket_index];
            while bucket.pop_if(|&mut other| other <= index || taken[other]).is_some() {}
            if let Some(&other) = bucket.last()
                && nearest.is_none_or(|(known, ..)| other < known)
            {
                nearest = Some((other, side, bucket_index));
            }
        }
        let Some((_, side, bucket_index)) = nearest else { continue };
        let mut members = vec![index];
        let bucket = mem::take(&mut buckets[bucket_index]);
        members.extend(bucket.into_iter().rev().filter(|&other| !taken[other]));
        for &member in &members {
            taken[member] = true;
        }
        groups.push(Group { side, members });
    }
    groups
}

/// Rules in buckets, by their fields without the address of one side.
struct Buckets {
    /// Indexes of the rules in each bucket, in descending order.
    buckets: Vec<Vec<usize>>,
    /// Index of the bucket of each rule and side. `None` if the address cannot be a table entry.
    bucket_indexes: Vec<[Option<u32>; 2]>,
}

impl Buckets {
    fn from_rules(rules: &[Rule]) -> Self {
        let mut known: Map<WithoutAddress, u32> = map_for(rules.len());
        let mut buckets: Vec<Vec<usize>> = Vec::new();
        let mut bucket_of = |index: usize, rule, side: Side| {
            net(side.endpoint(rule))?;
            let bucket_index =
                *known.entry(WithoutAddress { rule, side }).or_insert(buckets.len() as u32);
            if bucket_index as usize == buckets.len() {
                buckets.push(Vec::new());
            }
            buckets[bucket_index as usize].push(index);
            Some(bucket_index)
        };
        let bucket_indexes = rules.iter().enumerate();
        let bucket_indexes = bucket_indexes
            .map(|(index, rule)| Side::BOTH.map(|side| bucket_of(index, rule, side)))
            .collect();
        buckets.iter_mut().for_each(|bucket| bucket.reverse());
        Buckets { buckets, bucket_indexes }
    }
}

/// A side of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Side {
    Source,
    Destination,
}

impl Side {
    const BOTH: [Side; 2] = [Side::Source, Side::Destination];

    fn endpoint(self, rule: &Rule) -> &Endpoint {
        match self {
            Side::Source => &rule.source,
            Side::Destination => &rule.destination,
        }
    }

    fn endpoint_mut(self, rule: &mut Rule) -> &mut Endpoint {
        match self {
            Side::Source => &mut rule.source,
            Side::Destination => &mut rule.destination,
        }
    }

    fn other(self) -> Side {
        match self {
            Side::Source => Side::Destination,
            Side::Destination => Side::Source,
        }
    }
}

/// Returns the network of a side if it can be a table entry. pfctl also combines negated networks,
/// which changes verdicts: `! a` or `! b` matches all addresses, `! <t>` with both does not.
// Differs from OpenBSD: linux.md, "Rule set optimizer"
fn net(end: &Endpoint) -> Option<ipnet::IpNet> {
    match end.host.address {
        Address::Net(net) if !end.host.negated => Some(net),
        _ => None,
    }
}

/// A rule that is compared without the address of one side.
#[derive(Clone, Copy)]
struct WithoutAddress<'a> {
    rule: &'a Rule,
    side: Side,
}

impl WithoutAddress<'_> {
    /// Returns the parts of both sides that must be equal. `0/0` equals `any`.
    fn ends(&self) -> impl Eq + Hash + '_ {
        let (same, varies) = (self.side.other().endpoint(self.rule), self.side.endpoint(self.rule));
        let address = (!fields::is_everyone(&same.host.address)).then_some(&same.host.address);
        (self.side, same.host.negated, address, &same.ports, varies.host.negated, &varies.ports)
    }
}

impl Hash for WithoutAddress<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        fields::hash(self.rule, Role::NoMerge, state);
        self.ends().hash(state);
    }
}

impl PartialEq for WithoutAddress<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.ends() == other.ends() && fields::agree(self.rule, other.rule, Role::NoMerge)
    }
}

impl Eq for WithoutAddress<'_> {}
