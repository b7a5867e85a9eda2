//! Third step for `quick` rules with a profile: rules that decided most packets come first.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use super::fields::{self, Role};
use super::hashing::Map;
use super::{Counted, arrange, superblock};
use crate::Rule;

/// Pairs each superblock with the one in force at the same index. Stops at the first pair whose
/// first rules differ in a field with the role `Barrier`.
pub fn pair_superblocks(blocks: &[Vec<Rule>], in_force: Vec<Counted>) -> Vec<Vec<Counted>> {
    let mut packets = VecDeque::new();
    let mut rules = Vec::new();
    for counted in in_force {
        packets.push_back(counted.packets);
        rules.push(counted.rule);
    }
    let mut pairs = Vec::new();
    for (previous, new) in superblock::split(rules).into_iter().zip(blocks) {
        if !fields::agree(&previous[0], &new[0], Role::Barrier) {
            break;
        }
        let packets_in_force = packets.drain(..previous.len()).collect::<Vec<_>>();
        let counted = previous.into_iter().zip(packets_in_force);
        pairs.push(counted.map(|(rule, packets)| Counted { rule, packets }).collect());
    }
    pairs
}

/// Returns `rules` in descending order of the packets of the same rules in force. Rules with equal
/// numbers keep their order.
pub fn order(rules: Vec<Rule>, in_force: &[Counted]) -> Vec<Rule> {
    let mut places: Map<WithoutPosition, VecDeque<usize>> = Map::default();
    for (index, rule) in rules.iter().enumerate() {
        places.entry(WithoutPosition(rule)).or_default().push_back(index);
    }
    let mut packets = vec![0; rules.len()];
    for counted in in_force.iter().filter(|counted| counted.packets > 0) {
        if let Some(index) =
            places.get_mut(&WithoutPosition(&counted.rule)).and_then(VecDeque::pop_front)
        {
            packets[index] = counted.packets;
        }
    }
    let mut order: Vec<u32> = (0..rules.len() as u32).collect();
    order.sort_by_key(|&index| Reverse(packets[index as usize]));
    arrange(rules, order)
}

/// A rule that is compared without its position.
struct WithoutPosition<'a>(&'a Rule);

impl Hash for WithoutPosition<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        fields::hash(self.0, Role::NoMerge, state);
        fields::hash(self.0, Role::Combined, state);
    }
}

impl PartialEq for WithoutPosition<'_> {
    fn eq(&self, other: &Self) -> bool {
        fields::agree(self.0, other.0, Role::Combined)
    }
}

impl Eq for WithoutPosition<'_> {}
