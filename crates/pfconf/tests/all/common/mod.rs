//! Shared parts of the tests of whole texts: the environment of tests/conf, and all available
//! texts.
#![allow(dead_code, reason = "no test uses everything")]

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use skipstep_pfconf::Names;
use skipstep_ruleset::Ruleset;
use skipstep_ruleset::interface::{Host, Interface};

/// Returns the root folder of the project.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the files below `directory` whose names end in one of `extensions`, sorted. Empty if
/// there is no such directory.
pub fn files(directory: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in directory.read_dir().into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path, extensions));
        } else if path.extension().is_some_and(|e| extensions.iter().any(|&x| e == x)) {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Returns all available pf.conf texts with names: those of the project, and those beside it.
pub fn texts() -> Vec<(String, String)> {
    let shared = root().join("../shared");
    let mut files = files(&root().join("tests/conf"), &["in"]);
    files.extend(self::files(&root().join("examples"), &["conf"]));
    files.extend(self::files(&shared.join("pf-regress"), &["in", "conf", "ok"]));
    let mut texts: Vec<_> = files
        .into_iter()
        .filter_map(|file| Some((file.display().to_string(), std::fs::read_to_string(file).ok()?)))
        .collect();
    let vectors = shared.join("vectors/parse.jsonl.gz");
    if vectors.is_file() {
        let output = Command::new("gzip").arg("-dc").arg(vectors).output().unwrap();
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let vector: serde_json::Value = serde_json::from_str(line).unwrap();
            let text = |key: &str| vector[key].as_str().unwrap().to_string();
            texts.push((text("id"), text("rules")));
        }
    }
    texts
}

/// Returns the built-in names, with some users and groups.
pub fn names() -> Names {
    let passwd = "root:x:0:\nbin:x:2:\nnobody:x:65534:\n";
    Names::builtin().clone().with_owners(passwd, "wheel:x:10:\nnobody:x:65533:\n")
}

/// Removes the line numbers of rules, queues and limiters.
pub fn forget_places(ruleset: &mut Ruleset) {
    let anchors = &mut ruleset.anchors;
    let legacy = anchors.values_mut().flat_map(|anchor| anchor.legacy_rules.iter_mut());
    for legacy in legacy.chain(&mut ruleset.legacy_rules) {
        legacy.rule.line = 0;
    }
    let rules = anchors.values_mut().flat_map(|anchor| anchor.rules.iter_mut());
    for rule in rules.chain(&mut ruleset.rules) {
        rule.line = 0;
    }
    for queue in &mut ruleset.queues {
        queue.line = 0;
    }
    for limiter in &mut ruleset.limiters {
        limiter.line = 0;
    }
}

/// Returns the files that texts of tests/conf name.
pub fn read_file(name: &str) -> io::Result<String> {
    match name {
        "friends" => {
            Ok("# friends of ours\n10.9.0.1 !10.9.0.2\n2001:db8::/48 # and theirs\n".to_string())
        }
        "old friends" => Ok("10.9.0.1 ; as FreeBSD has it\n; 10.9.0.2\n".to_string()),
        "inner.conf" => Ok("inside = lan\npass in on $inside\n".to_string()),
        "plain.conf" => Ok("pass out\n".to_string()),
        "broken" => Ok("10.9.0.1\nnobody-knows\n".to_string()),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Returns the macro of `-D`.
pub fn macros() -> [(String, String); 1] {
    [("given".to_string(), "lan".to_string())]
}

/// Resolves the only host name in tests/conf.
pub fn resolve(name: &str) -> Vec<IpAddr> {
    match name {
        "localhost" => vec![IpAddr::from([127, 0, 0, 1]), "::1".parse().unwrap()],
        _ => Vec::new(),
    }
}

/// Returns a router between `wan` and `lan`, with a point-to-point link.
pub fn host() -> Host {
    let wan = ["198.51.100.2/24", "198.51.100.3/24", "fe80::2/64", "2001:db8:1::2/64"];
    Host::with([
        Interface::new("lo", &["127.0.0.1/8", "::1/128"]),
        Interface::new("wan", &wan).in_group("egress"),
        Interface::new("lan", &["10.1.0.1/16", "fe80::3/64", "2001:db8:2::1/64"]),
        Interface::new("ppp0", &["192.0.2.1/32"]).with_peer("192.0.2.254"),
        Interface::new("down0", &[]),
    ])
}

/// Returns the interfaces of OpenBSD's regression cases.
pub fn regression_host() -> Host {
    Host::with([
        cloned("lo0", &["::1/128", "fe80::1/64", "127.0.0.1/8"]),
        cloned("lo1000000", &[]),
        cloned("tun1000000", &[]),
        cloned("tun1000001", &[]),
    ])
}

/// Returns an interface as BSD makes it: in the group of its kind.
pub fn cloned(name: &str, addresses: &[&str]) -> Interface {
    let kind = name.trim_end_matches(|c: char| c.is_ascii_digit());
    Interface::new(name, addresses).in_group(kind)
}
