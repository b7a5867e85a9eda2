//! Stretches of rules that trees search.
//!
//! Between two rules that do something on the way (`match`, `anchor`, `tag`, …) the walk over a rule set only looks
//! for the one that decides: the first `quick` rule that matches, or else the last of the others. So a stretch of
//! rules that do nothing but decide is a list in which the first match wins, and trees are planted of it, one forest
//! for each kind of packet. What they find is tested like any rule: a box may be wider than its rule, never narrower,
//! and is called whole only if every packet in it matches.
//!
//! The rules between such stretches act on the way, so all of them that match are to be met, one after the other. They
//! are stretches too, in whose trees no rule hides another: a search finds each rule whose box has the packet, and the
//! walk passes over the others.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use serde::{Deserialize, Serialize};
use skipstep_abi as abi;
use skipstep_abi::forest::{
    CELL_WORDS, CLASS_OTHER, FOREST_NONE, FOREST_WALK, FORESTS, ORDER_LAST, ORDER_SHIFT,
    STRETCH_MEETS_ALL, forest_of,
};
use skipstep_abi::interface::interface_match;
use skipstep_abi::limits::MATCH_RULES;
use skipstep_abi::rule::{address_kind, port_op, rule_flags as flags};
use skipstep_abi::verdict::{action, direction};

use crate::spread::{self, Spread};
use crate::tree::{Covering, Forest, INET, INET6, Region, Space};
use crate::walk::longest_walk;

/// What is searched, and what is left to skip steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planner {
    /// A search costs about as much as testing so many rules: what skip steps test no more of, whatever the
    /// packet, is walked.
    pub sooner_walked: u32,
    /// What one more costs in tests for each rule that such a search finds, if it is for all that may match.
    pub of_a_candidate: u32,
    /// If no more tables are asked by the rules of a set, none is spread ([`crate::spread`]).
    pub tables_asked: usize,
}

impl Default for Planner {
    /// As measured (docs/performance.md).
    fn default() -> Self {
        Planner { sooner_walked: 8, of_a_candidate: 2, tables_asked: 16 }
    }
}

impl Planner {
    /// For tests: small rule sets are searched too, yet some kinds of packets are left to skip steps.
    pub const EAGER: Self = Planner { sooner_walked: 2, of_a_candidate: 0, tables_asked: 2 };
}

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP6: u8 = 58;
const SCTP: u8 = 132;

const SYN: u8 = 0x02;
const SYN_ACK: u8 = 0x12;

/// A rule set has no more stretches of which one rule decides: where they alternate with rules that act, each is a search.
/// Shorter ones belong to what is between.
const MOST_THAT_DECIDE: usize = 64;
/// Headers by which is told how many rules of a stretch may match one.
const PROBES: usize = 64;

/// Rules that stand together and are searched together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Stretch {
    rules: Range<usize>,
    /// Some act on the way, so each that matches is met.
    meets_all: bool,
    /// Where its trees are.
    cell: u32,
}

/// Where the trees of some rule sets are, which stand together from the first cell on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trees {
    /// Cells that they take; the first belongs to none.
    pub cells: u32,
    /// Cells that the longest search looks at.
    pub longest: u32,
    stretches: Vec<Stretch>,
}

/// The trees of the main rule set as they are in force, if all that they are made of is as it was.
#[derive(Debug, Clone, Default)]
pub struct Standing {
    /// Where they are.
    pub trees: Trees,
    /// Their cells, and perhaps more.
    pub cells: Vec<abi::Cell>,
}

/// The trees of all stretches.
pub(crate) struct Planted {
    pub cells: Vec<abi::Cell>,
    /// Those of the main rule set.
    pub main: Trees,
    /// Steps of a walk that searches take besides those for the rules they find.
    pub steps: u32,
    /// Cells that the longest search in one looks at.
    pub longest: u32,
}

/// Plants the trees of the rule sets that stand at `sets`, the main one first, and marks where their stretches begin. Some
/// tables are spread. What stands already is not planted again.
pub(crate) fn plant(
    rules: &mut [abi::Rule],
    mut sets: impl Iterator<Item = Range<usize>>,
    planner: Planner,
    spread: &Spread,
    standing: Option<Standing>,
) -> Planted {
    let main_set = sets.next();
    let (mut cells, main) = match standing {
        Some(Standing { trees, mut cells }) => {
            cells.truncate(trees.cells as usize);
            (cells, trees)
        }
        None => {
            let (mut cells, mut main) = (vec![abi::Cell::default()], Trees::default());
            main.plant(rules, main_set.unwrap_or_default(), planner, spread, &mut cells);
            (cells, main)
        }
    };
    let mut all = main.clone();
    for set in sets {
        all.plant(rules, set, planner, spread, &mut cells);
    }
    for Stretch { rules: place, meets_all, cell } in &all.stretches {
        let marked = if *meets_all { place.len() } else { 1 };
        rules[place.clone()][..marked].iter_mut().for_each(|rule| rule.segment = *cell);
    }
    keep_beginnings(rules, &all.stretches);
    Planted { cells, main, steps: all.steps(), longest: all.longest }
}

impl Trees {
    /// A search takes a step to begin and one to end; one for candidates begins anew behind each rule that translates.
    fn steps(&self) -> u32 {
        let anew = self.stretches.iter().any(|stretch| stretch.meets_all);
        2 * self.stretches.len() as u32 + if anew { MATCH_RULES as u32 } else { 0 }
    }

    /// Adds those of a rule set.
    fn plant(
        &mut self,
        rules: &[abi::Rule],
        set: Range<usize>,
        planner: Planner,
        spread: &Spread,
        cells: &mut Vec<abi::Cell>,
    ) {
        for mut stretch in stretches(rules, set, planner) {
            stretch.cell = cells.len() as u32;
            self.longest = self.longest.max(add_segment(rules, &stretch, planner, spread, cells));
            self.stretches.push(stretch);
        }
        self.cells = cells.len() as u32;
    }
}

/// The stretches of a set that are long enough to be searched: of rules that do nothing but decide, and of what is between
/// them.
fn stretches(rules: &[abi::Rule], set: Range<usize>, planner: Planner) -> Vec<Stretch> {
    let shortest = planner.sooner_walked as usize;
    let alone = shortest.max(set.len() / MOST_THAT_DECIDE);
    let stretch = |rules, meets_all| Stretch { rules, meets_all, cell: 0 };
    let mut stretches = Vec::new();
    let (mut between, mut start) = (set.start, set.start);
    while start < set.end {
        let end = (start..set.end).find(|at| !only_decides(&rules[*at])).unwrap_or(set.end);
        if end - start > alone {
            stretches.push(stretch(between..start, true));
            stretches.push(stretch(start..end, false));
            between = end;
        }
        start = end + 1;
    }
    stretches.push(stretch(between..set.end, true));
    stretches.retain(|stretch| stretch.rules.len() > shortest);
    stretches
}

/// Whether a rule does nothing before the walk is over, whether it matches or not.
fn only_decides(rule: &abi::Rule) -> bool {
    matches!(rule.action, action::PASS | action::BLOCK)
        && rule.flags & (flags::ANCHOR | flags::ONCE | flags::PROBABILITY | flags::MAX_PKT_RATE)
            == 0
        // a packet's own tag becomes that of its state where a rule has looked at it
        && rule.tag == 0
        && rule.tagged == 0
        && rule.limiter == [0; 2]
}

/// A skip that leads from outside into a stretch leads to its first rule, where the search for the one that decides begins.
fn keep_beginnings(rules: &mut [abi::Rule], stretches: &[Stretch]) {
    let around = |index: usize| {
        let next = stretches.partition_point(|stretch| stretch.rules.end <= index);
        let stretch = stretches.get(next).filter(|stretch| stretch.rules.contains(&index));
        stretch.filter(|stretch| !stretch.meets_all)
    };
    for (index, rule) in rules.iter_mut().enumerate() {
        for skip in &mut rule.skip {
            if let Some(stretch) = around(*skip as usize)
                && !stretch.rules.contains(&index)
            {
                *skip = stretch.rules.start as u32;
            }
        }
    }
}

/// Adds a stretch: for either direction a cell with its end and the places of its forests, then these. Returns how
/// many cells the longest search looks at.
fn add_segment(
    rules: &[abi::Rule],
    stretch: &Stretch,
    planner: Planner,
    spread: &Spread,
    cells: &mut Vec<abi::Cell>,
) -> u32 {
    let spread = spread::of_stretch(&rules[stretch.rules.clone()], spread);
    let head = cells.len();
    cells.extend([abi::Cell::default(); 2]);
    let mut inet = Forests { space: &INET, known: Vec::new(), longest: 0 };
    let mut inet6 = Forests { space: &INET6, known: Vec::new(), longest: 0 };
    let boxes = |kind: &Packets| coverings(&INET, rules, stretch, kind, spread, inet_addresses);
    let boxes6 = |kind: &Packets| coverings(&INET6, rules, stretch, kind, spread, inet6_addresses);
    let candidates = |kind: &Packets| match kind.family {
        _ if !stretch.meets_all => 0,
        abi::INET6 => candidates(&boxes6(kind)),
        _ => candidates(&boxes(kind)),
    };
    for (head, direction) in [(head, direction::IN), (head + 1, direction::OUT)] {
        let kinds: Vec<Option<Packets>> = (0..FORESTS)
            .map(|number| Packets::new(direction, number))
            .map(|kind| {
                let walked = longest_walk(rules, stretch.rules.clone(), &kind);
                let spared = walked.saturating_sub(planner.sooner_walked);
                let gains = spared > 0 && spared > planner.of_a_candidate * candidates(&kind);
                gains.then_some(kind)
            })
            .collect();
        let (of_inet, of_inet6) = kinds.split_at(forest_of::INET6);
        let mut places = inet.places(of_inet, boxes, cells);
        places.extend(inet6.places(of_inet6, boxes6, cells));
        cells[head].word[0] = stretch.rules.end as u32;
        cells[head].word[1..=FORESTS].copy_from_slice(&places);
        cells[head].word[STRETCH_MEETS_ALL] = stretch.meets_all.into();
    }
    inet.longest.max(inet6.longest)
}

/// How many of these boxes have a packet that is in one of them, in the mean.
fn candidates<const N: usize>(rules: &[Covering<N>]) -> u32 {
    let step = rules.len().div_ceil(PROBES).max(1);
    let probes: Vec<[u32; N]> = rules.iter().step_by(step).map(|rule| rule.region.low).collect();
    let having = |point| rules.iter().filter(|rule| rule.region.has(point)).count();
    let all: usize = probes.iter().map(having).sum();
    (all / probes.len().max(1)) as u32
}

/// The forests of a stretch in one family. Kinds of packets that mean the same to its rules share one.
struct Forests<const N: usize> {
    space: &'static Space<N>,
    known: Vec<(Vec<Covering<N>>, u32)>,
    /// Cells that the longest search looks at.
    longest: u32,
}

impl<const N: usize> Forests<N> {
    /// Where the forests of kinds of packets stand; none is for those that are walked.
    ///
    /// Rules that name no protocol would stand in that of each. Where they are many, the kinds share one.
    fn places(
        &mut self,
        kinds: &[Option<Packets>],
        boxes: impl Fn(&Packets) -> Vec<Covering<N>>,
        cells: &mut Vec<abi::Cell>,
    ) -> Vec<u32> {
        let Some(any) = kinds.iter().flatten().next() else {
            return vec![FOREST_WALK; kinds.len()];
        };
        let of_all = boxes(&any.of_all_protocols());
        let of_each: Vec<_> = kinds.iter().flatten().map(|kind| (kind, boxes(kind))).collect();
        let begin = of_each.iter().filter(|(kind, _)| !kind.follows);
        let copies: usize = begin.map(|(_, rules)| rules.len()).sum();
        let shared = copies * 4 > of_all.len() * 5;
        let mut of_each = of_each.into_iter();
        let place = |kind: &Option<Packets>| {
            if kind.is_none() {
                return FOREST_WALK;
            }
            match of_each.next() {
                Some((kind, rules)) if shared && kind.is_part_of(&of_all, &rules) => {
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
        let roots = 2 + 2 * forest.roots.len();
        let first = cells.len() + roots.div_ceil(CELL_WORDS);
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

/// What the packets of a forest have in common.
pub(crate) struct Packets {
    pub direction: u8,
    pub family: u8,
    /// TCP, UDP, or 0 for all other protocols
    protocol: u8,
    /// 0 is for all protocols
    all_protocols: bool,
    /// They are TCP but not the first of a connection, or answer an ICMP query: no rule of them that asks for
    /// `flags S/SA`, or keeps state, matches. None of the others is such a packet.
    follows: bool,
}

impl Packets {
    fn new(direction: u8, forest: usize) -> Self {
        let (family, kind) = match forest.checked_sub(forest_of::INET6) {
            Some(kind) => (abi::INET6, kind),
            None => (abi::INET, forest),
        };
        let (protocol, follows) = match kind {
            forest_of::TCP => (TCP, false),
            forest_of::TCP_FOLLOWS => (TCP, true),
            forest_of::UDP => (UDP, false),
            forest_of::OTHER => (0, false),
            _ => (0, true),
        };
        Packets { direction, family, protocol, all_protocols: false, follows }
    }

    /// The first packets of every protocol.
    fn of_all_protocols(&self) -> Self {
        Packets { protocol: 0, all_protocols: true, follows: false, ..*self }
    }

    /// Whether these rules are what those of all protocols mean to such packets.
    fn is_part_of<const N: usize>(&self, all: &[Covering<N>], rules: &[Covering<N>]) -> bool {
        let axis = N - 2;
        let any = u32::from(u8::MAX);
        let ours = all.iter().filter(|rule| {
            let (low, high) = (rule.region.low[axis], rule.region.high[axis]);
            low != high || self.are_among(low as u8)
        });
        let seen = ours.map(|rule| {
            let mut rule = *rule;
            if self.protocol != 0 {
                (rule.region.low[axis], rule.region.high[axis]) = (0, any);
            }
            rule
        });
        seen.eq(rules.iter().copied())
    }

    /// Whether packets of a protocol may be among them.
    fn are_among(&self, protocol: u8) -> bool {
        match protocol {
            _ if self.all_protocols => true,
            TCP | UDP => self.protocol == protocol,
            _ => self.protocol == 0,
        }
    }

    /// Whether a rule asks for a protocol that none of them has.
    pub fn have_not(&self, rule: &abi::Rule) -> bool {
        rule.protocol != 0 && !self.have(rule, rule.protocol)
    }

    /// Whether packets of a protocol may be among those of them that the rule asks for.
    fn have(&self, rule: &abi::Rule, protocol: u8) -> bool {
        self.are_among(protocol) && (rule.protocol == 0 || rule.protocol == protocol)
    }
}

/// A box while it is made.
struct Asked<const N: usize> {
    region: Region<N>,
    whole: bool,
}

impl<const N: usize> Asked<N> {
    fn between(&mut self, axis: usize, low: u32, high: u32) {
        if low <= high {
            self.region.low[axis] = low;
            self.region.high[axis] = high;
        } else {
            self.whole = false;
        }
    }

    /// Something is asked that no axis is for.
    fn more_if(&mut self, asked: bool) {
        self.whole &= !asked;
    }
}

/// The boxes of those rules of a stretch that packets of a kind may match, several of one that looks into a table that is
/// spread, in the order in which they decide: the
/// first `quick` one, or else the last of the others. Or else in that in which they are met; there only a `quick` rule
/// hides others.
fn coverings<const N: usize>(
    space: &Space<N>,
    rules: &[abi::Rule],
    stretch: &Stretch,
    kind: &Packets,
    spread: Option<&Spread>,
    addresses: fn(&abi::Rule, &mut Asked<N>),
) -> Vec<Covering<N>> {
    let is_quick = |index: &usize| rules[*index].flags & flags::QUICK != 0;
    let may_match = |(index, _): &(usize, u32)| may_match(&rules[*index], kind);
    let boxes = |(index, order): (usize, u32)| {
        let rule: &abi::Rule = &rules[index];
        let mut asked = Asked { region: space.whole, whole: true };
        addresses(rule, &mut asked);
        header(rule, kind, &mut asked);
        let hides = !stretch.meets_all || (is_quick(&index) && only_decides(rule));
        let Asked { region, whole } = asked;
        let table = spread.and_then(|spread| spread::of_rule(rule, spread));
        let own = table.is_none().then_some(region);
        let (side, entries) = table.unwrap_or_default();
        let of_entries = entries.iter();
        let of_entries =
            of_entries.filter_map(move |entry| spread::narrowed(space, region, side, entry));
        let all = own.into_iter().chain(of_entries);
        all.map(move |region| Covering { region, whole: whole && hides, order })
    };
    let all = stretch.rules.clone();
    if stretch.meets_all {
        let all = all.map(|index| (index, index as u32));
        return all.filter(may_match).flat_map(boxes).collect();
    }
    let quick = all.clone().filter(is_quick).map(|index| (index, index as u32));
    let others = all.rev().filter(|index| !is_quick(index));
    let others = others.map(|index| (index, ORDER_LAST - index as u32));
    quick.chain(others).filter(may_match).flat_map(boxes).collect()
}

/// Whether any packet of a kind may match a rule.
fn may_match(rule: &abi::Rule, kind: &Packets) -> bool {
    let never = |address: &abi::Address| {
        address.kind == address_kind::NEVER
            || (address.kind == address_kind::ANY && address.negated != 0)
    };
    let direction = rule.direction == direction::INOUT || rule.direction == kind.direction;
    let family = rule.family == 0 || rule.family == kind.family;
    let tcp = kind.have(rule, TCP) && !wants_first(rule);
    let icmp =
        (kind.have(rule, ICMP) || kind.have(rule, ICMP6)) && !makes_no_state_of_answers(rule);
    direction
        && family
        && !kind.have_not(rule)
        && !never(&rule.source)
        && !never(&rule.destination)
        // fragments are not searched for
        && rule.flags & flags::FRAGMENT == 0
        && (!kind.follows || tcp || icmp)
}

/// `flags S/SA`
fn wants_first(rule: &abi::Rule) -> bool {
    (rule.tcp_flags, rule.tcp_mask) == (SYN, SYN_ACK)
}

fn makes_no_state_of_answers(rule: &abi::Rule) -> bool {
    rule.flags & flags::KEEP_STATE != 0 && rule.flags & flags::SLOPPY == 0
}

/// All but the addresses, whose axes come first.
fn header<const N: usize>(rule: &abi::Rule, kind: &Packets, asked: &mut Asked<N>) {
    let [source_port, destination_port, protocol, interface] = [N - 4, N - 3, N - 2, N - 1];
    if rule.protocol != kind.protocol && rule.protocol != 0 {
        asked.between(protocol, rule.protocol.into(), rule.protocol.into());
    }
    match rule.protocol {
        TCP | UDP | SCTP => {
            port(&rule.source_port, source_port, asked);
            port(&rule.destination_port, destination_port, asked);
        }
        _ => asked.more_if([rule.source_port, rule.destination_port].iter().any(|p| p.op != 0)),
    }
    match rule.protocol {
        ICMP | ICMP6 => {
            let (icmp_type, code) = (rule.icmp_type.into(), rule.icmp_code.into());
            if rule.flags & flags::MATCH_ICMP_TYPE != 0 {
                asked.between(source_port, icmp_type, icmp_type);
            }
            if rule.flags & flags::MATCH_ICMP_CODE != 0 {
                asked.between(destination_port, code, code);
            }
        }
        _ => asked.more_if(rule.flags & (flags::MATCH_ICMP_TYPE | flags::MATCH_ICMP_CODE) != 0),
    }
    match rule.interface_match {
        interface_match::NONE => {}
        // no box says that it is by none at all
        interface_match::NAME if rule.interface == 0 => asked.more_if(true),
        interface_match::NAME if rule.flags & flags::INTERFACE_NOT == 0 => {
            let class = rule.interface.min(CLASS_OTHER);
            asked.between(interface, class, class);
            asked.more_if(class == CLASS_OTHER);
        }
        _ => asked.more_if(true),
    }
    if kind.have(rule, TCP) {
        let met = wants_first(rule) && !kind.follows;
        asked.more_if(rule.tcp_mask != 0 && !met);
    }
    if kind.have(rule, ICMP) || kind.have(rule, ICMP6) {
        asked.more_if(makes_no_state_of_answers(rule) && kind.follows);
    }
    asked.more_if(rule.flags & (flags::MATCH_TOS | flags::MATCH_PRIO) != 0);
    asked.more_if(rule.os != 0 || rule.user.op != 0 || rule.group.op != 0);
    asked.more_if(rule.received_match != interface_match::NONE);
}

fn port<const N: usize>(port: &abi::Port, axis: usize, asked: &mut Asked<N>) {
    let (low, high) = (u32::from(port.low), u32::from(port.high));
    let all = u32::from(u16::MAX);
    // what is no range at all becomes one from a value to a lesser
    let (from, to) = match port.op {
        port_op::ANY => (0, all),
        port_op::EQ => (low, low),
        port_op::RANGE => (low, high),
        port_op::INSIDE if high > 0 => (low + 1, high - 1),
        port_op::LT if low > 0 => (0, low - 1),
        port_op::LE => (0, low),
        port_op::GT if low < all => (low + 1, all),
        port_op::GE => (low, all),
        _ => (1, 0),
    };
    asked.between(axis, from, to);
}

fn inet_addresses(rule: &abi::Rule, asked: &mut Asked<6>) {
    let word = |bytes: &[u8; 16]| {
        Ipv4Addr::from(<[u8; 4]>::try_from(&bytes[..4]).expect("that many were taken")).to_bits()
    };
    for (axis, address) in [&rule.source, &rule.destination].into_iter().enumerate() {
        let (low, high) = (word(&address.low), word(&address.high));
        match plain_kind(rule, address) {
            address_kind::ANY => {}
            address_kind::MASK => {
                let bits = high.leading_ones();
                let rest = u32::MAX.checked_shr(bits).unwrap_or(0);
                asked.between(axis, low & !rest, low & !rest | rest);
                asked.more_if(high != !rest);
            }
            address_kind::RANGE => {
                asked.between(axis, low, high);
                // a leaf has the prefix that covers it
                let bits = (low ^ high).leading_zeros();
                let rest = u32::MAX.checked_shr(bits).unwrap_or(0);
                asked.more_if((low & rest, high & rest) != (0, rest));
            }
            _ => asked.more_if(true),
        }
    }
}

/// Boxes of IPv6 are prefixes: a range is covered by the longest that has it all.
fn inet6_addresses(rule: &abi::Rule, asked: &mut Asked<12>) {
    let number = |bytes: &[u8; 16]| Ipv6Addr::from(*bytes).to_bits();
    for (axis, address) in [(0, &rule.source), (4, &rule.destination)] {
        let (low, high) = (number(&address.low), number(&address.high));
        let bits = match plain_kind(rule, address) {
            address_kind::ANY => continue,
            address_kind::MASK => {
                asked.more_if(high.leading_ones() + high.trailing_zeros() < u128::BITS);
                high.leading_ones()
            }
            address_kind::RANGE => {
                asked.more_if(true);
                (low ^ high).leading_zeros()
            }
            _ => {
                asked.more_if(true);
                0
            }
        };
        let rest = u128::MAX.checked_shr(bits).unwrap_or(0);
        for (place, shift) in [96, 64, 32, 0].into_iter().enumerate() {
            asked.region.low[axis + place] = ((low & !rest) >> shift) as u32;
            asked.region.high[axis + place] = ((low & !rest | rest) >> shift) as u32;
        }
    }
}

/// The kind of an address, if its box says all about it; else one that says nothing.
fn plain_kind(rule: &abi::Rule, address: &abi::Address) -> u8 {
    match address.kind {
        address_kind::ANY => address_kind::ANY,
        kind if address.negated == 0 && rule.family != 0 => kind,
        _ => address_kind::TABLE,
    }
}
