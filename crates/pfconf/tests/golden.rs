//! The project's own texts in tests/conf: `NAME.in` must print as `NAME.ok`, and that as itself;
//! `fail-NAME.in` must be refused with the messages in `fail-NAME.ok`.
//!
//! `UPDATE=1 cargo test -p skipstep-pfconf --test golden` writes the `.ok` files anew; look at the
//! difference before committing it.

mod common;

use skipstep_pfconf::{Context, Loaded, Rejected, load};

#[test]
fn golden_texts() {
    let inputs = common::files(&common::root().join("tests/conf"), &["in"]);
    assert!(!inputs.is_empty());
    let mut differences = String::new();
    for file in inputs {
        let name = file.file_stem().unwrap().to_string_lossy().to_string();
        let input = std::fs::read_to_string(&file).unwrap();
        let (output, accepted) = run(&input);
        assert_eq!(accepted, !name.starts_with("fail-"), "{name}:\n{output}");
        if accepted {
            assert_eq!(run(&output).0, output, "{name}: what is printed does not print as itself");
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

/// tests/conf/ROWS names a text for everything the language has, and words of it.
#[test]
fn everything_the_language_has_is_in_a_text() {
    let folder = common::root().join("tests/conf");
    let mut sections = std::collections::BTreeMap::<u32, u32>::new();
    for row in std::fs::read_to_string(folder.join("ROWS")).unwrap().lines() {
        if row.starts_with('#') {
            continue;
        }
        let [section, what, file, words] = *row.splitn(4, " | ").collect::<Vec<_>>() else {
            panic!("not a row: {row}");
        };
        *sections.entry(section.parse().unwrap()).or_default() += 1;
        let text = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
        assert!(text.contains(words), "section {section}, {what}: no `{words}` in {file}");
    }
    assert!(sections.keys().copied().eq(1..=12), "{sections:?}");
}

/// What pfctl -nv prints, and whether the text is accepted.
fn run(text: &str) -> (String, bool) {
    let host = common::host();
    let names = common::names();
    let context = Context {
        read_file: &common::read_file,
        resolve: &common::resolve,
        names: &names,
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
