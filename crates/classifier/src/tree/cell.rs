//! What trees are made of: cells of one cache line.

use skipstep_abi::forest::{
    AXIS_LEAF as LEAF, CELL_CUTS, CELL_RULES, CELL_WORDS, ORDER_ASKS_MORE, ORDER_SHIFT,
};

use super::region::Covering;
use super::space::Space;

/// Words of a cell.
pub(super) const WORDS: usize = CELL_WORDS;
/// Cuts of a node; it has one child more.
pub(super) const CUTS: usize = CELL_CUTS;

/// A node, a leaf, or a line of one.
///
/// A node: how far behind it its children begin; axis and number of rules, in 16 bits each; the
/// last values before its cuts, ascending. A point that is less than the first cut is in the first
/// child, one that is not less than the last in the last. A node whose axis is 255 is a leaf: its
/// first rules stand where cuts would, more of them in lines that begin where children would.
/// Distances instead of places let a tree stand anywhere.
///
/// A leaf or a line has two rules of IPv4 or one of IPv6, each a box and its order, behind the
/// first two words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C, align(64))]
pub struct Cell(pub [u32; WORDS]);

/// What a cell is when it is not a line.
pub(super) enum Kind {
    Node { axis: usize },
    Leaf,
}

/// A rule in a leaf.
pub(super) struct LeafRule<'a> {
    /// Its box.
    pub words: &'a [u32],
    pub order: u32,
}

impl Cell {
    pub(super) fn node(to_children: usize, axis: usize, cuts: &[u32]) -> Self {
        let mut words = [u32::MAX; WORDS];
        words[0] = to_children as u32;
        words[1] = axis as u32;
        for (word, cut) in words[2..].iter_mut().zip(cuts) {
            *word = cut - 1;
        }
        Cell(words)
    }

    pub(super) fn kind(&self) -> Kind {
        match self.0[1] & 0xff {
            LEAF => Kind::Leaf,
            axis => Kind::Node { axis: axis as usize },
        }
    }

    /// How far behind a node the cell is that a value of its field leads to.
    pub(super) fn child(&self, value: u32) -> usize {
        let passed = self.0[2..].iter().filter(|last| **last < value).count();
        self.distance() + passed
    }

    /// How many rules a leaf has.
    pub(super) fn rules(&self) -> usize {
        (self.0[1] >> 16) as usize
    }

    /// How far behind it its children are, or its lines.
    pub(super) fn distance(&self) -> usize {
        self.0[0] as usize
    }
}

/// A leaf: its cell, and the lines that will stand `to_lines` behind it.
pub(super) fn leaf<const N: usize>(
    space: &Space<N>,
    to_lines: usize,
    rules: &[Covering<N>],
) -> (Cell, Vec<Cell>) {
    let mut cells = rules.chunks(space.rules_of_a_cell()).map(|rules| line(space, rules));
    let mut leaf = cells.next().unwrap_or_default();
    leaf.0[0] = to_lines as u32;
    leaf.0[1] = LEAF | (rules.len() as u32) << 16;
    (leaf, cells.collect())
}

fn line<const N: usize>(space: &Space<N>, rules: &[Covering<N>]) -> Cell {
    let mut line = Cell::default();
    let places = line.0[CELL_RULES..].chunks_exact_mut(space.rule_words);
    for (words, rule) in places.zip(rules) {
        (space.write)(&rule.region, words);
        words[space.rule_words - 1] =
            rule.order << ORDER_SHIFT | if rule.whole { 0 } else { ORDER_ASKS_MORE };
    }
    line
}

/// The rules of the leaf at `place`, in their order.
pub(super) fn rules<'a, const N: usize>(
    space: &Space<N>,
    cells: &'a [Cell],
    place: usize,
) -> impl Iterator<Item = LeafRule<'a>> {
    let size = space.rule_words;
    let leaf = &cells[place];
    std::iter::once(leaf)
        .chain(&cells[place + leaf.distance()..])
        .flat_map(move |line| line.0[CELL_RULES..].chunks_exact(size))
        .take(leaf.rules())
        .map(move |words| LeafRule { words, order: words[size - 1] >> ORDER_SHIFT })
}
