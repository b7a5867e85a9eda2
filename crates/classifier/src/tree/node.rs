//! The nodes of trees, each one cache line.

use skipstep_abi::tree_set::{
    AXIS_LEAF as LEAF, NODE_CUTS, NODE_RULES, NODE_WORDS, ORDER_ASKS_MORE, ORDER_SHIFT,
};

use super::rect::Covering;
use super::space::Space;

/// 32-bit words of a node.
pub(super) const WORDS: usize = NODE_WORDS;
/// Most cuts of an inner node; it has one more child.
pub(super) const CUTS: usize = NODE_CUTS;

/// An inner node, a leaf, or a continuation of a leaf.
///
/// An inner node has three parts. The first word is the distance to its children. The second has
/// the axis in its lower 16 bits. The other words are the last values before its cuts, ascending. A
/// point below the first cut belongs to the first child; a point at or above the last cut belongs
/// to the last child. Distances instead of indexes make trees position-independent.
///
/// A node with axis 255 is a leaf. The upper 16 bits of its second word are its number of rules.
/// Its first rules take the place of cuts, and its continuations that of children.
///
/// Behind the first two words, a leaf or continuation has two rules of IPv4 or one of IPv6. A rule
/// is its rectangle and its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C, align(64))]
pub struct Node(pub [u32; WORDS]);

/// The kind of a node that is no continuation.
pub(super) enum NodeKind {
    Inner { axis: usize },
    Leaf,
}

/// A rule stored in a leaf.
pub(super) struct LeafRule<'a> {
    /// The rectangle in the encoding of the space.
    pub words: &'a [u32],
    pub order: u32,
}

impl Node {
    pub(super) fn inner(to_children: usize, axis: usize, cuts: &[u32]) -> Self {
        let mut words = [u32::MAX; WORDS];
        words[0] = to_children as u32;
        words[1] = axis as u32;
        for (word, cut) in words[2..].iter_mut().zip(cuts) {
            *word = cut - 1;
        }
        Node(words)
    }

    pub(super) fn kind(&self) -> NodeKind {
        match self.0[1] & 0xff {
            LEAF => NodeKind::Leaf,
            axis => NodeKind::Inner { axis: axis as usize },
        }
    }

    /// Returns the distance from an inner node to its child for this value on its axis.
    pub(super) fn child(&self, value: u32) -> usize {
        let passed = self.0[2..].iter().filter(|last| **last < value).count();
        self.distance() + passed
    }

    /// Returns the number of rules in a leaf.
    pub(super) fn rules(&self) -> usize {
        (self.0[1] >> 16) as usize
    }

    /// Returns the distance, in nodes, to the first child or continuation.
    pub(super) fn distance(&self) -> usize {
        self.0[0] as usize
    }
}

/// Builds a leaf and its continuations, which the caller stores `to_lines` nodes behind it.
pub(super) fn leaf<const N: usize>(
    space: &Space<N>,
    to_lines: usize,
    rules: &[Covering<N>],
) -> (Node, Vec<Node>) {
    let mut nodes = rules.chunks(space.rules_of_a_node()).map(|rules| line(space, rules));
    let mut leaf = nodes.next().unwrap_or_default();
    leaf.0[0] = to_lines as u32;
    leaf.0[1] = LEAF | (rules.len() as u32) << 16;
    (leaf, nodes.collect())
}

fn line<const N: usize>(space: &Space<N>, rules: &[Covering<N>]) -> Node {
    let mut line = Node::default();
    let places = line.0[NODE_RULES..].chunks_exact_mut(space.rule_words);
    for (words, rule) in places.zip(rules) {
        (space.write)(&rule.rect, words);
        words[space.rule_words - 1] =
            rule.order << ORDER_SHIFT | if rule.whole { 0 } else { ORDER_ASKS_MORE };
    }
    line
}

/// Returns the rules of the leaf at index `place`, in order.
pub(super) fn rules<'a, const N: usize>(
    space: &Space<N>,
    nodes: &'a [Node],
    place: usize,
) -> impl Iterator<Item = LeafRule<'a>> {
    let size = space.rule_words;
    let leaf = &nodes[place];
    std::iter::once(leaf)
        .chain(&nodes[place + leaf.distance()..])
        .flat_map(move |line| line.0[NODE_RULES..].chunks_exact(size))
        .take(leaf.rules())
        .map(move |words| LeafRule { words, order: words[size - 1] >> ORDER_SHIFT })
}
