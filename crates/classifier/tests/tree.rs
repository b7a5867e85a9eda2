//! Tests that a search finds the rule that a linear evaluation finds.

use skipstep_classifier::tree::{Covering, INET, INET6, Size, Space, TreeSet};
use skipstep_samples::{ListShape, packets, rules, rules6};

/// Returns the rank of the first rule whose rectangle has the point and whose other criteria match.
fn linear<const N: usize>(
    rules: &[Covering<N>],
    point: &[u32; N],
    rest: impl Fn(u32) -> bool,
) -> Option<u32> {
    let takes = |(rank, rule): &(usize, &Covering<N>)| {
        rule.rect.has(point) && (rule.whole || rest(*rank as u32))
    };
    rules.iter().enumerate().find(takes).map(|(rank, _)| rank as u32)
}

fn agree<const N: usize>(
    space: &'static Space<N>,
    rules: &[Covering<N>],
    what: &str,
) -> TreeSet<N> {
    let tree_set = TreeSet::build(space, rules);
    for point in packets(rules, 500, 7) {
        // Vary the other criteria: all match, none matches, two of three match.
        for holds in [|_: u32| true, |_| false, |rank| rank % 3 != 0] {
            let takes = |order: u32| rules[order as usize].whole || holds(order);
            assert_eq!(
                tree_set.find(&point, takes),
                linear(rules, &point, holds),
                "{what}: {point:?}"
            );
        }
    }
    tree_set
}

#[test]
fn trees_find_what_a_walk_over_the_list_finds() {
    for kind in ListShape::ALL {
        for count in [1, 7, 100, 900] {
            for seed in 0..2 {
                let what = format!("{count} of {}, seed {seed}", kind.name());
                agree(&INET, &rules(kind, count, seed), &what);
                agree(&INET6, &rules6(kind, count, seed), &what);
            }
        }
    }
}

#[test]
fn no_search_reads_more_nodes_than_reported() {
    for kind in ListShape::ALL {
        let rules = rules(kind, 1500, 5);
        let tree_set = TreeSet::build(&INET, &rules);
        for point in packets(&rules, 2000, 11) {
            let mut looks = 0;
            tree_set.search(&point, |_| false, &mut looks);
            assert!(
                looks <= tree_set.size().longest,
                "{}: {looks} {:?}",
                kind.name(),
                tree_set.size()
            );
        }
    }
}

#[test]
fn no_rule_is_stored_behind_one_that_hides_all() {
    let mut all = rules(ListShape::Access, 1000, 1);
    all[0] = Covering { rect: INET.whole, whole: true, hides: true, order: 0 };
    let tree_set = agree(&INET, &all, "behind everything");
    assert_eq!(tree_set.find(&[9; 6], |order| order == 0), Some(0));
    assert_eq!(tree_set.size().nodes, 1);
}

#[test]
fn no_rules_are_no_trees() {
    let tree_set = TreeSet::build(&INET, &[]);
    assert_eq!(tree_set.find(&[0; 6], |_| true), None);
    assert_eq!(tree_set.size(), Size::default());
}

#[test]
fn rules_that_differ_in_nothing_but_the_rest_are_found() {
    let same = |order| Covering { rect: INET.whole, whole: false, hides: false, order };
    let tree_set = agree(&INET, &(0..300).map(same).collect::<Vec<_>>(), "all alike");
    assert_eq!(tree_set.find(&[1; 6], |rank| rank == 250), Some(250));
}
