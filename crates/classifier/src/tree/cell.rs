//! What trees are made of: cells of one cache line.

use skipstep_abi::forest::{
    AXIS_LEAF as LEAF, CELL_CUTS, CELL_WORDS, ORDER_ASKS_MORE, ORDER_SHIFT,
};

use super::region::Covering;
use super::space::Space;

/// Words of a cell.
pub(super) const WORDS: usize = CELL_WORDS;
/// Cuts of a node; it has one child more.
pub(super) const CUTS: usize = CELL_CUTS;

/// A node, or a line of a leaf.
///
/// A node: how far behind it its children begin; axis, number of cuts and number of rules, in 8, 8 and 16 bits; the cuts,
/// ascending. A point that is less than the first cut is in the first child, one that is not less than the last
/// in the last. A node whose axis is 255 is a leaf: its lines begin where children would. Distances instead of
/// places let a tree stand anywhere.
///
/// A line has two rules of IPv4 or one of IPv6, each a box and its order.
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
        words[1] = axis as u32 | (cuts.len() as u32) << 8;
        words[2..2 + cuts.len()].copy_from_slice(cuts);
        Cell(words)
    }

    pub(super) fn leaf(to_lines: usize, rules: usize) -> Self {
        let mut words = [0; WORDS];
        words[0] = to_lines as u32;
        words[1] = LEAF | (rules as u32) << 16;
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
        let cuts = (self.0[1] >> 8 & 0xff) as usize;
        let passed = self.0[2..2 + cuts].iter().filter(|cut| **cut <= value).count();
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

/// The lines of a leaf.
pub(super) fn lines<const N: usize>(
    space: &Space<N>,
    rules: impl IntoIterator<Item = Covering<N>>,
) -> Vec<Cell> {
    let mut lines = Vec::new();
    let mut free = 0;
    for rule in rules {
        if free == 0 {
            lines.push(Cell::default());
            free = WORDS;
        }
        let line: &mut Cell = lines.last_mut().expect("one was pushed");
        let words = &mut line.0[WORDS - free..][..space.leaf_words];
        (space.write)(&rule.region, words);
        words[space.leaf_words - 1] =
            rule.order << ORDER_SHIFT | if rule.whole { 0 } else { ORDER_ASKS_MORE };
        free -= space.leaf_words;
    }
    lines
}

/// The rules of a leaf, in their order.
pub(super) fn rules<'a, const N: usize>(
    space: &Space<N>,
    lines: &'a [Cell],
    count: usize,
) -> impl Iterator<Item = LeafRule<'a>> {
    let size = space.leaf_words;
    lines
        .iter()
        .flat_map(move |line| line.0.chunks_exact(size))
        .take(count)
        .map(move |words| LeafRule { words, order: words[size - 1] >> ORDER_SHIFT })
}
