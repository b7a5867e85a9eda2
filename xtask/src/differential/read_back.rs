//! `xtask read-back`: pfctl prints random rule sets in both dialects, and reads its own output as
//! the same rule set.

use std::fmt::Debug;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use fastrand::Rng;
use skipstep_pfconf::{Loaded, Rejected, Severity};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{
    Address, AnchorCall, BlockReturn, Family, LegacyRule, Limiter, Queue, Rule, Ruleset, Table,
};
use skipstep_scenario::case::{Case, Rules};
use skipstep_scenario::host;

use super::appliance::Drawn;
use super::generate::{draw, read, rng_of};
use super::pool::{Pool, one_in};

#[derive(clap::Args)]
pub struct Arguments {
    /// Number of rule sets
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    rule_sets: u64,
    /// Seed of the random sequence; the same seed gives the same rule sets
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Form of the random rule sets; rule sets of appliances must be accepted unchanged, too
    #[arg(long, value_enum, default_value = "random")]
    rules: Drawn,
    /// Number of differences after which the test stops
    #[arg(long, value_name = "N", default_value_t = 1)]
    failures: usize,
}

/// The rule sets read so far.
#[derive(Default)]
struct Tally {
    /// Number of the next rule set.
    next: AtomicU64,
    rules: AtomicU64,
    /// Number of rule sets with legacy rules.
    legacy: AtomicU64,
    differences: Mutex<Vec<String>>,
}

/// Reads rule sets until the number of the arguments, or of differences, is reached.
///
/// # Errors
/// Never fails. The exit code reports differences.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let (host, tally) = (host::standard(), Tally::default());
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| work(&arguments, &host, &tally));
        }
    });
    let differences = tally.differences.into_inner().unwrap_or_else(PoisonError::into_inner);
    for difference in &differences {
        println!("{difference}");
    }
    let drawn = tally.next.into_inner().min(arguments.rule_sets);
    println!(
        "read-back: seed {}, {drawn} rule sets, {} of them with rules of FreeBSD's lists, {} rules: \
         {} differences",
        arguments.seed,
        tally.legacy.into_inner(),
        tally.rules.into_inner(),
        differences.len(),
    );
    Ok(if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn work(arguments: &Arguments, host: &Host, tally: &Tally) {
    loop {
        let number = tally.next.fetch_add(1, Ordering::Relaxed);
        let found = || tally.differences.lock().unwrap_or_else(PoisonError::into_inner);
        if number >= arguments.rule_sets || found().len() >= arguments.failures {
            return;
        }
        let (mut rng, case) = match arguments.rules {
            Drawn::Random => {
                let (rng, case, _, _) = draw(arguments.seed, number, host, Drawn::Random.text());
                (rng, case)
            }
            appliance => {
                let (mut rng, mut pool) = (rng_of(arguments.seed, number), Pool::new());
                let rules =
                    Rules { text: appliance.text()(&mut rng, &mut pool), lines: Vec::new() };
                let case = Case { rules, files: pool.files, ..Case::default() };
                if let Err(Rejected { diagnostics, .. }) = read(&case, "", host) {
                    let told: Vec<_> = diagnostics.iter().map(|told| told.explain()).collect();
                    found().push(format!("rule set {number} is refused:\n{}\n", told.join("\n")));
                }
                if one_in(&mut rng, 4)
                    && let Some((line, expected)) = arguments.rules.refused_line(&mut rng)
                    && let Some(told) = not_refused(&case, line, expected, host)
                {
                    found().push(format!("rule set {number}: {told}\n"));
                }
                (rng, case)
            }
        };
        for text in texts(&mut rng, &case) {
            let rules = Rules { text, lines: Vec::new() };
            let case = Case { rules, files: case.files.clone(), ..Case::default() };
            let difference = match read(&case, "", host) {
                // an anchor without a name is lost without its rules
                Ok(loaded) if has_empty(&loaded.ruleset) => continue,
                Ok(loaded) => {
                    let rules = loaded.ruleset.every_rule().count();
                    tally.rules.fetch_add(rules as u64, Ordering::Relaxed);
                    let old = !loaded.ruleset.legacy_rules.is_empty();
                    tally.legacy.fetch_add(u64::from(old), Ordering::Relaxed);
                    difference(&loaded, &case, host)
                }
                Err(_) => continue,
            };
            if let Some(difference) = difference {
                let text = &case.rules.text;
                found().push(format!("rule set {number}\n{text}\n{difference}\n"));
            }
        }
    }
}

/// Reads `case` with one more line. Returns a description if the first error is not `expected`.
fn not_refused(case: &Case, line: &str, expected: &str, host: &Host) -> Option<String> {
    let rules = Rules { text: format!("{}{line}\n", case.rules.text), lines: Vec::new() };
    let case = Case { rules, files: case.files.clone(), ..Case::default() };
    let errors = match read(&case, "", host) {
        Ok(_) => return Some(format!("`{line}` is read")),
        Err(Rejected { diagnostics, .. }) => diagnostics,
    };
    let first = errors.into_iter().find(|told| told.kind == Severity::Error)?.message;
    (first != expected).then(|| format!("`{line}` is refused: {first}"))
}

/// Returns the main text, and sometimes one of the files. Parts are removed that pfctl does not
/// print, prints elsewhere, or prints alike for different rules, as OpenBSD's does:
///
/// - `load anchor`, weights in lists, tables in braces, and `floating` of a rule;
/// - a network of all addresses in a table, which prints as `any` without a family;
/// - the code of `return-icmp` in a rule of IPv6;
/// - ports of a pool from 0 on;
/// - `divert-packet` after a `scrub` rule, which lets it read reassembled streams.
fn texts(rng: &mut Rng, case: &Case) -> Vec<String> {
    let file = case.files.first().filter(|(name, _)| name.ends_with(".conf") && rng.bool());
    let file = file.map(|(_, text)| printable(text));
    [printable(&case.rules.text)].into_iter().chain(file).collect()
}

fn printable(text: &str) -> String {
    let has_scrub = text.lines().any(|line| line.starts_with("scrub"));
    let (mut lines, mut depth) = (String::new(), 0);
    for line in text.lines() {
        let words = ["load anchor", "return-icmp(13)", " port 0:"];
        let depends = has_scrub && line.contains("divert-packet");
        let is_other = depends || words.iter().any(|word| line.contains(word));
        let is_table = line.starts_with("table");
        if !(is_other || is_table && depth > 0) {
            let mut line = without_weights(&without_floating(line));
            if is_table {
                line = line.replace("0.0.0.0/0", "0.0.0.0/1").replace("::/0", "::/1");
            }
            lines += &line;
            lines.push('\n');
        }
        match line {
            "}" => depth -= 1,
            line if line.ends_with('{') => depth += 1,
            _ => {}
        }
    }
    lines
}

/// Replaces a rule's `floating` by another option.
fn without_floating(line: &str) -> String {
    let other = if line.contains("no-sync") { "pflow" } else { "no-sync" };
    if line.starts_with("set") { line.into() } else { line.replace("floating", other) }
}

fn without_weights(line: &str) -> String {
    let mut words = line.split(' ');
    let mut text = words.next().unwrap_or_default().to_string();
    while let Some(word) = words.next() {
        if word == "weight" {
            // the number may have the comma of the list behind it
            text += words.next().filter(|number| number.ends_with(',')).map_or("", |_| ",");
            continue;
        }
        text.push(' ');
        text += word;
    }
    text
}

/// Prints and reads a rule set. Returns a description of the first difference.
fn difference(loaded: &Loaded, case: &Case, host: &Host) -> Option<String> {
    let printed = Case {
        rules: Rules { text: loaded.echo.clone(), lines: Vec::new() },
        files: case.files.clone(),
        ..Case::default()
    };
    let again = match read(&printed, "", host) {
        Ok(again) => again,
        Err(Rejected { diagnostics, .. }) => {
            let told: String = diagnostics.iter().map(|told| told.explain() + "\n").collect();
            return Some(format!("prints as\n{}\nwhich is refused:\n{told}", loaded.echo));
        }
    };
    let mut lines = loaded.echo.lines().zip(again.echo.lines());
    let differs = match lines.find(|(first, second)| first != second) {
        Some((first, second)) => format!("in which\n{first}\nprints as\n{second}"),
        None => format!("in which is another: {}", other_part(&loaded.ruleset, &again.ruleset)?),
    };
    Some(format!("prints as\n{}\n{differs}", loaded.echo))
}

/// Describes the first part in which two rule sets differ.
fn other_part(first: &Ruleset, second: &Ruleset) -> Option<String> {
    let queues = |ruleset: &Ruleset| {
        let all = ruleset.queues.clone().into_iter();
        all.map(|queue| Queue { line: 0, ..queue })
    };
    let limiters = |ruleset: &Ruleset| {
        let all = ruleset.limiters.clone().into_iter();
        all.map(|limiter| Limiter { line: 0, ..limiter })
    };
    let legacy_rules = |ruleset: &Ruleset| {
        let all = ruleset.legacy_rules.clone().into_iter();
        // a list is printed as a whole
        let mut all: Vec<_> =
            all.map(|old| LegacyRule { rule: meaning(&old.rule), ..old }).collect();
        all.sort_by_key(|old| old.kind as u32);
        all.into_iter()
    };
    let parts = [
        other_item([first.options.clone()].into_iter(), [second.options.clone()].into_iter()),
        other_item(tables(first), tables(second)),
        other_item(queues(first), queues(second)),
        other_item(limiters(first), limiters(second)),
        other_item(first.systems.iter(), second.systems.iter()),
        other_item(legacy_rules(first), legacy_rules(second)),
    ];
    if let Some(other) = parts.into_iter().flatten().next() {
        return Some(other);
    }
    let named = |ruleset: &Ruleset| -> Vec<String> {
        let named = ruleset.anchors.iter().filter(|(path, _)| !path.contains('_'));
        let named = named.filter(|(_, anchor)| !anchor.rules.is_empty());
        named.map(|(path, _)| path.clone()).collect()
    };
    if named(first) != named(second) {
        return Some("anchor".to_string());
    }
    let paths = named(first).into_iter().chain([String::new()]);
    paths.filter_map(|path| other_rule((first, &path), (second, &path))).next()
}

/// Describes the first difference of two anchors, or of the anchors that they call in braces.
fn other_rule(
    (first, path): (&Ruleset, &str),
    (second, other): (&Ruleset, &str),
) -> Option<String> {
    let (rules, others) = (first.rules_of(path), second.rules_of(other));
    let other = other_item(rules.iter().map(meaning), others.iter().map(meaning));
    if other.is_some() {
        return other;
    }
    for (one, same) in rules.iter().zip(others) {
        if let (Some(call), Some(same)) = (unnamed(one), unnamed(same))
            && let Some(inner) = other_rule((first, &call.path), (second, &same.path))
        {
            return Some(inner);
        }
    }
    None
}

/// Returns all defined tables of all anchors. Tables of pools in braces print before all rules,
/// outside of their anchor, which finds them there, too.
fn tables(ruleset: &Ruleset) -> impl Iterator<Item = Table> {
    let anchors = ruleset.anchors.values().flat_map(|anchor| &anchor.tables);
    let all = ruleset.tables.iter().chain(anchors).filter(|table| table.defined);
    let mut tables: Vec<_> = all.cloned().collect();
    tables.sort_by(|one, other| one.name.cmp(&other.name));
    // an anchor that is printed at each call has its tables at each
    tables.dedup();
    tables.into_iter()
}

/// Returns a rule without its position. An unnamed anchor has a number as name, and is printed once
/// for each call, so its path is removed.
fn meaning(rule: &Rule) -> Rule {
    let mut rule = Rule { line: 0, file: None, ..rule.clone() };
    if unnamed(&rule).is_some() {
        rule.anchor = None;
    }
    if let Some(call) = &mut rule.anchor {
        call.braces = false;
        let named = |part: &str| if part.starts_with('_') { "_" } else { part }.to_string();
        call.path = call.path.split('/').map(named).collect::<Vec<_>>().join("/");
    }
    // a rule of one family prints and sends one code
    if let BlockReturn::Icmp { inet, inet6 } = &mut rule.block_return {
        match rule.family {
            Some(Family::Inet) => *inet6 = *inet,
            Some(Family::Inet6) => *inet = *inet6,
            None => {}
        }
    }
    for host in [&mut rule.source.host, &mut rule.destination.host] {
        if matches!(host.address, Address::Net(net) if net.prefix_len() == 0) {
            host.address = Address::Any;
        }
    }
    rule
}

/// Returns true if a rule calls an anchor that has neither name nor rules.
fn has_empty(ruleset: &Ruleset) -> bool {
    let mut calls = ruleset.every_rule().filter_map(|(_, rule)| unnamed(rule));
    calls.any(|call| ruleset.rules_of(&call.path).is_empty())
}

/// Returns the call of an anchor that has no name.
fn unnamed(rule: &Rule) -> Option<&AnchorCall> {
    rule.anchor.as_deref().filter(|call| call.is_unnamed())
}

/// Describes the first pair of items that differ.
fn other_item<T: Debug + PartialEq>(
    mut first: impl Iterator<Item = T>,
    mut second: impl Iterator<Item = T>,
) -> Option<String> {
    loop {
        match (first.next(), second.next()) {
            (None, None) => return None,
            (one, other) if one != other => {
                let (one, other) = (format!("{one:#?}"), format!("{other:#?}"));
                let mut lines = one.lines().zip(other.lines());
                let (first, second) = lines.find(|(a, b)| a != b).unwrap_or_default();
                return Some(format!("{one}\nand\n{other}\nof which\n{first}\nis\n{second}"));
            }
            _ => {}
        }
    }
}
