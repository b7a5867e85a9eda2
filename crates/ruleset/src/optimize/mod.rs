//! pfctl's optimizer of rule sets. The result has fewer rules, in an order in which skip steps skip
//! more. The fate of each packet stays the same.
//!
//! A rule set is split into superblocks (`superblock`): neighbouring rules with the same effect, so
//! that any of them may match. In each superblock, covered rules are removed (`duplicates`), and
//! six or more rules that differ in one address become one rule with a table (`combine`). The other
//! rules are ordered by common parameters (`reorder`) or by the packets that they decided
//! (`profile`). `fields` has the role of each field in these steps.
//!
//! If a step of pfctl would change the fate of a packet, the step here differs. Comments in
//! `fields` and in the steps name these differences.

// Differs from OpenBSD: linux.md, "Rule set optimizer"
mod combine;
mod duplicates;
mod fields;
mod hashing;
mod manner;
mod profile;
mod reorder;
mod superblock;

use std::collections::BTreeMap;
use std::ops::Range;
use std::{iter, mem, thread};

use self::fields::Role;
use crate::{Anchor, AutomaticTables, Optimization, Rule, Table};

/// A rule in force with its packet counter.
#[derive(Debug, Clone)]
pub struct Counted {
    /// The rule as loaded.
    pub rule: Rule,
    /// Number of packets that the rule decided, in both directions.
    pub packets: u64,
}

/// The settings and inputs of the optimizer.
pub struct Optimizer<'a> {
    /// The optimizations to make.
    pub level: Optimization,
    /// Names for generated tables.
    pub names: &'a mut AutomaticTables,
    /// Returns the rules in force of the rule set with this path, for the level `Profile`.
    pub profile: &'a dyn Fn(&str) -> Vec<Counted>,
}

/// Indexes of the generated tables in each rule set, by path.
pub type TablesMade = BTreeMap<String, Range<usize>>;

impl Optimizer<'_> {
    /// Optimizes the rule set called `path`, and the anchors in braces within it. The order is that
    /// in which pfctl loads them: an anchor follows when the first rule calls it. Rules are
    /// renumbered.
    pub fn rule_set(
        &mut self,
        path: &str,
        contents: &mut Anchor,
        anchors: &mut BTreeMap<String, Anchor>,
    ) -> TablesMade {
        let mut made = TablesMade::new();
        if self.level != Optimization::None {
            self.nested(path, contents, anchors, &mut made);
        }
        made
    }

    fn nested(
        &mut self,
        path: &str,
        contents: &mut Anchor,
        anchors: &mut BTreeMap<String, Anchor>,
        made: &mut TablesMade,
    ) {
        let before = contents.tables.len();
        contents.rules = self.rules(path, mem::take(&mut contents.rules), &mut contents.tables);
        made.insert(path.to_string(), before..contents.tables.len());
        let calls = contents.rules.iter().filter_map(|rule| rule.anchor.as_ref());
        for call in calls.filter(|call| call.braces) {
            if let Some(mut called) = anchors.remove(&call.path) {
                self.nested(&call.path, &mut called, anchors, made);
                anchors.insert(call.path.clone(), called);
            }
        }
    }

    /// Optimizes the rules of one rule set, and appends generated tables to `tables`.
    pub fn rules(&mut self, path: &str, rules: Vec<Rule>, tables: &mut Vec<Table>) -> Vec<Rule> {
        let blocks = superblock::split(rules);
        let profiles = match self.level {
            Optimization::Profile => profile::pair_superblocks(&blocks, (self.profile)(path)),
            _ => Vec::new(),
        };
        let mut profiles = profiles.into_iter();
        let mut blocks = blocks.into_iter();
        let mut next = || Some(self.superblock(blocks.next()?, profiles.next(), tables));
        // most rule sets are one superblock, which is moved, not copied
        let mut optimized = next().unwrap_or_default();
        optimized.extend(iter::from_fn(next).flatten());
        for (rule, number) in optimized.iter_mut().zip(0..) {
            rule.number = number;
        }
        optimized
    }

    /// Optimizes a superblock. pfctl reorders rules that differ in manner, so that another of them
    /// may decide. Here they are reordered only if one rule decides in any order.
    // Differs from OpenBSD: linux.md, "Rule set optimizer"
    fn superblock(
        &mut self,
        rules: Vec<Rule>,
        profile: Option<Vec<Counted>>,
        tables: &mut Vec<Table>,
    ) -> Vec<Rule> {
        if manner::is_one(&rules) {
            return self.steps(rules, profile, tables);
        }
        if let Some(done) = self.steps_if_one_decides(&rules, profile.clone(), tables) {
            return done;
        }
        let parts = manner::split(rules);
        parts.into_iter().flat_map(|part| self.steps(part, profile.clone(), tables)).collect()
    }

    /// Optimizes a superblock in which one rule always decides. `None` if there is no such rule, or
    /// if the steps would move it.
    fn steps_if_one_decides(
        &mut self,
        rules: &[Rule],
        profile: Option<Vec<Counted>>,
        tables: &mut Vec<Table>,
    ) -> Option<Vec<Rule>> {
        let deciding = if rules[0].quick { 0 } else { rules.len() - 1 };
        if !duplicates::covers_all(rules, deciding) {
            return None;
        }
        let (names_before, tables_before) = (self.names.clone(), tables.len());
        let done = self.steps(rules.to_vec(), profile, tables);
        let place = if rules[0].quick { done.first() } else { done.last() };
        if !place.is_some_and(|rule| fields::agree(rule, &rules[deciding], Role::Combined)) {
            *self.names = names_before;
            tables.truncate(tables_before);
            return None;
        }
        Some(done)
    }

    fn steps(
        &mut self,
        rules: Vec<Rule>,
        profile: Option<Vec<Counted>>,
        tables: &mut Vec<Table>,
    ) -> Vec<Rule> {
        if rules.len() < 2 {
            return rules;
        }
        let count = rules.len();
        let StepResults { kept, groups, order } = StepResults::compute(&rules, profile.is_none());
        let mut rules = retain(rules, &kept);
        if fields::has_memory(&rules[0]) {
            return rules;
        }
        // pfctl also combines rules with counters that act, so that one counter counts for all
        if !rules[0].once && rules[0].max_pkt_rate.is_none() {
            let groups = groups.unwrap_or_else(|| combine::groups(&rules));
            rules = combine::into_tables(rules, groups, self.names, tables);
        }
        match profile {
            Some(profile) if rules[0].quick => profile::order(rules, &profile),
            _ => {
                let order = order.filter(|_| rules.len() == count);
                let order = order.unwrap_or_else(|| reorder::for_skip_steps(&rules));
                arrange(rules, order)
            }
        }
    }
}

/// Results of the steps, each computed as if the earlier steps changed nothing. For many rules that
/// is the usual case. The last step takes as long as the others, so both run in parallel.
struct StepResults {
    /// True for each rule that stays.
    kept: Vec<bool>,
    /// Rules that differ in one address. `None` if not all rules stay, or if there are few.
    groups: Option<Vec<combine::Group>>,
    /// The new order of all rules. `None` if there are few.
    order: Option<Vec<u32>>,
}

impl StepResults {
    /// Number of rules whose optimization takes as long as the start of a thread.
    const PARALLEL_FROM: usize = 2048;

    /// Computes the steps; `ordered` is true if the rules have no profile.
    fn compute(rules: &[Rule], ordered: bool) -> Self {
        if rules.len() < Self::PARALLEL_FROM || !ordered {
            return StepResults { kept: duplicates::kept(rules), groups: None, order: None };
        }
        thread::scope(|scope| {
            let order = || reorder::for_skip_steps(rules);
            let order = thread::Builder::new().spawn_scoped(scope, order);
            let kept = duplicates::kept(rules);
            let groups = kept.iter().all(|is_kept| *is_kept).then(|| combine::groups(rules));
            // without a thread, the caller computes the order later
            StepResults { kept, groups, order: order.ok().and_then(|order| order.join().ok()) }
        })
    }
}

/// Returns the rules for which `keep` is true.
fn retain(mut rules: Vec<Rule>, keep: &[bool]) -> Vec<Rule> {
    let mut keep = keep.iter();
    rules.retain(|_| keep.next().copied().unwrap_or(true));
    rules
}

/// Returns `rules` in another order: the first is `rules[order[0]]`.
fn arrange(mut rules: Vec<Rule>, mut order: Vec<u32>) -> Vec<Rule> {
    for start in 0..order.len() {
        // follow the cycle of positions that exchange their rules
        let mut place = start;
        while order[place] as usize != start {
            let from = mem::replace(&mut order[place], place as u32) as usize;
            rules.swap(place, from);
            place = from;
        }
        order[place] = place as u32;
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Address, Direction, Endpoint, PortMatch, Ports};

    /// Returns a rule that passes UDP datagrams to an address and a port.
    fn rule(number: u32, address: u32, port: u16) -> Rule {
        let net = ipnet::Ipv4Net::from(std::net::Ipv4Addr::from_bits(address));
        let mut destination = Endpoint::default();
        destination.host.address = Address::Net(net.into());
        destination.ports = Some(Ports { op: PortMatch::Equal, low: port, high: port });
        let direction = number.is_multiple_of(3).then_some(Direction::In);
        let action = Action::Pass;
        Rule { quick: true, action, direction, protocol: Some(17), destination, ..Rule::default() }
    }

    fn all_differ(number: u32) -> Rule {
        rule(number, 0x0a00_0000 + number, (number % 700) as u16)
    }

    fn some_are_alike(number: u32) -> Rule {
        all_differ(number % 2900)
    }

    fn some_make_a_table(number: u32) -> Rule {
        if number < 2990 { all_differ(number) } else { rule(1, 0x0b00_0000 + number, 5000) }
    }

    #[test]
    fn parallel_steps_equal_sequential_steps() {
        let rules = |kind: fn(u32) -> Rule| (0..3000).map(kind).collect::<Vec<Rule>>();
        for (rules, left, tables_made) in [
            (rules(all_differ), 3000, 0),
            (rules(some_are_alike), 2900, 0),
            (rules(some_make_a_table), 2991, 1),
        ] {
            assert!(rules.len() >= StepResults::PARALLEL_FROM);
            let mut names = AutomaticTables::for_display();
            let mut tables = Vec::new();
            let kept = retain(rules.clone(), &duplicates::kept(&rules));
            let groups = combine::groups(&kept);
            let combined = combine::into_tables(kept, groups, &mut names, &mut tables);
            let order = reorder::for_skip_steps(&combined);
            let expected = arrange(combined, order);
            assert_eq!((expected.len(), tables.len()), (left, tables_made));

            let mut names = AutomaticTables::for_display();
            let profile = &|_: &str| Vec::new();
            let mut optimizer =
                Optimizer { level: Optimization::Basic, names: &mut names, profile };
            let mut tables_now = Vec::new();
            assert!(optimizer.steps(rules, None, &mut tables_now) == expected);
            assert_eq!(tables_now, tables);
        }
    }
}
