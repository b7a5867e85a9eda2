//! An instance that filters real packets: enabled, reloaded, disabled, removed.
//! ```text
//! private network namespace of the test's thread
//!   em0 10.0.1.1/24, em1 10.0.2.1/24, lo0 127.0.0.1/8   packets go over lo0
//! ```

use std::fmt::Write as _;
use std::net::UdpSocket;
use std::time::Duration;

use crate::common::fixture::{Fixture, all_arrive, arrives, isolated, receiver, udp_states};
use crate::common::{host, ruleset};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use nix::errno::Errno;
use skipstep_abi as abi;
use skipstep_abi::table::table_op::PASS;
use skipstep_kernel::report::Hook;
use skipstep_kernel::state::Sides;
use skipstep_kernel::{Error, Instance};
use skipstep_ruleset::{TableEntry, TableName};
use skipstep_testing::LoneTimer;
use skipstep_testing::TestNetwork;
use zerocopy::{FromBytes, IntoBytes};

#[test]
#[ignore = "needs root"]
fn enabled_it_filters_and_disabled_it_leaves_nothing_attached() {
    isolated(|| {
        let mut fixture = Fixture::new("enable");
        let to = receiver();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        fixture.load(&format!("block in log proto udp to port {} label udp\n", to.1.port()));
        assert!(arrives(&from, &to), "a rule set that is not enabled filters nothing");

        assert!(fixture.instance().enable().unwrap());
        assert!(!fixture.instance().enable().unwrap(), "already enabled");
        assert!(!arrives(&from, &to));
        let instance = fixture.instance();
        let counters = instance.rule_counters("").unwrap();
        assert_eq!(counters[0].packets, [1, 0]);
        assert!(instance.status().unwrap().engine.reasons[0] >= 1);
        let interfaces = instance.interfaces().unwrap();
        assert!(interfaces.iter().filter(|i| i.index.is_some()).all(|i| i.hook != Hook::None));
        let lo = interfaces.iter().find(|interface| interface.name == "lo0").unwrap();
        assert_eq!(lo.counters.packets[0][0][1], 1, "blocked inbound IPv4 packets of lo0");

        let mut log = skipstep_kernel::LogReader::open(instance).unwrap();
        let mut seen = Vec::new();
        log.poll(Duration::from_secs(1), |record| {
            seen.push((record.rule, record.log_to, record.family));
        })
        .unwrap();
        // ignore the kernel's own IPv6 packets
        seen.retain(|(_, _, family)| *family == skipstep_abi::INET);
        assert_eq!(seen, [(0, 0, skipstep_abi::INET)]);

        assert!(instance.disable().unwrap());
        assert!(!instance.disable().unwrap(), "already disabled");
        assert!(
            instance.interfaces().unwrap().iter().all(|interface| interface.hook == Hook::None)
        );
        assert!(arrives(&from, &to));
    });
}

#[test]
#[ignore = "needs root"]
fn an_interface_that_refuses_does_not_block_others() {
    isolated(|| {
        let mut fixture = Fixture::new("unattached");
        let to = receiver();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        fixture.load(&format!("block in proto udp to port {}\n", to.1.port()));
        let first = fixture.host.interfaces.iter().find(|i| !i.loopback).unwrap().clone();
        // other interfaces are attached after it
        let instance = fixture.instance();
        let pins = format!("/sys/fs/bpf/skipstep/{}/links", instance.name());
        let in_the_way = format!("{pins}/{}-in", first.index);
        std::fs::create_dir(&in_the_way).unwrap();

        assert!(instance.enable().unwrap());
        assert!(!arrives(&from, &to), "the filter is enabled all the same");
        let unattached = instance.unattached().unwrap();
        assert_eq!(unattached.keys().collect::<Vec<_>>(), [&first.name]);
        let hooks = |instance: &Instance| -> Vec<(String, Hook)> {
            let views = instance.interfaces().unwrap().into_iter();
            views.filter(|i| i.index.is_some()).map(|i| (i.name, i.hook)).collect()
        };
        for (name, hook) in hooks(instance) {
            let is_unattached = hook == Hook::Unattached { guarded: true };
            assert_eq!(is_unattached, name == first.name, "{name}");
            assert_ne!(hook, Hook::None, "{name}");
        }

        std::fs::remove_dir(&in_the_way).unwrap();
        assert!(!instance.enable().unwrap(), "already enabled");
        assert!(instance.unattached().unwrap().is_empty());
        let is_attached = |hook: &Hook| matches!(hook, Hook::Tc { .. } | Hook::Xdp);
        assert!(hooks(instance).iter().all(|(_, hook)| is_attached(hook)));
    });
}

#[test]
#[ignore = "needs root"]
fn states_survive_a_reload_and_can_be_killed() {
    isolated(|| {
        let mut fixture = Fixture::new("reload");
        let to = receiver();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        fixture.load("pass\n");
        fixture.instance().enable().unwrap();
        assert!(arrives(&from, &to));

        fixture.load("block\n");
        assert!(arrives(&from, &to), "the connection was there before");
        assert!(!arrives(&other, &to), "this one is new");
        let port = from.local_addr().unwrap().port();
        let states = udp_states(fixture.instance());
        let has_port =
            |sides: &[(std::net::IpAddr, u16); 2]| sides.iter().any(|side| side.1 == port);
        assert!(states.iter().any(|state| has_port(&state.wire)));
        assert!(states.iter().all(|state| state.rule.is_none()), "its rule is gone");

        let killed =
            fixture.instance().kill_states(Sides::One, |state| has_port(&state.wire)).unwrap();
        assert_eq!(killed as usize, states.len());
        assert!(!arrives(&from, &to));
        assert!(udp_states(fixture.instance()).is_empty());
    });
}

#[test]
#[ignore = "needs root"]
fn another_process_finds_what_was_loaded() {
    isolated(|| {
        let mut fixture = Fixture::new("reopen");
        let text = "set skip on lo0\ntable <t> { 192.0.2.0/24 }\nblock from <t> label x\npass\n";
        fixture.load(text);
        let name = fixture.instance().name().to_owned();
        let again = Instance::open(&name).unwrap();
        let loaded = again.loaded().unwrap();
        assert_eq!(loaded.ruleset, ruleset(text, &fixture.host));
        assert_eq!(loaded.pid, std::process::id());
        assert_eq!(again.rules_in_force().unwrap().len(), 2);
        let lo = again.interfaces().unwrap().into_iter().find(|i| i.name == "lo0").unwrap();
        assert!(lo.skip);
        assert!(Instance::list().unwrap().contains(&name));
    });
}

#[test]
#[ignore = "needs root"]
fn a_limit_beyond_the_room_there_is_is_refused_only_while_running() {
    isolated(|| {
        let mut fixture = Fixture::new("limit");
        fixture.load("pass\n");
        fixture.instance().enable().unwrap();
        let host = fixture.host.clone();
        let bigger = ruleset("set limit states 150000\nblock\n", &host);
        let error = fixture.instance().load(bigger.clone(), &host).unwrap_err();
        assert!(matches!(
            error,
            Error::Capacity { limit: "states", wanted: 150_000, capacity: 100_000 }
        ));
        assert!(error.to_string().contains("disable it first (pfctl -d)"), "{error}");
        assert_eq!(fixture.instance().loaded().unwrap().ruleset, ruleset("pass\n", &host));

        fixture.instance().disable().unwrap();
        fixture.instance().load(bigger.clone(), &host).unwrap();
        assert_eq!(fixture.instance().status().unwrap().capacity, 150_000);
        assert_eq!(fixture.instance().loaded().unwrap().ruleset, bigger);
    });
}

#[test]
#[ignore = "needs root"]
fn a_disabled_filter_that_gets_more_room_keeps_its_tables_and_anchors() {
    isolated(|| {
        let mut fixture = Fixture::new("room");
        let rules = "table <kept> persist\ntable <given> { 192.0.2.1 }\nanchor \"a\"\n\
                     block from { <kept>, <given> }\n";
        fixture.load(rules);
        let (host, limits) = (fixture.host.clone(), "set limit states 150000\n");
        let inner = ruleset("table <inner> { 192.0.2.2 }\npass from <inner>\n", &host);
        fixture.instance().load_anchor("a", &inner, &host).unwrap();
        let tables: [TableName; 4] =
            ["kept".into(), "given".into(), TableName::new("a", "inner"), "own".into()];
        for table in &tables {
            fixture.instance().table_add(table, &entries(&["203.0.113.1/32"])).unwrap();
        }
        fixture.load(&format!("{limits}{rules}"));
        let expected = [
            &["203.0.113.1/32"][..],
            &["192.0.2.1/32"],
            &["192.0.2.2/32", "203.0.113.1/32"],
            &["203.0.113.1/32"],
        ];
        for (table, expected) in tables.iter().zip(expected) {
            let seen = fixture.instance().table_entries(table).unwrap();
            assert_eq!(seen, entries(expected), "{table}");
        }
        assert_eq!(fixture.instance().rule_counters("a").unwrap().len(), 1);
    });
}

#[test]
#[ignore = "needs root"]
fn a_limit_below_what_is_in_use_is_refused() {
    isolated(|| {
        let mut fixture = Fixture::new("in-use");
        let to = receiver();
        // `inet proto udp`, so that neighbour discovery of new interfaces makes no states
        fixture.load("block\npass inet proto udp\n");
        fixture.instance().enable().unwrap();
        for _ in 0..3 {
            assert!(arrives(&UdpSocket::bind("127.0.0.1:0").unwrap(), &to));
        }
        let host = fixture.host.clone();
        let smaller = ruleset("set limit states 2\nblock\n", &host);
        let error = fixture.instance().load(smaller.clone(), &host).unwrap_err();
        assert!(matches!(error, Error::InUse { limit: "states", wanted: 2, .. }), "{error}");
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(arrives(&from, &to), "the old rules stay");
        fixture.instance().kill_states(Sides::One, |_| true).unwrap();
        fixture.instance().load(smaller.clone(), &host).unwrap();
        assert!(!arrives(&from, &to));
    });
}

#[test]
#[ignore = "needs root"]
fn keepcounters_keeps_counters_over_a_load() {
    isolated(|| {
        let mut fixture = Fixture::new("keepcounters");
        let (port, to) = (receiver().1.port(), receiver());
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        let rules = |first: &str| {
            format!("{first}\nblock\npass out\npass in proto udp to port {}\n", to.1.port())
        };
        let other = format!("pass proto udp to port {port}");
        let counted = |fixture: &mut Fixture| {
            let counters = fixture.instance().rule_counters("").unwrap();
            counters.iter().map(|rule| rule.packets[0]).collect::<Vec<_>>()
        };
        fixture.load(&rules("set keepcounters"));
        fixture.instance().enable().unwrap();
        assert!(arrives(&from, &to));
        let before = counted(&mut fixture);
        assert_eq!(before[2], 1);
        fixture.load(&rules(&format!("set keepcounters\n{other}")));
        assert_eq!(counted(&mut fixture)[3], 1, "the rule has moved");
        assert_eq!(counted(&mut fixture)[0], 0, "this one is new");
        fixture.load(&rules(""));
        assert_eq!(counted(&mut fixture)[2], 0);
    });
}

#[test]
#[ignore = "needs root"]
fn a_rule_set_that_does_not_fit_leaves_the_old_one() {
    isolated(|| {
        let mut fixture = Fixture::new("refused");
        fixture.load("table <t> { 192.0.2.1 }\nblock from <t>\n");
        let host = fixture.host.clone();
        let mut many = ruleset("pass tag t\n", &host);
        for number in 0..5000u32 {
            let mut rule = many.rules[0].clone();
            rule.number = number + 1;
            rule.line = 7;
            rule.tag = Some(format!("tag{number}"));
            many.rules.push(rule);
        }
        let error = fixture.instance().load(many.clone(), &host).unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 7: no number left for tag tag2046: an instance knows at most 2047"
        );
        let instance = fixture.instance();
        assert_eq!(instance.loaded().unwrap().ruleset.rules.len(), 1);
        assert_eq!(instance.rules_in_force().unwrap().len(), 1);
        assert_eq!(instance.table_entries(&"t".into()).unwrap().len(), 1);
    });
}

#[test]
#[ignore = "needs root"]
fn tables_change_while_rules_stay() {
    isolated(|| {
        let mut fixture = Fixture::new("tables");
        let to = receiver();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        fixture.load("table <bad> persist\nblock in quick on lo0 from <bad>\npass no state\n");
        let instance = fixture.instance();
        instance.enable().unwrap();
        assert!(arrives(&from, &to));

        let bad = entries(&["127.0.0.0/8", "192.0.2.0/24"]);
        assert_eq!(instance.table_add(&"bad".into(), &bad).unwrap(), 2);
        assert_eq!(instance.table_add(&"bad".into(), &bad).unwrap(), 0, "they are there already");
        assert!(!arrives(&from, &to));
        let negated = TableEntry { negated: true, ..entries(&["127.0.0.1/32"])[0] };
        instance.table_add(&"bad".into(), &[negated]).unwrap();
        assert!(arrives(&from, &to), "the longest match says no");
        let tested = instance
            .table_test(
                &"bad".into(),
                &["127.0.0.1/32", "127.0.0.2/32", "10.0.0.1/32"].map(|n| n.parse().unwrap()),
            )
            .unwrap();
        assert_eq!(tested, [false, true, false]);

        let replaced = instance.table_replace(&"bad".into(), &bad[..1]).unwrap();
        assert_eq!((replaced.added, replaced.deleted), (0, 2));
        assert!(!arrives(&from, &to));
        let info = &instance.table_list().unwrap()[0];
        assert_eq!((info.name.name.as_str(), info.rules, info.entries), ("bad", 1, 1));
        assert!(info.stats.r#match >= 2, "{:?}", info.stats);
        instance.table_zero(&"bad".into()).unwrap();
        assert_eq!(instance.table_list().unwrap()[0].stats.r#match, 0);
        assert_eq!(instance.table_delete(&"bad".into(), &bad).unwrap(), 1);
        assert!(arrives(&from, &to));
        assert!(matches!(instance.table_flush(&"none".into()), Err(Error::NoTable { .. })));

        // a table without entries in its statement keeps its contents over a reload
        instance.table_add(&"bad".into(), &bad).unwrap();
        fixture.load("table <bad> persist\nblock in quick on lo0 from <bad>\n");
        assert!(!arrives(&from, &to));
        fixture.load("table <bad> const { }\nblock in quick on lo0 from <bad>\n");
        assert!(arrives(&from, &to));
        let refused = fixture.instance().table_add(&"bad".into(), &bad);
        assert!(matches!(refused, Err(Error::ConstTable { .. })));
    });
}

/// With so many rules that look up tables, the trees have the tables' entries; results must not
/// differ.
#[test]
#[ignore = "needs root"]
fn many_tables_change_while_rules_stay() {
    isolated(|| {
        let mut fixture = Fixture::new("many-tables");
        let (to, from) = (receiver(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let mut text = String::new();
        for number in 0..40 {
            let _ = writeln!(text, "table <t{number}> {{ 192.0.2.{number} }}");
            let _ = writeln!(text, "block in quick on lo0 from <t{number}>");
        }
        fixture.load(&(text + "pass no state\n"));
        let instance = fixture.instance();
        instance.enable().unwrap();
        assert!(arrives(&from, &to));
        let [elsewhere, here] = ["192.0.2.99/32", "127.0.0.0/8"].map(|net| entries(&[net]));
        assert_eq!(instance.table_add(&"t7".into(), &elsewhere).unwrap(), 1);
        assert!(arrives(&from, &to));
        for name in ["t7", "t8"] {
            assert_eq!(instance.table_add(&name.into(), &here).unwrap(), 1);
            assert!(!arrives(&from, &to), "{name}");
            assert_eq!(instance.table_delete(&name.into(), &here).unwrap(), 1);
            assert!(arrives(&from, &to), "{name}");
        }
        // a table whose entries were deleted is still expanded
        assert_eq!(instance.table_delete(&"t9".into(), &entries(&["192.0.2.9/32"])).unwrap(), 1);
        assert_eq!(instance.table_replace(&"t9".into(), &here).unwrap().added, 1);
        assert!(!arrives(&from, &to));
        assert_eq!(instance.table_entries(&"t9".into()).unwrap(), here);
        assert_eq!(instance.table_flush(&"t9".into()).unwrap(), 1);
        assert!(arrives(&from, &to));
    });
}

#[test]
#[ignore = "needs root"]
fn no_packet_goes_uncounted_while_tables_are_replaced() {
    isolated(|| {
        let mut fixture = Fixture::new("counted");
        let (to, from) = (receiver(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let rules = format!("pass in proto udp from <t> to port {} no state\n", to.1.port());
        let text = |others: &str| format!("table <t> counters {{ 127.0.0.1 {others} }}\n{rules}");
        fixture.load(&text(""));
        fixture.instance().enable().unwrap();
        let others = entries(&["192.0.2.0/24", "127.0.0.1/32"]);
        let sent = all_arrive(&from, &to, || {
            for round in 0..20 {
                fixture.load(&text(["192.0.2.1", ""][round % 2]));
                let replaced = fixture.instance().table_replace(&"t".into(), &others[round % 2..]);
                replaced.unwrap();
            }
        });
        let instance = fixture.instance();
        let entry = instance.table_entry_list(&"t".into()).unwrap()[0];
        assert_eq!(entry.entry.net, "127.0.0.1/32".parse().unwrap());
        assert_eq!(entry.traffic.unwrap().packets[0][PASS], sent);
        let table = &instance.table_list().unwrap()[0];
        assert_eq!((table.stats.packets[0][PASS], table.stats.r#match), (sent, sent));
    });
}

#[test]
#[ignore = "needs root"]
fn the_firewall_follows_its_host() {
    isolated(|| {
        let mut fixture = Fixture::new("follow");
        fixture.load("block in from (em0)\n");
        fixture.instance().enable().unwrap();
        let mut host = fixture.host.clone();
        let em0 = host.interfaces.iter_mut().find(|i| i.name == "em0").unwrap();
        em0.addresses.clear();
        em0.groups.push("lan".to_owned());
        host.interfaces.retain(|interface| interface.name != "em1");
        let instance = fixture.instance();
        instance.refresh(&host).unwrap();
        let views = instance.interfaces().unwrap();
        let view = |name: &str| views.iter().find(|view| view.name == name).unwrap();
        assert!(view("em0").groups.contains(&"lan".to_owned()));
        assert_eq!(view("em1").index, None);
        assert!(instance.table_list().unwrap().is_empty(), "dynamic addresses are no tables");
    });
}

#[test]
#[ignore = "needs root"]
fn rules_follow_a_group_that_appears() {
    isolated(|| {
        let mut fixture = Fixture::new("group");
        fixture.load("block\npass in on dmz no state\npass in on em1 no state\n");
        let first = fixture.host.clone();
        let mut host = first.clone();
        let before = fixture.instance().rules_in_force().unwrap();
        let loaded = fixture.instance().loaded().unwrap();
        host.interfaces.iter_mut().find(|one| one.name == "em0").unwrap().groups.push("dmz".into());
        fixture.instance().refresh(&host).unwrap();
        let after = fixture.instance().rules_in_force().unwrap();
        assert_ne!(before[1].interface, after[1].interface);
        assert_eq!(before[2].interface, after[2].interface);
        let slots =
            |rules: &[skipstep_abi::Rule]| rules.iter().map(|rule| rule.slot).collect::<Vec<_>>();
        assert_eq!(slots(&before), slots(&after), "states and counters stay");
        assert_eq!(fixture.instance().loaded().unwrap().ruleset, loaded.ruleset);
        // an empty group, or an unchanged group, does not compile the rules again
        let generation = fixture.instance().loaded().unwrap().generation;
        fixture.instance().refresh(&first).unwrap();
        fixture.instance().refresh(&host).unwrap();
        assert_eq!(fixture.instance().loaded().unwrap().generation, generation);
    });
}

#[test]
#[ignore = "needs root"]
fn an_instance_of_a_dead_namespace_is_not_opened() {
    isolated(|| {
        let mut fixture = Fixture::new("stale");
        fixture.load("block\n");
        fixture.instance().enable().unwrap();
        let name = fixture.instance().name().to_owned();
        // a namespace with the inode number of an earlier one has another cookie
        let path = format!("/run/skipstep/{name}/memory.json");
        let text = std::fs::read_to_string(&path).unwrap();
        let start = text.find("\"cookie\":").unwrap() + "\"cookie\":".len();
        let end = start + text[start..].find(|c: char| !c.is_ascii_digit()).unwrap();
        std::fs::write(&path, format!("{}1{}", &text[..start], &text[end..])).unwrap();

        assert!(matches!(Instance::open(&name), Err(Error::NoInstance { .. })));
        let again = Instance::open_or_create(&name, 100).unwrap();
        assert!(!again.running());
        assert!(!fixture.instance().is_current());
        assert!(again.is_current());
        assert_eq!(again.loaded().unwrap().ruleset.rules, []);
    });
}

#[test]
#[ignore = "needs root"]
fn more_rules_than_there_is_room_for_are_refused_only_while_running() {
    isolated(|| {
        let mut fixture = Fixture::new("slots");
        fixture.load("pass\n");
        fixture.instance().enable().unwrap();
        let host = fixture.host.clone();
        let mut many = ruleset("pass\n", &host);
        many.rules = vec![many.rules[0].clone(); 20_000];
        for (number, rule) in (0..).zip(&mut many.rules) {
            rule.number = number;
        }
        let error = fixture.instance().load(many.clone(), &host).unwrap_err();
        assert!(matches!(error, Error::RuleSlots { wanted: 20_000, .. }), "{error}");
        assert_eq!(fixture.instance().rules_in_force().unwrap().len(), 1);
        fixture.instance().disable().unwrap();
        fixture.instance().load(many.clone(), &host).unwrap();
        assert_eq!(fixture.instance().rules_in_force().unwrap().len(), 20_000);
        fixture.instance().enable().unwrap();
        fixture.instance().load(many.clone(), &host).unwrap();
    });
}

#[test]
#[ignore = "needs root"]
fn a_name_is_free_again_when_its_namespace_is_gone() {
    isolated(|| {
        let name = format!("test-{}-reuse", std::process::id());
        let enable = name.clone();
        // the namespace ends with the thread
        std::thread::spawn(move || {
            TestNetwork::enter(&host()).unwrap();
            Instance::open_or_create(&enable, 100).unwrap().enable().unwrap();
        })
        .join()
        .unwrap();
        TestNetwork::enter(&host()).unwrap();
        let gone = || matches!(Instance::open(&name), Err(Error::NoInstance { .. }));
        // the kernel frees a namespace with a delay
        let gone = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            gone()
        });
        if !gone {
            // the instance would keep the namespace alive
            Instance::remove_named(&name).unwrap();
        }
        assert!(gone);
        let again = Instance::open_or_create(&name, 100).unwrap();
        assert!(again.enable().unwrap());
        again.remove().unwrap();
    });
}

#[test]
#[ignore = "needs root"]
fn remains_of_a_killed_process_can_be_removed() {
    isolated(|| {
        let name = format!("test-{}-partial", std::process::id());
        let folder = format!("/run/skipstep/{name}");
        std::fs::create_dir_all(&folder).unwrap();
        Instance::remove_named(&name).unwrap();
        assert!(!std::path::Path::new(&folder).exists());
        assert!(matches!(Instance::remove_named(&name), Err(Error::NoInstance { .. })));
        let error = Instance::remove_named("../etc").unwrap_err();
        assert!(matches!(error, Error::InstanceName { .. }), "{error}");
    });
}

#[test]
#[ignore = "needs root"]
fn names_of_interfaces_that_are_gone_make_room() {
    isolated(|| {
        let mut fixture = Fixture::new("names");
        fixture.load("block on em0\n");
        let mut host = fixture.host.clone();
        let template = host.interfaces[0].clone();
        // more than the largest number of interfaces, a thousand at a time
        for wave in 0..6 {
            host.interfaces.retain(|interface| !interface.name.starts_with("ve"));
            host.interfaces.extend((0..1000).map(|number| {
                let name = format!("ve{wave}x{number}");
                skipstep_ruleset::interface::Interface {
                    name,
                    index: 1000 + number,
                    ..template.clone()
                }
            }));
            fixture.instance().refresh(&host).unwrap();
        }
        let views = fixture.instance().interfaces().unwrap();
        assert!(views.iter().any(|view| view.name == "ve5x999" && view.index == Some(1999)));
        assert!(views.iter().any(|view| view.name == "em0"), "rules name it");
        assert!(views.len() < 4096);
    });
}

#[test]
#[ignore = "needs root"]
fn the_timer_ends_states() {
    isolated(|| {
        let mut fixture = Fixture::new("expire");
        fixture
            .load("set timeout { udp.first 1, udp.single 1, udp.multiple 1, interval 1 }\npass\n");
        fixture.instance().enable().unwrap();
        let to = receiver();
        assert!(arrives(&UdpSocket::bind("127.0.0.1:0").unwrap(), &to));
        assert_eq!(udp_states(fixture.instance()).len(), 2, "one outbound, one inbound");
        std::thread::sleep(Duration::from_secs(5));
        assert!(udp_states(fixture.instance()).is_empty());
        assert!(fixture.instance().status().unwrap().engine.removals >= 2);
    });
}

#[test]
#[ignore = "needs root"]
fn a_late_timer_does_not_stop_the_clock_of_states() {
    isolated(|| {
        let mut fixture = Fixture::new("late");
        fixture.load("set timeout { udp.first 1000, udp.single 1000, udp.multiple 1000 }\npass\n");
        fixture.instance().enable().unwrap();
        let (from, to) = (UdpSocket::bind("127.0.0.1:0").unwrap(), receiver());
        assert!(arrives(&from, &to));
        let before: Vec<_> = udp_states(fixture.instance()).iter().map(|s| s.expires_at).collect();

        // simulate a timer that is long overdue; the real timer comes within a second
        let pin = format!("/sys/fs/bpf/skipstep/{}/status", fixture.instance().name());
        let map = MapHandle::from_pinned_path(pin).unwrap();
        let key = 0u32.to_ne_bytes();
        let value = map.lookup(&key, MapFlags::ANY).unwrap().unwrap();
        let mut status = abi::Status::read_from_bytes(&value).unwrap();
        status.second = 1;
        status.second_until = status.beat;
        map.update(&key, status.as_bytes(), MapFlags::ANY).unwrap();
        let late = fixture.instance().status().unwrap().sweep_late_secs;
        assert!(arrives(&from, &to));
        let after: Vec<_> = udp_states(fixture.instance()).iter().map(|s| s.expires_at).collect();
        assert!(late > 0);
        assert!(after >= before, "packets were seen now, not in the machine's first second");
    });
}

#[test]
#[ignore = "needs root"]
fn an_error_of_the_timer_is_counted_and_the_next_start_heals_it() {
    let mut timer = LoneTimer::new().unwrap();
    assert_ne!(timer.start().unwrap(), 0, "a map that nobody holds has no timer");
    let (errors, error) = timer.errors();
    assert_eq!((errors, error), (1, Errno::EPERM as u32));
    timer.open_map().unwrap();
    assert_eq!(timer.start().unwrap(), 0);
    let began = timer.second();
    while timer.second() <= began + 1 {
        std::thread::sleep(Duration::from_millis(50));
    }
    // the kernel cancels the timer, and the timer starts again
    timer.close_map();
    assert_ne!(timer.start().unwrap(), 0);
    assert_eq!(timer.errors().0, 2);
    timer.open_map().unwrap();
    assert_eq!(timer.start().unwrap(), 0);
}

#[test]
#[ignore = "needs root"]
fn a_packet_starts_a_timer_that_is_overdue() {
    isolated(|| {
        let mut fixture = Fixture::new("overdue");
        fixture.load("pass\n");
        fixture.instance().enable().unwrap();
        let pin = format!("/sys/fs/bpf/skipstep/{}/status", fixture.instance().name());
        let map = MapHandle::from_pinned_path(pin).unwrap();
        let key = 0u32.to_ne_bytes();
        let read = || {
            let value = map.lookup(&key, MapFlags::ANY).unwrap().unwrap();
            abi::Status::read_from_bytes(&value).unwrap()
        };
        // the real timer may run first and correct the second
        while read().timer_tried == 0 {
            let mut status = read();
            (status.second, status.second_until) = (1, status.beat);
            map.update(&key, status.as_bytes(), MapFlags::ANY).unwrap();
            let (from, to) = (UdpSocket::bind("127.0.0.1:0").unwrap(), receiver());
            assert!(arrives(&from, &to));
        }
        // the kernel may be short of memory for an instant
        assert!([0, Errno::ENOMEM as u32].contains(&read().timer_error));
    });
}

fn entries(nets: &[&str]) -> Vec<TableEntry> {
    let entry = |net: &&str| TableEntry { negated: false, net: net.parse().unwrap(), weight: 0 };
    nets.iter().map(entry).collect()
}
