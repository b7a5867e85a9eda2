//! The project's own texts in tests/conf: `NAME.in` must print as `NAME.ok`, and that as itself;
//! `fail-NAME.in` must be refused with the messages in `fail-NAME.ok`.
//!
//! `UPDATE=1 cargo test -p skipstep-pfconf --test golden` writes the `.ok` files anew; look at the
//! difference before committing it.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use skipstep_pfconf::{Context, Loaded, Rejected, load};
use skipstep_ruleset::interface::{Host, Interface, InterfaceAddress};

#[test]
fn golden_texts() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conf");
    let mut inputs: Vec<PathBuf> =
        directory.read_dir().unwrap().map(|e| e.unwrap().path()).collect();
    inputs.retain(|file| file.extension().is_some_and(|extension| extension == "in"));
    inputs.sort();
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
    let host = golden_host();
    let context = Context { read_file: &read_file, resolve: &resolve, ..Context::new(&host) };
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

fn read_file(name: &str) -> io::Result<String> {
    match name {
        "friends" => {
            Ok("# friends of ours\n10.9.0.1 !10.9.0.2\n2001:db8::/48 # and theirs\n".to_string())
        }
        "broken" => Ok("10.9.0.1\nnobody-knows\n".to_string()),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

fn resolve(name: &str) -> Vec<IpAddr> {
    match name {
        "localhost" => vec![IpAddr::from([127, 0, 0, 1]), "::1".parse().unwrap()],
        _ => Vec::new(),
    }
}

/// A router between `wan` and `lan` with a line to somewhere else.
fn golden_host() -> Host {
    let interface = |name: &str, index, groups: &[&str], addresses: &[&str]| Interface {
        name: name.to_string(),
        index,
        loopback: name == "lo",
        groups: ["all"].iter().chain(groups).map(|group| group.to_string()).collect(),
        addresses: addresses
            .iter()
            .map(|net| InterfaceAddress { net: net.parse().unwrap(), broadcast: None, peer: None })
            .collect(),
        ..Interface::default()
    };
    let mut host = Host {
        interfaces: vec![
            interface("lo", 1, &[], &["127.0.0.1/8", "::1/128"]),
            interface(
                "wan",
                2,
                &["egress"],
                &["198.51.100.2/24", "198.51.100.3/24", "fe80::2/64", "2001:db8:1::2/64"],
            ),
            interface("lan", 3, &[], &["10.1.0.1/16", "fe80::3/64", "2001:db8:2::1/64"]),
            interface("ppp0", 4, &[], &["192.0.2.1/32"]),
            interface("down0", 5, &[], &[]),
        ],
        routes: Vec::new(),
    };
    host.interfaces[1].addresses[0].broadcast = Some(IpAddr::from([198, 51, 100, 255]));
    host.interfaces[3].addresses[0].peer = Some(IpAddr::from([192, 0, 2, 254]));
    host
}
