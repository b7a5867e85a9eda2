//! Third step: rules with a common parameter become neighbours, so that skip steps skip more.
//!
//! For each parameter, the rules fall into lists with one value. The longest of all lists is taken
//! and ordered in the same way, then the longest of the remaining lists, and so on. Pairs, and
//! rules with nothing in common, come last.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::fields;
use super::hashing::{Map, Numbers};
use crate::address::DynamicAddress;
use crate::skip::{self, Skip};
use crate::{Address, Endpoint, InterfaceMatch, Rule};

/// Returns the best order of `rules` for skip steps: for each new position, the present index.
pub fn for_skip_steps(rules: &[Rule]) -> Vec<u32> {
    let values = values(rules);
    let highest = values.iter().flatten().max().copied().unwrap_or(0) as usize;
    let mut order = Vec::with_capacity(rules.len());
    let mut scratch = Scratch { is_left: vec![false; rules.len()], counts: vec![0; highest + 1] };
    reorder((0..rules.len() as u32).collect(), &values, &mut scratch, &mut order);
    order
}

/// For each parameter the number of the rule's value; 0 if the rule has none.
type Values = [u32; Skip::COUNT];

/// Memory that each call of [`reorder`] finds cleared and leaves cleared.
struct Scratch {
    /// True for each rule that has no new position yet.
    is_left: Vec<bool>,
    /// Number of rules with each value.
    counts: Vec<u32>,
}

/// Appends `block` to `order`, in a better order.
fn reorder(block: Vec<u32>, values: &[Values], scratch: &mut Scratch, order: &mut Vec<u32>) {
    let mut lists = Skip::ALL.map(|skip| {
        let value_of = |rule| values[rule as usize][skip as usize];
        Lists::new(&block, value_of, &mut scratch.counts)
    });
    if lists.iter().all(|lists| lists.longest() == 0) {
        order.extend(block);
        return;
    }
    let mut rest = Vec::new();
    for &rule in &block {
        scratch.is_left[rule as usize] = true;
    }
    loop {
        let longest = lists.iter().map(Lists::longest).max().unwrap_or(0);
        if longest <= 1 {
            break;
        }
        let Some(chosen) = lists.iter_mut().find(|lists| lists.longest() == longest) else { break };
        let mut common = chosen.take_longest();
        common.retain(|&rule| scratch.is_left[rule as usize]);
        for &rule in &common {
            scratch.is_left[rule as usize] = false;
            for (skip, lists) in Skip::ALL.iter().zip(&mut lists) {
                lists.remove(values[rule as usize][*skip as usize]);
            }
        }
        if common.len() > 2 {
            reorder(common, values, scratch, order);
        } else {
            rest.extend(common);
        }
    }
    order.extend(rest);
    let mut is_left = |rule: &u32| std::mem::take(&mut scratch.is_left[*rule as usize]);
    order.extend(block.into_iter().filter(&mut is_left));
}

/// The lists of rules with equal values of one parameter, ranked by length.
struct Lists {
    lists: Map<u32, List>,
    /// Length, turn and value of each list. Among lists of equal length, a list that grew to it
    /// comes last, and a list that shrank to it comes first.
    ranking: BTreeSet<(Reverse<usize>, i64, u32)>,
    first_turn: i64,
}

struct List {
    rules: Vec<u32>,
    length: usize,
    turn: i64,
}

impl Lists {
    /// Returns the lists of a parameter. There are none if all rules have the same value, or all
    /// have different values, because no order would be better. A list of one rule is left out.
    fn new(block: &[u32], value_of: impl Fn(u32) -> u32, counts: &mut [u32]) -> Self {
        let valued = || block.iter().map(|&rule| (rule, value_of(rule))).filter(|(_, v)| *v != 0);
        for (_, value) in valued() {
            counts[value as usize] += 1;
        }
        let longest = valued().map(|(_, value)| counts[value as usize]).max().unwrap_or(0);
        let mut lists: Map<u32, List> = Map::default();
        if longest > 1 && longest as usize != block.len() {
            for ((rule, value), turn) in valued().zip(1..) {
                let length = counts[value as usize] as usize;
                if length > 1 {
                    let rules = || Vec::with_capacity(length);
                    let list =
                        lists.entry(value).or_insert_with(|| List { rules: rules(), length, turn });
                    list.rules.push(rule);
                    list.turn = turn;
                }
            }
        }
        for (_, value) in valued() {
            counts[value as usize] = 0;
        }
        let rank = |(&value, list): (&u32, &List)| (Reverse(list.length), list.turn, value);
        let ranking = lists.iter().map(rank).collect();
        Lists { lists, ranking, first_turn: 0 }
    }

    /// Returns the length of the longest list, or 0.
    fn longest(&self) -> usize {
        self.ranking.first().map_or(0, |(Reverse(length), ..)| *length)
    }

    /// Removes the longest list and returns its rules, including those already removed.
    fn take_longest(&mut self) -> Vec<u32> {
        let longest = self.ranking.pop_first();
        let list = longest.and_then(|(_, _, value)| self.lists.remove(&value));
        list.map(|list| list.rules).unwrap_or_default()
    }

    /// Subtracts a rule from the list of a value.
    fn remove(&mut self, value: u32) {
        let Some(list) = self.lists.get_mut(&value) else { return };
        self.ranking.remove(&(Reverse(list.length), list.turn, value));
        self.first_turn -= 1;
        list.length -= 1;
        list.turn = self.first_turn;
        self.ranking.insert((Reverse(list.length), list.turn, value));
    }
}

/// A value of a parameter that rules may have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Value<'a> {
    Interface(bool, &'a InterfaceMatch),
    Number(u32, bool),
    Host(bool, &'a Address),
    Dynamic(bool, &'a DynamicAddress),
    Ports(crate::Ports),
}

fn values(rules: &[Rule]) -> Vec<Values> {
    let mut numbers: [Numbers<Value>; Skip::COUNT] =
        std::array::from_fn(|_| Numbers::new(rules.len()));
    let mut number =
        |rule, skip| value(rule, skip).map_or(0, |value| numbers[skip as usize].number(value));
    rules.iter().map(|rule| Skip::ALL.map(|skip| number(rule, skip))).collect()
}

/// Returns the value of a parameter; `None` if the rule has no such criterion. For pfctl, rules
/// without the criterion have nothing in common.
fn value(rule: &Rule, skip: Skip) -> Option<Value<'_>> {
    let negated = skip::negated(rule);
    match skip {
        Skip::Interface => skip::interface(rule).map(|name| Value::Interface(negated, name)),
        Skip::Direction => rule.direction.map(|direction| Value::Number(direction as u32, false)),
        Skip::Rdomain => skip::rdomain(rule).map(|number| Value::Number(number, negated)),
        Skip::Family => rule.family.map(|family| Value::Number(family as u32, false)),
        Skip::Protocol => rule
            .protocol
            .filter(|protocol| *protocol != 0)
            .map(|protocol| Value::Number(protocol.into(), false)),
        Skip::SourceAddress => host(&rule.source),
        Skip::DestinationAddress => host(&rule.destination),
        Skip::SourcePort => rule.source.ports.map(Value::Ports),
        Skip::DestinationPort => rule.destination.ports.map(Value::Ports),
    }
}

fn host(end: &Endpoint) -> Option<Value<'_>> {
    let host = &end.host;
    match &host.address {
        address if fields::is_everyone(address) => None,
        Address::Net(net) if net.network().is_unspecified() => None,
        Address::Masked(address, _) if address.is_unspecified() => None,
        Address::Range(..) | Address::RouteLabel(_) => None,
        Address::Dynamic(interface) => Some(Value::Dynamic(host.negated, interface)),
        address => Some(Value::Host(host.negated, address)),
    }
}
