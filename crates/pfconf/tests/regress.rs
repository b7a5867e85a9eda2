//! OpenBSD's own cases for its parser (pf-regress.md): `pfN.in` must print as `pfN.ok`, that must
//! print as itself, and `pfailN.in` must be refused with the messages of `pfailN.ok`.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use skipstep_pfconf::{Context, Loaded, Names, Rejected, load};
use skipstep_ruleset::interface::{Host, Interface, InterfaceAddress};

/// Users and groups that the cases speak of, with their numbers on OpenBSD.
const PASSWD: &str = "root::0:\nbin::3:\n";
const GROUP: &str = "wheel::0:\nbin::7:\nsshd::27:\nnobody::32767:\n";

/// And users that published rule sets speak of.
const OTHERS: &str = "_pbuild::55:\nproxy::71:\nunbound::53:\n_dnscrypt-proxy::688:\n";

#[test]
fn regression_cases() {
    let directory =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/pf-regress/openbsd");
    if !directory.is_dir() {
        println!("skipped: no OpenBSD regression cases beside the project");
        return;
    }
    let host = regression_host();
    let (mut equal, mut differences) = (0, Vec::new());
    let mut skipped = BTreeMap::<&str, Vec<String>>::new();
    let mut compare = |name: String, input: &str, expected: &str| match run(input, &host) {
        Err(feature) => skipped.entry(feature).or_default().push(name),
        Ok(output) if output == expected => equal += 1,
        Ok(output) => {
            differences
                .push(format!("--- {name}\n{input}\n--- expected\n{expected}\n--- got\n{output}"));
        }
    };
    for file in inputs(&directory) {
        // Cases with further files are about anchors in the kernel: what -sr prints of them.
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
    println!("{equal} equal, {} different, skipped {skipped:?}", differences.len());
    for difference in &differences {
        println!("{difference}");
    }
    assert!(differences.is_empty(), "{} cases differ", differences.len());
}

/// Rule sets that people published: whatever OpenBSD accepts loads, or uses a feature not built yet.
#[test]
fn published_rule_sets() {
    let directory =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/pf-regress/realworld");
    if !directory.is_dir() {
        println!("skipped: no published rule sets beside the project");
        return;
    }
    let host = regression_host();
    let (mut loaded, mut refused, mut differences) = (0, 0, Vec::new());
    for row in read(&directory.join("index.tsv")).lines().skip(1) {
        let mut columns = row.split('\t');
        let (number, verdict) = (columns.next().unwrap(), columns.nth(7).unwrap());
        let input = read(&directory.join(format!("{number}.conf")));
        // Names of hosts and interfaces of other people's networks are whatever we say.
        let resolve = |_: &str| vec![IpAddr::from([192, 0, 2, 1])];
        let read_file = |_: &str| Ok(String::new());
        let names = Names::builtin().clone().with_owners(&format!("{PASSWD}{OTHERS}"), OTHERS);
        let mut host = host.clone();
        add_interfaces(&mut host, &input);
        let context = Context {
            read_file: &read_file,
            resolve: &resolve,
            names: &names,
            ..Context::new(&host)
        };
        match load(&input, &context) {
            Ok(Loaded { echo, .. }) => {
                loaded += 1;
                let printed = directory.join(format!("{number}.printed"));
                if printed.is_file() && read(&printed) != echo {
                    differences.push(format!("--- {number} got\n{echo}"));
                }
            }
            Err(Rejected { diagnostics, .. }) => {
                refused += 1;
                let wrong: String = diagnostics
                    .iter()
                    .filter(|diagnostic| diagnostic.not_built().is_none())
                    .map(|diagnostic| diagnostic.explain() + "\n")
                    .collect();
                if verdict == "accept" && !wrong.is_empty() {
                    differences.push(format!("--- {number} got\n{wrong}"));
                }
            }
        }
    }
    println!("{loaded} loaded, {refused} refused, {} not as expected", differences.len());
    for difference in &differences {
        println!("{difference}");
    }
    assert!(differences.is_empty());
}

/// What pfctl -nv prints: messages, then (stdout being a pipe) the rest. Or a feature not built.
fn run(text: &str, host: &Host) -> Result<String, &'static str> {
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
        Ok(Loaded { echo, .. }) => Ok(echo),
        Err(Rejected { diagnostics, echo }) => match diagnostics.iter().find_map(|d| d.not_built())
        {
            Some(feature) => Err(feature),
            None => Ok(diagnostics.iter().map(|d| format!("{d}\n")).collect::<String>() + &echo),
        },
    }
}

/// `pfN.in` and `pfailN.in` by name.
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

/// The interfaces that the cases are made for.
fn regression_host() -> Host {
    let names = ["lo0", "lo1000000", "tun1000000", "tun1000001"];
    let interfaces = names.iter().zip(1..).map(|(name, index)| Interface {
        name: name.to_string(),
        index,
        loopback: name.starts_with("lo"),
        groups: vec![
            "all".to_string(),
            name.trim_end_matches(|c: char| c.is_ascii_digit()).to_string(),
        ],
        addresses: if *name == "lo0" { loopback() } else { Vec::new() },
        ..Interface::default()
    });
    Host { interfaces: interfaces.collect(), routes: Vec::new() }
}

/// Adds an interface for each word of a text that looks like the name of one.
fn add_interfaces(host: &mut Host, text: &str) {
    for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
        let kind = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_name = kind.len() < word.len()
            && !kind.is_empty()
            && kind.chars().all(|c| c.is_ascii_lowercase());
        if is_name && host.interface(word).is_none() {
            let index = host.interfaces.len() as u32 + 1;
            let name = word.to_string();
            host.interfaces.push(Interface { name, index, ..Interface::default() });
        }
    }
}

fn loopback() -> Vec<InterfaceAddress> {
    ["::1/128", "fe80::1/64", "127.0.0.1/8"]
        .map(|net| InterfaceAddress { net: net.parse().unwrap(), broadcast: None, peer: None })
        .to_vec()
}
