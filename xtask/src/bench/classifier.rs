//! The cost of finding a rule among many: the trees of `skipstep_classifier::tree`, searched by
//! this process.
//!
//! `xtask bench --lookup` measures the BPF programs in the same trees.

use std::hint::black_box;
use std::path::Path;

use fwlab_lookups::classbench;
use skipstep_classifier::tree::{Covering, INET, INET6, Space, TreeSet};
use skipstep_samples::{ListShape, packets, rules, rules6};

use super::rule_sets::processor_seconds;

const COUNTS: [usize; 3] = [1_000, 10_000, 100_000];
const PACKETS: usize = 65_536;

/// Measures samples of every kind in both families, and the lists in a folder of ClassBench's.
///
/// # Errors
/// Fails if `/proc` or the folder cannot be read.
pub fn run(lists: Option<&Path>) -> anyhow::Result<()> {
    println!(
        "{:<24}{:>6}{:>9}{:>9}{:>10}{:>9}{:>9}",
        "rules", "trees", "MB", "longest", "left over", "plant s", "ns"
    );
    for kind in ListShape::ALL {
        for count in COUNTS {
            let name = format!("{} {count}", kind.name());
            let rules = rules(kind, count, 1);
            measure(&name, &INET, &rules, &packets(&rules, PACKETS, 2))?;
            let rules = rules6(kind, count, 1);
            measure(&format!("{name} IPv6"), &INET6, &rules, &packets(&rules, PACKETS, 2))?;
        }
    }
    let Some(folder) = lists else { return Ok(()) };
    for (name, rules) in classbench::lists(folder)? {
        measure(&name, &INET, &rules, &packets(&rules, PACKETS, 2))?;
    }
    Ok(())
}

fn measure<const N: usize>(
    name: &str,
    space: &'static Space<N>,
    rules: &[Covering<N>],
    packets: &[[u32; N]],
) -> anyhow::Result<()> {
    let begin = processor_seconds()?;
    let tree_set = TreeSet::build(space, rules);
    let planted = processor_seconds()?;
    let mut found = 0;
    for packet in packets {
        found += black_box(tree_set.find(packet, |_| true)).map_or(0, u64::from);
    }
    let seconds = processor_seconds()? - planted;
    black_box(found);
    let size = tree_set.size();
    println!(
        "{name:<24}{:>6}{:>9.2}{:>9}{:>10}{:>9.2}{:>9.0}",
        size.trees,
        size.nodes as f64 * 64.0 / 1e6,
        size.longest,
        size.left_over,
        planted - begin,
        seconds / packets.len() as f64 * 1e9
    );
    Ok(())
}
