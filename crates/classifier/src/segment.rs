//! Superblocks: runs of neighbouring rules that are searched in trees.
//!
//! Between two rules with side effects (`match`, `anchor`, `tag`, …) the evaluation of a rule set
//! only looks for the deciding rule. That is the first `quick` rule that matches, or else the last
//! of the others. So a run of rules that only decide is a list in which the first match wins. The
//! compiler builds trees over it, one tree set for each kind of packet.
//!
//! Rules that a search finds are evaluated like any rule. A box may be wider than its rule, but
//! never narrower. A box is marked as whole only if every packet in it matches.
//!
//! The runs of rules in between have side effects, so all of their matching rules act, in order.
//! They are superblocks too. In their trees no rule hides another: a search finds each rule whose
//! box contains the packet, and evaluation skips the others.

use std::collections::BTreeMap;
use std::ops::Range;

use skipstep_abi as abi;
use skipstep_abi::forest::{
    CELL_WORDS, FOREST_NONE, FOREST_WALK, FORESTS, ORDER_SHIFT, STRETCH_ASKS, STRETCH_FIRST,
    STRETCH_MEETS_ALL, forest_of, stretch_asks,
};
use skipstep_abi::limits::MATCH_RULES;
use skipstep_abi::verdict::direction;
use skipstep_ruleset::{Evaluator, Options};

use crate::asked::{self, Asks};
use crate::boxes::{coverings, inet_addresses, inet6_addresses, only_decides};
use crate::packets::Packets;
use crate::planner::Planner;
use crate::spread::{self, Spread};
use crate::standing::{Planted, Standing, Stretch, Trees};
use crate::tree::{Covering, Forest, INET, INET_ASKED, INET6, INET6_ASKED, Space};
use crate::walk::{LONG_WALK, longest_walks};

/// Most superblocks of a rule set that only decide, because each is a search if they alternate with
/// rules that act. Shorter runs belong to the superblock around them.
const MOST_THAT_DECIDE: usize = 64;
/// Number of sample headers that estimate how many rules of a superblock match one packet.
const PROBES: usize = 64;

/// The trees of all rule sets.
pub(crate) struct Forestry {
    pub cells: Vec<abi::Cell>,
    /// Positions of the rule sets and of their trees, by anchor path.
    pub sets: BTreeMap<String, Planted>,
    /// Evaluation steps that searches take, besides the steps for the rules that they find.
    pub steps: u32,
    /// Most nodes that one search reads.
    pub longest: u32,
}

impl Forestry {
    /// Returns the rule sets without trees.
    pub fn bare(sets: &[(String, Range<usize>)]) -> Self {
        let trees = |rules: &Range<usize>| Trees { walked: rules.len() as u32, ..Trees::default() };
        let place = |rules: &Range<usize>| Planted {
            rules: rules.clone(),
            trees: trees(rules),
            ..Planted::default()
        };
        let sets = sets.iter().map(|(path, rules)| (path.clone(), place(rules))).collect();
        Forestry { cells: Vec::new(), sets, steps: 0, longest: 0 }
    }
}

/// Returns the most rules, over all rule sets, that one packet may be evaluated against.
pub(crate) fn longest_walk(forestry: &Forestry, rules: &[abi::Rule], options: &Options) -> u32 {
    let kinds = [direction::IN, direction::OUT].into_iter();
    let kinds = kinds.flat_map(|direction| (0..FORESTS).map(move |n| Packets::new(direction, n)));
    let kinds: Vec<Packets> = kinds.collect();
    // Fragments are not searched in trees.
    let skips = options.evaluator == Evaluator::SkipSteps
        || (options.evaluator == Evaluator::Compiled && !options.reassemble);
    let of_set = |set: &Planted| match skips {
        true if set.rules.len() > LONG_WALK as usize => {
            longest_walks(rules, set.rules.clone(), &kinds).into_iter().max().unwrap_or(0)
        }
        true => set.rules.len() as u32,
        false => set.trees.walked,
    };
    forestry.sets.values().map(of_set).sum()
}

/// Builds the trees of rule sets at these positions in `rules`, and marks the rules at which a
/// search begins. Expands the tables in `spread`. Copies the trees of rule sets in `standing`.
pub(crate) fn plant(
    rules: &mut [abi::Rule],
    sets: &[(String, Range<usize>)],
    planner: Planner,
    spread: &Spread,
    standing: &Standing,
) -> Forestry {
    // Node 0 belongs to no superblock.
    let mut cells = vec![abi::Cell::default()];
    let mut planted = BTreeMap::new();
    for (path, place) in sets {
        let begin = cells.len();
        let trees = standing.trees(path, place.start, &mut cells).unwrap_or_else(|| {
            let trees = plant_one(rules, place.clone(), planner, spread, &mut cells);
            keep_beginnings(&mut rules[place.clone()], place.start, &trees.stretches);
            trees
        });
        for Stretch { rules: of_stretch, meets_all, cell } in &trees.stretches {
            let marked = if *meets_all { of_stretch.len() } else { 1 };
            let those = &mut rules[place.start + of_stretch.start..][..marked];
            those.iter_mut().for_each(|rule| rule.segment = (begin + cell) as u32);
        }
        let own = if trees.stretches.is_empty() { 0..0 } else { begin..cells.len() };
        let place = Planted { rules: place.clone(), cells: own, trees };
        planted.insert(path.clone(), place);
    }
    let longest = planted.values().map(|set| set.trees.longest).max().unwrap_or(0);
    Forestry { steps: steps(&planted, &cells), cells, longest, sets: planted }
}

/// Returns the evaluation steps of all searches, besides those for the rules that they find.
///
/// A search takes a step to begin and one to end. A search for candidates restarts behind each rule
/// that translates or sets another tag, at most `MATCH_RULES` times. When a rule first reads the
/// packet's tag or owner, the search restarts and may evaluate rules a second time.
fn steps(sets: &BTreeMap<String, Planted>, cells: &[abi::Cell]) -> u32 {
    let stretches = || sets.values().flat_map(|set| &set.trees.stretches);
    let asking = sets.values().flat_map(|set| {
        let asks = |stretch: &&Stretch| {
            cells[set.cells.start + stretch.cell].word[STRETCH_ASKS] != stretch_asks::NOTHING
        };
        set.trees.stretches.iter().filter(asks)
    });
    let anew = stretches().any(|stretch| stretch.meets_all);
    let longest = asking.map(|stretch| stretch.rules.len() as u32).max();
    let begun = if anew { MATCH_RULES as u32 } else { 0 };
    let looked = longest.map_or(0, |rules| 2 * (MATCH_RULES as u32 + 2) + rules);
    2 * stretches().count() as u32 + begun + looked
}

/// Builds the trees of the rule set at this position.
fn plant_one(
    rules: &[abi::Rule],
    set: Range<usize>,
    planner: Planner,
    spread: &Spread,
    cells: &mut Vec<abi::Cell>,
) -> Trees {
    let (begin, first) = (cells.len(), set.start);
    let mut trees = Trees { walked: set.len() as u32, ..Trees::default() };
    for (place, meets_all) in stretches(rules, set, planner) {
        let cell = cells.len() - begin;
        let worst = add_segment(rules, (place.clone(), meets_all), planner, spread, cells);
        trees.longest = trees.longest.max(worst.cells);
        trees.walked -= place.len() as u32 - worst.rules.min(place.len() as u32);
        let place = place.start - first..place.end - first;
        trees.stretches.push(Stretch { rules: place, meets_all, cell });
    }
    trees
}

/// Returns the superblocks of a rule set that are long enough for a search. The flag is true for a
/// superblock with side effects, whose search returns all candidates.
fn stretches(
    rules: &[abi::Rule],
    set: Range<usize>,
    planner: Planner,
) -> Vec<(Range<usize>, bool)> {
    let shortest = planner.sooner_walked as usize;
    let alone = shortest.max(set.len() / MOST_THAT_DECIDE);
    let mut stretches = Vec::new();
    let (mut between, mut start) = (set.start, set.start);
    while start < set.end {
        let end = (start..set.end).find(|at| !only_decides(&rules[*at])).unwrap_or(set.end);
        if end - start > alone {
            stretches.push((between..start, true));
            stretches.push((start..end, false));
            between = end;
        }
        start = end + 1;
    }
    stretches.push((between..set.end, true));
    stretches.retain(|(rules, _)| rules.len() > shortest);
    stretches
}

/// Redirects skip steps that lead from outside into a superblock that only decides. They lead to
/// its first rule instead, where the search begins. `rules` are those of one rule set; `first` is
/// the index of its first rule.
fn keep_beginnings(rules: &mut [abi::Rule], first: usize, stretches: &[Stretch]) {
    let around = |place: usize| {
        let next = stretches.partition_point(|stretch| stretch.rules.end <= place);
        let stretch = stretches.get(next).filter(|stretch| stretch.rules.contains(&place));
        stretch.filter(|stretch| !stretch.meets_all)
    };
    for (place, rule) in rules.iter_mut().enumerate() {
        for skip in &mut rule.skip {
            if let Some(stretch) = around(*skip as usize - first)
                && !stretch.rules.contains(&place)
            {
                *skip = (first + stretch.rules.start) as u32;
            }
        }
    }
}

/// The cost of a superblock for the most expensive packet.
struct Worst {
    /// Most nodes that one search reads.
    cells: u32,
    /// Most rules that are evaluated.
    rules: u32,
}

/// Appends a superblock: a header node for each direction, then the tree sets. A header has the
/// superblock's end and the positions of its tree sets.
fn add_segment(
    rules: &[abi::Rule],
    place: (Range<usize>, bool),
    planner: Planner,
    spread: &Spread,
    cells: &mut Vec<abi::Cell>,
) -> Worst {
    let asks = Asks::of_stretch(&rules[place.0.clone()], planner.sooner_walked);
    if asks.is_some() {
        add_segment_in((&INET_ASKED, &INET6_ASKED), rules, place, planner, (spread, asks), cells)
    } else {
        add_segment_in((&INET, &INET6), rules, place, planner, (spread, None), cells)
    }
}

fn add_segment_in<const N: usize, const N6: usize>(
    (inet, inet6): (&'static Space<N>, &'static Space<N6>),
    rules: &[abi::Rule],
    (stretch, meets_all): (Range<usize>, bool),
    planner: Planner,
    (spread, asks): (&Spread, Option<Asks>),
    cells: &mut Vec<abi::Cell>,
) -> Worst {
    let besides = (spread::of_stretch(&rules[stretch.clone()], spread), asks);
    let head = cells.len();
    cells.extend([abi::Cell::default(); 2]);
    let all = || (stretch.clone(), meets_all);
    let boxes = |kind: &Packets| coverings(inet, rules, all(), kind, besides, inet_addresses);
    let boxes6 = |kind: &Packets| coverings(inet6, rules, all(), kind, besides, inet6_addresses);
    let candidates = |kind: &Packets| match kind.family {
        _ if !meets_all => 0,
        abi::INET6 => candidates(inet6, &boxes6(kind)),
        _ => candidates(inet, &boxes(kind)),
    };
    let (mut inet, mut inet6) = (Forests::new(inet), Forests::new(inet6));
    let kinds = |direction| (0..FORESTS).map(move |number| Packets::new(direction, number));
    let kinds: Vec<Packets> = [direction::IN, direction::OUT].into_iter().flat_map(kinds).collect();
    let walks = longest_walks(rules, stretch.clone(), &kinds);
    let mut worst = Worst { cells: 0, rules: 0 };
    let mut searched = kinds.into_iter().zip(walks).map(|(kind, walked)| {
        let spared = walked.saturating_sub(planner.sooner_walked);
        let gains = spared > 0 && spared > planner.of_a_candidate * candidates(&kind);
        if !gains {
            worst.rules = worst.rules.max(walked);
        }
        gains.then_some(kind)
    });
    for head in [head, head + 1] {
        let kinds: Vec<Option<Packets>> = searched.by_ref().take(FORESTS).collect();
        let (of_inet, of_inet6) = kinds.split_at(forest_of::INET6);
        let mut places = inet.places(of_inet, boxes, cells);
        places.extend(inet6.places(of_inet6, boxes6, cells));
        cells[head].word[0] = stretch.end as u32;
        cells[head].word[1..=FORESTS].copy_from_slice(&places);
        cells[head].word[STRETCH_MEETS_ALL] = meets_all.into();
        cells[head].word[STRETCH_FIRST] = stretch.start as u32;
        cells[head].word[STRETCH_ASKS] = asks.map_or(stretch_asks::NOTHING, Asks::number);
    }
    worst.cells = inet.longest.max(inet6.longest);
    worst.rules = worst.rules.max(inet.tested).max(inet6.tested);
    worst
}

/// Returns the average number of boxes that contain a packet which is in one of them. Boxes for
/// unread metadata do not count, because they hide each other.
fn candidates<const N: usize>(space: &Space<N>, rules: &[Covering<N>]) -> u32 {
    let step = rules.len().div_ceil(PROBES).max(1);
    let regions = rules.iter().map(|rule| &rule.region);
    let known = regions.filter(|region| !asked::is_unknown(space, region));
    let probes: Vec<[u32; N]> = known.step_by(step).map(|region| region.low).collect();
    let having = |point| rules.iter().filter(|rule| rule.region.has(point)).count();
    let all: usize = probes.iter().map(having).sum();
    (all / probes.len().max(1)) as u32
}

/// Returns the most rules that are evaluated for one packet, estimated by sample headers. Returns 0
/// if they cannot exceed [`LONG_WALK`].
fn most_tested<const N: usize>(rules: &[Covering<N>]) -> u32 {
    let tested: Vec<_> = rules.iter().filter(|rule| !rule.whole).map(|rule| &rule.region).collect();
    if tested.len() <= LONG_WALK as usize {
        return 0;
    }
    let step = tested.len() / PROBES;
    let points = tested.iter().step_by(step).map(|region| &region.low);
    let having = |point| tested.iter().filter(|region| region.has(point)).count() as u32;
    points.map(having).max().unwrap_or(0)
}

/// The tree sets of a superblock in one family. Kinds of packets with the same boxes share one.
struct Forests<const N: usize> {
    space: &'static Space<N>,
    known: Vec<(Vec<Covering<N>>, u32)>,
    /// Most nodes that one search reads.
    longest: u32,
    /// Most rules that are evaluated for one packet.
    tested: u32,
}

impl<const N: usize> Forests<N> {
    fn new(space: &'static Space<N>) -> Self {
        Forests { space, known: Vec::new(), longest: 0, tested: 0 }
    }

    /// Returns the positions of the tree sets of these kinds of packets; `None` is a kind that uses
    /// skip steps.
    ///
    /// A rule without a protocol has a box in the tree set of every protocol. If there are many
    /// such rules, the kinds share a tree set.
    fn places(
        &mut self,
        kinds: &[Option<Packets>],
        boxes: impl Fn(&Packets) -> Vec<Covering<N>>,
        cells: &mut Vec<abi::Cell>,
    ) -> Vec<u32> {
        let Some(any) = kinds.iter().flatten().next() else {
            return vec![FOREST_WALK; kinds.len()];
        };
        let of_each: Vec<_> = kinds.iter().flatten().map(|kind| (kind, boxes(kind))).collect();
        let begin = || of_each.iter().filter(|(kind, _)| !kind.follows);
        // With one kind there are no copies.
        let of_all = match begin().count() {
            0 | 1 => Vec::new(),
            _ => boxes(&any.of_all_protocols()),
        };
        let copies: usize = begin().map(|(_, rules)| rules.len()).sum();
        let shared = !of_all.is_empty() && copies * 4 > of_all.len() * 5;
        let mut of_each = of_each.into_iter();
        let place = |kind: &Option<Packets>| {
            if kind.is_none() {
                return FOREST_WALK;
            }
            match of_each.next() {
                Some((kind, rules)) if shared && kind.is_part_of(self.space, &of_all, &rules) => {
                    self.place(of_all.clone(), cells)
                }
                Some((_, rules)) => self.place(rules, cells),
                None => FOREST_WALK,
            }
        };
        kinds.iter().map(place).collect()
    }

    /// Returns the position of the tree set of these boxes, or `FOREST_NONE` without boxes. Builds
    /// a tree set only for boxes that have none yet.
    fn place(&mut self, rules: Vec<Covering<N>>, cells: &mut Vec<abi::Cell>) -> u32 {
        if rules.is_empty() {
            return FOREST_NONE;
        }
        if let Some((_, place)) = self.known.iter().find(|(known, _)| *known == rules) {
            return *place;
        }
        let place = cells.len() as u32;
        let forest = Forest::plant(self.space, &rules);
        self.longest = self.longest.max(forest.longest);
        self.tested = self.tested.max(most_tested(&rules));
        let roots = 2 + 2 * forest.roots.len();
        let first = roots.div_ceil(CELL_WORDS);
        let mut head = vec![forest.roots.len() as u32, forest.longest];
        head.extend(
            forest
                .roots
                .iter()
                .flat_map(|root| [first as u32 + root.cell, root.best << ORDER_SHIFT]),
        );
        head.resize(roots.next_multiple_of(CELL_WORDS), 0);
        for words in head.chunks_exact(CELL_WORDS) {
            cells.push(abi::Cell { word: words.try_into().expect("a chunk has that length") });
        }
        cells.extend(forest.cells.iter().map(|cell| abi::Cell { word: cell.0 }));
        self.known.push((rules, place));
        place
    }
}
