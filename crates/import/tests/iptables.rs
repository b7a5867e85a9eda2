//! Tests of iptables-save to pf.conf: criteria, targets, calls of chains, errors, connections and
//! translation. tests/netns/test-import-iptables.sh compares the effect on packets with iptables.

use skipstep_import::{Imported, iptables};
use skipstep_pfconf::{Context, load};
use skipstep_scenario::{Model, host, parse, run};

fn imported(text: &str) -> Imported {
    iptables::import(text, "test").unwrap_or_else(|messages| {
        panic!("{}", messages.iter().map(|m| m.explain() + "\n").collect::<String>())
    })
}

/// Returns the lines of the pf.conf, without comments. Fails if pf.conf's parser refuses them.
fn rules(text: &str) -> Vec<String> {
    let conf = imported(text).conf;
    load(&conf, &Context::new(&host::standard()))
        .unwrap_or_else(|refused| panic!("{conf}\n{:?}", refused.diagnostics));
    let lines = conf.lines().map(str::trim);
    lines.filter(|line| !line.starts_with('#') && !line.is_empty()).map(str::to_string).collect()
}

/// Returns a filter table whose policies accept, with these user-defined chains and rules.
fn filter(chains: &[&str], rules: &str) -> String {
    let chains: String = chains.iter().map(|chain| format!(":{chain} - [0:0]\n")).collect();
    format!(
        "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n{chains}{rules}\nCOMMIT\n"
    )
}

/// Returns the pf.conf rules that a rule of INPUT becomes.
fn input(rule: &str) -> Vec<String> {
    part(&filter(&[], &format!("-A INPUT {rule}")), "in").split_off(0)
}

/// Returns the pf.conf rules of a built-in chain, without the policy; `in` is INPUT.
fn part(text: &str, direction: &str) -> Vec<String> {
    let mut lines = rules(text);
    let start = lines.iter().position(|line| line.starts_with("pass in quick inet ! tagged local"));
    lines.drain(..=start.expect("the rule is there"));
    lines.retain(|line| line.split_whitespace().any(|word| word == direction));
    lines.pop();
    lines
}

fn refused(text: &str) -> String {
    let messages = iptables::import(text, "test").expect_err("it should have been refused");
    messages.iter().map(|message| message.explain() + "\n").collect()
}

#[test]
fn each_criterion_has_an_equivalent() {
    for (criteria, expected) in [
        ("", "inet all"),
        ("-s 10.0.0.0/8", "inet from 10.0.0.0/8 to any"),
        ("! -s 10.0.0.1/32", "inet from ! 10.0.0.1 to any"),
        ("-d 10.0.0.0/255.255.0.0", "inet from any to 10.0.0.0/16"),
        ("-i em0", "on em0 inet all"),
        ("! -i em0", "on ! em0 inet all"),
        ("-p 47", "inet proto 47 all"),
        ("-p tcp -m tcp --dport 22", "inet proto tcp from any to any port 22"),
        ("-p udp -m udp --sport 1024:65535", "inet proto udp from any port 1024:65535 to any"),
        ("-p tcp -m tcp ! --dport 22", "inet proto tcp from any to any port != 22"),
        (
            "-p tcp -m multiport --dports 22,80,8000:8080",
            "inet proto tcp from any to any port { 22, 80, 8000:8080 }",
        ),
        (
            "-p tcp -m multiport ! --dports 22,80",
            "inet proto tcp from any to any port { 0:21, 23:79, 81:65535 }",
        ),
        ("-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN", "inet proto tcp all flags S/FSRA"),
        ("-p tcp -m tcp --syn", "inet proto tcp all flags S/FSRA"),
        ("-p tcp -m tcp --tcp-flags ALL NONE", "inet proto tcp all flags /FSRPAU"),
        ("-p icmp -m icmp --icmp-type 8", "inet proto icmp all icmp-type 8"),
        ("-p icmp -m icmp --icmp-type 3/4", "inet proto icmp all icmp-type 3 code 4"),
        ("-m iprange --src-range 10.0.0.1-10.0.0.9", "inet from 10.0.0.1 - 10.0.0.9 to any"),
        (
            "-s 10.0.0.0/8 -m iprange ! --src-range 10.0.0.0-10.127.255.255",
            "inet from 10.128.0.0/9 to any",
        ),
        ("-m addrtype --dst-type LOCAL", "inet from any to (self)"),
        ("-m addrtype --dst-type MULTICAST", "inet from any to 224.0.0.0/4"),
        ("-m dscp --dscp 0x2e", "inet all tos 0xb8"),
        ("-m comment --comment \"a b\"", "inet all"),
        ("-m statistic --mode random --probability 0.25000000000", "inet all probability 25%"),
    ] {
        let expected = format!("block drop in quick {expected}");
        assert_eq!(input(&format!("{criteria} -j DROP")), [expected], "{criteria}");
    }
}

#[test]
fn criteria_that_need_several_rules_get_them() {
    assert_eq!(
        input("-p tcp -m multiport --ports 53 -j DROP"),
        [
            "block drop in quick inet proto tcp from any port 53 to any",
            "block drop in quick inet proto tcp from any port != 53 to any port 53",
        ]
    );
    assert_eq!(
        input("-p tcp -m tcp ! --tcp-flags SYN,ACK SYN -j DROP"),
        [
            "block drop in quick inet proto tcp all flags /S",
            "block drop in quick inet proto tcp all flags SA/SA",
        ]
    );
}

#[test]
fn each_target_has_an_equivalent() {
    for (target, expected) in [
        ("-j ACCEPT", "pass in quick inet proto tcp all no state"),
        ("-j DROP", "block drop in quick inet proto tcp all"),
        ("-j REJECT", "block return-icmp (port-unr) in quick inet proto tcp all"),
        (
            "-j REJECT --reject-with icmp-admin-prohibited",
            "block return-icmp (filter-prohib) in quick inet proto tcp all",
        ),
        ("-j REJECT --reject-with tcp-reset", "block return-rst in quick inet proto tcp all"),
        (
            "-j LOG --log-prefix \"seen: \" --log-level 4",
            "match in log inet proto tcp all label \"seen:\"",
        ),
        ("-j NFLOG --nflog-group 2", "match in log (to pflog2) inet proto tcp all"),
        ("-j RETURN", "pass in quick inet proto tcp all no state"),
        ("", "match in inet proto tcp all"),
    ] {
        assert_eq!(input(&format!("-p tcp {target}")), [expected], "{target}");
    }
}

#[test]
fn interfaces_mean_what_the_chain_knows_of_the_packet() {
    let text = filter(
        &["both"],
        "-A INPUT -j both\n-A FORWARD -j both\n-A OUTPUT -j both\n-A both -i em0 -j DROP\n-A both ! -o em1 -j DROP",
    );
    assert_eq!(
        part(&text, "in"),
        [
            "anchor in inet all {",
            "block drop in quick on em0 inet all",
            "block drop in quick inet all"
        ]
    );
    let out = part(&text, "out");
    assert_eq!(out[0], "anchor out inet all ! received-on any {");
    assert_eq!(out[1], "block drop out quick on ! em1 inet all ! received-on any");
    assert_eq!(out[3], "anchor out inet all {");
    assert_eq!(out[4], "block drop out quick inet all received-on em0");
    assert_eq!(out[5], "block drop out quick on ! em1 inet all");
}

/// Compares the fate of packets under the converted rules, on the model.
fn fates(text: &str, packets: &[(&str, &str)]) {
    let steps: String =
        packets.iter().map(|(packet, fate)| format!("{packet} => {fate}\n")).collect();
    let scenario = format!("rules {{\n{}\n}}\n{steps}", imported(text).conf);
    let file = parse::file(&scenario, "test").unwrap_or_else(|error| panic!("{error}\n{scenario}"));
    let outcomes = run::file(&file, "test", &mut Model::new());
    let reports: String = outcomes.iter().map(|outcome| run::report(outcome, "test")).collect();
    assert!(reports.is_empty(), "{reports}\n{scenario}");
}

const TO_SSH: &str = "in em0 tcp 10.0.1.5:4000 > 10.0.1.1:22 S";
const TO_WEB: &str = "in em0 tcp 10.0.1.5:4000 > 10.0.1.1:80 S";

#[test]
fn return_goes_on_behind_the_call() {
    let rules = "-A INPUT -p tcp -j one\n-A INPUT -p tcp --dport 22 -j DROP\n\
                 -A one -s 10.0.1.5 -j RETURN\n-A one -j DROP";
    fates(
        &filter(&["one"], rules),
        &[
            (TO_SSH, "block"),
            (TO_WEB, "pass"),
            ("in em0 tcp 10.0.1.6:4000 > 10.0.1.1:80 S", "block"),
            ("in em0 udp 10.0.1.6:4000 > 10.0.1.1:80", "pass"),
        ],
    );
}

#[test]
fn goto_returns_to_where_the_caller_was_called() {
    let rules = "-A INPUT -j one\n-A INPUT -p tcp --dport 80 -j DROP\n\
                 -A one -p tcp -g two\n-A one -p udp -j DROP\n-A two -p tcp --dport 22 -j DROP";
    fates(
        &filter(&["one", "two"], rules),
        &[
            (TO_SSH, "block"),
            (TO_WEB, "block"),
            ("in em0 tcp 10.0.1.5:4000 > 10.0.1.1:81 S", "pass"),
            ("in em0 udp 10.0.1.5:4000 > 10.0.1.1:81", "block"),
        ],
    );
    // From a built-in chain, `goto` returns to the policy.
    let rules = "-A INPUT -p tcp -g two\n-A INPUT -p tcp -j DROP\n-A two -p tcp --dport 22 -j DROP";
    fates(&filter(&["two"], rules), &[(TO_SSH, "block"), (TO_WEB, "pass")]);
}

#[test]
fn a_forwarded_packet_is_judged_once_by_forward_alone() {
    let rules = "-A INPUT -j DROP\n-A OUTPUT -j DROP\n-A FORWARD -i em0 -o em1 -p udp -j ACCEPT\n-A FORWARD -j DROP";
    fates(
        &filter(&[], rules),
        &[
            ("in em0 udp 10.0.1.5:9 > 10.0.2.10:53", "pass"),
            ("forward out em1", "pass"),
            ("in em1 udp 10.0.2.10:53 > 10.0.1.5:9", "pass"),
            ("forward out em0", "block"),
            ("in em0 udp 10.0.1.5:9 > 10.0.1.1:53", "block"),
            ("in em0 udp 10.0.1.5:9 > 10.0.1.255:53", "block"),
            ("out em1 udp 10.0.2.1:9 > 10.0.2.10:53", "block"),
        ],
    );
}

#[test]
fn connections_pass_by_their_states() {
    let rules = "-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n\
                 -A FORWARD -i em0 -m conntrack --ctstate NEW -j ACCEPT\n-A FORWARD -j DROP";
    fates(
        &filter(&[], rules),
        &[
            ("in em0 udp 10.0.1.5:9 > 10.0.2.10:53", "pass, no state"),
            ("forward out em1", "pass, new state 1"),
            ("in em1 udp 10.0.2.10:53 > 10.0.1.5:9", "pass, state 1"),
            ("forward out em0", "pass, no state"),
            ("in em1 udp 10.0.2.10:54 > 10.0.1.5:9", "pass, no state"),
            ("forward out em0", "block"),
        ],
    );
    let rules = "-A INPUT -m state --state RELATED,ESTABLISHED -j ACCEPT\n\
                 -A INPUT -m state --state INVALID -j DROP\n-A INPUT -p icmp -j ACCEPT\n-A INPUT -j DROP";
    fates(
        &filter(&[], rules),
        &[
            ("out em0 udp 10.0.1.1:9 > 10.0.1.5:53", "pass, new state 1"),
            ("in em0 udp 10.0.1.5:53 > 10.0.1.1:9", "pass, state 1"),
            ("in em0 udp 10.0.1.5:54 > 10.0.1.1:9", "block"),
            ("in em0 icmp 10.0.1.5 > 10.0.1.1 echorep id 1", "block"),
            ("in em0 icmp 10.0.1.5 > 10.0.1.1 echoreq id 1", "pass, new state 2"),
        ],
    );
}

#[test]
fn rules_that_pf_will_not_evaluate_cause_a_warning() {
    let rules = "-A INPUT -s 10.9.0.0/16 -j DROP\n-A INPUT -m state --state ESTABLISHED -j ACCEPT\n-A INPUT -j DROP";
    let warnings = imported(&filter(&[], rules)).warnings;
    assert_eq!(
        warnings.iter().map(|warning| warning.to_string()).collect::<Vec<_>>(),
        ["test:5: warning: pf passes packets of a connection without evaluating this rule"]
    );
    let usual = "-A INPUT -m state --state INVALID -j DROP\n-A INPUT -i lo -j ACCEPT\n\
                 -A INPUT -m state --state RELATED,ESTABLISHED -j ACCEPT\n-A INPUT -j DROP";
    assert_eq!(imported(&filter(&[], usual)).warnings, []);
    assert_eq!(imported(&filter(&[], "-A INPUT -j DROP")).warnings, []);
}

#[test]
fn translation_comes_before_the_filter_or_behind_it() {
    let nat = "*nat\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n\
               -A PREROUTING -i em1 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.0.1.10:80\n\
               -A PREROUTING -i em0 -p udp -m udp --dport 53 -j REDIRECT --to-ports 5353\n\
               -A POSTROUTING -s 10.0.1.0/24 -o em1 -j MASQUERADE\n\
               -A POSTROUTING -o em0 -j SNAT --to-source 10.0.1.1\nCOMMIT\n";
    let text =
        format!("{nat}{}", filter(&[], "-A FORWARD -i em0 -o em1 -j ACCEPT\n-A FORWARD -j DROP"));
    let lines = rules(&text);
    assert_eq!(
        lines,
        [
            "match in on em1 inet proto tcp from any to any port 8080 ! tagged translated rdr-to 10.0.1.10 port 80 tag translated",
            "match in on em0 inet proto udp from any to any port 53 ! tagged translated rdr-to (em0:0) port 5353 tag translated",
            "match in inet to { (self), (self:broadcast), 127.0.0.0/8, 224.0.0.0/4, 255.255.255.255 } tag local",
            "pass in quick inet ! tagged local",
            "pass in quick inet ! tagged local no state",
            "pass in quick inet all",
            "pass in quick inet all no state",
            "anchor \"/postrouting\" out inet all ! received-on any",
            "anchor \"/postrouting\" out on em1 inet all received-on em0",
            "block drop out quick inet all",
            "anchor \"/postrouting\" out inet all",
            "anchor \"postrouting\" out inet all {",
            "pass out quick on em1 inet from 10.0.1.0/24 to any nat-to (em1:0) tag established",
            "pass out quick on em0 inet all nat-to 10.0.1.1 tag established",
            "pass out quick inet all tag established",
            "pass out quick inet all no state",
            "}",
        ]
    );
}

#[test]
fn a_comment_names_the_line_of_each_rule() {
    let conf =
        imported(&filter(&[], "-A INPUT -p tcp -m comment --comment \"why \\\\\" -j DROP")).conf;
    let comment =
        "# 5: -A INPUT -p tcp -m comment --comment \"why \\\\\" -j DROP\nblock drop in quick";
    assert!(conf.contains(comment), "{conf}");
    assert!(conf.contains("# 2: the policy of INPUT\npass in quick inet all no state\n"), "{conf}");
}

#[test]
fn rules_without_equivalent_are_refused_with_their_line() {
    for (rule, message, word) in [
        ("-m mark --mark 0x1 -j DROP", "--mark has no equivalent", "--mark"),
        (
            "-m mac --mac-source 00:11:22:33:44:55 -j DROP",
            "--mac-source has no equivalent",
            "--mac-source",
        ),
        ("-m ttl --ttl-eq 64 -j DROP", "--ttl-eq has no equivalent", "--ttl-eq"),
        ("-m length --length 0:100 -j DROP", "--length has no equivalent", "--length"),
        ("-m socket -j DROP", "-m socket has no equivalent", "socket"),
        ("-i eth+ -j DROP", "names that begin alike have no equivalent", "eth+"),
        ("! -p tcp -j DROP", "! -p has no equivalent", "-p"),
        ("-f -j DROP", "-f has no equivalent", "-f"),
        (
            "-p icmp -m icmp ! --icmp-type 8 -j DROP",
            "! --icmp-type has no equivalent",
            "--icmp-type",
        ),
        ("-s fe80::1/64 -j DROP", "an IPv6 address has no place here", "fe80::1/64"),
        ("-j MARK --set-mark 1", "-j MARK has no equivalent", "MARK"),
        ("-j nowhere", "chain 'nowhere' is not declared", "nowhere"),
        (
            "-m conntrack --ctstate UNTRACKED -j DROP",
            "these states have no equivalent",
            "UNTRACKED",
        ),
        (
            "-m conntrack --ctstate ESTABLISHED -j LOG",
            "this use of ESTABLISHED has no equivalent",
            "-A",
        ),
        ("-p tcp -m tcp --dport ssh -j DROP", "ports are expected, as numbers", "ssh"),
        ("-j TCPMSS --clamp-mss-to-pmtu", "--clamp-mss-to-pmtu has no equivalent", "TCPMSS"),
    ] {
        let text = filter(&[], &format!("-A INPUT {rule}"));
        let messages = refused(&text);
        assert!(messages.starts_with(&format!("test:5: {message}\n")), "{messages}");
        let carets = messages.lines().nth(2).map(|line| line.trim()).unwrap_or_default();
        assert_eq!(carets, "^".repeat(word.len()), "{messages}");
    }
    let other =
        "*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j TOS --set-tos 0x10/0x3f\nCOMMIT\n";
    assert!(refused(other).starts_with("test:3: rules of the tables mangle, raw and security"));
}

#[test]
fn broken_dumps_are_refused_with_their_place() {
    for (text, message) in [
        ("-A INPUT -j DROP\n", "test:1: no table begins before this line"),
        ("*filter\n:INPUT ACCEPT [0:0]\n", "test:1: the table does not end with COMMIT"),
        ("*filter\n-A INPUT -j DROP\nCOMMIT\n", "test:2: chain 'INPUT' is not declared"),
        ("*filter\n:INPUT MAYBE\nCOMMIT\n", "test:2: a policy (ACCEPT, DROP or -) is expected"),
        (
            "*filter\n:INPUT ACCEPT\n-A INPUT -j\nCOMMIT\n",
            "test:3: a value is expected behind this",
        ),
        (
            "*filter\n:INPUT ACCEPT\n-A INPUT -s\nCOMMIT\n",
            "test:3: a value is expected behind this",
        ),
        ("*filter\n:INPUT ACCEPT\n-A INPUT \"x\nCOMMIT\n", "test:3: the quotation does not end"),
        ("*what\nCOMMIT\n", "test:1: unknown table"),
    ] {
        assert!(refused(text).starts_with(message), "{}", refused(text));
    }
}

#[test]
fn hostile_dumps_end_quickly() {
    let loops = filter(&["a", "b"], "-A INPUT -j a\n-A a -j b\n-A b -j a");
    assert!(refused(&loops).contains("chain 'a' calls itself"));
    let names: Vec<String> = (0..100).map(|n| format!("c{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let calls = |times: usize| -> String {
        let call = |n: usize| format!("-A c{n} -j c{}\n", n + 1).repeat(times);
        "-A INPUT -j c0\n".to_string() + &(0..99).map(call).collect::<String>()
    };
    assert!(refused(&filter(&names, &calls(1))).contains("chains call each other too deep"));
    assert!(
        refused(&filter(&names[..30], &calls(2).lines().take(59).collect::<Vec<_>>().join("\n")))
            .contains("this makes more than 200000 rules")
    );
    let returns = "-A one -s 10.0.0.1 -j RETURN\n".repeat(100);
    assert!(
        refused(&filter(&["one"], &format!("-A INPUT -j one\n{returns}"))).contains("too deep")
    );
    let ports: String = (0..500).map(|n| format!("{},", n * 2 + 1)).collect();
    let lists = format!("-A INPUT -p tcp -m multiport --dports {ports}1 --sports {ports}1 -j DROP");
    assert!(refused(&filter(&[], &lists)).contains("this makes more than 200000 rules"));
    assert!(
        refused(&"x".repeat(10_000_000)).starts_with("test:1: the line is longer than 65535 bytes")
    );
    assert!(
        refused(&filter(&[], &"-A INPUT\n".repeat(200_000))).contains("more than 100000 rules")
    );
}

#[test]
fn only_what_begins_a_connection_makes_a_state() {
    let asks = "-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n-A INPUT";
    for (rule, expected) in [
        ("-j ACCEPT", vec!["pass in quick inet all", "pass in quick inet all no state"]),
        ("-p udp -j ACCEPT", vec!["pass in quick inet proto udp all"]),
        (
            "-p tcp -m conntrack --ctstate NEW -j ACCEPT",
            vec!["pass in quick inet proto tcp all flags S/SA"],
        ),
        (
            "-p tcp -m tcp --tcp-flags RST RST -j ACCEPT",
            vec![
                "pass in quick inet proto tcp all flags SR/SRA",
                "pass in quick inet proto tcp all flags R/R no state",
            ],
        ),
        (
            "-p icmp -m icmp --icmp-type 0 -j ACCEPT",
            vec!["pass in quick inet proto icmp all icmp-type 0 no state"],
        ),
        (
            "-m conntrack --ctstate INVALID -j DROP",
            vec![
                "block drop in quick inet proto tcp all flags /S",
                "block drop in quick inet proto tcp all flags SA/SA",
                "block drop in quick inet proto icmp all icmp-type { 0, 3, 4, 5, 11, 12, 14, 16, 18 }",
            ],
        ),
    ] {
        let mut lines = part(&filter(&[], &format!("{asks} {rule}")), "in");
        // `part` removes only one of the policy's two rules.
        lines.truncate(lines.len() - 1);
        assert_eq!(lines, expected, "{rule}");
    }
}

#[test]
fn the_example_converts_and_does_what_it_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/host.iptables");
    let text = std::fs::read_to_string(path).expect("it can be read");
    assert_eq!(imported(&text).warnings, []);
    fates(
        &text,
        &[
            ("in em0 tcp 192.0.2.5:4000 > 10.0.1.1:22 S", "pass, new state 1, log match"),
            ("out em0 tcp 10.0.1.1:22 > 192.0.2.5:4000 SA ack 1", "pass, state 1"),
            ("in em0 tcp 198.51.100.5:4000 > 10.0.1.1:22 S", "block, no log"),
            ("in em0 tcp 198.51.100.5:4000 > 10.0.1.1:443 S", "pass, new state 2"),
            ("in em0 tcp 198.51.100.5:4001 > 10.0.1.1:443 SA ack 1", "block"),
            ("in em0 udp 198.51.100.5:4000 > 10.0.1.1:53", "block"),
            ("in em0 udp 198.51.100.5:4000 > 10.0.2.10:53", "pass"),
            ("forward out em1", "block"),
        ],
    );
}
