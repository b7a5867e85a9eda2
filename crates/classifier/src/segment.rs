//! Stretches of rules that trees search.
//!
//! Between two rules that do something on the way (`match`, `anchor`, `tag`, …) the walk over a
//! rule set only looks for the one that decides: the first `quick` rule that matches, or else the
//! last of the others. So a stretch of rules that do nothing but decide is a list in which the
//! first match wins, and trees are planted of it, one forest for each kind of packet. What they
//! find is tested like any rule: a box may be wider than its rule, never narrower, and is called
//! whole only if every packet in it matches.
//!
//! The rules between such stretches act on the way, so all of them that match are to be met, one
//! after the other. They are stretches too, in whose trees no rule hides another: a search finds
//! each rule whose box has the packet, and the walk passes over the others.

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

/// A rule set has no more stretches of which one rule decides: where they alternate with rules that
/// act, each is a search. Shorter ones belong to what is between.
const MOST_THAT_DECIDE: usize = 64;
/// Headers by which is told how many rules of a stretch may match one.
const PROBES: usize = 64;

/// The trees of all rule sets.
pub(crate) struct Forestry {
    pub cells: Vec<abi::Cell>,
    /// Where the rule sets are, with their trees.
    pub sets: BTreeMap<String, Planted>,
    /// Steps of a walk that searches take besides those for the rules they find.
    pub steps: u32,
    /// Cells that the longest search in one looks at.
    pub longest: u32,
}

impl Forestry {
    /// Rule sets that are walked.
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

/// Returns the number of rules of all sets that a packet may be tested against.
pub(crate) fn longest_walk(forestry: &Forestry, rules: &[abi::Rule], options: &Options) -> u32 {
    let kinds = [direction::IN, direction::OUT].into_iter();
    let kinds = kinds.flat_map(|direction| (0..FORESTS).map(move |n| Packets::new(direction, n)));
    let kinds: Vec<Packets> = kinds.collect();
    // no tree is for fragments
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

/// Plants the trees of rule sets that stand at these places, and marks where their stretches begin.
/// Some tables are spread. What stands already is not planted again.
pub(crate) fn plant(
    rules: &mut [abi::Rule],
    sets: &[(String, Range<usize>)],
    planner: Planner,
    spread: &Spread,
    standing: &Standing,
) -> Forestry {
    // the first cell belongs to none
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

/// A search takes a step to begin and one to end. One for candidates begins anew behind each rule
/// that translates, or, so often at most, gives the packet another tag. Once a rule looks at the
/// packet's tag, or at its owner, and a search begins anew that may meet rules once more.
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

/// Plants the trees of the rule set that stands at this place.
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

/// The stretches of a set that are long enough to be searched: of rules that do nothing but decide,
/// and of what is between them. With each stands whether all of its rules that match are met.
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

/// A skip that leads from outside into a stretch leads to its first rule, where the search for the
/// one that decides begins. The `rules` are those of a set, whose first one has this index.
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

/// The cost of the worst packet in a stretch.
struct Worst {
    /// Cells that the longest search looks at.
    cells: u32,
    /// Rules that are tested.
    rules: u32,
}

/// Adds a stretch: for either direction a cell with its end and the places of its forests, then
/// these.
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

/// How many of these boxes have a packet that is in one of them, in the mean. Those of packets that
/// nobody has looked at hide each other.
fn candidates<const N: usize>(space: &Space<N>, rules: &[Covering<N>]) -> u32 {
    let step = rules.len().div_ceil(PROBES).max(1);
    let regions = rules.iter().map(|rule| &rule.region);
    let known = regions.filter(|region| !asked::is_unknown(space, region));
    let probes: Vec<[u32; N]> = known.step_by(step).map(|region| region.low).collect();
    let having = |point| rules.iter().filter(|rule| rule.region.has(point)).count();
    let all: usize = probes.iter().map(having).sum();
    (all / probes.len().max(1)) as u32
}

/// Returns the most rules that are tested for one packet, as far as probes find, and 0 where that
/// cannot be a long walk.
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

/// The forests of a stretch in one family. Kinds of packets that mean the same to its rules share
/// one.
struct Forests<const N: usize> {
    space: &'static Space<N>,
    known: Vec<(Vec<Covering<N>>, u32)>,
    /// Cells that the longest search looks at.
    longest: u32,
    /// Rules that are tested for a packet.
    tested: u32,
}

impl<const N: usize> Forests<N> {
    fn new(space: &'static Space<N>) -> Self {
        Forests { space, known: Vec::new(), longest: 0, tested: 0 }
    }

    /// Where the forests of kinds of packets stand; none is for those that are walked.
    ///
    /// Rules that name no protocol would stand in that of each. Where they are many, the kinds
    /// share one.
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
        // one kind alone has no rule twice
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

    /// Where the forest of these rules stands, if there are any.
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
