//! The rule sets of the recorded vectors: every one that uses only what is built must print as
//! OpenBSD printed it, and be refused with OpenBSD's words where OpenBSD refused it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use skipstep_pfconf::{Context, Kind, Loaded, Names, Rejected, load};
use skipstep_ruleset::interface::{Host, Interface, InterfaceAddress};
use skipstep_ruleset::{AutomaticTables, Optimization};

/// `pass from fe80::1%em0`: the recorder knew no interface em0 when it read the zone. OpenBSD's own
/// case 14 shows what a real system prints: `on em0`.
const KNOWN_DIFFERENCES: [&str; 1] = ["parse-02373"];

/// Users and groups of the recorder.
const PASSWD: &str =
    "root::0:\ndaemon::1:\noperator::2:\nbin::3:\nsshd::27:\nproxy::71:\nnobody::32767:\n";
const GROUP: &str =
    "wheel::0:\ndaemon::1:\noperator::5:\nbin::7:\nsshd::27:\nproxy::71:\nnobody::32767:\n";

/// What a vector says of its rule set; its packets are none of this test's business.
#[derive(Deserialize)]
struct Vector {
    id: String,
    rules: String,
    printed: Option<String>,
    printed_optimized: Option<String>,
    printed_before_error: Option<String>,
    messages: Option<String>,
    #[serde(default)]
    error: bool,
}

/// How a rule set compared.
enum Outcome {
    Equal,
    Skipped(&'static str),
    Different(String),
}

#[test]
fn rule_sets_print_as_recorded() {
    let Some(directory) = vectors() else {
        println!("skipped: no recorded vectors beside the project (set VECTORS=dir)");
        return;
    };
    let host = recorded_host();
    // What pfctl shows of a running filter is the business of pfctl's tests.
    let mut files: Vec<_> =
        directory.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| {
        file.to_string_lossy().ends_with(".jsonl.gz") && !file.ends_with("show.jsonl.gz")
    });
    files.sort();
    assert!(!files.is_empty(), "no vectors in {}", directory.display());
    let differences: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            files.iter().map(|file| scope.spawn(|| replay(file, &host))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let limit = std::env::var("SHOW").map_or(5, |text| text.parse().unwrap());
    for difference in differences.iter().take(limit) {
        println!("{difference}");
    }
    assert!(differences.is_empty(), "{} rule sets differ", differences.len());
}

/// Compares all rule sets of a file, prints how many are equal and returns the differences.
fn replay(file: &Path, host: &Host) -> Vec<String> {
    let mut equal = 0;
    let mut differences = Vec::new();
    let mut skipped = BTreeMap::<&str, usize>::new();
    for line in lines(file) {
        match compare(&serde_json::from_str(&line).unwrap(), host) {
            Outcome::Equal => equal += 1,
            Outcome::Skipped(feature) => *skipped.entry(feature).or_default() += 1,
            Outcome::Different(how) => differences.push(how),
        }
    }
    let name = file.file_name().unwrap().to_string_lossy();
    let skips: usize = skipped.values().sum();
    println!("{name}: {equal} equal, {} different, {skips} skipped {skipped:?}", differences.len());
    differences
}

/// As written, and as optimized where that was recorded.
fn compare(vector: &Vector, host: &Host) -> Outcome {
    match (compare_printed(vector, host, Optimization::None), &vector.printed_optimized) {
        (Outcome::Equal, Some(_)) => compare_printed(vector, host, Optimization::Basic),
        (outcome, _) => outcome,
    }
}

fn compare_printed(vector: &Vector, host: &Host, level: Optimization) -> Outcome {
    // The recorder chose the level by default, not with -o, and had a fixed number for random ones.
    let chosen = vector.rules.contains("set ruleset-optimization");
    let names = Names::builtin().clone().with_owners(PASSWD, GROUP);
    let context = Context {
        optimization: (!chosen).then_some(level),
        automatic_tables: AutomaticTables::for_loading(0x5eed),
        random: &|| 0x5eed,
        names: &names,
        ..Context::new(host)
    };
    let (printed, messages) = match load(&vector.rules, &context) {
        Ok(Loaded { echo, warnings, .. }) => {
            // That an interface is not there, OpenBSD does not say.
            let said = warnings.iter().filter(|w| !w.message.contains("there is no interface"));
            let said = said.filter(|warning| warning.kind == Kind::Warning);
            (echo, said.map(|warning| format!("{warning}\n")).collect())
        }
        Err(Rejected { diagnostics, echo }) => {
            let mut messages: String = diagnostics.iter().map(|d| format!("{d}\n")).collect();
            messages += "pfctl: Syntax error in config file: pf rules not loaded\n";
            (echo, messages)
        }
    };
    let expected = match level {
        _ if vector.error => &vector.printed_before_error,
        Optimization::None => &vector.printed,
        _ => &vector.printed_optimized,
    };
    let expected = expected.as_deref().unwrap_or_default();
    let expected_messages = vector.messages.as_deref().unwrap_or_default();
    let printed = printed.replace("__automatic_5eed_", "__automatic_");
    if printed == expected && messages == expected_messages {
        return Outcome::Equal;
    }
    if KNOWN_DIFFERENCES.contains(&vector.id.as_str()) {
        return Outcome::Skipped("zone unknown to the recorder");
    }
    Outcome::Different(format!(
        "--- {}\n{}\n--- expected\n{expected}{expected_messages}--- got\n{printed}{messages}",
        vector.id, vector.rules
    ))
}

fn vectors() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let directory =
        std::env::var_os("VECTORS").map_or_else(|| root.join("../shared/vectors"), PathBuf::from);
    directory.is_dir().then_some(directory)
}

fn lines(file: &Path) -> Vec<String> {
    let output = Command::new("gzip").arg("-dc").arg(file).output().unwrap();
    assert!(output.status.success(), "cannot unpack {}", file.display());
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_string).collect()
}

/// The interfaces of the vectors, their addresses in the order in which the recorder listed them.
fn recorded_host() -> Host {
    let interface = |name: &str, index, groups: &[&str], addresses: &[&str]| Interface {
        name: name.to_string(),
        index,
        loopback: name == "lo0",
        groups: groups.iter().map(|group| group.to_string()).collect(),
        addresses: addresses
            .iter()
            .map(|net| InterfaceAddress { net: net.parse().unwrap(), broadcast: None, peer: None })
            .collect(),
        ..Interface::default()
    };
    let mut host = Host {
        interfaces: vec![
            interface("em0", 1, &["all"], &["10.0.1.1/24", "fe80::1/64", "2001:db8:1::1/64"]),
            interface(
                "em1",
                2,
                &["all", "egress"],
                &["10.0.2.1/24", "fe80::2/64", "2001:db8:2::1/64"],
            ),
            interface("lo0", 3, &["all", "lo"], &["::1/128", "fe80::1/64", "127.0.0.1/8"]),
        ],
        routes: Vec::new(),
    };
    for (interface, broadcast) in host.interfaces.iter_mut().zip(["10.0.1.255", "10.0.2.255"]) {
        interface.addresses[0].broadcast = Some(broadcast.parse().unwrap());
    }
    host
}
