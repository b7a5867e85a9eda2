//! Tables that stand in the trees.
//!
//! Rules that differ in nothing but their tables have one and the same box, so a search finds all
//! of them, and each is asked: of 10,000 rules `block from <tN>` each packet would look into 10,000
//! tables. So where many rules of a set look into tables, these are spread: a rule has a box for
//! each entry, as if it were written so often, or for each of some networks that have all entries
//! in them (`cover`) if those are many. The rule that is found asks its table all the same. A box
//! may stay behind when an entry goes, but none may be missing: who adds something that lies in
//! none of them first has the rules compiled without that table, and from then on it is one that
//! changes.

use std::collections::BTreeMap;

use ipnet::IpNet;
use skipstep_abi as abi;
use skipstep_abi::rule::address_kind;
use skipstep_ruleset::{Address, Evaluator, Ruleset, TableName};

use crate::Planner;
use crate::tree::{Region, Space};

/// With fewer networks there is little that a large table does not seem to have.
const FEWEST_NETWORKS: usize = 16;
/// No table is spread that the rules of a stretch look into, if there would be more boxes of them.
const MOST_BOXES: usize = 1 << 18;

/// How many networks each table may have in either family, if rules look into tables so often.
pub fn networks_of_a_table(planner: Planner, looks: usize) -> usize {
    (MOST_BOXES / 2 / looks.max(1)).max(FEWEST_NETWORKS).min(planner.networks_of_a_table)
}

/// The tables that may be spread, as rules name them: by the path of their anchor. With each, how
/// many rules do.
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
        if named.len() > planner.tables_asked {
            for name in named {
                *all.entry(TableName::new(path, name)).or_default() += 1;
            }
        }
    }
    all
}

/// The networks of tables that are spread, by their slots.
pub type Spread = BTreeMap<u32, Vec<IpNet>>;

/// The table of a rule that is spread, with the side that it is asked about: 0 is the source.
pub(crate) fn of_rule<'a>(rule: &abi::Rule, spread: &'a Spread) -> Option<(usize, &'a [IpNet])> {
    let sides = [&rule.source, &rule.destination].into_iter().enumerate();
    let of_tables = sides.filter(|(_, host)| host.kind == address_kind::TABLE && host.negated == 0);
    let found = of_tables.filter_map(|(side, host)| Some((side, &spread.get(&host.table)?[..])));
    found.min_by_key(|(_, networks)| networks.len())
}

/// What is to be spread of a stretch: all of it, or nothing if that is too much.
pub(crate) fn of_stretch<'a>(rules: &[abi::Rule], spread: &'a Spread) -> Option<&'a Spread> {
    let boxes = rules.iter().filter_map(|rule| of_rule(rule, spread));
    let boxes: usize = boxes.map(|(_, networks)| networks.len()).sum();
    (0 < boxes && boxes <= MOST_BOXES).then_some(spread)
}

/// What a network leaves of a box on one side; nothing if it is of the other family.
pub(crate) fn narrowed<const N: usize>(
    space: &Space<N>,
    mut region: Region<N>,
    side: usize,
    network: &IpNet,
) -> Option<Region<N>> {
    let words = space.addresses[side].clone();
    let (low, high) = (&mut region.low[words.clone()], &mut region.high[words]);
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
    Some(region)
}
