//! Tests of the project's scenario files: on the model, and printed and parsed again.

use std::path::{Path, PathBuf};

use skipstep_scenario::{Model, parse, run};

fn files() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios");
    let entries = std::fs::read_dir(directory).expect("tests/scenarios is there");
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.expect("it can be listed").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "scn"));
    files.sort();
    assert!(files.len() > 10, "only {} scenario files found", files.len());
    files
}

#[test]
fn all_hold_on_the_model() {
    let mut failures = String::new();
    for path in files() {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let file = parse::file(&text, &name).unwrap_or_else(|error| panic!("{error}"));
        for outcome in run::file(&file, &name, &mut Model::new()) {
            failures += &run::report(&outcome, &name);
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn printed_and_read_again_they_are_the_same() {
    for path in files() {
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let file = parse::file(&text, "first").unwrap_or_else(|error| panic!("{error}"));
        let printed = file.to_string();
        let again =
            parse::file(&printed, "printed").unwrap_or_else(|error| panic!("{error}\n{printed}"));
        assert_eq!(file, again, "{}:\n{printed}", path.display());
        assert_eq!(printed, again.to_string());
    }
}
