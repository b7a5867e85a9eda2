//! The deciding rule, and other effects of rules.

mod common;

use common::{firewall, packet};
use skipstep_model::{Carried, Decision, LinkHeader, Packet, Stage, Verdict};
use skipstep_ruleset::{Action, Direction, Reason};
use skipstep_wire::build::{self, Icmp, Tcp, Udp};

/// Returns a datagram from a client on em0.
fn datagram() -> Vec<u8> {
    build::ipv4([10, 0, 1, 5], [192, 0, 2, 1]).udp(&Udp::new(4000, 53))
}

fn decision(rules: &str, direction: Direction, interface: &str, bytes: Vec<u8>) -> Decision {
    firewall(rules).packet(&packet(direction, interface, bytes)).decision
}

#[track_caller]
fn assert_matches(rule: &str, bytes: Vec<u8>, matches: bool) {
    let expected = if matches { Decision::Rule(0.into()) } else { Decision::Default };
    assert_eq!(decision(rule, Direction::In, "em0", bytes), expected, "{rule}");
}

#[test]
fn the_last_match_decides_unless_one_is_quick() {
    let decide = |rules| decision(rules, Direction::In, "em0", datagram());
    assert_eq!(decide("block all\npass proto udp\nblock proto tcp"), Decision::Rule(1.into()));
    assert_eq!(decide("block quick proto udp\npass all"), Decision::Rule(0.into()));
    assert_eq!(decide("block out all"), Decision::Default);
    assert_eq!(decide("set skip on em0\nblock all"), Decision::None);
}

#[test]
fn every_criterion() {
    for (rule, matches) in [
        ("block on em0", true),
        ("block on em1", false),
        ("block on ! em0", false),
        ("block on any", true),
        ("block on lo", false),
        ("block in", true),
        ("block out", false),
        ("block inet6", false),
        ("block proto udp", true),
        ("block proto tcp", false),
        ("block from 10.0.1.0/24", true),
        ("block from ! 10.0.1.0/24", false),
        ("block from 10.0.1.4 - 10.0.1.6", true),
        ("block from 10.0.1.6 - 10.0.1.9", false),
        ("block from (em0:network)", true),
        ("block from (em0)", false),
        ("block from (em1:network)", false),
        ("block to (self)", false),
        ("block to no-route", false),
        ("block from urpf-failed", false),
        ("block proto udp from port 4000", true),
        ("block proto udp to port 53", true),
        ("block proto udp to port 50:52", false),
        ("block proto udp to port 52 >< 54", true),
        ("block proto udp to port 53 <> 60", false),
        ("block proto udp to port != 53", false),
        ("block fragment", false),
        ("block tos 0x10", false),
        ("block received-on em0", true),
        ("block received-on em1", false),
        ("block tagged T", false),
        ("block ! tagged T", true),
        ("block prio 3", true),
        ("block prio 4", false),
        ("block probability 99%", true),
    ] {
        assert_matches(rule, datagram(), matches);
    }
}

#[test]
fn unknown_routes() {
    let from = |source: [u8; 4]| build::ipv4(source, [192, 0, 2, 1]).udp(&Udp::new(1, 2));
    assert_matches("block from no-route", from([203, 0, 113, 1]), true);
    assert_matches("block from urpf-failed", from([203, 0, 113, 1]), true);
    assert_matches("block from urpf-failed", from([192, 0, 2, 7]), true); // em1 leads there
}

#[test]
fn icmp_types_and_tcp_flags() {
    let icmp = |kind, code| build::ipv4([10, 0, 1, 5], [192, 0, 2, 1]).icmp(&Icmp::new(kind, code));
    assert_matches("block inet proto icmp icmp-type echoreq", icmp(8, 0), true);
    assert_matches("block inet proto icmp icmp-type echoreq", icmp(0, 0), false);
    assert_matches("block inet proto icmp icmp-type unreach code port-unr", icmp(3, 3), true);
    assert_matches("block inet proto icmp icmp-type unreach code port-unr", icmp(3, 1), false);
    let segment =
        |flags| build::ipv4([10, 0, 1, 5], [192, 0, 2, 1]).tcp(&Tcp::new(1, 2).flags(flags));
    assert_matches("block proto tcp flags S/SA", segment("S"), true);
    assert_matches("block proto tcp flags S/SA", segment("SEW"), true);
    assert_matches("block proto tcp flags S/SA", segment("SA"), false);
    assert_matches("pass proto tcp", segment("A"), false); // S/SA where state is kept
    assert_matches("pass proto tcp flags any", segment("A"), true);
}

#[test]
fn probability_is_a_draw() {
    let mut firewall = firewall("block probability 50%");
    for (draw, matches) in [(0, true), (0x7fff_fff0, true), (0x8000_0010, false), (u32::MAX, false)]
    {
        firewall.set_random(skipstep_model::Draw::Bounded(draw));
        let fate = firewall.packet(&packet(Direction::In, "em0", datagram()));
        assert_eq!(fate.verdict == Verdict::Drop, matches, "{draw:#x}");
    }
}

#[test]
fn fragments_meet_no_criterion_of_the_transport_header() {
    let fragment =
        |offset| build::ipv4([10, 0, 1, 5], [192, 0, 2, 1]).fragment(offset, true).raw(17, &[0; 8]);
    for (rule, matches) in
        [("block proto udp to port 53", false), ("block proto udp", true), ("block fragment", true)]
    {
        for offset in [0, 8] {
            assert_matches(&format!("set reassemble no\n{rule}"), fragment(offset), matches);
        }
    }
    let mut strict = firewall("pass all");
    let fate = strict.packet(&packet(Direction::In, "em0", fragment(8)));
    assert_eq!(fate.verdict, Verdict::Consumed, "never let through unseen");
}

#[test]
fn match_rules_add_up_in_the_state() {
    let mut firewall = firewall(
        "match in scrub (no-df) set prio 5
         match in scrub (min-ttl 100) tag A
         pass in scrub (max-mss 1300)",
    );
    let syn = build::ipv4([10, 0, 1, 5], [192, 0, 2, 1]).df(true);
    let fate = firewall.packet(&packet(
        Direction::In,
        "em0",
        syn.tcp(&Tcp::new(1, 2).flags("S").mss(1460)),
    ));
    let changed = build::ipv4([10, 0, 1, 5], [192, 0, 2, 1]).ttl(100);
    assert_eq!(fate.out, Some(changed.tcp(&Tcp::new(1, 2).flags("S").mss(1300))));
    assert_eq!(fate.carried, Carried { tag: Some("A".into()), prio: 5, ..Carried::default() });
    assert_eq!(
        [0, 1, 2].map(|rule| firewall.rule_counters(Some(&rule.into())).packets),
        [[1, 0]; 3]
    );
    assert_eq!(
        [0, 1, 2].map(|rule| firewall.rule_counters(Some(&rule.into())).states_created),
        [0, 0, 1]
    );
}

#[test]
fn without_a_state_only_the_deciding_rule_acts() {
    let mut firewall = firewall("match in scrub (min-ttl 100) set prio 5\npass in no state");
    let fate = firewall.packet(&packet(Direction::In, "em0", datagram()));
    assert_eq!((fate.out, fate.carried.prio), (None, 3), "a quirk of PF");
    assert_eq!(firewall.rule_counters(Some(&0.into())).packets, [0, 0]);
}

#[test]
fn the_routing_table_is_for_packets_with_the_states_direction() {
    let echo = |from, to, kind| build::ipv4(from, to).icmp(&Icmp::new(kind, 0));
    let (client, server) = ([10, 0, 1, 5], [192, 0, 2, 1]);
    let (query, reply) = (echo(client, server, 8), echo(server, client, 0));
    let mut firewall = firewall("match in rtable 5\npass in\npass out");
    let mut table = |direction, interface, bytes, rtable| {
        let carried = Carried { rtable, ..Carried::default() };
        let packet = Packet { carried, ..packet(direction, interface, bytes) };
        firewall.packet(&packet).carried.rtable
    };
    for _ in 0..2 {
        assert_eq!(table(Direction::In, "em0", query.clone(), 0), 5);
    }
    assert_eq!(table(Direction::Out, "em0", reply.clone(), 0), 0);
    assert_eq!(table(Direction::Out, "em0", reply, 7), 7, "a reply keeps the one it has");
    assert_eq!(table(Direction::Out, "em1", query, 7), 0, "who makes a state chooses anew");
}

#[test]
fn a_tag_travels_with_the_packet() {
    let mut firewall =
        firewall("block all\npass in on em0 tag LAN\npass out on em1 tagged LAN received-on em0");
    let inside = firewall.packet(&packet(Direction::In, "em0", datagram()));
    let out = |received_on: Option<&str>, carried| Packet {
        link: LinkHeader::default(),
        received_on: received_on.map(String::from),
        carried,
        ..packet(Direction::Out, "em1", datagram())
    };
    let own = firewall.packet(&out(None, Carried::default()));
    assert_eq!(own.decision, Decision::Rule(0.into()), "a packet of the firewall's own has no tag");
    let forwarded = firewall.packet(&out(Some("em0"), inside.carried));
    assert_eq!(forwarded.decision, Decision::Rule(2.into()));
}

#[test]
fn set_prio_has_a_second_value_for_urgent_packets() {
    let rules = "pass in flags any set prio (2, 6)";
    let prio = |bytes| firewall(rules).packet(&packet(Direction::In, "em0", bytes)).carried.prio;
    let ip = || build::ipv4([10, 0, 1, 5], [192, 0, 2, 1]);
    assert_eq!(prio(ip().tcp(&Tcp::new(1, 2).flags("S"))), 2);
    assert_eq!(prio(ip().tcp(&Tcp::new(1, 2).flags("A"))), 6, "nothing but an acknowledgment");
    assert_eq!(prio(ip().tcp(&Tcp::new(1, 2).flags("A").payload(b"x"))), 2);
    assert_eq!(prio(ip().tos(0x10).udp(&Udp::new(1, 2))), 6, "low delay");
}

#[test]
fn logs() {
    let log = |rules: &str, packets: usize| {
        let mut firewall = firewall(rules);
        let mut records = Vec::new();
        for _ in 0..packets {
            let fate = firewall.packet(&packet(Direction::In, "em0", datagram()));
            records.push(
                fate.log
                    .iter()
                    .map(|record| (record.rule, record.action, record.to))
                    .collect::<Vec<_>>(),
            );
        }
        records
    };
    use Action::{Block, Match, Pass};
    assert_eq!(
        log("pass in log", 2),
        [vec![(Some(0), Pass, 0)], vec![]],
        "the packet that makes the state"
    );
    assert_eq!(
        log("pass in log (all, to pflog2)", 2),
        [vec![(Some(0), Pass, 2)], vec![(Some(0), Pass, 2)]]
    );
    assert_eq!(
        log("match in log\nblock in log", 1),
        [vec![(Some(0), Match, 0), (Some(1), Block, 0)]]
    );
    // once when it matches, and once because it decides
    assert_eq!(
        log("match in log (matches)\npass in", 1),
        [vec![(Some(0), Match, 0), (Some(1), Pass, 0), (Some(1), Pass, 0)]]
    );
}

#[test]
fn drops_without_a_rule_are_always_logged() {
    let mut firewall = firewall("pass all");
    let mut short = datagram();
    short.truncate(27);
    let fate = firewall.packet(&packet(Direction::In, "em0", short));
    assert_eq!((fate.decision, fate.counted), (Decision::Default, vec![Reason::Short]));
    let record = &fate.log[0];
    assert_eq!((record.rule, record.reason, record.action), (None, Reason::Short, Action::Block));
}

#[test]
fn tables_are_counted() {
    let mut firewall = firewall(
        "table <lan> { 10.0.1.0/24, !10.0.1.9 }\nblock in from ! <lan>\npass in from <lan>",
    );
    firewall.packet(&packet(Direction::In, "em0", datagram()));
    let excepted = build::ipv4([10, 0, 1, 9], [192, 0, 2, 1]).udp(&Udp::new(1, 2));
    let fate = firewall.packet(&packet(Direction::In, "em0", excepted));
    assert_eq!(fate.decision, Decision::Rule(0.into()));
    let counters = firewall.table_counters(&"lan".into());
    assert_eq!((counters.matches, counters.no_matches), (2, 2));
    assert_eq!(counters.traffic.packets[0], [1, 0, 1, 0]);
    assert!(counters.entries.is_empty(), "only with `counters`");
}

#[test]
fn interfaces_are_counted() {
    let mut firewall = firewall("block in proto udp");
    firewall.packet(&packet(Direction::In, "em0", datagram()));
    firewall.packet(&packet(Direction::Out, "em0", datagram()));
    let counters = firewall.interface_counters("em0");
    assert_eq!(counters.packets, [[[0, 1], [1, 0]], [[0, 0], [0, 0]]]);
    assert_eq!(counters.bytes[0], [[0, 28], [28, 0]]);
}

#[test]
fn the_trace_lists_rules_and_the_decision() {
    let mut firewall = firewall("block all\npass in on em1\npass in proto udp to port 53");
    let (_, trace) = firewall.explain(&packet(Direction::In, "em0", datagram()));
    assert!(trace.stages.contains(&Stage::Decided { rule: Some(2.into()), action: Action::Pass }));
    assert_eq!(
        trace.to_string(),
        "state: 10.0.1.5:4000 <-> 192.0.2.1:53 not found\n\
         rule 0 (line 1, block): match\n\
         rule 1 (line 2, pass): no match, on\n\
         rule 2 (line 3, pass): match\n\
         rules: pass by rule 2\n\
         state: 1 created\n"
    );
}
