//! The construction of one tree.

use super::node::{self, CUTS, Node};
use super::rect::{Covering, Rect};
use super::space::Space;

/// Most rules in a leaf: the field of their number has 16 bits.
const MOST_IN_A_LEAF: usize = 0xffff;
/// Most rules that are examined to choose cuts; of more rules, a sample is taken.
const SAMPLE: usize = 2048;
/// Greatest depth of a tree. Each inner node separates rules, so only adversaries reach it.
const DEEPEST: usize = 48;

/// A tree; its root is its first node.
#[derive(Debug)]
pub(super) struct Tree {
    /// The root, then the other nodes in no particular order.
    pub nodes: Vec<Node>,
    /// Most nodes on a path through the tree.
    pub longest: u32,
}

/// The limits on a tree and its construction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Most nodes.
    pub nodes: usize,
    /// Most rules in a leaf, as long as cuts separate rules.
    pub leaf: usize,
    /// Most visits of rules; a rule counts each time it is visited.
    pub work: usize,
}

/// Builds a tree of the rules with these ranks, ascending. Returns `None` if it would exceed the
/// bounds.
pub(super) fn grow<const N: usize>(
    space: &Space<N>,
    rules: &[Covering<N>],
    ranks: Vec<u32>,
    bounds: Bounds,
) -> Option<Tree> {
    let mut growing = Growing { space, rules, bounds, nodes: vec![Node::default()], work: 0 };
    let longest = growing.fill(0, growing.seen(ranks), &space.whole, 0)?;
    Some(Tree { nodes: growing.nodes, longest })
}

/// Returns trees of a single leaf each, for rules that no tree can separate.
pub(super) fn leaves<'a, const N: usize>(
    space: &'a Space<N>,
    rules: &'a [Covering<N>],
    ranks: &'a [u32],
) -> impl Iterator<Item = (u32, Tree)> + 'a {
    ranks.chunks(MOST_IN_A_LEAF).map(move |ranks| {
        let bounds = Bounds { nodes: usize::MAX, leaf: usize::MAX, work: usize::MAX };
        let mut growing = Growing { space, rules, bounds, nodes: vec![Node::default()], work: 0 };
        let longest = growing.leaf(0, ranks).expect("it has as much room as it wants");
        (ranks[0], Tree { nodes: growing.nodes, longest })
    })
}

struct Growing<'a, const N: usize> {
    space: &'a Space<N>,
    rules: &'a [Covering<N>],
    bounds: Bounds,
    nodes: Vec<Node>,
    /// Number of visits of rules so far.
    work: usize,
}

/// The cuts of a part of the space along one axis.
struct Cut {
    axis: usize,
    /// First values of all subparts but the first, ascending.
    at: Vec<u32>,
}

impl<const N: usize> Growing<'_, N> {
    /// Fills the node at `place` with a tree of these rules for points of `part`. Returns the most
    /// nodes on a path, or `None` if the tree would exceed the bounds.
    fn fill(&mut self, place: usize, ranks: Vec<u32>, part: &Rect<N>, depth: usize) -> Option<u32> {
        self.work += ranks.len();
        if self.work > self.bounds.work {
            return None;
        }
        let cut = if ranks.len() > self.bounds.leaf && depth < DEEPEST {
            self.best_cut(&ranks, part)
        } else {
            None
        };
        match cut {
            None => self.leaf(place, &ranks),
            Some(cut) => self.node(place, ranks, part, &cut, depth),
        }
    }

    /// Removes the rules behind the first rule that hides them from every packet.
    fn seen(&self, mut ranks: Vec<u32>) -> Vec<u32> {
        let hides_all = |rank: &u32| {
            let rule = &self.rules[*rank as usize];
            rule.hides && rule.rect.covers(&self.space.whole)
        };
        if let Some(last) = ranks.iter().position(hides_all) {
            ranks.truncate(last + 1);
        }
        ranks
    }

    fn leaf(&mut self, place: usize, ranks: &[u32]) -> Option<u32> {
        if ranks.len() > MOST_IN_A_LEAF {
            return None;
        }
        let rules: Vec<_> = ranks.iter().map(|rank| self.rules[*rank as usize]).collect();
        let (leaf, lines) = node::leaf(self.space, self.nodes.len() - place, &rules);
        self.nodes[place] = leaf;
        self.nodes.extend_from_slice(&lines);
        self.has_room().then_some(1 + lines.len() as u32)
    }

    fn node(
        &mut self,
        place: usize,
        ranks: Vec<u32>,
        part: &Rect<N>,
        cut: &Cut,
        depth: usize,
    ) -> Option<u32> {
        let first = self.nodes.len();
        self.nodes[place] = Node::inner(first - place, cut.axis, &cut.at);
        self.nodes.resize(first + cut.at.len() + 1, Node::default());
        if !self.has_room() {
            return None;
        }
        let mut longest = 0;
        for (child, ranks) in self.children(&ranks, part, cut).into_iter().enumerate() {
            let mut part = *part;
            if child > 0 {
                part.low[cut.axis] = cut.at[child - 1];
            }
            if let Some(next) = cut.at.get(child) {
                part.high[cut.axis] = next - 1;
            }
            longest = longest.max(self.fill(first + child, ranks, &part, depth + 1)?);
        }
        Some(1 + longest)
    }

    /// Returns the rules that reach into each subpart, up to the first rule that hides the others
    /// there.
    fn children(&self, ranks: &[u32], part: &Rect<N>, cut: &Cut) -> Vec<Vec<u32>> {
        let last = cut.at.len();
        let mut children = vec![Vec::new(); last + 1];
        let mut open = vec![true; last + 1];
        let mut left = last + 1;
        for rank in ranks {
            let rule = &self.rules[*rank as usize];
            let hides_all = rule.hides && rule.rect.covers_but(part, cut.axis);
            let (low, high) = rule.rect.within(part, cut.axis);
            for child in self.reach(*rank, part, cut.axis, &cut.at) {
                if !open[child] {
                    continue;
                }
                children[child].push(*rank);
                let from = if child > 0 { cut.at[child - 1] } else { part.low[cut.axis] };
                let to = cut.at.get(child).map_or(part.high[cut.axis], |next| next - 1);
                if hides_all && low <= from && high >= to {
                    open[child] = false;
                    left -= 1;
                }
            }
            if left == 0 {
                break;
            }
        }
        children
    }

    fn has_room(&self) -> bool {
        self.nodes.len() <= self.bounds.nodes
    }

    /// Returns the subparts that a rule's rectangle reaches into.
    fn reach(
        &self,
        rank: u32,
        part: &Rect<N>,
        axis: usize,
        at: &[u32],
    ) -> std::ops::RangeInclusive<usize> {
        let (low, high) = self.rules[rank as usize].rect.within(part, axis);
        at.partition_point(|cut| *cut <= low)..=at.partition_point(|cut| *cut <= high)
    }

    /// Returns the axis and the cuts that leave the fewest rules, or `None` if no cut removes any.
    fn best_cut(&self, ranks: &[u32], part: &Rect<N>) -> Option<Cut> {
        let step = ranks.len().div_ceil(SAMPLE).max(1);
        let sampled: Vec<u32> = ranks.iter().step_by(step).copied().collect();
        let cut = self.best_cut_for(&sampled, part);
        if step > 1 && cut.is_none() { self.best_cut_for(ranks, part) } else { cut }
    }

    fn best_cut_for(&self, ranks: &[u32], part: &Rect<N>) -> Option<Cut> {
        let cuts = (0..N).filter_map(|axis| {
            let at = self.even_cuts(ranks, part, axis);
            let cost = self.cost(ranks, part, axis, &at)?;
            Some((cost, Cut { axis, at }))
        });
        cuts.min_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, cut)| cut)
    }

    /// Returns cuts with about the same number of ends of rectangles between neighbours.
    fn even_cuts(&self, ranks: &[u32], part: &Rect<N>, axis: usize) -> Vec<u32> {
        let mut ends = Vec::with_capacity(2 * ranks.len());
        for rank in ranks {
            let (low, high) = self.rules[*rank as usize].rect.within(part, axis);
            ends.extend((low > part.low[axis]).then_some(low));
            ends.extend((high < part.high[axis]).then(|| high + 1));
        }
        ends.sort_unstable();
        let mut different = ends.clone();
        different.dedup();
        if different.len() <= CUTS {
            return different;
        }
        let mut cuts: Vec<u32> =
            (1..=CUTS).map(|cut| ends[cut * ends.len() / (CUTS + 1)]).collect();
        cuts.dedup();
        cuts
    }

    /// Returns the average number of rules in a packet's subpart, for packets distributed like the
    /// rules, times the average number of copies of a rule. Returns `None` if the cuts separate no
    /// rules.
    fn cost(&self, ranks: &[u32], part: &Rect<N>, axis: usize, at: &[u32]) -> Option<f64> {
        if at.is_empty() {
            return None;
        }
        // Plus one where a rule's reach begins, minus one behind its end.
        let mut change = vec![0i64; at.len() + 2];
        for rank in ranks {
            let reach = self.reach(*rank, part, axis, at);
            change[*reach.start()] += 1;
            change[reach.end() + 1] -= 1;
        }
        let counts = change[..=at.len()].iter().scan(0, |now, change| {
            *now += change;
            Some(*now as f64)
        });
        let (mut all, mut squares, mut most) = (0.0, 0.0, 0.0f64);
        for count in counts {
            all += count;
            squares += count * count;
            most = most.max(count);
        }
        let rules = ranks.len() as f64;
        if all >= rules * (at.len() + 1) as f64 {
            return None;
        }
        // A penalty if some subpart keeps all rules.
        let none_gone = if most >= rules { 4.0 } else { 1.0 };
        Some(squares / all * (all / rules) * none_gone)
    }
}
