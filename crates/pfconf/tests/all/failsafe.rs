//! The failsafe list in front of a main rule set.

use std::io;

use crate::common;
use skipstep_pfconf::{Context, Loaded, Rejected, load, room};
use skipstep_ruleset::interface::{Host, Interface, InterfaceAddress};
use skipstep_ruleset::{Optimization, Rule, Ruleset, failsafe};

const LIST: &str = "ports = \"{ 22 6443 }\"\npass in proto tcp to port $ports no state\n";

/// Loads a main rule set on a host with this list.
fn with_list(list: &str, text: &str) -> Result<Loaded, Rejected> {
    in_context(list, |context| load(text, &context))
}

fn in_context<T>(list: &str, use_it: impl FnOnce(Context) -> T) -> T {
    let failsafe = || Ok(Some(list.to_owned()));
    let resolve = |_: &str| vec!["192.0.2.9".parse().unwrap()];
    let read_file = |name: &str| match name {
        "more" => Ok("\n\npass to 10.9.9.9\n".to_owned()),
        _ => Err(io::ErrorKind::NotFound.into()),
    };
    let address =
        InterfaceAddress { net: "10.0.0.7/8".parse().unwrap(), broadcast: None, peer: None };
    let addresses = vec![address];
    let eth0 = Interface { name: "eth0".into(), index: 1, addresses, ..Interface::default() };
    let host = Host { interfaces: vec![eth0], ..Host::default() };
    use_it(Context {
        failsafe: &failsafe,
        resolve: &resolve,
        read_file: &read_file,
        ..Context::new(&host)
    })
}

/// Returns the messages about a list, or about a pf.conf behind [`LIST`].
fn messages(result: Result<Loaded, Rejected>) -> Vec<String> {
    let diagnostics = match result {
        Ok(loaded) => loaded.warnings,
        Err(rejected) => rejected.diagnostics,
    };
    diagnostics.iter().map(ToString::to_string).collect()
}

/// Returns a rule set without files and lines.
fn bare(mut ruleset: Ruleset) -> Ruleset {
    let anchors = ruleset.anchors.values_mut().flat_map(|anchor| &mut anchor.rules);
    for rule in ruleset.rules.iter_mut().chain(anchors) {
        (rule.file, rule.line) = (None, 0);
    }
    ruleset
}

#[test]
fn a_main_rule_set_begins_with_the_list() {
    let text = "set block-policy return\nmatch out scrub (no-df)\nblock quick\n";
    let loaded = with_list(LIST, text).unwrap();
    assert!(loaded.ruleset.has_failsafe_list());
    let written =
        format!("anchor \"failsafe\" quick\nload anchor \"failsafe\" from \"list\"\n{text}");
    let host = Host::default();
    let read_file = |_: &str| Ok(LIST.to_owned());
    let context = Context { read_file: &read_file, ..Context::new(&host) };
    let expected = load(&written, &context).unwrap();
    assert_eq!(bare(loaded.ruleset.clone()), bare(expected.ruleset));

    let list = &loaded.ruleset.failsafe_list().unwrap().rules;
    let place = |rule: &Rule| (rule.file.as_deref().map(str::to_owned), rule.line);
    assert_eq!(list.len(), 2);
    assert_eq!(place(&list[1]), (Some(failsafe::FILE.to_owned()), 2));
    assert_eq!(place(&loaded.ruleset.rules[2]), (None, 3));
    assert!(loaded.echo.starts_with("# failsafe list: 2 rules of /etc/pf.failsafe\n"));
    assert!(loaded.echo.contains("\nanchor \"failsafe\" quick all\nmatch"), "{}", loaded.echo);
}

#[test]
fn anchors_and_hosts_without_a_list_load_as_before() {
    let anchor = in_context(LIST, |context| load("block", &Context { anchor: "a", ..context }));
    assert_eq!(anchor.unwrap().ruleset.rules.len(), 1);
    let none = in_context(LIST, |context| {
        load("anchor failsafe", &Context { failsafe: &|| Ok(None), ..context })
    });
    assert!(!none.unwrap().ruleset.has_failsafe_list());
}

#[test]
fn the_list_takes_nothing_from_pf_conf_and_the_command_line() {
    let text = "set state-defaults no-sync\nset state-policy if-bound\n\
                set ruleset-optimization basic\npass in\n";
    let macros = [("x".to_owned(), "7".to_owned())];
    let loaded = in_context("x = 9\npass in proto tcp to port $x\n", |context| {
        load(text, &Context { macros: &macros, optimization: None, ..context })
    });
    let loaded = loaded.unwrap().ruleset;
    let rule = &loaded.failsafe_list().unwrap().rules[0];
    let state = rule.state.as_deref().unwrap();
    assert!(!state.no_sync && !state.if_bound);
    assert_eq!(rule.destination.ports.as_ref().unwrap().low, 9);
    assert!(loaded.rules[1].state.as_deref().unwrap().no_sync);
    // duplicates stay, so every rule has its line
    let ruleset = in_context("pass in from 10.0.0.1\npass in from 10.0.0.1\n", |context| {
        load(text, &Context { optimization: None, ..context }).unwrap().ruleset
    });
    assert_eq!(ruleset.failsafe_list().unwrap().rules.len(), 2);
}

#[test]
fn the_optimizer_leaves_the_list_in_front() {
    let rules = "pass in quick from 10.0.0.1\npass quick\nblock in quick from 10.0.0.2\n\
                 pass quick\nblock in quick from 10.0.0.3\n";
    for level in [Optimization::Basic, Optimization::Profile] {
        let loaded = in_context(LIST, |context| {
            load(rules, &Context { optimization: Some(level), ..context })
        });
        let ruleset = loaded.unwrap().ruleset;
        assert!(ruleset.has_failsafe_list(), "{level:?}: {:?}", ruleset.rules);
        let numbers = ruleset.rules.iter().map(|rule| rule.number).collect::<Vec<_>>();
        assert_eq!(numbers, (0..ruleset.rules.len() as u32).collect::<Vec<_>>());
    }
}

#[test]
fn long_texts_keep_the_list_in_front() {
    let text = "block in quick proto udp from 10.0.0.1 to port 7 label \"$nr\"\n".repeat(4000);
    let ruleset = with_list(LIST, &text).unwrap().ruleset;
    assert!(ruleset.has_failsafe_list());
    assert_eq!((ruleset.rules.len(), ruleset.rules[4000].number), (4001, 4000));
    assert_eq!(ruleset.rules[4000].labels, ["4000"]);
}

#[test]
fn a_list_refuses_all_but_pass_rules() {
    for (line, reason) in [
        ("block in", "write block rules into pf.conf"),
        ("match in", "write match rules into pf.conf"),
        ("set block-policy return", "no settings: write this line into pf.conf"),
        ("table <t> { 10.0.0.1 }", "write the addresses, as in"),
        ("pass in from <t>", "write the addresses, as in"),
        ("pass in to ! <t>", "write the addresses, as in"),
        ("antispoof for eth0", "antispoof blocks packets"),
        ("anchor a", "no anchors, because `pfctl -a` can change them"),
        ("load anchor a from \"more\"", "no anchors"),
        ("queue q on eth0 bandwidth 1M", "no queues and limiters"),
        ("state limiter l id 7 limit 9", "no queues and limiters"),
        ("rdr on eth0 proto tcp to port 21 -> 127.0.0.1", "does not translate"),
        ("nat-anchor a", "does not translate"),
        ("scrub in", "does not translate or normalize"),
        ("pass out nat-to 192.0.2.1", "does not translate"),
        ("pass in proto tcp to port 22 rdr-to 192.0.2.1", "does not translate"),
        ("pass in inet af-to inet6 from 2001:db8::1", "does not translate"),
        ("pass in route-to 192.0.2.1", "does not redirect"),
        ("pass in reply-to 192.0.2.1", "does not redirect"),
        ("pass in rtable 0", "does not redirect"),
        ("pass in proto tcp divert-to 127.0.0.1 port 80", "does not redirect"),
        ("pass in keep state (max 9)", "write `no state`"),
        ("pass in keep state (source-track rule)", "write `no state`"),
        ("pass in keep state (max-src-states 9)", "write `no state`"),
        ("pass in keep state (max-src-nodes 9)", "write `no state`"),
        ("pass in proto tcp keep state (max-src-conn 9)", "write `no state`"),
        ("pass in proto tcp keep state (max-src-conn-rate 9/1)", "write `no state`"),
        ("pass in proto tcp keep state (max-src-conn 9, overload <t>)", "write `no state`"),
        ("pass in max-pkt-rate 9/1", "leave the limit out"),
        ("pass in max-pkt-size 900", "leave the limit out"),
        ("pass in probability 50%", "leave `probability` and `once` out"),
        ("pass in once", "leave `probability` and `once` out"),
        ("pass in set delay 9", "does not queue or delay"),
        ("pass in proto tcp os Linux", "leave `os` and `tagged` out"),
        ("pass in tagged T", "leave `os` and `tagged` out"),
        ("include \"more\"", "is one file"),
        ("pass in from host.example", "/etc/pf.failsafe: the failsafe list is also loaded before"),
        ("pass in to eth0", "/etc/pf.failsafe: the failsafe list is also loaded before"),
        ("pass in to self", "/etc/pf.failsafe: the failsafe list is also loaded before"),
        ("pass in from eth0:network", "/etc/pf.failsafe: the failsafe list is also loaded before"),
        ("pass in prot tcp", "syntax error"),
    ] {
        let found = messages(with_list(&format!("# list\n{line}\n"), "pass"));
        let expected = found.iter().any(|message| {
            message.starts_with("/etc/pf.failsafe:2: ") && message.contains(reason)
                || message.starts_with(reason) // without a place, as OpenBSD prints it
        });
        assert!(expected, "{line}: {found:#?}");
        assert!(with_list(&format!("# list\n{line}\n"), "pass").is_err(), "{line}");
    }
}

#[test]
fn an_anchor_in_braces_is_refused_once() {
    let found = messages(with_list("anchor a {\n\tpass in\n}\npass out\n", "pass"));
    assert_eq!(found.len(), 1, "{found:#?}");
}

#[test]
fn a_list_may_contain_pass_rules() {
    for line in [
        "pass",
        "pass in quick log on eth0 inet proto tcp from { 10.0.0.0/8 !10.0.0.1 } to port ssh",
        "pass in proto tcp to port 22 no state",
        "pass out proto { tcp udp } to (eth0) port domain keep state",
        "pass in from (eth0:network) to (self)",
        "pass out proto tcp flags any keep state (sloppy, tcp.established 60)",
        "pass inet6 proto icmp6 icmp6-type { neighbrsol neighbradv } allow-opts",
        "pass in received-on eth0 user 0 label \"x $nr\" tag T set tos 16",
    ] {
        assert_eq!(messages(with_list(line, "pass")), [""; 0], "{line}");
    }
}

#[test]
fn the_example_is_a_list() {
    let text = std::fs::read_to_string(common::root().join("examples/pf.failsafe")).unwrap();
    let loaded = with_list(&text, "block quick\n").unwrap();
    assert!(loaded.ruleset.failsafe_list().unwrap().rules.len() > 20);
}

#[test]
fn an_empty_list_is_a_list_with_a_warning() {
    let loaded = with_list("# nothing\n", "block\n").unwrap();
    assert!(loaded.ruleset.failsafe_list().unwrap().rules.is_empty());
    assert_eq!(messages(Ok(loaded)), ["/etc/pf.failsafe: warning: the failsafe list has no rules"]);
}

#[test]
fn an_unreadable_list_refuses_the_load() {
    let failsafe = || Err(io::Error::other("group and others may write it"));
    let refused =
        in_context("", |context| load("pass", &Context { failsafe: &failsafe, ..context }));
    assert_eq!(messages(refused), ["/etc/pf.failsafe: group and others may write it"]);
}

#[test]
fn pf_conf_has_no_anchor_of_the_same_name() {
    for line in [
        "anchor failsafe",
        "anchor \"failsafe/*\"",
        "anchor failsafe {\n\tblock\n}",
        "load anchor failsafe from \"more\"",
        "load anchor \"failsafe/a\" from \"more\"",
        "anchor a {\n\tanchor \"/failsafe\"\n}",
        "nat-anchor failsafe",
    ] {
        let found = messages(with_list(LIST, &format!("{line}\n")));
        assert_eq!(found.len(), 1, "{line}: {found:#?}");
        let expected = found.iter().all(|message| {
            message.starts_with("stdin:")
                && message.contains("remove this line, or remove the file")
        });
        assert!(expected, "{line}: {found:#?}");
    }
    assert!(with_list(LIST, "anchor a {\n\tanchor failsafe {\n\t\tpass\n\t}\n}\n").is_ok());
}

#[test]
fn memory_is_reserved_for_the_list() {
    let rules = |list: &str| in_context(list, |context| room("pass\n", &context).rules);
    assert_eq!((rules(LIST), rules("")), (4, 2));
}

#[test]
fn rules_of_a_loaded_anchor_have_its_file() {
    let loaded = with_list(LIST, "load anchor a from \"more\"\nblock\n").unwrap();
    let rule = &loaded.ruleset.anchors["a"].rules[0];
    assert_eq!((rule.file.as_deref(), rule.line), (Some("more"), 3));
}
