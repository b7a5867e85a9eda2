//! `xtask bench --lookup`: how long the BPF programs take to find the rule that decides, and nothing else, in units of
//! a lookup in a hash map of the kernel.
//!
//! Rules are the samples of `skipstep_classifier::sample`, and lists of ClassBench's; each is loaded as a pf.conf says
//! it. All packets lie in the box of some rule drawn at random, so that caches are of little use. What is found for
//! some of them is compared with what the model finds, which asks one rule after the other.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use skipstep_abi as abi;
use skipstep_abi::limits::MAX_RULES;
use skipstep_classifier::sample::{self, Kind};
use skipstep_classifier::tree::{Covering, INET, INET6, Space};
use skipstep_classifier::{Names, Planner, Slots};
use skipstep_kernel::testing::{FAILED, Lookup, LookupPacket, Lookups, NO_RULE, PACKETS};
use skipstep_pfconf::Context;
use skipstep_ruleset::interface::{Host, Interface};
use skipstep_ruleset::{Evaluator, Ruleset};
use skipstep_scenario::Model;
use skipstep_scenario::engine::{Decision, Engine as _};

use self::header::Header;
use super::rule_sets::processor_seconds;
use super::{classbench, inbound, median};

mod header;

const COUNTS: [usize; 3] = [1_000, 10_000, 100_000];
/// Packets of which the model is asked, too, so that it looks at about so many rules.
const COMPARED_RULES: usize = 3_000_000;
/// Of the largest lists, what a lookup may cost in units: of one shaped as what people write, …
const TARGET: f64 = 9.0;
/// … and of one that an adversary would write.
const ADVERSARIAL: f64 = 24.0;

/// A list of rules, whatever its family.
struct List {
    name: String,
    text: String,
    rules: usize,
    headers: Vec<Header>,
    target: f64,
}

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
        "{:<24}{:>8}{:>11}{:>7}{:>9}{:>9}{:>7}{:>9}{:>9}{:>9}{:>9}",
        "rules",
        "number",
        "compile s",
        "MB",
        "longest",
        "unit ns",
        "trees",
        "lookup",
        "ns",
        "target",
        "differ"
    );
    let mut lookups = Lookups::new(MAX_RULES, 0)?;
    let mut differ = 0;
    for kind in Kind::ALL {
        for count in COUNTS.into_iter().filter(|count| among.is_none_or(|among| among == *count)) {
            differ += measure(&mut lookups, sampled(kind, count, false), rounds)?;
            differ += measure(&mut lookups, sampled(kind, count, true), rounds)?;
        }
    }
    if let Some(folder) = lists {
        for (name, rules) in classbench::lists(folder)? {
            // the lists say 100,000 and have some less
            let about = |count: usize| (count / 2..=count).contains(&rules.len());
            if !among.is_none_or(about) {
                continue;
            }
            differ += measure(&mut lookups, of_classbench(&name, &rules, None), rounds)?;
            if let Some(trace) = classbench::trace(folder, &name)? {
                differ += measure(&mut lookups, of_classbench(&name, &rules, Some(trace)), rounds)?;
            }
        }
    }
    if differ > 0 {
        println!("\n{differ} lookups came to something else than the model");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn sampled(kind: Kind, count: usize, six: bool) -> List {
    let name = format!("{}{}", kind.name(), if six { " IPv6" } else { "" });
    let target = if kind.is_adversarial() { ADVERSARIAL } else { target_of(kind.name()) };
    if six {
        let rules = sample::rules6(kind, count, 1);
        list(name, &INET6, &rules, &sample::packets(&rules, PACKETS, 2), target)
    } else {
        let rules = sample::rules(kind, count, 1);
        list(name, &INET, &rules, &sample::packets(&rules, PACKETS, 2), target)
    }
}

/// With packets of ours, or with those that ClassBench drew: a run of them for each rule, so they are shuffled.
fn of_classbench(name: &str, rules: &[Covering<6>], trace: Option<Vec<[u32; 6]>>) -> List {
    let target = target_of(name);
    let Some(mut trace) = trace else {
        return list(name.to_owned(), &INET, rules, &sample::packets(rules, PACKETS, 2), target);
    };
    fastrand::Rng::with_seed(2).shuffle(&mut trace);
    let packets: Vec<_> = trace.iter().copied().cycle().take(PACKETS).collect();
    list(format!("{name}, its trace"), &INET, rules, &packets, target)
}

/// The bounds are for three families of rules.
fn target_of(name: &str) -> f64 {
    match name {
        "access" => 4.5,
        "chain" => 8.0,
        _ if name.starts_with("acl") => 4.5,
        _ if name.starts_with("ipc") => 8.0,
        _ => TARGET,
    }
}

fn list<const N: usize>(
    name: String,
    space: &'static Space<N>,
    rules: &[Covering<N>],
    points: &[[u32; N]],
    target: f64,
) -> List {
    let mut text = String::new();
    for rule in rules {
        header::write_rule(&mut text, space, rule);
    }
    let headers = (0..).zip(points).map(|(number, point)| Header::of(space, point, number));
    List { name, text, rules: rules.len(), headers: headers.collect(), target }
}

/// Measures a list; how many lookups came to something else than the model.
fn measure(lookups: &mut Lookups, list: List, rounds: u32) -> anyhow::Result<usize> {
    let host = host();
    let ruleset = match skipstep_pfconf::load(&list.text, &Context::new(&host)) {
        Ok(loaded) => loaded.ruleset,
        Err(rejected) => bail!("{}: {}", list.name, rejected.diagnostics[0]),
    };
    ensure!(ruleset.rules.len() == list.rules, "{}: {} rules", list.name, ruleset.rules.len());
    let (seconds, bytes, longest) = compile(&ruleset, &host)?;
    let ids = lookups.load(&ruleset, &host)?;
    let id = |header: &Header| {
        ids.get(&header.interface).copied().with_context(|| header.interface.clone())
    };
    let packets = list.headers.iter().map(|header| Ok(header.packet(id(header)?)));
    lookups.set_packets(&packets.collect::<anyhow::Result<Vec<LookupPacket>>>()?)?;
    let figures = figures(lookups, rounds)?;
    let differ = compare(&list, &ruleset, &host, &lookups.decided()?)?;
    let units = figures.walk / figures.unit;
    println!(
        "{:<24}{:>8}{seconds:>11.2}{:>7.1}{longest:>9}{:>9.0}{:>7.1}{units:>9.1}{:>9.0}{:>9}{differ:>9}",
        list.name,
        list.rules,
        bytes as f64 / 1e6,
        figures.unit,
        figures.trees / figures.unit,
        figures.walk,
        format!("<= {}", list.target),
    );
    Ok(differ)
}

/// Seconds on a processor that it takes to compile a rule set, bytes of its trees, and the most cells that a search
/// looks at.
fn compile(ruleset: &Ruleset, host: &Host) -> anyhow::Result<(f64, usize, u32)> {
    let mut ruleset = ruleset.clone();
    ruleset.options.evaluator = Evaluator::Compiled;
    let of_main = (1..).take(ruleset.rules.len()).collect();
    let slots = Slots { rules: [(String::new(), of_main)].into(), ..Slots::default() };
    let begin = processor_seconds()?;
    let image = skipstep_classifier::compile(
        &ruleset,
        host,
        &slots,
        &mut Names::default(),
        Planner::default(),
    )?;
    let seconds = processor_seconds()? - begin;
    Ok((seconds, image.cells.len() * size_of::<abi::Cell>(), image.longest_search))
}

/// Medians of rounds in which each was measured once. The last of all is the walk.
fn figures(lookups: &mut Lookups, rounds: u32) -> anyhow::Result<Figures> {
    let mut of = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        let nothing = lookups.run(Lookup::Nothing)?;
        for (costs, what) in of.iter_mut().zip([Lookup::Hash, Lookup::Trees, Lookup::Walk]) {
            costs.push(lookups.run(what)? - nothing);
        }
    }
    let [unit, trees, walk] = of.map(|mut costs| median(&mut costs));
    Ok(Figures { unit, trees, walk })
}

/// How many of the lookups came to something else than the model.
fn compare(list: &List, ruleset: &Ruleset, host: &Host, decided: &[u32]) -> anyhow::Result<usize> {
    let failed = decided.iter().filter(|decided| **decided == FAILED).count();
    ensure!(failed == 0, "{}: {failed} lookups failed", list.name);
    let mut model = Model::new();
    model.load(ruleset, host).map_err(anyhow::Error::msg)?;
    let wanted = (COMPARED_RULES / list.rules).clamp(30, 2000);
    let mut differ = 0;
    for place in (0..PACKETS).step_by(PACKETS / wanted) {
        let header = &list.headers[place];
        let Some(bytes) = header.bytes() else { continue };
        let mut packet = inbound(bytes);
        packet.interface.clone_from(&header.interface);
        let expected = match model.packet(&packet).decision {
            Decision::Rule(rule) => rule.number,
            _ => NO_RULE,
        };
        differ += usize::from(decided[place] != expected);
    }
    Ok(differ)
}

fn host() -> Host {
    let interface = |index: u32| Interface {
        name: format!("em{index}"),
        index: index + 1,
        mtu: 1500,
        ..Interface::default()
    };
    Host { interfaces: (0..4).map(interface).collect(), routes: Vec::new() }
}
