//! Superblocks: runs of neighbouring rules that are searched in trees.
//!
//! Between two rules with side effects (`match`, `anchor`, `tag`, …) the evaluation of a rule set
//! only looks for the deciding rule. That is the first `quick` rule that matches, or else the last
//! of the others. So a run of rules that only decide is a list in which the first match wins. The
//! compiler builds trees over it, one tree set for each kind of packet.
//!
//! Rules that a search finds are evaluated like any rule. A rectangle may be wider than its rule,
//! but never narrower. A rectangle is marked as whole only if every packet in it matches.
//!
//! The runs of rules in between have side effects, so all of their matching rules act, in order.
//! They are superblocks too. In their trees no rule hides another: a search finds each rule whose
//! rectangle contains the packet, and evaluation skips the others.

use std::collections::BTreeMap;
use std::ops::Range;

use skipstep_abi as abi;
use skipstep_abi::limits::MATCH_RULES;
use skipstep_abi::tree_set::{
    NODE_WORDS, ORDER_SHIFT, SUPERBLOCK_FIRST, SUPERBLOCK_MEETS_ALL, SUPERBLOCK_METADATA,
    TREE_SET_NONE, TREE_SET_WALK, TREE_SETS, superblock_metadata, tree_set_of,
};
use skipstep_abi::verdict::direction;
use skipstep_ruleset::{Evaluator, Options};

use crate::metadata::{self, Metadata};
use crate::packets::Packets;
use crate::planner::Planner;
use crate::rects::{coverings, inet_addresses, inet6_addresses, only_decides};
use crate::table_expansion::{self, TableExpansions};
use crate::tree::{Covering, INET, INET_METADATA, INET6, INET6_METADATA, Space, TreeSet};
use crate::unchanged::{CompiledSet, Superblock, Trees, Unchanged};
use crate::walk::{LONG_WALK, longest_walks};

/// Most superblocks of a rule set that only decide, because each is a search if they alternate with
/// rules that act. Shorter runs belong to the superblock around them.
const MOST_THAT_DECIDE: usize = 64;
/// Number of sample headers that estimate how many rules of a superblock match one packet.
const PROBES: usize = 64;

/// The trees of all rule sets.
pub(crate) struct AllTrees {
    pub nodes: Vec<abi::Node>,
    /// Positions of the rule sets and of their trees, by anchor path.
    pub sets: BTreeMap<String, CompiledSet>,
    /// Evaluation steps that searches take, besides the steps for the rules that they find.
    pub steps: u32,
    /// Most nodes that one search reads.
    pub longest: u32,
}

impl AllTrees {
    /// Returns the rule sets without trees.
    pub fn unsearched(sets: &[(String, Range<usize>)]) -> Self {
        let trees = |rules: &Range<usize>| Trees { walked: rules.len() as u32, ..Trees::default() };
        let place = |rules: &Range<usize>| CompiledSet {
            rules: rules.clone(),
            trees: trees(rules),
            ..CompiledSet::default()
        };
        let sets = sets.iter().map(|(path, rules)| (path.clone(), place(rules))).collect();
        AllTrees { nodes: Vec::new(), sets, steps: 0, longest: 0 }
    }
}

/// Returns the most rules, over all rule sets, that one packet may be evaluated against.
pub(crate) fn longest_walk(all_trees: &AllTrees, rules: &[abi::Rule], options: &Options) -> u32 {
    let kinds = [direction::IN, direction::OUT].into_iter();
    let kinds = kinds.flat_map(|direction| (0..TREE_SETS).map(move |n| Packets::new(direction, n)));
    let kinds: Vec<Packets> = kinds.collect();
    // Fragments are not searched in trees.
    let skips = options.evaluator == Evaluator::SkipSteps
        || (options.evaluator == Evaluator::Compiled && !options.reassemble);
    let of_set = |set: &CompiledSet| match skips {
        true if set.rules.len() > LONG_WALK as usize => {
            longest_walks(rules, set.rules.clone(), &kinds).into_iter().max().unwrap_or(0)
        }
        true => set.rules.len() as u32,
        false => set.trees.walked,
    };
    all_trees.sets.values().map(of_set).sum()
}

/// Builds the trees of rule sets at these positions in `rules`, and marks the rules at which a
/// search begins. Expands the tables in `expansions`. Copies the trees of rule sets in `unchanged`.
pub(crate) fn build_trees(
    rules: &mut [abi::Rule],
    sets: &[(String, Range<usize>)],
    planner: Planner,
    expansions: &TableExpansions,
    unchanged: &Unchanged,
) -> AllTrees {
    // Node 0 belongs to no superblock.
    let mut nodes = vec![abi::Node::default()];
    let mut compiled = BTreeMap::new();
    for (path, place) in sets {
        let begin = nodes.len();
        let trees = unchanged.trees(path, place.start, &mut nodes).unwrap_or_else(|| {
            let trees = build_rule_set(rules, place.clone(), planner, expansions, &mut nodes);
            keep_beginnings(&mut rules[place.clone()], place.start, &trees.superblocks);
            trees
        });
        for Superblock { rules: of_superblock, meets_all, node } in &trees.superblocks {
            let marked = if *meets_all { of_superblock.len() } else { 1 };
            let those = &mut rules[place.start + of_superblock.start..][..marked];
            those.iter_mut().for_each(|rule| rule.superblock = (begin + node) as u32);
        }
        let own = if trees.superblocks.is_empty() { 0..0 } else { begin..nodes.len() };
        let place = CompiledSet { rules: place.clone(), nodes: own, trees };
        compiled.insert(path.clone(), place);
    }
    let longest = compiled.values().map(|set| set.trees.longest).max().unwrap_or(0);
    AllTrees { steps: steps(&compiled, &nodes), nodes, longest, sets: compiled }
}

/// Returns the evaluation steps of all searches, besides those for the rules that they find.
///
/// A search takes a step to begin and one to end. A search for candidates restarts behind each rule
/// that translates or sets another tag, at most `MATCH_RULES` times. When a rule first reads the
/// packet's tag or owner, the search restarts and may evaluate rules a second time.
fn steps(sets: &BTreeMap<String, CompiledSet>, nodes: &[abi::Node]) -> u32 {
    let superblocks = || sets.values().flat_map(|set| &set.trees.superblocks);
    let asking = sets.values().flat_map(|set| {
        let metadata = |superblock: &&Superblock| {
            nodes[set.nodes.start + superblock.node].word[SUPERBLOCK_METADATA]
                != superblock_metadata::NOTHING
        };
        set.trees.superblocks.iter().filter(metadata)
    });
    let anew = superblocks().any(|superblock| superblock.meets_all);
    let longest = asking.map(|superblock| superblock.rules.len() as u32).max();
    let begun = if anew { MATCH_RULES as u32 } else { 0 };
    let looked = longest.map_or(0, |rules| 2 * (MATCH_RULES as u32 + 2) + rules);
    2 * superblocks().count() as u32 + begun + looked
}

/// Builds the trees of the rule set at this position.
fn build_rule_set(
    rules: &[abi::Rule],
    set: Range<usize>,
    planner: Planner,
    expansions: &TableExpansions,
    nodes: &mut Vec<abi::Node>,
) -> Trees {
    let (begin, first) = (nodes.len(), set.start);
    let mut trees = Trees { walked: set.len() as u32, ..Trees::default() };
    for (place, meets_all) in superblocks(rules, set, planner) {
        let node = nodes.len() - begin;
        let worst = add_superblock(rules, (place.clone(), meets_all), planner, expansions, nodes);
        trees.longest = trees.longest.max(worst.nodes);
        trees.walked -= place.len() as u32 - worst.rules.min(place.len() as u32);
        let place = place.start - first..place.end - first;
        trees.superblocks.push(Superblock { rules: place, meets_all, node });
    }
    trees
}

/// Returns the superblocks of a rule set that are long enough for a search. The flag is true for a
/// superblock with side effects, whose search returns all candidates.
fn superblocks(
    rules: &[abi::Rule],
    set: Range<usize>,
    planner: Planner,
) -> Vec<(Range<usize>, bool)> {
    let shortest = planner.search_cost as usize;
    let alone = shortest.max(set.len() / MOST_THAT_DECIDE);
    let mut superblocks = Vec::new();
    let (mut between, mut start) = (set.start, set.start);
    while start < set.end {
        let end = (start..set.end).find(|at| !only_decides(&rules[*at])).unwrap_or(set.end);
        if end - start > alone {
            superblocks.push((between..start, true));
            superblocks.push((start..end, false));
            between = end;
        }
        start = end + 1;
    }
    superblocks.push((between..set.end, true));
    superblocks.retain(|(rules, _)| rules.len() > shortest);
    superblocks
}

/// Redirects skip steps that lead from outside into a superblock that only decides. They lead to
/// its first rule instead, where the search begins. `rules` are those of one rule set; `first` is
/// the index of its first rule.
fn keep_beginnings(rules: &mut [abi::Rule], first: usize, superblocks: &[Superblock]) {
    let around = |place: usize| {
        let next = superblocks.partition_point(|superblock| superblock.rules.end <= place);
        let superblock =
            superblocks.get(next).filter(|superblock| superblock.rules.contains(&place));
        superblock.filter(|superblock| !superblock.meets_all)
    };
    for (place, rule) in rules.iter_mut().enumerate() {
        for skip in &mut rule.skip {
            if let Some(superblock) = around(*skip as usize - first)
                && !superblock.rules.contains(&place)
            {
                *skip = (first + superblock.rules.start) as u32;
            }
        }
    }
}

/// The cost of a superblock for the most expensive packet.
struct Worst {
    /// Most nodes that one search reads.
    nodes: u32,
    /// Most rules that are evaluated.
    rules: u32,
}

/// Appends a superblock: a header node for each direction, then the tree sets. A header has the
/// superblock's end and the positions of its tree sets.
fn add_superblock(
    rules: &[abi::Rule],
    place: (Range<usize>, bool),
    planner: Planner,
    expansions: &TableExpansions,
    nodes: &mut Vec<abi::Node>,
) -> Worst {
    let metadata = Metadata::most_frequent(&rules[place.0.clone()], planner.search_cost);
    if metadata.is_some() {
        add_superblock_in(
            (&INET_METADATA, &INET6_METADATA),
            rules,
            place,
            planner,
            (expansions, metadata),
            nodes,
        )
    } else {
        add_superblock_in((&INET, &INET6), rules, place, planner, (expansions, None), nodes)
    }
}

fn add_superblock_in<const N: usize, const N6: usize>(
    (inet, inet6): (&'static Space<N>, &'static Space<N6>),
    rules: &[abi::Rule],
    (superblock, meets_all): (Range<usize>, bool),
    planner: Planner,
    (expansions, metadata): (&TableExpansions, Option<Metadata>),
    nodes: &mut Vec<abi::Node>,
) -> Worst {
    let besides =
        (table_expansion::tables_of_superblock(&rules[superblock.clone()], expansions), metadata);
    let head = nodes.len();
    nodes.extend([abi::Node::default(); 2]);
    let all = || (superblock.clone(), meets_all);
    let rects = |kind: &Packets| coverings(inet, rules, all(), kind, besides, inet_addresses);
    let boxes6 = |kind: &Packets| coverings(inet6, rules, all(), kind, besides, inet6_addresses);
    let candidates = |kind: &Packets| match kind.family {
        _ if !meets_all => 0,
        abi::INET6 => candidates(inet6, &boxes6(kind)),
        _ => candidates(inet, &rects(kind)),
    };
    let (searched, walked) = searched_kinds(rules, superblock.clone(), planner, candidates);
    let (mut inet, mut inet6) = (TreeSets::new(inet), TreeSets::new(inet6));
    for (head, kinds) in (head..).zip(searched.chunks(TREE_SETS)) {
        let (of_inet, of_inet6) = kinds.split_at(tree_set_of::INET6);
        let mut places = inet.places(of_inet, rects, nodes);
        places.extend(inet6.places(of_inet6, boxes6, nodes));
        nodes[head] = header(all(), metadata, &places);
    }
    Worst {
        nodes: inet.longest.max(inet6.longest),
        rules: walked.max(inet.tested).max(inet6.tested),
    }
}

/// Returns the kinds of packets, those of inbound packets first, and the most rules that are
/// evaluated for a packet of a kind without a tree set. `None` is a kind for which a search would
/// cost more than skip steps. `candidates` returns the average number of rules that a search
/// returns.
fn searched_kinds(
    rules: &[abi::Rule],
    superblock: Range<usize>,
    planner: Planner,
    candidates: impl Fn(&Packets) -> u32,
) -> (Vec<Option<Packets>>, u32) {
    let kinds = |direction| (0..TREE_SETS).map(move |number| Packets::new(direction, number));
    let kinds: Vec<Packets> = [direction::IN, direction::OUT].into_iter().flat_map(kinds).collect();
    let walks = longest_walks(rules, superblock, &kinds);
    let mut longest = 0;
    let searched = kinds.into_iter().zip(walks).map(|(kind, walked)| {
        let spared = walked.saturating_sub(planner.search_cost);
        let gains = spared > 0 && spared > planner.candidate_cost * candidates(&kind);
        if !gains {
            longest = longest.max(walked);
        }
        gains.then_some(kind)
    });
    (searched.collect(), longest)
}

/// Returns the header node of a superblock for one direction. `places` are the positions of its
/// tree sets.
fn header(
    (superblock, meets_all): (Range<usize>, bool),
    metadata: Option<Metadata>,
    places: &[u32],
) -> abi::Node {
    let mut header = abi::Node::default();
    header.word[0] = superblock.end as u32;
    header.word[1..=TREE_SETS].copy_from_slice(places);
    header.word[SUPERBLOCK_MEETS_ALL] = meets_all.into();
    header.word[SUPERBLOCK_FIRST] = superblock.start as u32;
    header.word[SUPERBLOCK_METADATA] =
        metadata.map_or(superblock_metadata::NOTHING, Metadata::number);
    header
}

/// Returns the average number of rectangles that contain a packet which is in one of them.
/// Rectangles for unread metadata do not count, because they hide each other.
fn candidates<const N: usize>(space: &Space<N>, rules: &[Covering<N>]) -> u32 {
    let step = rules.len().div_ceil(PROBES).max(1);
    let rects = rules.iter().map(|rule| &rule.rect);
    let known = rects.filter(|rect| !metadata::is_unknown(space, rect));
    let probes: Vec<[u32; N]> = known.step_by(step).map(|rect| rect.low).collect();
    let having = |point| rules.iter().filter(|rule| rule.rect.has(point)).count();
    let all: usize = probes.iter().map(having).sum();
    (all / probes.len().max(1)) as u32
}

/// Returns the most rules that are evaluated for one packet, estimated by sample headers. Returns 0
/// if they cannot exceed [`LONG_WALK`].
fn most_tested<const N: usize>(rules: &[Covering<N>]) -> u32 {
    let tested: Vec<_> = rules.iter().filter(|rule| !rule.whole).map(|rule| &rule.rect).collect();
    if tested.len() <= LONG_WALK as usize {
        return 0;
    }
    let step = tested.len() / PROBES;
    let points = tested.iter().step_by(step).map(|rect| &rect.low);
    let having = |point| tested.iter().filter(|rect| rect.has(point)).count() as u32;
    points.map(having).max().unwrap_or(0)
}

/// The tree sets of a superblock in one family. Kinds of packets with the same rectangles share
/// one.
struct TreeSets<const N: usize> {
    space: &'static Space<N>,
    known: Vec<(Vec<Covering<N>>, u32)>,
    /// Most nodes that one search reads.
    longest: u32,
    /// Most rules that are evaluated for one packet.
    tested: u32,
}

impl<const N: usize> TreeSets<N> {
    fn new(space: &'static Space<N>) -> Self {
        TreeSets { space, known: Vec::new(), longest: 0, tested: 0 }
    }

    /// Returns the positions of the tree sets of these kinds of packets; `None` is a kind that uses
    /// skip steps.
    ///
    /// A rule without a protocol has a rectangle in the tree set of every protocol. If there are
    /// many such rules, the kinds share a tree set.
    fn places(
        &mut self,
        kinds: &[Option<Packets>],
        rects: impl Fn(&Packets) -> Vec<Covering<N>>,
        nodes: &mut Vec<abi::Node>,
    ) -> Vec<u32> {
        let Some(any) = kinds.iter().flatten().next() else {
            return vec![TREE_SET_WALK; kinds.len()];
        };
        let of_each: Vec<_> = kinds.iter().flatten().map(|kind| (kind, rects(kind))).collect();
        let begin = || of_each.iter().filter(|(kind, _)| !kind.follows);
        // With one kind there are no copies.
        let of_all = match begin().count() {
            0 | 1 => Vec::new(),
            _ => rects(&any.of_all_protocols()),
        };
        let copies: usize = begin().map(|(_, rules)| rules.len()).sum();
        let shared = !of_all.is_empty() && copies * 4 > of_all.len() * 5;
        let mut of_each = of_each.into_iter();
        let place = |kind: &Option<Packets>| {
            if kind.is_none() {
                return TREE_SET_WALK;
            }
            match of_each.next() {
                Some((kind, rules)) if shared && kind.is_part_of(self.space, &of_all, &rules) => {
                    self.place(of_all.clone(), nodes)
                }
                Some((_, rules)) => self.place(rules, nodes),
                None => TREE_SET_WALK,
            }
        };
        kinds.iter().map(place).collect()
    }

    /// Returns the position of the tree set of these rectangles, or `TREE_SET_NONE` without
    /// rectangles. Builds a tree set only for rectangles that have none yet.
    fn place(&mut self, rules: Vec<Covering<N>>, nodes: &mut Vec<abi::Node>) -> u32 {
        if rules.is_empty() {
            return TREE_SET_NONE;
        }
        if let Some((_, place)) = self.known.iter().find(|(known, _)| *known == rules) {
            return *place;
        }
        let place = nodes.len() as u32;
        let tree_set = TreeSet::build(self.space, &rules);
        self.longest = self.longest.max(tree_set.longest);
        self.tested = self.tested.max(most_tested(&rules));
        let roots = 2 + 2 * tree_set.roots.len();
        let first = roots.div_ceil(NODE_WORDS);
        let mut head = vec![tree_set.roots.len() as u32, tree_set.longest];
        head.extend(
            tree_set
                .roots
                .iter()
                .flat_map(|root| [first as u32 + root.node, root.best << ORDER_SHIFT]),
        );
        head.resize(roots.next_multiple_of(NODE_WORDS), 0);
        for words in head.chunks_exact(NODE_WORDS) {
            nodes.push(abi::Node { word: words.try_into().expect("a chunk has that length") });
        }
        nodes.extend(tree_set.nodes.iter().map(|node| abi::Node { word: node.0 }));
        self.known.push((rules, place));
        place
    }
}
