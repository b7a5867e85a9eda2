//! All trees of a list of rules.

use super::cell::{self, Cell, Kind};
use super::grow::{Bounds, Tree, grow, leaves};
use super::partition::{Criterion, borders, part};
use super::region::Covering;
use super::space::Space;

/// A tree may have so many times the cells that its rules fill once, before they are parted further.
const REPEATED: usize = 16;
/// And some for the nodes of small ones.
const FREE_CELLS: usize = 1024;
/// And be grown by handling each rule so often.
const WORK: usize = 48;
/// So few rules are not worth comparing ways to part them.
const FEW: usize = 64;
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
        if rules.len() <= FEW {
            return Self::parted(space, rules, Criterion::Narrow(0));
        }
        let ways = borders(space, rules)
            .into_iter()
            .map(|bits| Self::parted(space, rules, Criterion::Narrow(bits)));
        let probes: Vec<[u32; N]> = probes(rules);
        ways.min_by_key(|forest| forest.cost(&probes)).expect("there is a way to part rules")
    }

    fn parted(space: &'static Space<N>, rules: &[Covering<N>], criterion: Criterion) -> Self {
        let all: Vec<u32> = (0..rules.len() as u32).collect();
        let mut trees: Vec<(u32, Tree)> = Vec::new();
        let mut left_over = Vec::new();
        let mut waiting: Vec<(Vec<u32>, Option<Criterion>)> = part(space, rules, &all, criterion)
            .into_iter()
            .map(|ranks| (ranks, criterion.next()))
            .collect();
        while let Some((ranks, next)) = waiting.pop() {
            let once = ranks.len() * space.leaf_words / cell::WORDS;
            let (cells, work) = (once * REPEATED + FREE_CELLS, ranks.len() * WORK + FREE_CELLS);
            let bounds = match next {
                Some(_) => Bounds { cells, leaf: 8, work },
                None => Bounds { cells, leaf: 32, work },
            };
            match (grow(space, rules, ranks.clone(), bounds), next) {
                (Some(tree), _) => trees.push((ranks[0], tree)),
                (None, Some(criterion)) => {
                    let parts = part(space, rules, &ranks, criterion);
                    waiting.extend(parts.into_iter().map(|ranks| (ranks, criterion.next())));
                }
                (None, None) => left_over.extend(ranks),
            }
        }
        left_over.sort_unstable();
        trees.extend(leaves(space, rules, &left_over));
        trees.sort_by_key(|(best, _)| *best);
        let mut forest = Self {
            space,
            cells: Vec::new(),
            roots: Vec::new(),
            longest: 0,
            left_over: left_over.len(),
        };
        for (best, tree) in trees {
            let best = rules[best as usize].order;
            forest.roots.push(Root { cell: forest.cells.len() as u32, best });
            forest.longest += 1 + tree.longest;
            forest.cells.extend(tree.cells);
        }
        forest
    }

    /// The least order of a rule that takes a packet: its box has the point, and `takes` says so of its order.
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
        let lines = &self.cells[leaf + self.cells[leaf].distance()..];
        for (place, rule) in cell::rules(self.space, lines, self.cells[leaf].rules()).enumerate() {
            *looks += u32::from((place * self.space.leaf_words).is_multiple_of(cell::WORDS));
            if rule.order >= best {
                break;
            }
            if (self.space.holds)(rule.words, point) && takes(rule.order) {
                return rule.order;
            }
        }
        best
    }

    /// Cells that packets look at which meet these points, and how much memory is behind them.
    fn cost(&self, probes: &[[u32; N]]) -> (u32, usize) {
        let mut looks = 0;
        for point in probes {
            self.search(point, |_| true, &mut looks);
        }
        (looks, self.cells.len())
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

/// A corner of the box of some rules, spread over the list: what packets of these rules look like.
fn probes<const N: usize>(rules: &[Covering<N>]) -> Vec<[u32; N]> {
    let step = rules.len().div_ceil(PROBES).max(1);
    rules.iter().step_by(step).map(|rule| rule.region.low).collect()
}
