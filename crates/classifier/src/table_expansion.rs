//! Table expansion: rules that look into tables get one rectangle for each table entry.
//!
//! Rules that differ only in their tables have the same rectangle. A search would find all of them,
//! and the data plane would look into each table: 10,000 times for 10,000 rules `block from <tN>`.
//! So where many rules of a rule set look into tables, the compiler expands the tables. A rule has
//! one rectangle for each entry, or for each covering prefix (`cover`) if the entries are many. The
//! data plane still looks into the table of each rule that a search finds.
//!
//! A deleted entry may leave its rectangle behind, but no rectangle may be missing. Before pfctl
//! adds an entry outside all rectangles, it compiles the rules without that table. From then on the
//! table counts as one that changes.

use std::collections::BTreeMap;

use ipnet::IpNet;
use skipstep_abi as abi;
use skipstep_abi::rule::address_kind;
use skipstep_ruleset::{Address, Evaluator, Ruleset, TableName};

use crate::Planner;
use crate::tree::{Rect, Space};

/// Least number of covering prefixes of a table. Fewer prefixes would cover far more than a large
/// table contains.
const FEWEST_NETWORKS: usize = 16;
/// Most rectangles of expanded tables in one superblock. If there would be more, the superblock
/// uses no expanded table.
const MAX_RECTS: usize = 1 << 18;

/// Returns the most networks that a table is expanded to in each family, if rules refer to tables
/// `looks` times.
pub fn networks_per_table(planner: Planner, looks: usize) -> usize {
    (MAX_RECTS / 2 / looks.max(1)).max(FEWEST_NETWORKS).min(planner.networks_per_table)
}

/// Returns the tables that may be expanded, by the path of the anchor whose rules name them. The
/// value is the number of references by rules.
pub fn tables(ruleset: &Ruleset, planner: Planner) -> BTreeMap<TableName, usize> {
    let mut all = BTreeMap::new();
    if ruleset.options.evaluator != Evaluator::Compiled {
        return all;
    }
    let paths = std::iter::once("").chain(ruleset.anchors.keys().map(String::as_str));
    for path in paths {
        let hosts = ruleset.rules_of(path).iter();
        let hosts = hosts.flat_map(|rule| [&rule.source.host, &rule.destination.host]);
        let named = hosts.filter_map(|host| match &host.address {
            Address::Table(name) if !host.negated => Some(name.as_str()),
            _ => None,
        });
        let named: Vec<&str> = named.collect();
        if named.len() > planner.max_unexpanded {
            for name in named {
                *all.entry(TableName::new(path, name)).or_default() += 1;
            }
        }
    }
    all
}

/// The networks of expanded tables, by table slot.
pub type TableExpansions = BTreeMap<u32, Vec<IpNet>>;

/// Returns the networks of the rule's expanded table and the side that looks into it: 0 is the
/// source, 1 the destination. If both sides have such a table, the smaller one is returned.
pub(crate) fn table_of_rule<'a>(
    rule: &abi::Rule,
    expansions: &'a TableExpansions,
) -> Option<(usize, &'a [IpNet])> {
    let sides = [&rule.source, &rule.destination].into_iter().enumerate();
    let of_tables = sides.filter(|(_, host)| host.kind == address_kind::TABLE && host.negated == 0);
    let found =
        of_tables.filter_map(|(side, host)| Some((side, &expansions.get(&host.table)?[..])));
    found.min_by_key(|(_, networks)| networks.len())
}

/// Returns the tables to expand in a superblock: all, or `None` if there are none or too many
/// rectangles.
pub(crate) fn tables_of_superblock<'a>(
    rules: &[abi::Rule],
    expansions: &'a TableExpansions,
) -> Option<&'a TableExpansions> {
    let rects = rules.iter().filter_map(|rule| table_of_rule(rule, expansions));
    let rects: usize = rects.map(|(_, networks)| networks.len()).sum();
    (0 < rects && rects <= MAX_RECTS).then_some(expansions)
}

/// Returns the part of a rectangle that a network leaves on one side, or `None` if the network is
/// of the other family.
pub(crate) fn narrowed<const N: usize>(
    space: &Space<N>,
    mut rect: Rect<N>,
    side: usize,
    network: &IpNet,
) -> Option<Rect<N>> {
    let words = space.addresses[side].clone();
    let (low, high) = (&mut rect.low[words.clone()], &mut rect.high[words]);
    match network {
        IpNet::V4(net) if low.len() == 1 => {
            (low[0], high[0]) = (net.network().to_bits(), net.broadcast().to_bits());
        }
        IpNet::V6(net) if low.len() == 4 => {
            let ends = [net.network(), net.broadcast()].map(|end| end.to_bits().to_be_bytes());
            for (words, end) in [low, high].into_iter().zip(ends) {
                for (word, bytes) in words.iter_mut().zip(end.chunks_exact(4)) {
                    *word = u32::from_be_bytes(bytes.try_into().expect("four bytes"));
                }
            }
        }
        _ => return None,
    }
    Some(rect)
}
