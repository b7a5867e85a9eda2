//! The texts in tests/conf. `NAME.in` must print as `NAME.ok`, which must print as itself.
//! `fail-NAME.in` must be refused with the messages in `fail-NAME.ok`. `fail-openbsd.in` is read as
//! OpenBSD does, the others in any dialect.
//!
//! `UPDATE=1 cargo test -p skipstep-pfconf --test all golden` rewrites the `.ok` files; review the
//! difference before a commit.

use std::collections::{BTreeMap, BTreeSet};

use crate::common;
use skipstep_pfconf::{Context, Dialect, Loaded, Rejected, load};

#[test]
fn golden_texts() {
    let inputs = common::files(&common::root().join("tests/conf"), &["in"]);
    assert!(!inputs.is_empty());
    let mut differences = String::new();
    for file in inputs {
        let name = file.file_stem().unwrap().to_string_lossy().to_string();
        let input = std::fs::read_to_string(&file).unwrap();
        let dialect = if name == "fail-openbsd" { Dialect::OpenBsd } else { Dialect::Any };
        let (output, accepted) = run(&input, dialect);
        assert_eq!(accepted, !name.starts_with("fail-"), "{name}:\n{output}");
        if accepted {
            assert_eq!(
                run(&output, dialect).0,
                output,
                "{name}: what is printed does not print as itself"
            );
        }
        let expected = file.with_extension("ok");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&expected, &output).unwrap();
        }
        let expected = std::fs::read_to_string(&expected).unwrap_or_default();
        if expected != output {
            differences += &format!("{name}:\n{}", difference(&expected, &output));
        }
    }
    assert!(differences.is_empty(), "\n{differences}");
}

/// Checks tests/conf/ROWS, which names a text for each feature of the language, and words of that
/// text.
#[test]
fn every_row_names_a_text_and_its_words() {
    let folder = common::root().join("tests/conf");
    let list = std::fs::read_to_string(folder.join("ROWS")).unwrap();
    for (_, [place, what, file, words]) in rows(&list) {
        let text = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
        assert!(text.contains(words), "{place}, {what}: no `{words}` in {file}");
    }
    let sections: BTreeSet<u32> = rows(&list).map(|((section, _), _)| section).collect();
    assert!(sections.iter().copied().eq(1..=12), "{sections:?}");
}

/// Checks that ROWS has the same rows as the table of features.
#[test]
fn the_table_of_features_has_the_same_rows() {
    let list = std::fs::read_to_string(common::root().join("tests/conf/ROWS")).unwrap();
    let rows: BTreeSet<_> = rows(&list).map(|(place, _)| place).collect();
    let table = common::root().join("docs/reference/pf-features.md");
    let table = std::fs::read_to_string(table).unwrap();
    let known = table_of_features(&table);
    let places: BTreeSet<_> = known.keys().copied().collect();
    let missing: Vec<_> = places.difference(&rows).map(|place| &known[place]).collect();
    assert!(missing.is_empty(), "in no text: {missing:?}");
    let unknown: Vec<_> = rows.difference(&places).collect();
    assert!(unknown.is_empty(), "ROWS has rows that the table of features lacks: {unknown:?}");
}

/// Returns section and number of each row of ROWS, and its cells: place, feature, file, words.
fn rows(list: &str) -> impl Iterator<Item = ((u32, u32), [&str; 4])> {
    list.lines().filter(|row| !row.starts_with('#')).map(|row| {
        let cells: Vec<_> = row.splitn(4, " | ").collect();
        let cells: [&str; 4] = cells.try_into().unwrap_or_else(|_| panic!("not a row: {row}"));
        let (section, number) = cells[0].split_once('.').expect("section.row");
        ((section.parse().unwrap(), number.parse().unwrap()), cells)
    })
}

/// Returns the first cells of the table of features, by section and row. Only sections about the
/// language count.
fn table_of_features(table: &str) -> BTreeMap<(u32, u32), &str> {
    let (mut section, mut number) = (0, 0);
    let mut rows = BTreeMap::new();
    for line in table.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            (section, number) = (title.split('.').next().unwrap().parse().unwrap_or(0), 0);
        } else if let Some(row) = line.strip_prefix("| ") {
            let cell = row.split(" | ").next().unwrap();
            if (1..=12).contains(&section) && cell != "item" && cell != "option" {
                number += 1;
                rows.insert((section, number), cell);
            }
        }
    }
    assert!(rows.len() > 150, "{} rows", rows.len());
    rows
}

/// Returns the output of `pfctl -nv`; true if the text is accepted.
fn run(text: &str, dialect: Dialect) -> (String, bool) {
    let host = common::host();
    let names = common::names();
    let context = Context {
        read_file: &common::read_file,
        resolve: &common::resolve,
        names: &names,
        dialect,
        macros: &common::macros(),
        ..Context::new(&host)
    };
    match load(text, &context) {
        Ok(Loaded { echo, .. }) => (echo, true),
        Err(Rejected { diagnostics, echo }) => {
            let messages: String = diagnostics.iter().map(|d| d.explain() + "\n").collect();
            (messages + &echo, false)
        }
    }
}

fn difference(expected: &str, output: &str) -> String {
    let (expected, output): (Vec<_>, Vec<_>) =
        (expected.lines().collect(), output.lines().collect());
    let lines = expected.len().max(output.len());
    let pairs = (0..lines).map(|line| (expected.get(line), output.get(line)));
    pairs
        .filter(|(expected, output)| expected != output)
        .map(|(expected, output)| {
            let show = |line: Option<&&str>| line.map_or(String::new(), |line| line.to_string());
            format!("  - {}\n  + {}\n", show(expected), show(output))
        })
        .collect()
}
