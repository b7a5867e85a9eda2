//! All trees of a list of rules.

use super::cell::{self, Cell, Kind};
use super::grow::{Bounds, Tree, grow, leaves};
use super::partition::{Criterion, part};
use super::region::Covering;
use super::space::Space;

/// A tree may have so many times the cells that its rules fill once, before they are parted
/// further.
const REPEATED: usize = 8;
/// And some for the nodes of small ones.
const FREE_CELLS: usize = 1024;
/// And be grown by handling each rule so often.
const WORK: usize = 24;
/// If they cannot be parted: rules in a leaf of the one tree, and how often it may repeat its
/// rules. What is tried.
const LARGE: [(usize, usize); 3] = [(16, 16), (64, 32), (128, 48)];
/// How often each rule of such a tree may be handled.
const LARGE_WORK: usize = 1000;
/// So few rules are not worth comparing ways to part them.
const FEW: usize = 64;
/// With so many cells a look costs about twice what it does with few.
const CACHED_CELLS: usize = 1 << 16;
/// Rules by which the ways to part them are compared.
const PROBES: usize = 512;

/// Where a tree begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Root {
    /// Its first cell.
    pub cell: u32,
    /// The least order in it.
    pub best: u32,
}

/// How big the trees are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    /// Trees.
    pub trees: usize,
    /// Cells of 64 bytes.
    pub cells: usize,
    /// Cells that the longest search looks at, and one for each tree.
    pub longest: u32,
    /// Rules that no tree would take: they are looked at one by one.
    pub left_over: usize,
}

/// The trees of a list of rules, which stand in it by their order; the least wins.
#[derive(Debug)]
pub struct Forest<const N: usize> {
    space: &'static Space<N>,
    /// Cells of all trees, one behind the other.
    pub cells: Vec<Cell>,
    /// The trees, the one with the least order first.
    pub roots: Vec<Root>,
    /// Cells that the longest search looks at, and one for each tree.
    pub longest: u32,
    left_over: usize,
}

impl<const N: usize> Forest<N> {
    /// Plants the trees of `rules`, which stand in their order.
    pub fn plant(space: &'static Space<N>, rules: &[Covering<N>]) -> Self {
        let all: Vec<u32> = (0..rules.len() as u32).collect();
        if rules.len() <= FEW {
            let parts = part(space, rules, &all, Criterion::Narrow(0));
            return Self::of(space, rules, &parted(space, rules, parts));
        }
        let probes: Vec<[u32; N]> = probes(rules);
        let mut best: Option<(usize, Self)> = None;
        let mut tried = Vec::new();
        for bits in space.borders {
            let parts = part(space, rules, &all, Criterion::Narrow(*bits));
            if tried.contains(&parts) {
                // the same trees once more
                continue;
            }
            let parted = parted(space, rules, parts.clone());
            tried.push(parts);
            if !parted.left_over.is_empty() && best.is_none() {
                // other ways will hardly do better
                return Self::of(space, rules, &parted.or_large(space, rules));
            }
            let forest = Self::of(space, rules, &parted);
            let cost = forest.cost(&probes);
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, forest));
            }
        }
        best.expect("there is a way to part rules").1
    }

    fn of(space: &'static Space<N>, rules: &[Covering<N>], parted: &Parted) -> Self {
        let mut forest =
            Self { space, cells: Vec::new(), roots: Vec::new(), longest: 0, left_over: 0 };
        let flat: Vec<(u32, Tree)> = leaves(space, rules, &parted.left_over).collect();
        let mut trees: Vec<&(u32, Tree)> = parted.trees.iter().chain(&flat).collect();
        trees.sort_by_key(|(best, _)| *best);
        for (best, tree) in trees {
            let best = rules[*best as usize].order;
            forest.roots.push(Root { cell: forest.cells.len() as u32, best });
            forest.longest += 1 + tree.longest;
            forest.cells.extend(&tree.cells);
        }
        forest.left_over = parted.left_over.len();
        forest
    }

    /// The least order of a rule that takes a packet: its box has the point, and `takes` says so of
    /// its order.
    pub fn find(&self, point: &[u32; N], takes: impl FnMut(u32) -> bool) -> Option<u32> {
        self.search(point, takes, &mut 0)
    }

    /// The same, counting the cells that are looked at.
    pub(super) fn search(
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
            let leaf = self.leaf_of(root.cell as usize, point, looks);
            best = self.first_in(leaf, point, best, &mut takes, looks);
        }
        (best != u32::MAX).then_some(best)
    }

    fn leaf_of(&self, root: usize, point: &[u32; N], looks: &mut u32) -> usize {
        let mut place = root;
        loop {
            *looks += 1;
            match self.cells[place].kind() {
                Kind::Node { axis } => place += self.cells[place].child(point[axis]),
                Kind::Leaf => return place,
            }
        }
    }

    /// The first rule of a leaf that takes the packet, if its order is less than the best so far.
    fn first_in(
        &self,
        leaf: usize,
        point: &[u32; N],
        best: u32,
        takes: &mut impl FnMut(u32) -> bool,
        looks: &mut u32,
    ) -> u32 {
        let in_a_cell = self.space.rules_of_a_cell();
        for (place, rule) in cell::rules(self.space, &self.cells, leaf).enumerate() {
            // the first ones stand in the leaf itself
            *looks += u32::from(place >= in_a_cell && place.is_multiple_of(in_a_cell));
            if rule.order >= best {
                break;
            }
            if (self.space.holds)(rule.words, point) && takes(rule.order) {
                return rule.order;
            }
        }
        best
    }

    /// What packets cost that meet these points: the cells they look at, each the dearer the less
    /// of all cells a cache can hold.
    fn cost(&self, probes: &[[u32; N]]) -> usize {
        let mut looks = 0;
        for point in probes {
            self.search(point, |_| true, &mut looks);
        }
        looks as usize * (CACHED_CELLS + self.cells.len())
    }

    /// How big it is.
    pub fn size(&self) -> Size {
        Size {
            trees: self.roots.len(),
            cells: self.cells.len(),
            longest: self.longest,
            left_over: self.left_over,
        }
    }
}

/// Rules in trees, each with the first of its ranks.
struct Parted {
    trees: Vec<(u32, Tree)>,
    /// Ranks of rules that no tree would take, in their order.
    left_over: Vec<u32>,
}

/// Grows a tree of each part that some [`Criterion::Narrow`] made, and parts it further where that
/// would be too large.
fn parted<const N: usize>(space: &Space<N>, rules: &[Covering<N>], parts: Vec<Vec<u32>>) -> Parted {
    let mut parted = Parted { trees: Vec::new(), left_over: Vec::new() };
    let behind = |criterion: Criterion| criterion.next().filter(|next| next.is_of(space));
    let next = behind(Criterion::Narrow(0));
    let mut waiting: Vec<(Vec<u32>, Option<Criterion>)> =
        parts.into_iter().map(|ranks| (ranks, next)).collect();
    while let Some((ranks, next)) = waiting.pop() {
        let leaf = if next.is_some() { 8 } else { 32 };
        let bounds = Bounds::of(space, ranks.len(), leaf, REPEATED, WORK);
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
    /// Instead a tree of all rules, which may be as large as it takes to make searches short: where
    /// rules overlap by the thousand, those that come first soon hide the others. Or else one of
    /// what was left over.
    fn or_large<const N: usize>(mut self, space: &Space<N>, rules: &[Covering<N>]) -> Self {
        let large = |ranks: &[u32]| {
            LARGE.into_iter().find_map(|(leaf, repeated)| {
                let bounds = Bounds::of(space, ranks.len(), leaf, repeated, LARGE_WORK);
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
    fn of<const N: usize>(
        space: &Space<N>,
        rules: usize,
        leaf: usize,
        repeated: usize,
        work: usize,
    ) -> Self {
        let once = rules / space.rules_of_a_cell();
        Bounds { cells: once * repeated + FREE_CELLS, leaf, work: rules * work + FREE_CELLS }
    }
}

/// A corner of the box of some rules, spread over the list: what packets of these rules look like.
fn probes<const N: usize>(rules: &[Covering<N>]) -> Vec<[u32; N]> {
    let step = rules.len().div_ceil(PROBES).max(1);
    rules.iter().step_by(step).map(|rule| rule.region.low).collect()
}
