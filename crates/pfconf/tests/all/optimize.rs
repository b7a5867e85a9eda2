//! Results of `-o basic` and `-o profile`, printed as by `pfctl -nv`.

use skipstep_pfconf::{Context, load};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{AutomaticTables, Counted, Optimization, Ruleset};

/// Returns the optimized rules of a text.
fn basic(text: &str) -> String {
    optimized(text, Optimization::Basic, &|_| Vec::new())
}

fn optimized(
    text: &str,
    level: Optimization,
    profile: &(dyn Fn(&str) -> Vec<Counted> + Sync),
) -> String {
    let host = Host::default();
    let context = Context { optimization: Some(level), profile, ..Context::new(&host) };
    load(text, &context).unwrap().echo
}

#[track_caller]
fn becomes(text: &[&str], expected: &[&str]) {
    assert_eq!(basic(&text.join("\n")).lines().collect::<Vec<_>>(), expected);
}

/// Asserts that the rules are neither removed nor combined nor moved.
#[track_caller]
fn stays(text: &[&str]) {
    let text = text.join("\n") + "\n";
    assert_eq!(basic(&text), optimized(&text, Optimization::None, &|_| Vec::new()));
}

#[test]
fn covered_rules_are_removed() {
    becomes(
        &["pass in on em0 proto tcp from 10.1.0.0/16 to any port 80", "pass", "pass in"],
        &["pass all flags S/SA"],
    );
    becomes(
        &["block in from 10.0.0.0/8", "block in proto tcp from 10.1.2.3 to any port 22"],
        &["block drop in inet from 10.0.0.0/8 to any"],
    );
    becomes(
        &["block in from any to <t>", "block in", "block in from no-route"],
        &["block drop in all"],
    );
}

#[test]
fn of_negated_networks_the_narrower_matches_more() {
    stays(&["block from ! 10.0.0.0/8", "block from ! 10.1.0.0/16"]);
    stays(&["block from ! 10.0.0.0/8", "block from ! 0.0.0.0/0"]);
}

#[test]
fn superblocks_end_where_the_effect_differs() {
    stays(&["pass in", "pass in log"]);
    stays(&["pass in", "block in", "pass in"]);
    stays(&["pass in", "pass in tag A"]);
    stays(&["match in set prio 3", "match in set prio 4"]);
    stays(&["match in set tos 4", "match in set tos 8"]);
    stays(&["match in scrub (min-ttl 4)", "match in scrub (min-ttl 8)"]);
    stays(&["pass in probability 50%", "pass in probability 50%"]);
    stays(&["pass in label \"x\"", "pass in label \"x\""]);
    stays(&["pass in keep state (max 5)", "pass in keep state (max 5)"]);
    stays(&["pass on egress", "pass on lan"]);
    stays(&["pass quick tagged A", "pass quick"]);
    let sticks = "match in rdr-to { 10.0.0.1, 10.0.0.2 } round-robin sticky-address";
    stays(&[sticks, sticks]);
    let hashes = "match out inet from 10.0.0.0/8 nat-to 10.0.0.0/24 source-hash 0x0123456789abcdef0123456789abcdef";
    stays(&[hashes, hashes]);
    let maps = "match out inet from any nat-to 10.0.0.1 endpoint-independent";
    stays(&[maps, maps]);
}

#[test]
fn a_rule_whose_pool_has_a_memory_goes_only_where_it_never_decides() {
    let from = |from: &str, quick: &str| {
        format!("pass in {quick}inet from {from} to any rdr-to <t> least-states")
    };
    for quick in ["", "quick "] {
        let (all, some) = (from("any", quick), from("10.0.0.0/8", quick));
        let (first, last) = if quick.is_empty() { (&some, &all) } else { (&all, &some) };
        let one = format!("pass in {quick}inet all flags S/SA rdr-to <t> least-states");
        becomes(&[first, last], &[&one]);
        stays(&[last, first]);
        becomes(&[&all, &all], &[&one]);
    }
}

#[test]
fn a_match_rule_that_does_more_covers_one_that_does_less() {
    becomes(
        &["match in scrub (min-ttl 8)", "match in from 10.0.0.1"],
        &["match in all scrub (min-ttl 8)"],
    );
    stays(&["match in from 10.0.0.1 scrub (min-ttl 8)", "match in"]);
}

#[test]
fn codes_and_timeouts_are_those_of_the_rule_that_decided_before() {
    stays(&[
        "block return-icmp(1) from 10.0.0.1",
        "block return-icmp(2) proto udp",
        "block return-icmp(1) from 10.0.0.1 to any tos 4",
        "block return-icmp(2) proto udp from any to any tos 8",
    ]);
    // no packet has both protocols
    becomes(
        &[
            "pass proto udp to 10.0.0.1 keep state (udp.first 9)",
            "pass proto tcp to 10.0.0.1 keep state (udp.first 8)",
            "pass proto udp to 10.0.0.2 keep state (udp.first 9)",
            "pass proto udp to 10.0.0.3 keep state (udp.first 9)",
        ],
        &[
            "pass inet proto udp from any to 10.0.0.1 keep state (udp.first 9)",
            "pass inet proto udp from any to 10.0.0.2 keep state (udp.first 9)",
            "pass inet proto udp from any to 10.0.0.3 keep state (udp.first 9)",
            "pass inet proto tcp from any to 10.0.0.1 flags S/SA keep state (udp.first 8)",
        ],
    );
}

#[test]
fn six_addresses_are_a_table() {
    becomes(
        &["block in from { 1.0.0.1 1.0.0.2 1.0.0.3 1.0.0.4 1.0.0.5 2.0.0.0/8 }"],
        &[
            "table <__automatic_0> const { 1.0.0.1 1.0.0.2 1.0.0.3 1.0.0.4 1.0.0.5 2.0.0.0/8 }",
            "block drop in inet from <__automatic_0> to any",
        ],
    );
    stays(&["block in from { 1.0.0.1 1.0.0.2 1.0.0.3 1.0.0.4 1.0.0.5 }"]);
    // each packet matches one of these rules, but not all packets would match a rule with their
    // table
    stays(&[
        "block in from ! 1.0.0.1",
        "block in from ! 1.0.0.2",
        "block in from ! 1.0.0.3",
        "block in from ! 1.0.0.4",
        "block in from ! 1.0.0.5",
        "block in from ! 1.0.0.6",
    ]);
}

#[test]
fn tables_not_worth_making_are_counted_only_when_nothing_is_loaded() {
    let text = "block in from { 1.0.0.1 1.0.0.2 }\n\
        pass in to { 1.0.0.1 1.0.0.2 1.0.0.3 1.0.0.4 1.0.0.5 1.0.0.6 }\n";
    assert!(basic(text).contains("to <__automatic_1>"));
    let host = Host::default();
    let context = Context {
        optimization: Some(Optimization::Basic),
        automatic_tables: AutomaticTables::for_loading(0xabc),
        ..Context::new(&host)
    };
    let loaded = load(text, &context).unwrap();
    assert!(loaded.echo.contains("to <__automatic_abc_0>"));
    let table = loaded.ruleset.table("__automatic_abc_0").unwrap();
    assert!(table.constant && table.defined && table.initialized);
    assert_eq!(table.entries.len(), 6);
}

#[test]
fn rules_with_common_parameters_become_neighbours() {
    becomes(
        &[
            "pass in on em0 proto tcp to any port 1",
            "pass out on em1 proto udp to any port 2",
            "pass in on em0 proto tcp to any port 3",
            "pass out on em1 proto udp to any port 4",
            "pass in on em0 proto tcp to any port 5",
        ],
        &[
            "pass in on em0 proto tcp from any to any port = 1 flags S/SA",
            "pass in on em0 proto tcp from any to any port = 3 flags S/SA",
            "pass in on em0 proto tcp from any to any port = 5 flags S/SA",
            "pass out on em1 proto udp from any to any port = 2",
            "pass out on em1 proto udp from any to any port = 4",
        ],
    );
}

#[test]
fn anchors_are_optimized_and_numbered_too() {
    becomes(
        &[
            "pass",
            "pass in",
            "anchor \"a\" {",
            "block from { 1.0.0.1 1.0.0.2 1.0.0.3 1.0.0.4 1.0.0.5 1.0.0.6 }",
            "pass label \"$nr\"",
            "}",
            "block label \"$nr\"",
        ],
        &[
            "pass all flags S/SA",
            "anchor \"a\" all {",
            "table <__automatic_0> const { 1.0.0.1 1.0.0.2 1.0.0.3 1.0.0.4 1.0.0.5 1.0.0.6 }",
            "  block drop inet from <__automatic_0> to any",
            "  pass all flags S/SA label \"1\"",
            "}",
            "block drop all label \"2\"",
        ],
    );
}

#[test]
fn under_profile_busy_quick_rules_come_first() {
    let text = "block quick from 10.0.0.1\nblock quick from 10.0.0.2\nblock quick from 10.0.0.3\n";
    let Ruleset { rules, .. } = load(text, &Context::new(&Host::default())).unwrap().ruleset;
    let profile = |path: &str| {
        assert_eq!(path, "");
        let counted = |(rule, packets)| Counted { rule, packets };
        rules.iter().cloned().zip([1, 0, 7]).map(counted).collect()
    };
    let found = optimized(text, Optimization::Profile, &profile);
    let order: Vec<_> = found.lines().map(|line| &line[line.find("10.").unwrap()..][..8]).collect();
    assert_eq!(order, ["10.0.0.3", "10.0.0.1", "10.0.0.2"]);
    // rules without `quick` are ordered as with `basic`
    let slow = text.replace("quick ", "");
    assert_eq!(optimized(&slow, Optimization::Profile, &profile), basic(&slow));
}

#[test]
fn the_flag_goes_before_the_setting() {
    let text = "set ruleset-optimization none\npass\npass in\n";
    assert_eq!(basic(text).lines().count(), 1);
    let host = Host::default();
    let by_setting = Context { optimization: None, ..Context::new(&host) };
    assert_eq!(load(text, &by_setting).unwrap().echo.lines().count(), 2);
    assert_eq!(load("pass\npass in\n", &by_setting).unwrap().echo.lines().count(), 1);
}
