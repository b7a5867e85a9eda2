//! `xtask bench --lookup`: how long the BPF programs take to find the rule that decides, and
//! nothing else, in units of a lookup in a hash map of the kernel, and what its trees are like.
//! `fwlab speed --only lookups` has the targets.

use std::path::Path;
use std::process::ExitCode;

use skipstep_abi as abi;
use skipstep_abi::limits::MAX_RULES;
use skipstep_classifier::sample::Kind;
use skipstep_classifier::{Names, Planner, Slots, Standing};
use skipstep_fwlab::lookups::{List, Loaded, classbench};
use skipstep_kernel::testing::{Lookup, Lookups, PACKETS};
use skipstep_ruleset::Evaluator;

use super::median;
use super::rule_sets::processor_seconds;

const COUNTS: [usize; 3] = [1_000, 10_000, 100_000];

/// What came out.
struct Figures {
    unit: f64,
    trees: f64,
    walk: f64,
}

/// Measures the samples, and the lists in a folder.
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
    for kind in Kind::ALL {
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
        println!("\n{differ} lookups came to something else than the model");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures a list; how many lookups came to something else than the model.
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

/// Seconds on a processor that it takes to compile a rule set, bytes of its trees, and the most
/// cells that a search looks at.
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
        &Standing::default(),
    )?;
    let seconds = processor_seconds()? - begin;
    Ok((seconds, image.cells.len() * size_of::<abi::Cell>(), image.longest_search))
}

/// Medians of rounds in which each was measured once. The last of all is the walk.
fn figures(lookups: &mut Lookups, rounds: u32) -> anyhow::Result<Figures> {
    let mut of = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        let nothing = nothing(lookups)?;
        for (costs, what) in of.iter_mut().zip([Lookup::Hash, Lookup::Trees, Lookup::Walk]) {
            costs.push(lookups.run(what)? - nothing);
        }
    }
    let [unit, trees, walk] = of.map(|mut costs| median(&mut costs));
    Ok(Figures { unit, trees, walk })
}

/// What a packet costs besides. A long search leaves little in the caches of what that is to find
/// there, and the unit would come out short by what it waits for: it took three passes to be at its
/// rate.
pub(super) fn nothing(lookups: &mut Lookups) -> anyhow::Result<f64> {
    for _ in 0..3 {
        lookups.run(Lookup::Nothing)?;
    }
    Ok(lookups.run(Lookup::Nothing)?)
}
