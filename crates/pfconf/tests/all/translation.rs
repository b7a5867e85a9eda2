//! The meaning of pools and legacy rules, where the printed form does not show it.

use skipstep_pfconf::{Context, load};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Divert, LegacyKind, PoolAddress, PoolKind, PoolPorts, Rule, Ruleset};

fn ruleset(text: &str) -> Ruleset {
    load(text, &Context::new(&Host::default())).expect(text).ruleset
}

fn rule(text: &str) -> Rule {
    ruleset(text).rules.remove(0)
}

#[test]
fn lists_become_tables_with_their_weights() {
    let ruleset = ruleset("match out nat-to { 10.0.0.1 weight 3, 10.0.0.2 } least-states");
    let nat = ruleset.rules[0].nat.as_ref().unwrap();
    assert_eq!(nat.kind, PoolKind::LeastStates);
    let PoolAddress::Table(name) = &nat.address else { panic!("{nat:?}") };
    let table = ruleset.table(name).unwrap();
    assert!(table.constant && table.entries.len() == 2);
    let weighted = table.entries.iter().filter(|entry| entry.weight > 0);
    let weights: Vec<_> = weighted.map(|entry| (entry.net.to_string(), entry.weight)).collect();
    assert_eq!(weights, [("10.0.0.1/32".to_string(), 3)]);
}

#[test]
fn tables_that_only_pools_mention_exist() {
    let ruleset = ruleset("match out nat-to <addresses>\nnat on em0 from 10/8 -> <others>");
    for name in ["addresses", "others"] {
        assert!(!ruleset.table(name).unwrap().defined, "{name}");
    }
}

#[test]
fn ports_of_a_pool() {
    let nat = |text: &str| rule(&format!("match out proto tcp nat-to 10.0.0.1 {text}")).nat;
    let rdr = |text: &str| rule(&format!("match in proto tcp to port 80:90 rdr-to {text}")).rdr;
    assert_eq!(nat("").unwrap().ports, PoolPorts::Default);
    assert_eq!(nat("port 50001:65535").unwrap().ports, PoolPorts::Default);
    assert_eq!(nat("port 22").unwrap().ports, PoolPorts::Range(22, 22));
    assert_eq!(nat("static-port").unwrap().ports, PoolPorts::Static);
    assert_eq!(rdr("10.0.0.1").unwrap().ports, PoolPorts::Default);
    assert_eq!(rdr("10.0.0.1 port 8000:*").unwrap().ports, PoolPorts::Range(8000, 8010));
}

#[test]
fn a_missing_source_hash_key_is_random() {
    let key = || rule("match out nat-to 10.0.0.0/24 source-hash").nat.unwrap().kind;
    assert!(matches!(key(), PoolKind::SourceHash(_)));
    assert_ne!(key(), key());
}

#[test]
fn a_number_behind_divert_to_is_that_of_a_divert_socket() {
    let divert = |text: &str| rule(&format!("pass in proto tcp divert-to {text}")).divert.unwrap();
    let address = "127.0.0.1".parse().unwrap();
    assert_eq!(divert("127.0.0.1 port 80"), Divert::To { address, port: 80 });
    assert_eq!(divert("8025"), Divert::Packet { port: 8025 });
}

#[test]
fn legacy_rules_are_in_lists_of_their_own() {
    let text = "scrub in all\nnat pass on em0 from 10/8 -> 192.0.2.1\nno rdr on em0\n\
                rdr on em0 -> 10.0.0.1\npass";
    let ruleset = ruleset(text);
    let legacy: Vec<_> = ruleset
        .legacy_rules
        .iter()
        .map(|legacy| (legacy.kind, legacy.no, legacy.pass, legacy.rule.number))
        .collect();
    let expected = [
        (LegacyKind::Scrub, false, false, 0),
        (LegacyKind::Nat, false, true, 0),
        (LegacyKind::Rdr, true, false, 0),
        (LegacyKind::Rdr, false, false, 1),
    ];
    assert_eq!(legacy, expected);
    assert!(
        ruleset.legacy_rules[1].rule.nat.is_some() && ruleset.legacy_rules[3].rule.rdr.is_some()
    );
    assert_eq!(ruleset.rules.len(), 1);
}

#[test]
fn pools_are_bounded() {
    let list = |network: u32| {
        let hosts = (0..2000).map(|n| format!("10.{network}.{}.{}", n / 250, n % 250));
        hosts.collect::<Vec<_>>().join(" ")
    };
    let text = format!("match out from {{ {} }} nat-to {{ {} }}", list(1), list(2));
    let refused = load(&text, &Context::new(&Host::default())).unwrap_err();
    let messages: Vec<_> = refused.diagnostics.iter().map(|d| d.message.as_str()).collect();
    let too_many = "pools expand to more than 262144 addresses";
    assert_eq!(messages, ["skipping rule due to errors", too_many]);
}
