//! FreeBSD's cases for its parser (pf-regress.md). `pfN.in` must be accepted, and its output must
//! print as itself. FreeBSD's printed form `pfN.ok` must be accepted, too. Inputs with a `pfN.fail`
//! must be refused in its words. altq, dummynet and rules for frames are refused by name.

use std::path::Path;

use skipstep_pfconf::{Context, Loaded, Rejected, load};
use skipstep_ruleset::interface::Host;

use crate::common::cloned;

/// Features that skipstep lacks.
const REFUSED: [&str; 4] = ["altq", "dnpipe", "dnqueue", "ether"];

#[test]
#[ignore = "needs ../shared"]
fn shared_freebsd_cases() {
    let directory =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/pf-regress/freebsd");
    let mut names: Vec<String> = directory
        .read_dir()
        .unwrap()
        .filter_map(|entry| Some(entry.unwrap().file_name().to_str()?.strip_suffix(".in")?.into()))
        .collect();
    names.sort();
    assert!(!names.is_empty());
    let read = |name: String| std::fs::read_to_string(directory.join(name));
    let read_file = |name: &str| {
        let name = name.trim_start_matches("./").to_string();
        if name == "/dev/null" { Ok(String::new()) } else { read(name) }
    };
    let mut differences = Vec::new();
    let mut refused = Vec::new();
    let (mut accepted, mut failed) = (0, 0);
    for name in names {
        let host = host(&name);
        let context = Context { read_file: &read_file, ..Context::new(&host) };
        let input = read(format!("{name}.in")).unwrap();
        let must_fail = directory.join(format!("{name}.fail")).is_file();
        let texts = [Some(input), read(format!("{name}.ok")).ok()];
        for text in texts.into_iter().flatten() {
            match (printed(&text, &context), must_fail) {
                (Err(messages), true) => {
                    let said = read(format!("{name}.fail")).unwrap();
                    if messages.contains(said.trim()) {
                        failed += 1;
                    } else {
                        differences.push(format!(
                            "{name}: {messages}
instead of {said}"
                        ));
                    }
                }
                (Ok(_), true) => differences.push(format!("{name}: accepted\n{text}")),
                (Err(_), false) if uses(&text).is_some() => refused.push(name.clone()),
                (Err(messages), false) => {
                    differences.push(format!("{name}: refused\n{text}\n{messages}"));
                }
                (Ok(_), false) if uses(&text).is_some() => {
                    differences.push(format!("{name}: accepted\n{text}"));
                }
                (Ok(once), false) => match printed(&once, &context) {
                    Ok(twice) if twice == once => accepted += 1,
                    Ok(twice) => differences.push(format!("{name}:\n{once}\nprints as\n{twice}")),
                    Err(messages) => {
                        differences.push(format!("{name}: {once}\nis refused\n{messages}"));
                    }
                },
            }
            if must_fail {
                break;
            }
        }
    }
    refused.dedup();
    println!("{accepted} accepted, {failed} refused as they must, refused by name: {refused:?}");
    for difference in &differences {
        println!("{difference}");
    }
    assert!(differences.is_empty(), "{} texts are not as FreeBSD has them", differences.len());
}

/// Returns the output of `pfctl -nv`, or the messages.
fn printed(text: &str, context: &Context) -> Result<String, String> {
    match load(text, context) {
        Ok(Loaded { echo, .. }) => Ok(echo),
        Err(Rejected { diagnostics, .. }) => {
            Err(diagnostics.iter().map(|diagnostic| diagnostic.explain() + "\n").collect())
        }
    }
}

/// Returns a word of a feature that skipstep lacks, if the text has one.
fn uses(text: &str) -> Option<&'static str> {
    let words = |word: &&str| text.split_whitespace().any(|here| here == *word);
    REFUSED.into_iter().find(|word| words(word))
}

/// Returns the interfaces of the cases. Some cases create one with two addresses.
fn host(case: &str) -> Host {
    let number = case.trim_start_matches("pf").trim_start_matches('0');
    let vlan = ["203.0.113.5/30", "2001:db8::203.0.113.5/126"];
    Host::with([
        cloned("lo0", &["127.0.0.1/8", "::1/128", "fe80::1/64"]),
        cloned("lo1000000", &[]),
        cloned("tun1000000", &[]),
        cloned("tun1000001", &[]),
        cloned(&format!("vlan{number}"), &vlan),
    ])
}
