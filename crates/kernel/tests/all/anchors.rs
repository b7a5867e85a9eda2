//! Anchors loaded by themselves into an instance that filters real packets: effects of the load,
//! and everything that must stay.

use std::net::UdpSocket;

use crate::common::fixture::{Fixture, arrives, isolated, receiver, udp_states};
use crate::common::ruleset;
use skipstep_kernel::Instance;
use skipstep_pfconf::Context;
use skipstep_ruleset::{RuleId, TableEntry, TableName};

/// Loads an anchor, as `pfctl -a path -f` does.
fn load_anchor(fixture: &mut Fixture, path: &str, text: &str) {
    let host = fixture.host.clone();
    let context = Context { anchor: path, ..Context::new(&host) };
    let ruleset = skipstep_pfconf::load(text, &context).unwrap().ruleset;
    fixture.instance().load_anchor(path, &ruleset, &host).unwrap();
}

fn sender() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").unwrap()
}

fn entry(net: &str) -> TableEntry {
    TableEntry { negated: false, net: net.parse().unwrap(), weight: 0 }
}

#[test]
#[ignore = "needs root"]
fn an_anchor_is_replaced_alone() {
    isolated(|| {
        let mut fixture = Fixture::new("anchor");
        let (to, from) = (receiver(), sender());
        let port = to.1.port();
        let main = format!("block in proto udp to port {port}\nanchor \"gate\" in\n");
        fixture.load(&main);
        fixture.instance().enable().unwrap();
        assert!(!arrives(&from, &to), "nothing is in the anchor yet");

        load_anchor(&mut fixture, "gate", &format!("pass in proto udp to port {port}\n"));
        assert!(arrives(&from, &to));
        let instance = fixture.instance();
        let state = udp_states(instance).remove(0);
        assert_eq!(state.rule, Some(RuleId::new("gate", 0)));
        assert_eq!(state.anchor_rule, Some(1));
        let counters = instance.rule_counters("").unwrap();
        assert_eq!(counters[0].packets, [1, 0], "the main rule set goes on counting");
        assert_eq!((counters[1].packets, counters[1].states), ([1, 0], 1));
        assert_eq!(instance.rule_counters("gate").unwrap()[0].packets, [1, 0]);

        // the same rule, one anchor deeper
        let inner = format!("anchor \"inner\" {{\npass in proto udp to port {port}\n}}\n");
        load_anchor(&mut fixture, "gate", &inner);
        let state = udp_states(fixture.instance()).remove(0);
        assert_eq!((state.rule, state.anchor_rule), (None, Some(1)), "its rule is gone");
        assert!(arrives(&from, &to), "its state is not");
        assert!(arrives(&sender(), &to));
        let states = udp_states(fixture.instance());
        assert_eq!(states[1].rule, Some(RuleId::new("gate/inner", 0)));

        fixture.load(&main);
        let anchors = fixture.instance().loaded().unwrap().ruleset.anchors;
        assert_eq!(anchors.keys().collect::<Vec<_>>(), ["gate", "gate/inner"]);
        assert!(arrives(&sender(), &to), "a new main rule set keeps the anchors of others");
        let before = fixture.instance().rule_counters("gate/inner").unwrap();
        assert_eq!(before[0].states_created, 2, "and their counters");

        fixture.instance().clear_anchor("gate").unwrap();
        assert!(!arrives(&sender(), &to));
        let anchors = fixture.instance().loaded().unwrap().ruleset.anchors;
        assert_eq!(anchors.keys().collect::<Vec<_>>(), ["gate/inner"], "what is below it stays");
    });
}

/// The trees of the main rule set are reused, and those of the anchor are built.
#[test]
#[ignore = "needs root"]
fn rules_beside_an_anchor_are_found_as_before() {
    isolated(|| {
        let mut fixture = Fixture::new("anchor-trees");
        let (to, other) = (receiver(), receiver());
        let blocks = |ports: std::ops::Range<u16>| {
            ports.map(|port| format!("block in proto udp to port {port}\n")).collect::<String>()
        };
        let port = to.1.port();
        let main = format!("{}block in proto udp to port {port}\nanchor \"gate\"\n", blocks(1..50));
        fixture.load(&main);
        fixture.instance().enable().unwrap();
        for round in 0..4 {
            let opened = if round % 2 == 0 { port } else { other.1.port() };
            let pass = format!("pass in quick proto udp to port {opened} no state\n");
            load_anchor(&mut fixture, "gate", &format!("{}{pass}", blocks(100..140 + round)));
            assert_eq!(arrives(&sender(), &to), round % 2 == 0, "round {round}");
            assert!(arrives(&sender(), &other), "round {round}");
        }
        let counters = fixture.instance().rule_counters("").unwrap();
        assert_eq!(counters[49].packets, [2, 0]);
    });
}

#[test]
#[ignore = "needs root"]
fn an_anchor_uses_the_main_table_until_it_has_its_own() {
    isolated(|| {
        let mut fixture = Fixture::new("anchor-table");
        let to = receiver();
        let port = to.1.port();
        fixture.load(&format!(
            "table <ok> persist\nblock in proto udp to port {port}\nanchor \"gate\"\n"
        ));
        load_anchor(&mut fixture, "gate", &format!("pass in proto udp from <ok> to port {port}\n"));
        fixture.instance().enable().unwrap();
        let (main, own) = (TableName::from("ok"), TableName::new("gate", "ok"));
        assert!(!arrives(&sender(), &to), "both tables are empty");

        let instance = fixture.instance();
        instance.table_add(&main, &[entry("127.0.0.1/32")]).unwrap();
        assert!(arrives(&sender(), &to));
        let info = &instance.table_list().unwrap()[0];
        assert_eq!((&info.name, info.rules, info.anchors), (&main, 0, 1));
        assert!(info.stats.r#match >= 1, "the table that was looked into counts");

        instance.table_add(&own, &[entry("192.0.2.1/32")]).unwrap();
        assert!(!arrives(&sender(), &to), "the anchor's own table does not hold it");
        assert_eq!(instance.table_entries(&own).unwrap(), [entry("192.0.2.1/32")]);
        assert_eq!(instance.table_entries(&main).unwrap(), [entry("127.0.0.1/32")]);
        let seen = |instance: &Instance| {
            let ruleset = instance.loaded().unwrap().ruleset;
            ruleset.table_seen_from("gate", "ok").map(|(name, _)| name)
        };
        assert_eq!(seen(instance), Some(own.clone()), "and the rule set says so");

        instance.table_kill(&own).unwrap();
        assert!(arrives(&sender(), &to), "the main rule set's table stands in again");
        assert_eq!(seen(instance), Some(main));
    });
}

/// fail2ban makes a table in an anchor, and then loads a rule that names it into the same anchor.
#[test]
#[ignore = "needs root"]
fn a_table_keeps_its_properties_while_no_statement_names_it() {
    isolated(|| {
        let mut fixture = Fixture::new("anchor-properties");
        let properties = |fixture: &mut Fixture, name: &TableName| {
            let tables = fixture.instance().table_list().unwrap();
            let found = tables.into_iter().find(|table| table.name == *name);
            found.map(|table| (table.persist, table.active, table.rules, table.counters))
        };
        let made = TableName::new("f2b/sshd", "f2b-sshd");
        load_anchor(&mut fixture, "f2b/sshd", "table <f2b-sshd> persist counters\n");
        assert_eq!(properties(&mut fixture, &made), Some((true, true, 0, true)));
        let rule = "block in from <f2b-sshd>\n";
        load_anchor(&mut fixture, "f2b/sshd", rule);
        assert_eq!(properties(&mut fixture, &made), Some((true, true, 1, true)));
        load_anchor(&mut fixture, "f2b/sshd", "");
        assert_eq!(properties(&mut fixture, &made), Some((true, true, 0, true)));
        load_anchor(&mut fixture, "f2b/sshd", rule);

        // a command's table, too, also if a load of tables comes in between
        let commanded = TableName::new("f2b/sshd", "other");
        fixture.instance().table_add(&commanded, &[entry("192.0.2.1/32")]).unwrap();
        let both = format!("{rule}block in from <other>\n");
        load_anchor(&mut fixture, "f2b/sshd", &both);
        let host = fixture.host.clone();
        let third = ruleset("table <third> persist\n", &host).tables;
        fixture.instance().load_tables("f2b/sshd", &third, &host).unwrap();
        assert_eq!(properties(&mut fixture, &commanded), Some((true, true, 1, false)));
        assert_eq!(properties(&mut fixture, &made), Some((true, true, 1, true)));
        let loaded = fixture.instance().loaded().unwrap().ruleset;
        let seen = loaded.table_seen_from("f2b/sshd", "other").map(|(name, _)| name);
        assert_eq!(seen, Some(commanded), "the rule set says so, too");

        fixture.instance().table_kill(&made).unwrap();
        assert_eq!(properties(&mut fixture, &made), Some((false, false, 1, false)));
    });
}

#[test]
#[ignore = "needs root"]
fn more_anchors_than_the_limit_are_refused() {
    isolated(|| {
        let mut fixture = Fixture::new("anchor-limit");
        fixture.load("set limit anchors 2\nanchor \"a\"\n");
        load_anchor(&mut fixture, "a", "pass\n");
        let host = fixture.host.clone();
        let refused = fixture.instance().load_anchor("b/c", &ruleset("pass\n", &host), &host);
        assert_eq!(
            refused.unwrap_err().to_string(),
            "3 anchors exceed the limit of 2: write `set limit anchors 3`"
        );
        let loaded = fixture.instance().loaded().unwrap();
        assert_eq!(loaded.ruleset.anchors.keys().collect::<Vec<_>>(), ["a"], "all is as it was");
    });
}
