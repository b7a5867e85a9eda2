//! All trees of a list of rules.

use super::grow::{Bounds, Tree, grow, leaves};
use super::node::{self, Node, NodeKind};
use super::partition::{Criterion, part};
use super::rect::Covering;
use super::space::Space;

/// Most nodes of a tree before its rules are divided further, as a multiple of the nodes that its
/// rules fill once.
const REPEATED: usize = 8;
/// Extra nodes that every tree may have, because a small one needs some inner nodes.
const FREE_NODES: usize = 1024;
/// Most work on a tree before its rules are divided further, in visits per rule.
const WORK: usize = 24;
/// Bounds to try for a single tree of rules that cannot be divided: most rules in a leaf, and most
/// nodes, as a multiple of those that its rules fill once.
const LARGE: [(usize, usize); 3] = [(16, 16), (64, 32), (128, 48)];
/// Most work on such a tree, in visits per rule.
const LARGE_WORK: usize = 1000;
/// Most rules for which the boundaries between wide and narrow are not compared.
const FEW: usize = 64;
/// Number of nodes at which reading a node takes about twice as long as with few nodes.
const CACHED_NODES: usize = 1 << 16;
/// Number of sample packets by which divisions of rules are compared.
const PROBES: usize = 512;

/// The root of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Root {
    /// Index of the tree's first node.
    pub node: u32,
    /// Lowest order of a rule in the tree.
    pub best: u32,
}

/// The size of a tree set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    /// Number of trees.
    pub trees: usize,
    /// Number of nodes, of 64 bytes each.
    pub nodes: usize,
    /// Most nodes that one search reads, plus one for each tree.
    pub longest: u32,
    /// Rules that fit in no tree; a search reads them one by one.
    pub left_over: usize,
}

/// The trees of a list of rules. Of the rules that match, the one with the lowest order wins.
#[derive(Debug)]
pub struct TreeSet<const N: usize> {
    space: &'static Space<N>,
    /// Nodes of all trees, one tree after the other.
    pub nodes: Vec<Node>,
    /// Roots of the trees, ordered by their lowest rule order.
    pub roots: Vec<Root>,
    /// Most nodes that one search reads, plus one for each tree.
    pub longest: u32,
    left_over: usize,
}

impl<const N: usize> TreeSet<N> {
    /// Builds the trees of `rules`, which are sorted by order.
    pub fn build(space: &'static Space<N>, rules: &[Covering<N>]) -> Self {
        let all: Vec<u32> = (0..rules.len() as u32).collect();
        if rules.len() <= FEW {
            let parts = part(space, rules, &all, Criterion::Narrow(0));
            return Self::from_parts(space, rules, &parted(space, rules, parts));
        }
        let probes: Vec<[u32; N]> = probes(rules);
        let mut best: Option<(usize, Self)> = None;
        let mut tried = Vec::new();
        for bits in space.borders {
            let parts = part(space, rules, &all, Criterion::Narrow(*bits));
            if tried.contains(&parts) {
                // This boundary gives the same trees as a previous one.
                continue;
            }
            let parted = parted(space, rules, parts.clone());
            tried.push(parts);
            if !parted.left_over.is_empty() && best.is_none() {
                // Other boundaries would hardly do better.
                return Self::from_parts(space, rules, &parted.or_large(space, rules));
            }
            let tree_set = Self::from_parts(space, rules, &parted);
            let cost = tree_set.cost(&probes);
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, tree_set));
            }
        }
        best.expect("there is a way to part rules").1
    }

    fn from_parts(space: &'static Space<N>, rules: &[Covering<N>], parted: &Parted) -> Self {
        let mut tree_set =
            Self { space, nodes: Vec::new(), roots: Vec::new(), longest: 0, left_over: 0 };
        let flat: Vec<(u32, Tree)> = leaves(space, rules, &parted.left_over).collect();
        let mut trees: Vec<&(u32, Tree)> = parted.trees.iter().chain(&flat).collect();
        trees.sort_by_key(|(best, _)| *best);
        for (best, tree) in trees {
            let best = rules[*best as usize].order;
            tree_set.roots.push(Root { node: tree_set.nodes.len() as u32, best });
            tree_set.longest += 1 + tree.longest;
            tree_set.nodes.extend(&tree.nodes);
        }
        tree_set.left_over = parted.left_over.len();
        tree_set
    }

    /// Returns the lowest order of a rule that matches: its rectangle contains the point, and
    /// `takes` returns true for its order. Returns `None` if no rule matches.
    pub fn find(&self, point: &[u32; N], takes: impl FnMut(u32) -> bool) -> Option<u32> {
        self.search(point, takes, &mut 0)
    }

    /// Searches like `find`, and adds the number of nodes that it reads to `looks`.
    pub fn search(
        &self,
        point: &[u32; N],
        mut takes: impl FnMut(u32) -> bool,
        looks: &mut u32,
    ) -> Option<u32> {
        let mut best = u32::MAX;
        for root in &self.roots {
            *looks += 1;
            if best <= root.best {
                break;
            }
            let leaf = self.leaf_of(root.node as usize, point, looks);
            best = self.first_in(leaf, point, best, &mut takes, looks);
        }
        (best != u32::MAX).then_some(best)
    }

    fn leaf_of(&self, root: usize, point: &[u32; N], looks: &mut u32) -> usize {
        let mut place = root;
        loop {
            *looks += 1;
            match self.nodes[place].kind() {
                NodeKind::Inner { axis } => place += self.nodes[place].child(point[axis]),
                NodeKind::Leaf => return place,
            }
        }
    }

    /// Returns the order of the first rule of a leaf that matches, if it is lower than `best`;
    /// otherwise returns `best`.
    fn first_in(
        &self,
        leaf: usize,
        point: &[u32; N],
        best: u32,
        takes: &mut impl FnMut(u32) -> bool,
        looks: &mut u32,
    ) -> u32 {
        let in_a_node = self.space.rules_of_a_node();
        for (place, rule) in node::rules(self.space, &self.nodes, leaf).enumerate() {
            // The first rules are in the leaf itself.
            *looks += u32::from(place >= in_a_node && place.is_multiple_of(in_a_node));
            if rule.order >= best {
                break;
            }
            if (self.space.holds)(rule.words, point) && takes(rule.order) {
                return rule.order;
            }
        }
        best
    }

    /// Returns a measure of the time that searches for these points take. It grows with the nodes
    /// read and, because caches are small, with the number of all nodes.
    fn cost(&self, probes: &[[u32; N]]) -> usize {
        let mut looks = 0;
        for point in probes {
            self.search(point, |_| true, &mut looks);
        }
        looks as usize * (CACHED_NODES + self.nodes.len())
    }

    /// Returns the size of the tree set.
    pub fn size(&self) -> Size {
        Size {
            trees: self.roots.len(),
            nodes: self.nodes.len(),
            longest: self.longest,
            left_over: self.left_over,
        }
    }
}

/// A division of rules into trees, each with the first of its ranks.
struct Parted {
    trees: Vec<(u32, Tree)>,
    /// Ranks of the rules that fit in no tree, ascending.
    left_over: Vec<u32>,
}

/// Builds a tree of each part that [`Criterion::Narrow`] made. Divides parts further whose tree
/// would be too large.
fn parted<const N: usize>(space: &Space<N>, rules: &[Covering<N>], parts: Vec<Vec<u32>>) -> Parted {
    let mut parted = Parted { trees: Vec::new(), left_over: Vec::new() };
    let behind = |criterion: Criterion| criterion.next().filter(|next| next.is_of(space));
    let next = behind(Criterion::Narrow(0));
    let mut waiting: Vec<(Vec<u32>, Option<Criterion>)> =
        parts.into_iter().map(|ranks| (ranks, next)).collect();
    while let Some((ranks, next)) = waiting.pop() {
        let leaf = if next.is_some() { 8 } else { 32 };
        let bounds = Bounds::for_rules(space, ranks.len(), leaf, REPEATED, WORK);
        match (grow(space, rules, ranks.clone(), bounds), next) {
            (Some(tree), _) => parted.trees.push((ranks[0], tree)),
            (None, Some(criterion)) => {
                let parts = part(space, rules, &ranks, criterion);
                waiting.extend(parts.into_iter().map(|ranks| (ranks, behind(criterion))));
            }
            (None, None) => parted.left_over.extend(ranks),
        }
    }
    parted.left_over.sort_unstable();
    parted
}

impl Parted {
    /// Replaces the division by a single large tree of all rules, if one fits in [`LARGE`]. Where
    /// thousands of rules overlap, early rules soon hide the others, so searches stay short.
    /// Otherwise tries a single tree of the rules left over.
    fn or_large<const N: usize>(mut self, space: &Space<N>, rules: &[Covering<N>]) -> Self {
        let large = |ranks: &[u32]| {
            LARGE.into_iter().find_map(|(leaf, repeated)| {
                let bounds = Bounds::for_rules(space, ranks.len(), leaf, repeated, LARGE_WORK);
                grow(space, rules, ranks.to_vec(), bounds)
            })
        };
        let all: Vec<u32> = (0..rules.len() as u32).collect();
        if let Some(tree) = large(&all) {
            return Parted { trees: vec![(0, tree)], left_over: Vec::new() };
        }
        if let Some(tree) = large(&self.left_over) {
            self.trees.push((self.left_over[0], tree));
            self.left_over.clear();
        }
        self
    }
}

impl Bounds {
    fn for_rules<const N: usize>(
        space: &Space<N>,
        rules: usize,
        leaf: usize,
        repeated: usize,
        work: usize,
    ) -> Self {
        let once = rules / space.rules_of_a_node();
        Bounds { nodes: once * repeated + FREE_NODES, leaf, work: rules * work + FREE_NODES }
    }
}

/// Returns a corner of the rectangle of every n-th rule, as sample packets.
fn probes<const N: usize>(rules: &[Covering<N>]) -> Vec<[u32; N]> {
    let step = rules.len().div_ceil(PROBES).max(1);
    rules.iter().step_by(step).map(|rule| rule.rect.low).collect()
}
