//! OpenBSD's cases for its parser (pf-regress.md). `pfN.in` must print as `pfN.ok`, which must
//! print as itself. `pfailN.in` must be refused with the messages of `pfailN.ok`.

use std::io;
use std::path::{Path, PathBuf};

use crate::common::regression_host;
use skipstep_pfconf::{Context, Loaded, Names, Rejected, load};
use skipstep_ruleset::interface::Host;

/// Users and groups that the cases name, with their ids on OpenBSD.
const PASSWD: &str = "root::0:\nbin::3:\n";
const GROUP: &str = "wheel::0:\nbin::7:\nsshd::27:\nnobody::32767:\n";

#[test]
#[ignore = "needs ../shared"]
fn shared_regression_cases() {
    let directory =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/pf-regress/openbsd");
    let host = regression_host();
    let (mut equal, mut differences) = (0, Vec::new());
    let mut compare = |name: String, input: &str, expected: &str| {
        let output = run(input, &host);
        if output == expected {
            equal += 1;
        } else {
            differences
                .push(format!("--- {name}\n{input}\n--- expected\n{expected}\n--- got\n{output}"));
        }
    };
    for file in inputs(&directory) {
        // cases with further files test the output of -sr for anchors in the kernel
        if file.with_extension("one").is_file() {
            continue;
        }
        let name = file.file_stem().unwrap().to_string_lossy().to_string();
        let (input, ok) = (read(&file), read(&file.with_extension("ok")));
        compare(name.clone(), &input, &ok);
        if !name.starts_with("pfail") {
            compare(format!("self{name}"), &ok, &ok);
        }
    }
    println!("{equal} equal, {} different", differences.len());
    for difference in &differences {
        println!("{difference}");
    }
    assert!(differences.is_empty(), "{} cases differ", differences.len());
}

/// Returns the output of `pfctl -nv`: messages, then (because stdout is a pipe) the other output.
fn run(text: &str, host: &Host) -> String {
    let read_file = |name: &str| {
        if ["/dev/null", "/etc/pf.os"].contains(&name) {
            Ok(String::new())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    };
    let names = Names::builtin().clone().with_owners(PASSWD, GROUP);
    let context = Context { read_file: &read_file, names: &names, ..Context::new(host) };
    match load(text, &context) {
        Ok(Loaded { echo, .. }) => echo,
        Err(Rejected { diagnostics, echo }) => {
            diagnostics.iter().map(|d| format!("{d}\n")).collect::<String>() + &echo
        }
    }
}

/// Returns `pfN.in` and `pfailN.in`, sorted by name.
fn inputs(directory: &Path) -> Vec<PathBuf> {
    let is_case = |file: &PathBuf| {
        let name = file.file_name().unwrap().to_string_lossy();
        let number = name.strip_prefix("pfail").or_else(|| name.strip_prefix("pf"));
        number
            .and_then(|number| number.strip_suffix(".in"))
            .is_some_and(|n| n.parse::<u32>().is_ok())
    };
    let mut files: Vec<_> =
        directory.read_dir().unwrap().map(|e| e.unwrap().path()).filter(is_case).collect();
    files.sort();
    files
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap()
}
