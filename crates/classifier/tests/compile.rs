//! Tests of compilation: rules as text, and the resulting image.

use std::collections::BTreeMap;

use skipstep_abi as abi;
use skipstep_abi::interface::interface_match;
use skipstep_abi::rule::{address_kind, port_op, rule_flags};
use skipstep_abi::tree_set::{TREE_SET_NONE, TREE_SET_WALK, tree_set_of};
use skipstep_classifier::{Error, Image, Names, Planner, Slots, Unchanged, compile, tables};
use skipstep_pfconf::Context;
use skipstep_ruleset::Ruleset;
use skipstep_ruleset::interface::{Host, Interface};

/// A host with em0, in group lan and with one address, and lo0.
fn host() -> Host {
    Host::with([
        Interface::new("em0", &["10.0.1.1/24"]).in_group("lan"),
        Interface::new("lo0", &["127.0.0.1/8"]).in_group("lo"),
    ])
}

fn parse(text: &str) -> Ruleset {
    let host = host();
    let loaded = skipstep_pfconf::load(text, &Context::new(&host));
    loaded.unwrap_or_else(|rejected| panic!("{text}: {:?}", rejected.diagnostics)).ruleset
}

fn image_with(text: &str, names: &mut Names) -> Result<Image, Error> {
    let ruleset = parse(text);
    let mut slots = 1..;
    let some = |_: &str, count| slots.by_ref().take(count).collect();
    let slots = slots_of(&ruleset, some)?;
    compile(&ruleset, &host(), &slots, names, Planner::default(), &Unchanged::default())
}

/// Returns slots for tables and for rules; `some` returns the number of rules of a rule set.
fn slots_of(
    ruleset: &Ruleset,
    mut some: impl FnMut(&str, usize) -> Vec<u32>,
) -> Result<Slots, Error> {
    let named = tables(ruleset, &host())?.into_iter().map(|table| table.name);
    let paths = || std::iter::once("").chain(ruleset.anchors.keys().map(String::as_str));
    let mut of = |path: &str, count| (path.to_owned(), some(path, count));
    Ok(Slots {
        rules: paths().map(|path| of(path, ruleset.rules_of(path).len())).collect(),
        legacy_rules: paths().map(|path| of(path, ruleset.legacy_rules_of(path).len())).collect(),
        tables: named.zip(1..).collect(),
        expansions: BTreeMap::new(),
    })
}

fn image(text: &str) -> Image {
    image_with(text, &mut Names::default()).unwrap()
}

fn rule(text: &str) -> abi::Rule {
    image(text).rules[0]
}

#[test]
fn a_rule_says_what_was_written() {
    let rule = rule(
        "block return-icmp (host-unr) out log (all) quick on ! em0 inet proto udp \
                     from 10.0.0.0/8 port 1:9 to ! 192.0.2.1 port > 1023",
    );
    assert_eq!(rule.action, abi::verdict::action::BLOCK);
    assert_eq!(rule.direction, abi::verdict::direction::OUT);
    let flags = rule_flags::LOG
        | rule_flags::LOG_ALL
        | rule_flags::QUICK
        | rule_flags::INTERFACE_NOT
        | rule_flags::RETURN_ICMP;
    assert_eq!(rule.flags, flags);
    assert_eq!((rule.interface_match, rule.interface), (interface_match::NAME, 1));
    assert_eq!((rule.family, rule.protocol), (abi::INET, 17));
    assert_eq!(
        (rule.source.kind, rule.source.low[0], rule.source.high[0]),
        (address_kind::MASK, 10, 255)
    );
    assert_eq!(
        (rule.source_port.op, rule.source_port.low, rule.source_port.high),
        (port_op::RANGE, 1, 9)
    );
    assert_eq!((rule.destination.negated, rule.destination.high[..4].to_vec()), (1, vec![255; 4]));
    assert_eq!((rule.destination_port.op, rule.destination_port.low), (port_op::GT, 1023));
    assert_eq!((rule.return_icmp_type, rule.return_icmp_code), (3, 1));
    assert_eq!((rule.slot, rule.number), (1, 0));
}

#[test]
fn a_passing_rule_keeps_state_and_looks_for_the_syn() {
    let image = image("pass in proto tcp keep state (max 10, tcp.first 7, sloppy, if-bound)");
    let rule = image.rules[0];
    let flags = rule_flags::KEEP_STATE | rule_flags::SLOPPY | rule_flags::IF_BOUND;
    assert_eq!(rule.flags, flags);
    assert_eq!((rule.tcp_flags, rule.tcp_mask), (0x02, 0x12));
    let (_, states) = image.states[""][0];
    assert_eq!((states.max, states.number), (10, 0));
    assert_eq!(states.timeouts[abi::state::timeout::TCP_FIRST], 7);
}

#[test]
fn an_rst_has_a_ttl_and_no_icmp_beside_it() {
    let rule = rule("block return-rst (ttl 9) proto tcp");
    assert_eq!(rule.flags, rule_flags::RETURN_RST);
    assert_eq!((rule.return_ttl, rule.return_icmp_type, rule.return_icmp6_type), (9, 0, 0));
}

#[test]
fn interfaces_and_groups_are_told_apart() {
    for (on, kind) in [
        ("em0", interface_match::NAME),
        ("lan", interface_match::GROUP),
        ("egress", interface_match::GROUP),
        ("any", interface_match::ANY),
        ("gone0", interface_match::NAME),
    ] {
        assert_eq!(rule(&format!("pass on {on}")).interface_match, kind, "{on}");
    }
    assert_eq!(rule("pass").interface_match, interface_match::NONE);
}

#[test]
fn skip_steps_lead_over_rules_that_agree() {
    let image =
        image("pass in proto tcp to port 1\npass in proto tcp to port 2\npass in proto udp\n");
    let protocol = skipstep_ruleset::skip::Skip::Protocol as usize;
    let direction = skipstep_ruleset::skip::Skip::Direction as usize;
    let port = skipstep_ruleset::skip::Skip::DestinationPort as usize;
    assert_eq!(image.rules[0].skip[protocol], 2);
    assert_eq!(image.rules[0].skip[direction], 3);
    assert_eq!(image.rules[0].skip[port], 1);
    assert_eq!(image.config.rules, 3);
}

#[test]
fn tables_and_dynamic_addresses_are_slots() {
    let text = "table <t> { 192.0.2.1 }\npass from <t> to (em0)\npass from (em0)";
    let image = image(text);
    let (first, second) = (image.rules[0], image.rules[1]);
    assert_eq!((first.source.kind, first.source.table), (address_kind::TABLE, 1));
    assert_eq!((first.destination.kind, first.destination.table), (address_kind::TABLE, 2));
    assert_eq!(second.source.table, 2, "the same address has the same slot");
    assert_eq!(first.family, 0, "a table holds both families");
}

#[test]
fn names_keep_their_numbers_from_one_rule_set_to_the_next() {
    let mut names = Names::default();
    let before = image_with("pass tag a\npass tagged b", &mut names).unwrap();
    let after = image_with("pass tagged b\npass tag c", &mut names).unwrap();
    assert_eq!((before.rules[0].tag, before.rules[1].tagged), (1, 2));
    assert_eq!((after.rules[0].tagged, after.rules[1].tag), (2, 3));
}

#[test]
fn settings_reach_the_configuration() {
    let image = image(
        "set limit states 500\nset timeout tcp.first 11\nset reassemble yes no-df\n\
         set loginterface em0\nset hostid 7\nset evaluator linear\npass\n",
    );
    let config = image.config;
    assert_eq!((config.limit_states, config.hostid, config.loginterface), (500, 7, 1));
    assert_eq!(config.timeouts[abi::state::timeout::TCP_FIRST], 11);
    assert_eq!(config.reassemble, abi::config::reassemble::YES | abi::config::reassemble::NO_DF);
    assert_eq!(config.evaluator, abi::verdict::evaluator::LINEAR);
}

#[test]
fn too_many_rules_are_refused_with_the_number() {
    let mut ruleset = parse("pass");
    ruleset.rules = vec![ruleset.rules[0].clone(); 131_073];
    let refused = skipstep_classifier::image::check_rules(&ruleset);
    assert_eq!(refused.unwrap_err().to_string(), "131073 rules: a rule set holds at most 131072");
}

/// Returns the rules that each anchor rule calls, by path of its anchor and rule number.
fn calls(image: &Image) -> BTreeMap<(&str, u32), (u32, u32)> {
    let sets = image.rule_sets.iter().flat_map(|(path, place)| {
        image.rules[place.clone()].iter().map(move |rule| (path.as_str(), rule))
    });
    let calls = sets.filter(|(_, rule)| rule.flags & rule_flags::ANCHOR != 0);
    calls.map(|(path, rule)| ((path, rule.number), (rule.call_first, rule.call_end))).collect()
}

#[test]
fn anchors_stand_behind_the_main_rule_set_and_siblings_together() {
    let image = image(
        "anchor \"a\" quick {\nanchor \"y\" {\nanchor \"deep\" {\npass\n}\npass\n}\n\
         anchor \"x\" {\nblock\nblock\n}\n}\nanchor \"a/*\" quick\nanchor \"nobody\"\n",
    );
    let paths: Vec<&str> = image.rule_sets.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["", "a", "a/x", "a/y", "a/y/deep"]);
    let expected = [
        (("", 0), (3, 5)),
        (("", 1), (5, 9)), // x and y, and nothing else
        (("", 2), (0, 0)),
        (("a", 0), (7, 9)),
        (("a", 1), (5, 7)),
        (("a/y", 0), (9, 10)),
    ];
    assert_eq!(calls(&image), BTreeMap::from(expected));
    let quick: Vec<u32> = image.rules.iter().map(|rule| rule.flags & rule_flags::QUICK).collect();
    assert_eq!(quick[..2], [rule_flags::QUICK, 0], "a wildcard is never quick");
    assert_eq!((image.rules[5].anchor, image.rules[7].anchor), (2, 3), "numbers of paths");
    assert_eq!(image.rules[5].skip[0], 7, "skip steps end with the rule set");
    assert_eq!((image.config.rules, image.config.steps), (3, abi::limits::MAX_STEPS));
}

#[test]
fn lists_of_legacy_rules_follow_the_filter_rules() {
    let image = image(
        "nat on em0 from 10.0.0.0/8 -> 192.0.2.1\nno binat from 10.0.0.9 to any\n\
         binat from 10.0.0.5 to any -> 192.0.2.5\nrdr from any to 192.0.2.7 -> 10.0.0.7\npass\n",
    );
    let superblocks = image.config.old.map(|list| (list.first, list.end));
    assert_eq!(superblocks, [(1, 2), (2, 3), (3, 5), (5, 7), (7, 7)]);
    assert_eq!((image.config.rules, image.config.default_rule, image.config.steps), (1, 7, 11));
}

#[test]
fn without_anchors_no_more_steps_are_made_than_there_are_rules() {
    let image = image("pass\nblock\n");
    assert_eq!((image.config.rules, image.config.steps), (2, 2));
}

#[test]
fn runs_of_rules_that_only_decide_are_superblocks() {
    let decide = "pass proto tcp to port 1\nblock proto tcp to port 2\n".repeat(4);
    let rules = format!(
        "match proto udp\n{decide}pass proto tcp to port 3\n\
         block tag T\n{decide}pass tagged T\n{decide}{decide}"
    );
    let image = image(&rules);
    let begins: Vec<usize> =
        (0..image.rules.len()).filter(|index| image.rules[*index].superblock != 0).collect();
    // Eight rules between those with a criterion on tags are too few for a superblock of their own.
    // The superblock with all of these rules has a search for candidates, from wherever evaluation
    // enters.
    let expected: Vec<usize> = [1].into_iter().chain(10..20).chain([20]).collect();
    assert_eq!(begins, expected);
    let end = |index: usize| image.nodes[image.rules[index].superblock as usize].word[0];
    assert_eq!((end(1), end(10), end(20)), (10, 20, 36));
    let meets_all = |index: usize| {
        image.nodes[image.rules[index].superblock as usize].word
            [abi::tree_set::SUPERBLOCK_MEETS_ALL]
    };
    assert_eq!((meets_all(1), meets_all(10), meets_all(20)), (0, 1, 0));
    assert_eq!(image.config.evaluator, abi::verdict::evaluator::COMPILED);
    // A search takes a step to begin and one to end. A search for candidates may also restart.
    let anew = abi::limits::MATCH_RULES as u32;
    assert_eq!(image.config.steps, image.config.rules + 6 + anew);
}

#[test]
fn skips_into_a_superblock_lead_to_its_first_rule() {
    let same = "pass in on em0 proto tcp to port 1\n";
    let rules = format!("match in on em0\n{}pass in on em1\n", same.repeat(9));
    let searched = image(&rules);
    assert_eq!(searched.rules[0].skip[0], 1, "the first rule on another interface is within");
    let walked = image(&format!("set evaluator skip-steps\n{rules}"));
    assert_eq!(walked.rules[0].skip[0], 10);
    assert!(walked.nodes.is_empty());
}

/// Compiles a rule set whose rules keep their slots, because each anchor has its own.
fn image_beside(text: &str, names: &mut Names, unchanged: &Unchanged) -> Image {
    let ruleset = parse(text);
    let first = |path: &str| 1000 * path.bytes().map(u32::from).sum::<u32>() + 1;
    let slots = slots_of(&ruleset, |path, count| (first(path)..).take(count).collect()).unwrap();
    compile(&ruleset, &host(), &slots, names, Planner::default(), unchanged).unwrap()
}

/// Returns `many` rules in superblocks, some of them with side effects.
fn searched(many: u16) -> String {
    let rules = |port: u16| {
        let acts = if port.is_multiple_of(50) { "block tag T\n" } else { "" };
        format!("pass in quick proto tcp to 10.0.0.{} port {port}\nblock out\n{acts}", port % 250)
    };
    (1..=many).map(rules).collect()
}

#[test]
fn reused_rule_sets_equal_compiled_ones() {
    let text = |changed: u16| {
        format!(
            "match in on em0\n{}anchor \"a/*\"\nanchor b {{\n{}}}\nanchor a {{\n\
             anchor x {{\n{}}}\nanchor z {{\n{}}}\n}}\n",
            searched(300),
            searched(80),
            searched(changed),
            searched(70)
        )
    };
    for (before, after) in [(0, 90), (90, 0), (60, 200), (200, 60), (3, 4)] {
        let mut names = Names::default();
        let before = image_beside(&text(before), &mut names, &Unchanged::default());
        let mut sets = before.compiled_sets.clone();
        sets.retain(|path, _| path != "a/x");
        assert!(["", "b", "a/z"].iter().all(|path| sets[*path].nodes.len() > 20));
        let unchanged = Unchanged { rules: before.rules, nodes: before.nodes, sets };
        let whole = image_beside(&text(after), &mut names, &Unchanged::default());
        let image = image_beside(&text(after), &mut names, &unchanged);
        assert!(image.states.keys().all(|path| path == "a/x"), "the others were compiled");
        assert_eq!(Image { states: whole.states.clone(), ..image }, whole);
    }
}

/// Returns the positions of the tree sets of the first superblock, for inbound and for outbound
/// packets.
fn tree_sets(image: &Image) -> [Vec<u32>; 2] {
    let head = image.rules[0].superblock as usize;
    [head, head + 1].map(|node| image.nodes[node].word[1..=abi::tree_set::TREE_SETS].to_vec())
}

#[test]
fn kinds_of_packets_with_the_same_boxes_share_a_tree_set() {
    let image = image(&"block proto udp to port 7\n".repeat(9));
    let [inbound, outbound] = tree_sets(&image);
    assert_eq!(inbound, outbound);
    let (inet, inet6) = (inbound[tree_set_of::UDP], inbound[tree_set_of::INET6 + tree_set_of::UDP]);
    assert!(inet > TREE_SET_WALK && inet6 > TREE_SET_WALK && inet != inet6);
}

#[test]
fn rules_that_skip_steps_pass_over_have_no_tree() {
    let ports: String =
        (1..=9).map(|port| format!("block in proto tcp to port {port}\n")).collect();
    let [inbound, outbound] = tree_sets(&image(&format!("pass\n{ports}")));
    let searched: Vec<bool> = inbound.iter().map(|place| *place != TREE_SET_WALK).collect();
    // TCP segments that begin a connection and others, over IPv4 and IPv6.
    let tcp = [true, true, false, false, false];
    assert_eq!(searched, [tcp, tcp].concat());
    assert_eq!(outbound, [TREE_SET_WALK; abi::tree_set::TREE_SETS]);

    // With many interfaces no skip step leads over all rules.
    let interfaces: String =
        (0..9).map(|n| format!("block in on em{} proto tcp to port 1\n", n % 2)).collect();
    let [inbound, _] = tree_sets(&image(&interfaces));
    assert_eq!(inbound[tree_set_of::UDP], TREE_SET_NONE);
}

/// Compiles settings and 25,000 rules that name a network each.
fn many_rules(settings: &str, rule: impl Fn(&str) -> String) -> Image {
    let networks = (0..25_000u32).map(|n| format!("10.{}.{}.0/24", n >> 8, n & 255));
    let rules: Vec<String> = networks.map(|network| rule(&network)).collect();
    image(&format!("{settings}\n{}\n", rules.join("\n")))
}

#[test]
fn the_longest_walk_counts_rules_that_no_tree_searches() {
    let plain = |network: &str| format!("pass in proto tcp from {network}");
    let walk = |settings, rule: fn(&str) -> String| many_rules(settings, rule).config.longest_walk;
    assert_eq!(walk("set evaluator linear", plain), 25_000);
    assert_eq!(walk("set evaluator skip-steps", plain), 25_000);
    let protocols = |network: &str| format!("pass in proto icmp from {network}");
    assert_eq!(walk("set evaluator skip-steps", protocols), 25_000);
    assert!(walk("set evaluator compiled", plain) < 10);
    assert_eq!(walk("set reassemble no", plain), 25_000, "no tree is for fragments");
    let table = |network: &str| format!("pass from <fills> label \"{network}\"");
    assert_eq!(walk("table <fills> persist", table), 25_000);
    let legacy = |network: &str| format!("nat on em0 from {network} to any -> 192.0.2.1");
    assert_eq!(walk("", legacy), 25_000);
}
