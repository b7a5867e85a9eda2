//! Tests that docs/how/behaviour.md names an existing proof for each behaviour.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use skipstep_scenario::parse;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the proofs on the page, each with its line: the items of the tables' last column.
fn proofs(page: &str) -> Vec<(usize, &str)> {
    let mut proofs = Vec::new();
    let mut in_table = false;
    for (number, line) in page.lines().enumerate() {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        match cells[..] {
            _ if !line.starts_with('|') => in_table = false,
            ["what must hold", ..] => in_table = true,
            [_, upstream, here] if in_table => {
                assert!(!upstream.is_empty(), "line {}: which test?", number + 1);
                proofs.extend(here.split("<br>").map(|proof| (number + 1, proof)));
            }
            _ => assert!(!in_table || line.starts_with("|---"), "line {}: {line}", number + 1),
        }
    }
    proofs
}

/// Returns the titles in each scenario file.
fn titles() -> BTreeMap<String, BTreeSet<String>> {
    let directory = root().join("tests/scenarios");
    let entries = std::fs::read_dir(directory).expect("tests/scenarios is there");
    let mut titles: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in entries.map(|entry| entry.expect("it can be listed").path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let file = parse::file(&text, &name).unwrap_or_else(|error| panic!("{error}"));
        let of_file = file.cases.into_iter().filter_map(|case| case.title);
        titles.entry(name).or_default().extend(of_file);
    }
    titles
}

/// Returns the error in a proof, if it has one.
fn fault(proof: &str, titles: &BTreeMap<String, BTreeSet<String>>) -> Option<String> {
    let excuse = ["not on Linux: ", "not built: "];
    if let Some(reason) = excuse.iter().find_map(|excuse| proof.strip_prefix(excuse)) {
        return reason.is_empty().then(|| "why?".to_owned());
    }
    let named = proof.strip_prefix('`').and_then(|rest| rest.split_once('`'));
    let (file, what) = named.map_or(("", ""), |(file, what)| (file, what.trim()));
    if let Some(known) = titles.get(file) {
        return (!known.contains(what)).then(|| format!("{file} has no scenario of that title"));
    }
    if file.starts_with("test-") {
        let there = root().join("tests/netns").join(file).is_file();
        return (!there).then(|| "there is no such test".to_owned());
    }
    if file.ends_with(".rs") {
        let known = root().join(file).is_file() && read(file).contains(&format!("fn {what}("));
        return (!known).then(|| format!("there is no {what} in {file}"));
    }
    Some("is that a scenario, a test, or a reason?".to_owned())
}

#[test]
fn every_behaviour_names_a_proof_that_there_is() {
    let page = read("docs/how/behaviour.md");
    let titles = titles();
    let proofs = proofs(&page);
    assert!(proofs.len() > 200, "only {} proofs found", proofs.len());
    let faults: Vec<String> = proofs
        .iter()
        .filter_map(|(line, proof)| {
            let fault = fault(proof, &titles)?;
            Some(format!("docs/how/behaviour.md:{line}: {proof}: {fault}"))
        })
        .collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn missing_proofs_are_reported() {
    let titles = BTreeMap::from([("a.scn".to_owned(), BTreeSet::from(["it works".to_owned()]))]);
    for (proof, right) in [
        ("`a.scn` it works", true),
        ("`a.scn` it does not", false),
        ("`b.scn` it works", false),
        ("`test-nat.sh`", true),
        ("`test-nothing.sh`", false),
        ("`crates/scenario/tests/behaviour.rs` missing_proofs_are_reported", true),
        ("`crates/scenario/tests/behaviour.rs` nothing", false),
        ("not on Linux: no such thing", true),
        ("not on Linux: ", false),
        ("not built: nobody asked", true),
        ("not built: ", false),
        ("open: nobody knows", false),
        ("", false),
    ] {
        assert_eq!(fault(proof, &titles).is_none(), right, "{proof}");
    }
}

/// The table of tests/README.md has each scenario file and each host test in its column.
#[test]
fn the_map_of_tests_is_complete() {
    let page = read("tests/README.md");
    let (_, map) = page.split_once("| feature |").expect("the map is there");
    let in_column = |column: usize| -> BTreeSet<&str> {
        let cells = map.lines().filter_map(|line| line.split('|').nth(column));
        cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
    };
    let there = |folder: &str, before: &str, after: &str| -> BTreeSet<String> {
        let entries = std::fs::read_dir(root().join(folder)).expect("the folder is there");
        let names = entries.map(|entry| entry.expect("it can be listed").file_name());
        let test = |name: String| Some(name.strip_prefix(before)?.strip_suffix(after)?.to_owned());
        names.filter_map(|name| test(name.into_string().ok()?)).collect()
    };
    let owned = |names: BTreeSet<&str>| names.into_iter().map(str::to_owned).collect();
    let named: [BTreeSet<String>; 2] = [in_column(3), in_column(4)].map(owned);
    assert_eq!(named[0], there("tests/scenarios", "", ".scn"));
    assert_eq!(named[1], there("tests/netns", "test-", ".sh"));
}
