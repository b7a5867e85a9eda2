//! The project's own texts in tests/conf, by section: `NAME.in` must print as `NAME.ok`, and that as itself;
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
