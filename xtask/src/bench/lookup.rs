//! `xtask bench --lookup`: the time that the BPF programs take to find the deciding rule, and the
//! size of the trees. The unit is a lookup in a hash map of the kernel. The targets are in
//! `fwlab speed --only lookups`.

use std::path::Path;
use std::process::ExitCode;

use fwlab_lookups::{List, Loaded, classbench};
use skipstep_abi as abi;
use skipstep_abi::limits::MAX_RULES;
use skipstep_classifier::{Names, Planner, Slots, Unchanged};
use skipstep_ruleset::Evaluator;
use skipstep_samples::ListShape;
use skipstep_testing::{Lookup, Lookups, PACKETS};

use super::median;
use super::rule_sets::processor_seconds;

const COUNTS: [usize; 3] = [1_000, 10_000, 100_000];

/// Medians in nanoseconds.
struct Figures {
    unit: f64,
    trees: f64,
    walk: f64,
}

/// Measures the samples, and the lists in a folder. Returns failure if lookups differ from the
/// model.
///
/// # Errors
/// Fails if the kernel refuses a program, or if the folder cannot be read.
pub fn run(rounds: u32, among: Option<usize>, lists: Option<&Path>) -> anyhow::Result<ExitCode> {
    println!(
        "Lookups of {PACKETS} packets: medians of {rounds} rounds; a unit is a lookup in a hash map of 1,000 keys\n"
    );
    println!(
        "{:<24}{:>8}{:>11}{:>7}{:>9}{:>9}{:>7}{:>9}{:>9}{:>9}",
        "rules",
        "number",
        "compile s",
        "MB",
        "longest",
        "unit ns",
        "trees",
        "lookup",
        "ns",
        "differ"
    );
    let mut lookups = Lookups::new(MAX_RULES, 0)?;
    let mut differ = 0;
    for kind in ListShape::ALL {
        for count in COUNTS.into_iter().filter(|count| among.is_none_or(|among| among == *count)) {
            for six in [false, true] {
                differ += measure(&mut lookups, &List::sample(kind, count, six), rounds)?;
            }
        }
    }
    if let Some(folder) = lists {
        for (name, rules) in classbench::lists(folder)? {
            if !among.is_none_or(|among| classbench::has_about(&rules, among)) {
                continue;
            }
            let list = List::of_classbench(&name, &rules, None);
            differ += measure(&mut lookups, &list, rounds)?;
            if let Some(trace) = classbench::trace(folder, &name)? {
                let list = List::of_classbench(&name, &rules, Some(trace));
                differ += measure(&mut lookups, &list, rounds)?;
            }
        }
    }
    if differ > 0 {
        println!("\n{differ} lookups differ from the model's");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures a list, and returns the number of lookups whose result differs from the model's.
fn measure(lookups: &mut Lookups, list: &List, rounds: u32) -> anyhow::Result<usize> {
    let loaded = list.load(lookups)?;
    let (seconds, bytes, longest) = compile(&loaded)?;
    let figures = figures(lookups, rounds)?;
    let differ = list.differ(&loaded, &lookups.decided()?)?;
    let units = figures.walk / figures.unit;
    println!(
        "{:<24}{:>8}{seconds:>11.2}{:>7.1}{longest:>9}{:>9.0}{:>7.1}{units:>9.1}{:>9.0}{differ:>9}",
        list.name,
        list.rules(),
        bytes as f64 / 1e6,
        figures.unit,
        figures.trees / figures.unit,
        figures.walk,
    );
    Ok(differ)
}

/// Compiles a rule set. Returns CPU seconds, bytes of the trees, and the most nodes that a search
/// visits.
fn compile(loaded: &Loaded) -> anyhow::Result<(f64, usize, u32)> {
    let mut ruleset = loaded.ruleset.clone();
    ruleset.options.evaluator = Evaluator::Compiled;
    let of_main = (1..).take(ruleset.rules.len()).collect();
    let slots = Slots { rules: [(String::new(), of_main)].into(), ..Slots::default() };
    let begin = processor_seconds()?;
    let image = skipstep_classifier::compile(
        &ruleset,
        &loaded.host,
        &slots,
        &mut Names::default(),
        Planner::default(),
        &Unchanged::default(),
    )?;
    let seconds = processor_seconds()? - begin;
    Ok((seconds, image.nodes.len() * size_of::<abi::Node>(), image.longest_search))
}

/// Returns the medians of rounds with one measurement of each kind. The last one in each round is
/// the evaluation of the rules, so its results stay in the maps.
fn figures(lookups: &mut Lookups, rounds: u32) -> anyhow::Result<Figures> {
    let mut of = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        let baseline = baseline(lookups)?;
        for (costs, what) in of.iter_mut().zip([Lookup::Hash, Lookup::Trees, Lookup::Walk]) {
            costs.push(lookups.run(what)? - baseline);
        }
    }
    let [unit, trees, walk] = of.map(|mut costs| median(&mut costs));
    Ok(Figures { unit, trees, walk })
}

/// Returns the cost of a run without a lookup. A long search evicts the packets from the caches. So
/// three unmeasured runs come first; without them the cost would be too high, and the unit too
/// small.
///
/// # Errors
/// Fails if the kernel refuses a run.
pub(super) fn baseline(lookups: &mut Lookups) -> anyhow::Result<f64> {
    for _ in 0..3 {
        lookups.run(Lookup::Nothing)?;
    }
    Ok(lookups.run(Lookup::Nothing)?)
}
