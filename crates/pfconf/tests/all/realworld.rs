//! Published rule sets. Rule sets that OpenBSD 7.8 or FreeBSD accepts are accepted, with missing
//! files and names supplied. If there is a `.printed` file, the output equals it. The other rule
//! sets are refused with messages that have a place and advice.

use std::net::IpAddr;
use std::path::Path;

use skipstep_pfconf::{Context, Diagnostic, Loaded, Names, Rejected, load};
use skipstep_ruleset::interface::{Host, Interface};

/// Files that OpenBSD 7.8 refuses and FreeBSD accepts.
const OF_FREEBSD: [&str; 16] = [
    "078", "090", "094", "098", "100", "104", "108", "110", "120", "122", "124", "126", "128",
    "130", "140", "144",
];

/// Users and groups that the files name.
const OWNERS: &str = "root::0:\nwheel::0:\nbin::3:\n_pbuild::55:\nproxy::71:\nunbound::53:\n\
                      _dnscrypt-proxy::688:\n_iperfd::1:\n_tor::2:\n_unbound::4:\n_nsd::5:\n";

#[test]
#[ignore = "needs ../shared"]
fn shared_published_rule_sets() {
    let directory =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/pf-regress/realworld");
    let read = |name: &str| std::fs::read_to_string(directory.join(name));
    let (mut accepted, mut refused) = (0, 0);
    let mut differences = Vec::new();
    for row in read("index.tsv").unwrap().lines().skip(1) {
        let columns: Vec<_> = row.split('\t').collect();
        let (number, needs, verdict) = (columns[0], columns[7], columns[8]);
        let must = verdict.starts_with("accept") || OF_FREEBSD.contains(&number);
        match run(&read(&format!("{number}.conf")).unwrap(), needs) {
            Ok(echo) => {
                accepted += 1;
                if !must {
                    differences.push(format!("--- {number} is accepted"));
                }
                if read(&format!("{number}.printed")).is_ok_and(|printed| printed != echo) {
                    differences.push(format!("--- {number} prints\n{echo}"));
                }
            }
            Err(messages) => {
                refused += 1;
                let text: String = messages.iter().map(|m| m.explain() + "\n").collect();
                if std::env::var_os("SHOW").is_some() {
                    println!("--- {number}\n{text}");
                }
                let placed = messages.iter().all(|message| message.line > 0);
                if must || !placed || !messages.iter().any(helps) {
                    differences.push(format!("--- {number} is refused\n{text}"));
                }
            }
        }
    }
    println!("{accepted} accepted, {refused} refused");
    for difference in &differences {
        println!("{difference}");
    }
    assert!(differences.is_empty(), "{} files are not as expected", differences.len());
}

/// True if a message names the wrong word, or has advice.
fn helps(message: &Diagnostic) -> bool {
    message.help.is_some() || message.message != "syntax error"
}

/// Returns the output of `pfctl -nv`, or the messages.
fn run(text: &str, needs: &str) -> Result<String, Vec<Diagnostic>> {
    let host = host_of(text);
    let names = Names::parse("mdns 5353/udp", "").with_owners(OWNERS, OWNERS);
    // names and files of foreign networks have invented contents
    let resolve = |_: &str| vec![IpAddr::from([192, 0, 2, 1])];
    let read_file = |_: &str| Ok(String::new());
    let macros: Vec<_> = missing_macros(needs)
        .map(|name| {
            let value =
                if name.contains("v6") || name.contains("IPv6") { "2001:db8::1" } else { "em0" };
            (name.to_string(), value.to_string())
        })
        .collect();
    let context = Context {
        read_file: &read_file,
        resolve: &resolve,
        macros: &macros,
        names: &names,
        ..Context::new(&host)
    };
    match load(text, &context) {
        Ok(Loaded { echo, .. }) => Ok(echo),
        Err(Rejected { diagnostics, .. }) => Err(diagnostics),
    }
}

/// Returns the macros that a file uses and does not define, from a column of the index.
fn missing_macros(needs: &str) -> impl Iterator<Item = &str> {
    let list = needs.split("; ").find_map(|need| need.strip_prefix("undefined macros: "));
    list.unwrap_or_default().split(", ").filter(|name| !name.is_empty())
}

/// Returns a host with an interface for each word of a text that looks like an interface name.
fn host_of(text: &str) -> Host {
    let loopback = Interface::new("lo0", &["::1/128", "fe80::1/64", "127.0.0.1/8"]);
    let mut interfaces = vec![loopback.in_group("lo")];
    for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
        let kind = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_name = kind.len() < word.len()
            && !kind.is_empty()
            && kind.chars().all(|c| c.is_ascii_lowercase());
        if is_name && interfaces.iter().all(|known| known.name != word) {
            interfaces.push(Interface::new(word, &[]));
        }
    }
    Host::with(interfaces)
}
