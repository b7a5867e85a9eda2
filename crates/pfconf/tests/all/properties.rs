//! Properties of all texts. A text is loaded, or refused with a reason. The output of a loaded text
//! has the same meaning.

use proptest::prelude::*;
use skipstep_pfconf::{Context, Loaded, load, table_file};
use skipstep_ruleset::Ruleset;
use skipstep_ruleset::interface::{Host, Interface};

/// Words of rule sets, so that random texts have valid beginnings.
const WORDS: &[&str] = &[
    "pass",
    "block",
    "match",
    "in",
    "out",
    "log",
    "quick",
    "on",
    "inet",
    "inet6",
    "proto",
    "from",
    "to",
    "any",
    "all",
    "port",
    "flags",
    "keep",
    "no",
    "state",
    "set",
    "table",
    "antispoof",
    "for",
    "scrub",
    "label",
    "tag",
    "tagged",
    "tos",
    "prio",
    "icmp-type",
    "icmp6-type",
    "code",
    "return",
    "return-rst",
    "return-icmp",
    "drop",
    "fragment",
    "allow-opts",
    "received-on",
    "max",
    "sloppy",
    "timeout",
    "limit",
    "states",
    "skip",
    "tcp",
    "udp",
    "icmp",
    "icmp6",
    "echoreq",
    "S/SA",
    "any",
    "em0",
    "lo",
    "(em0)",
    "(em0:network)",
    "em0:0",
    "self",
    "<t>",
    "10.0.0.1",
    "10/8",
    "::1",
    "fe80::1%em0",
    "2001:db8::/32",
    "no-route",
    "urpf-failed",
    "{",
    "}",
    "(",
    ")",
    ",",
    "!",
    "=",
    "<",
    ">",
    "><",
    "<>",
    ">=",
    "!=",
    "-",
    "/",
    "22",
    "80:90",
    "0",
    "-1",
    "99999999999999999999",
    "\n",
    "\n",
    "\\\n",
    "#",
    "$m",
    "m",
    "=",
    "\"quoted\"",
    "\"$m\"",
    "'",
    "nat-to",
    "anchor",
    "probability",
    "50%",
    "interval",
    "tcp.first",
    "if-bound",
    "floating",
    "state-defaults",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text_is_loaded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_words_are_loaded_or_refused(
        words in prop::collection::vec(prop::sample::select(WORDS), 0..60)
    ) {
        check(&words.join(" "));
        check(&words.concat());
    }

    #[test]
    fn any_table_file_is_loaded_or_refused(text in "[0-9a-f:./! #\n%em-]{0,200}") {
        let host = host();
        let _ = table_file(&text, &Context::new(&host));
    }

    #[test]
    fn printed_rules_mean_the_same(rules in prop::collection::vec(rule(), 1..5)) {
        let host = host();
        let text = rules.join("\n");
        if let Ok(Loaded { ruleset, echo, .. }) = load(&text, &Context::new(&host)) {
            let again = load(&echo, &Context::new(&host)).map_err(|refused| {
                TestCaseError::fail(format!(
                    "{text}\nprints as\n{echo}\nrefused: {:?}",
                    refused.diagnostics
                ))
            })?;
            prop_assert_eq!(&again.echo, &echo);
            prop_assert_eq!(without_lines(again.ruleset), without_lines(ruleset), "{}", text);
        }
    }
}

fn check(text: &str) {
    let host = host();
    if let Err(refused) = load(text, &Context::new(&host)) {
        assert!(!refused.diagnostics.is_empty(), "refused without a reason: {text:?}");
        for diagnostic in refused.diagnostics {
            let _ = diagnostic.explain();
        }
    }
}

/// Removes the line numbers of the rules.
fn without_lines(mut ruleset: Ruleset) -> Ruleset {
    for rule in &mut ruleset.rules {
        rule.line = 0;
    }
    ruleset
}

/// Makes rules that are mostly valid.
fn rule() -> impl Strategy<Value = String> {
    let pick = |choices: &'static [&'static str]| prop::sample::select(choices);
    let head = (
        pick(&[
            "pass",
            "pass in",
            "pass out",
            "block",
            "block return",
            "match in",
            "block drop out",
        ]),
        pick(&["", "log", "log (all, to pflog2)", "quick", "log quick"]),
        pick(&["", "on em0", "on ! em0", "on { em0, lo }", "on any"]),
        pick(&["", "inet", "inet6"]),
        pick(&["", "proto tcp", "proto udp", "proto { tcp, udp }", "proto icmp", "proto 47"]),
    );
    let hosts: &[&str] = &[
        "any",
        "10.0.0.1",
        "! 10/8",
        "{ 10.1/16, 192.0.2.1 }",
        "em0",
        "(em0)",
        "(em0:network)/24",
        "<t>",
        "! <t>",
        "2001:db8::/32",
        "10.0.0.1 - 10.0.0.9",
        "self",
        "no-route",
        "::1.2.3.4",
    ];
    let ports: &[&str] =
        &["", "port 22", "port 22:30", "port != 80", "port { 1, > 1023 }", "port 5 >< 9"];
    let ends = (
        prop::sample::select(hosts),
        prop::sample::select(ports),
        prop::sample::select(hosts),
        prop::sample::select(ports),
    );
    let options = (
        pick(&["", "flags S/SA", "flags any", "flags /SFRA", "fragment", "icmp-type echoreq"]),
        pick(&[
            "",
            "no state",
            "keep state (max 30)",
            "keep state (sloppy, tcp.first 5)",
            "keep state (if-bound)",
        ]),
        pick(&["", "label \"$if $nr\"", "tag T", "! tagged T", "received-on lo"]),
        pick(&[
            "",
            "tos 0x10",
            "prio 0",
            "set (prio 3, tos ef)",
            "allow-opts",
            "scrub (no-df, max-mss 900)",
        ]),
    );
    (head, ends, options).prop_map(|((a, b, c, d, e), (from, sport, to, dport), (o, p, q, r))| {
        format!("{a} {b} {c} {d} {e} from {from} {sport} to {to} {dport} {o} {p} {q} {r}")
    })
}

fn host() -> Host {
    Host::with([
        Interface::new("lo", &["127.0.0.1/8", "::1/128"]),
        Interface::new("em0", &["10.0.0.1/24", "fe80::1/64", "2001:db8::1/64"]),
    ])
}
