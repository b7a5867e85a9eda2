//! Stable identities of rules: which changes of a text leave them as they are.

use skipstep_pfconf::identity::Identities;
use skipstep_pfconf::{Context, PrintOptions, print};
use skipstep_ruleset::automatic::{AutomaticTables, PREFIX};
use skipstep_ruleset::interface::{Host, Interface};
use skipstep_ruleset::{LegacyKind, Optimization, RuleId, Ruleset};

fn load(text: &str) -> Ruleset {
    let host = Host::with([
        Interface::new("em0", &["10.0.1.1/24"]),
        Interface::new("em1", &["10.0.2.1/24"]),
    ]);
    // other texts get other names of tables and other random numbers
    let automatic_tables = AutomaticTables::for_loading(text.len() as u32);
    let context = Context {
        automatic_tables,
        random: &|| text.len() as u32,
        optimization: Some(Optimization::None),
        ..Context::new(&host)
    };
    skipstep_pfconf::load(text, &context).unwrap().ruleset
}

/// Returns the identities of the filter rules of an anchor.
fn identities(text: &str, path: &str) -> Vec<String> {
    let ruleset = load(text);
    let identities = Identities::of(&ruleset);
    let numbers = 0..ruleset.rules_of(path).len() as u32;
    let id = |number| identities.get(&RuleId::new(path, number)).map(str::to_owned);
    numbers.map(|number| id(number).expect("every rule has an identity")).collect()
}

#[test]
fn a_rule_in_front_leaves_an_identity_as_it_is() {
    let rule = "pass in on em0 proto tcp to port 22 keep state (max 5)\n";
    let alone = identities(rule, "");
    let second = identities(&format!("# other\nblock out\n{rule}"), "");
    assert_eq!(alone[0], second[1]);
    assert_ne!(second[0], second[1]);
    assert_eq!(alone[0].len(), 16);
}

/// Otherwise an update of skipstep would end the series of metrics and the links of tools.
#[test]
fn identities_are_those_of_earlier_versions() {
    assert_eq!(
        identities("block\npass in proto tcp to port 22", ""),
        ["a29e3833f8326dd6", "82ceff0e98cae95d"]
    );
    let text = "table <bad>
        match out on em1 inet from 10.0.1.0/24 nat-to { 192.0.2.1 192.0.2.8 } sticky-address
        pass out on em1 inet nat-to 192.0.2.0/28 source-hash
        block return in log (all, to pflog1) quick on ! em0 inet6 proto icmp6 icmp6-type echoreq
        pass in proto tcp from <bad> to (em1) port 22:23 user 1000 flags S/SA synproxy state \\
            (max 5, source-track rule, max-src-conn-rate 3/4, overload <bad> flush)
        anchor out on em1 {
            pass in rdr-to 10.1.1.1 tagged T probability 50%
        }";
    let expected: [&str; 5] = [
        "0bb375ebaa1e1df3",
        "8074ccffa57080b6",
        "499010af23885238",
        "8dc2d49cbd6955a5",
        "4f9b2fab54155c1e",
    ];
    assert_eq!(identities(text, ""), expected);
    assert_eq!(identities(text, "_1"), ["8992119a60856091"]);
}

#[test]
fn a_changed_rule_has_another_identity() {
    let id = |rule| identities(rule, "").remove(0);
    let before = id("pass in proto tcp to port 22");
    for rule in ["pass in proto tcp to port 23", "block in proto tcp to port 22", "pass in"] {
        assert_ne!(id(rule), before, "{rule}");
    }
    // another spelling of the same rule
    assert_eq!(id("pass in proto tcp from any to any port ssh flags S/SA keep state"), before);
}

#[test]
fn labels_win() {
    let before = identities("pass in proto tcp to port { 22 80 } label web\npass", "");
    assert_eq!(before[..2], ["web", "web"]);
    assert_eq!(identities("block in label web", ""), ["web"]);
}

#[test]
fn equal_rules_are_told_apart_by_their_order() {
    let ids = identities("block\npass\nblock\nblock", "");
    assert_eq!(ids[2], format!("{}-2", ids[0]));
    assert_eq!(ids[3], format!("{}-3", ids[0]));
    assert_ne!(ids[1], ids[0]);
}

#[test]
fn the_anchor_counts() {
    let text = "anchor a {\npass\n}\nanchor b {\npass\n}\npass";
    let of = |path| identities(text, path).remove(0);
    assert_ne!(of("a"), of("b"));
    assert!(!identities(text, "").contains(&of("a")));
}

#[test]
fn the_number_of_an_anchor_without_a_name_does_not_count() {
    let rules = "anchor on em0 {\npass in\nanchor out {\nblock\n}\n}";
    let other = format!("anchor on em1 {{\npass in\n}}\n{rules}");
    assert_eq!(identities(rules, "_1"), identities(&other, "_2"));
    assert_eq!(identities(rules, "_1/_2"), identities(&other, "_2/_3"));
    assert_ne!(identities(&other, "_1"), identities(&other, "_2")[..1]);
}

#[test]
fn generated_tables_count_by_their_contents() {
    let pass = |last: u8| {
        format!("pass out on em1 inet nat-to {{ 192.0.2.1 192.0.2.{last} }} round-robin\n")
    };
    assert!(print::rule(&load(&pass(8)).rules[0], &PrintOptions::default()).contains(PREFIX));
    let alone = identities(&pass(8), "");
    assert_eq!(identities(&format!("block out\n{}", pass(8)), "")[1], alone[0]);
    assert_ne!(identities(&pass(9), ""), alone);
}

#[test]
fn random_keys_do_not_count() {
    let rule = "pass out on em1 inet nat-to 192.0.2.0/28 source-hash sticky-address\n";
    let longer = format!("block out\n{rule}");
    let key = |text| print::rule(load(text).rules.last().unwrap(), &PrintOptions::default());
    assert_ne!(key(rule), key(&longer));
    let alone = identities(rule, "");
    assert_eq!(identities(&longer, "")[1], alone[0]);
    assert_ne!(identities(&rule.replace(" sticky-address", ""), ""), alone);
}

#[test]
fn legacy_rules_have_identities_too() {
    let rule = "nat on em0 from 10.0.1.0/24 to any -> 192.0.2.1\n";
    let of = |text: &str, number| {
        let identities = Identities::of(&load(text));
        identities.find("", Some(LegacyKind::Nat), number).map(str::to_owned)
    };
    let alone = of(rule, 0);
    assert!(alone.is_some());
    assert_eq!(of(&format!("no nat on em1 all\n{rule}"), 1), alone);
    assert_eq!(of(rule, 1), None);
}

/// Otherwise the rules of both anchors would have the same identity.
#[test]
fn anchors_without_names_that_share_a_label_are_told_apart() {
    let text = "anchor on em0 label x {\npass\n}\nanchor on em1 label x {\npass\n}";
    assert_eq!(identities(text, ""), ["x", "x"]);
    assert_ne!(identities(text, "_1"), identities(text, "_2"));
}
