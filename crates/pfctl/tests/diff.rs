//! Tests of `pfctl diff`: its output, and that it finds packets with different fates.

use pfctl::diff::{Difference, Side};
use proptest::prelude::*;
use skipstep_model::{Carried, Firewall, LinkHeader, Packet, Verdict};
use skipstep_pfconf::Context;
use skipstep_ruleset::Direction;
use skipstep_scenario::host;
use skipstep_wire::build;

fn side(file: &str, rules: &str) -> Side {
    let host = host::standard();
    let loaded = skipstep_pfconf::load(rules, &Context::new(&host));
    let ruleset = loaded.unwrap_or_else(|refused| panic!("{:?}", refused.diagnostics)).ruleset;
    Side { file: file.to_string(), ruleset }
}

fn diff(old: &str, new: &str) -> String {
    let (old, new) = (side("old.conf", old), side("new.conf", new));
    Difference::between(&old, &new, &host::standard(), 20).text()
}

#[test]
fn rule_sets_that_mean_the_same_do_not_differ() {
    assert_eq!(diff("pass in on em0\nblock", "if = em0\n\npass   in on $if # that one\nblock"), "");
}

#[test]
fn an_added_rule_is_shown_with_a_packet() {
    assert_eq!(
        diff("block", "block\npass in on em0 proto tcp to port 22"),
        "--- old.conf\n\
         +++ new.conf\n\
         + pass in on em0 proto tcp from any to any port = 22 flags S/SA  # new.conf:2\n\
         # packets with different verdicts\n\
         in em0 tcp 192.0.2.1:4000 > 198.51.100.2:22 S   \
         block by old.conf:1  →  pass by new.conf:2\n"
    );
}

#[test]
fn a_moved_rule_is_said_to_be_moved() {
    assert_eq!(
        diff(
            "pass in proto tcp to port 22\nblock in\npass out",
            "block in\npass out\npass in proto tcp to port 22"
        ),
        "--- old.conf\n\
         +++ new.conf\n\
         > pass in proto tcp from any to any port = 22 flags S/SA  # from old.conf:1 to new.conf:3\n\
         # packets with different verdicts\n\
         in em0 tcp 192.0.2.1:4000 > 198.51.100.2:22 S   \
         block by old.conf:2  →  pass by new.conf:3\n"
    );
}

#[test]
fn queues_limiters_and_old_rules_are_shown_in_pfs_words() {
    let text = diff(
        "queue main on em0 bandwidth 10M default\nnat on em1 from em0:network to any -> em1:0\n",
        "queue main on em0 bandwidth 20M default\nstate limiter web id 1 limit 100\n",
    );
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with(['+', '-'])).collect();
    assert_eq!(
        lines[2..],
        [
            "- queue main on em0 bandwidth 10M default",
            "+ queue main on em0 bandwidth 20M default",
            "+ state limiter web id 1 limit 100",
            "- nat on em1 inet from 10.0.1.0/24 to any -> 10.0.2.1  # old.conf:2",
        ]
    );
}

#[test]
fn lists_of_pools_are_compared_by_what_is_in_them() {
    let web = "match out on em0 nat-to { 192.0.2.1, 192.0.2.2 }";
    let mail = "match out on em1 nat-to { 192.0.2.3 192.0.2.4 weight 2 }";
    assert_eq!(diff(web, &format!("{web}\n")), "");
    let text = diff(web, &format!("{mail}\n{web}"));
    let changed: Vec<&str> =
        text.lines().filter(|line| line.starts_with(['+', '-', '>'])).collect();
    let list = "{ 192.0.2.3, 192.0.2.4 weight 2 }";
    let added = format!("+ match out on em1 inet all nat-to {list} round-robin  # new.conf:1");
    assert_eq!(changed[2..], [added.as_str()], "{text}");
}

#[test]
fn every_option_of_states_is_compared() {
    let with = |options: &str| format!("pass in proto tcp keep state ({options})");
    for option in ["max 5", "no-sync", "sloppy", "if-bound", "tcp.established 50", "tcp.closed 1"] {
        let text = diff(&with("floating"), &with(option));
        let example = text.lines().last().unwrap_or_default();
        assert!(example.contains(option) && example.contains("→"), "{option}:\n{text}");
    }
    let text = diff(&with("floating"), &format!("set timeout tcp.finwait 9\n{}", with("floating")));
    assert!(text.contains("tcp.finwait 45") && text.contains("tcp.finwait 9"), "{text}");
}

#[test]
fn a_table_is_compared_address_by_address() {
    assert_eq!(
        diff(
            "table <bad> { 10.9.0.0/16 }\nblock in quick from <bad>\npass flags any",
            "table <bad> { 10.9.0.0/16 !10.9.1.0/24 }\nblock in quick from <bad>\npass flags any"
        ),
        "--- old.conf\n\
         +++ new.conf\n\
         + table <bad> { !10.9.1.0/24 }\n\
         # packets with different verdicts\n\
         in em0 tcp 10.9.1.0:4000 > 198.51.100.2:80 S   \
         block by old.conf:2  →  pass by new.conf:3\n"
    );
}

#[test]
fn a_change_without_effect_has_no_example() {
    assert_eq!(
        diff(
            "block in proto tcp to port 22\npass in quick flags any",
            "block in proto tcp to port 23\npass in quick flags any"
        ),
        "--- old.conf\n\
         +++ new.conf\n\
         - block drop in proto tcp from any to any port = 22  # old.conf:1\n\
         + block drop in proto tcp from any to any port = 23  # new.conf:1\n\
         # no packet with different verdicts was found\n"
    );
}

#[test]
fn answers_and_states_count_as_well_as_verdicts() {
    let text = diff(
        "block\npass in proto udp",
        "block return\npass in proto udp keep state (udp.first 7)",
    );
    assert!(text.contains("block by old.conf:1  →  block, reply rst by new.conf:1\n"), "{text}");
    assert!(
        text.contains("pass, udp.first 60 by old.conf:2  →  pass, udp.first 7 by new.conf:2\n"),
        "{text}"
    );
    let text = diff("pass in", "pass in tag T no state\nset skip on em1");
    assert!(text.contains("+ set skip on em1\n"), "{text}");
    assert!(
        text.contains("pass by old.conf:1  →  pass, no state, tag T by new.conf:1\n"),
        "{text}"
    );
    assert!(text.contains("in em1 tcp"), "{text}");
    assert!(text.contains("→  pass, no state unfiltered\n"), "{text}");
}

#[test]
fn the_draw_that_makes_the_difference_is_given() {
    let text = diff("block\npass in probability 50%", "block\npass in probability 60%");
    assert!(text.contains("\nrandom 2147483647\nin em0 tcp"), "{text}");
}

#[test]
fn packets_of_sctp_have_the_ports_that_rules_name() {
    let text = diff("pass", "pass\nblock in proto sctp to port 9");
    assert!(text.contains("\n+ block drop in proto sctp from any to any port = 9"), "{text}");
    assert!(text.contains("in em0 sctp 192.0.2.1:4000 > 198.51.100.2:9 "), "{text}");
}

#[test]
fn json_has_the_same_changes_and_packets() {
    let (old, new) = (side("old.conf", "block"), side("new.conf", "block\npass in"));
    let json = Difference::between(&old, &new, &host::standard(), 20).json();
    assert_eq!(json["rules"][0]["change"], "added");
    assert_eq!(json["rules"][0]["new"]["place"], "new.conf:2");
    assert_eq!(json["packets"][0]["new"]["rule"]["text"], "pass in all flags S/SA");
    assert_eq!(json["packets"][0]["old"]["fate"][0], "block");
}

const HEADS: &[&str] =
    &["pass in", "block in", "pass", "block in quick", "pass in quick", "match in"];
const INTERFACES: &[&str] = &["", "on em0", "on ! em0", "on egress"];
const SOURCES: &[&str] =
    &["any", "10.0.1.0/24", "! 10.0.1.7", "10.0.1.7 - 10.0.1.9", "<t>", "(em0)"];
const PORTS: &[&str] = &["", "port 22", "port > 22", "port 20:25", "port != 80"];

fn rule() -> impl Strategy<Value = String> {
    let pick = |list: &'static [&'static str]| prop::sample::select(list);
    (pick(HEADS), pick(INTERFACES), pick(SOURCES), pick(PORTS)).prop_map(
        |(head, interface, source, port)| {
            format!("{head} {interface} inet proto tcp from {source} to any {port}")
        },
    )
}

/// Returns SYNs between addresses and ports in and around the criteria of the rules.
fn packets() -> Vec<Packet> {
    let mut packets = Vec::new();
    for interface in ["em0", "em1"] {
        for last in
            ["10.0.1.0", "10.0.1.1", "10.0.1.6", "10.0.1.8", "10.0.1.7", "10.0.1.9", "192.0.2.9"]
        {
            for port in [19, 20, 22, 23, 25, 26, 80] {
                packets.push(Packet {
                    direction: Direction::In,
                    interface: interface.to_string(),
                    bytes: build::ip(last.parse().unwrap(), "198.51.100.1".parse().unwrap())
                        .tcp(&build::Tcp::new(1234, port).flags("S")),
                    link: LinkHeader::default(),
                    received_on: None,
                    carried: Carried::default(),
                    owner: None,
                });
            }
        }
    }
    packets
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// If a packet of this test gets another verdict, there is an example.
    #[test]
    fn a_change_that_a_packet_notices_is_found(
        rules in prop::collection::vec(rule(), 1..5), other in rule(), at in any::<prop::sample::Index>()
    ) {
        let text = |rules: &[String]| format!("table <t> {{ 10.0.1.0/24 !10.0.1.8 }}\n{}\n", rules.join("\n"));
        let mut changed = rules.clone();
        let at = at.index(rules.len());
        changed[at] = other;
        let (old, new) = (side("old", &text(&rules)), side("new", &text(&changed)));
        let host = host::standard();
        let difference = Difference::between(&old, &new, &host, 100);
        let verdict = |side: &Side, packet: &Packet| -> Verdict {
            Firewall::new(side.ruleset.clone(), host.clone()).packet(packet).verdict
        };
        let noticed = packets().iter().any(|packet| verdict(&old, packet) != verdict(&new, packet));
        let examples = difference.json()["packets"].as_array().unwrap().len();
        prop_assert!(!noticed || examples > 0, "{}", difference.text());
        prop_assert_eq!(difference.is_empty(), rules[at] == changed[at] || difference.text().is_empty());
        prop_assert!(Difference::between(&old, &old, &host, 100).is_empty());
    }
}
