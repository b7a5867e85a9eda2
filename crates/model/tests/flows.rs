//! Flows that are not TCP, errors about them, and limits and timeouts of states.

mod common;

use common::{Conversation, firewall, packet};
use skipstep_model::{Decision, Verdict};
use skipstep_ruleset::{Direction, Reason};
use skipstep_wire::build::{self, Icmp, Tcp, Udp};

const PASS: &str = "block all\npass in on em0";

#[test]
fn udp() {
    let mut c = Conversation::new(PASS);
    c.server_udp("drop");
    c.client_udp("pass SINGLE:NO_TRAFFIC udp.first");
    c.client_udp("pass SINGLE:NO_TRAFFIC udp.single");
    c.server_udp("pass MULTIPLE:SINGLE udp.single");
    c.client_udp("pass MULTIPLE:MULTIPLE udp.multiple");
    assert_eq!(c.at(59), []);
    c.server_udp("pass MULTIPLE:MULTIPLE udp.multiple");
    assert_eq!(c.at(118), []);
    assert_eq!(c.at(119), [1]);
    c.server_udp("drop");
}

#[test]
fn a_protocol_without_ports() {
    let mut c = Conversation::new(PASS);
    let gre = |ip: build::Ip| ip.raw(47, &[0; 20]);
    let (there, back) = (gre(c.towards_server()), gre(c.towards_client()));
    for (direction, bytes, timeout) in [
        (Direction::In, &there, "other.first"),
        (Direction::Out, &back, "other.single"),
        (Direction::In, &there, "other.multiple"),
    ] {
        assert_eq!(
            c.firewall.packet(&packet(direction, "em0", bytes.clone())).verdict,
            Verdict::Pass
        );
        assert_eq!(c.state().timeout.name(), timeout);
    }
}

#[test]
fn echo_replies_need_a_request() {
    let mut c = Conversation::new(PASS);
    let (request, reply) = (|| Icmp::new(8, 0).id(7), || Icmp::new(0, 0).id(7));
    c.server_icmp(reply(), "drop");
    c.client_icmp(request(), "pass NO_TRAFFIC:NO_TRAFFIC icmp.first");
    assert_eq!(c.state().key[0].port, [7, 8]);
    c.server_icmp(reply(), "pass NO_TRAFFIC:NO_TRAFFIC icmp.error");
    c.server_icmp(Icmp::new(0, 0).id(8), "drop");
    // query and answer cannot change sides
    c.client_icmp(reply(), "drop");
    c.server_icmp(request(), "drop");
}

#[test]
fn rules_that_keep_state_do_not_match_answers() {
    let mut c = Conversation::new("pass in on em0");
    c.client_icmp(Icmp::new(0, 0).id(7), "pass");
    assert_eq!(
        c.firewall.rule_counters(Some(&0.into())).packets,
        [0, 0],
        "it was the default rule"
    );
    let mut c = Conversation::new("pass in on em0 keep state (sloppy)");
    c.client_icmp(Icmp::new(0, 0).id(7), "pass NO_TRAFFIC:NO_TRAFFIC icmp.first");
}

#[test]
fn an_ipv6_query_to_all_is_answered_by_one() {
    let mut firewall = firewall(PASS);
    let (asker, all, node) = ("fe80::5", "ff02::1", "fe80::9");
    let message = |source: &str, destination: &str, kind| {
        build::ip(source.parse().unwrap(), destination.parse().unwrap())
            .icmp(&Icmp::new(kind, 0).id(7))
    };
    let query = firewall.packet(&packet(Direction::In, "em0", message(asker, all, 128)));
    let answer = firewall.packet(&packet(Direction::Out, "em0", message(node, asker, 129)));
    assert_eq!((answer.verdict, answer.state), (Verdict::Pass, query.state));
}

#[test]
fn errors_belong_to_what_they_quote() {
    let mut c = Conversation::new(PASS);
    let datagram = c.towards_server().udp(&Udp::new(4000, 22));
    c.server_icmp(Icmp::quoting(3, 3, &datagram), "drop");
    c.client_udp("pass SINGLE:NO_TRAFFIC udp.first");
    c.at(10);
    c.server_icmp(Icmp::quoting(3, 3, &datagram), "pass SINGLE:NO_TRAFFIC udp.first");
    assert_eq!(c.firewall.expires_at(c.state()), 60, "an error keeps nothing alive");
    // not the client's packet, or too short a quote
    let other = c.towards_server().udp(&Udp::new(4001, 22));
    c.server_icmp(Icmp::quoting(3, 3, &other), "drop");
    c.server_icmp(Icmp::quoting(3, 3, &datagram[..27]), "drop short");
    // the receiver of the error has not sent the packet
    let foreign = c.towards_client().udp(&Udp::new(4000, 22));
    c.server_icmp(Icmp::quoting(3, 3, &foreign), "drop state-mismatch");
}

#[test]
fn a_quoted_segment_must_have_been_in_the_window() {
    let mut c = Conversation::new(PASS);
    c.client("S seq 100 win 1000", "pass SYN_SENT:CLOSED tcp.first");
    c.server("SA seq 900 ack 101 win 1000", "pass ESTABLISHED:SYN_SENT tcp.opening");
    let quote = |c: &Conversation, seq| {
        let segment = c.towards_server().tcp(&Tcp::new(4000, 22).flags("A").seq(seq));
        Icmp::quoting(11, 0, &segment[..28])
    };
    let good = "pass ESTABLISHED:SYN_SENT tcp.opening";
    let bad = "drop state-mismatch ESTABLISHED:SYN_SENT tcp.opening";
    for (seq, expected) in [(1101, good), (1102, bad), (101 - 1000 + 1, good)] {
        let message = quote(&c, seq as u32);
        c.server_icmp(message, expected);
    }
    let older = quote(&c, 100u32.wrapping_sub(1000).wrapping_sub(1));
    c.server_icmp(older, bad);
}

#[test]
fn a_neighbour_advertisement_makes_no_state() {
    let mut firewall = firewall("pass in on em0 inet6");
    let advertisement = build::ip("fe80::5".parse().unwrap(), "fe80::1".parse().unwrap())
        .ttl(255)
        .icmp(&Icmp::new(136, 0).payload(&[0xfe; 16]));
    let fate = firewall.packet(&packet(Direction::In, "em0", advertisement));
    assert_eq!((fate.verdict, fate.decision), (Verdict::Pass, Decision::Rule(0.into())));
    assert_eq!(
        fate.counted,
        [Reason::Match, Reason::Short],
        "PF takes it for an error that quotes nothing"
    );
    assert_eq!(firewall.states().count(), 0);
}

#[test]
fn a_bound_state_is_found_on_its_interface_only() {
    for (rule, elsewhere) in [
        ("pass in on em0 proto udp keep state (if-bound)", Verdict::Drop),
        ("pass in on em0 proto udp keep state (floating)", Verdict::Pass),
    ] {
        let mut c = Conversation::new(&format!("block all\n{rule}"));
        c.client_udp("pass SINGLE:NO_TRAFFIC udp.first");
        let answer = c.towards_client().udp(&Udp::new(22, 4000));
        assert_eq!(
            c.firewall.packet(&packet(Direction::Out, "em1", answer)).verdict,
            elsewhere,
            "{rule}"
        );
    }
}

#[test]
fn limits_refuse_and_never_evict() {
    let datagram = |port| build::ipv4([10, 0, 1, 5], [192, 0, 2, 1]).udp(&Udp::new(port, 53));
    for (rules, reason) in [
        ("pass in proto udp keep state (max 2)", Reason::StateLimit),
        ("set limit states 2\npass in proto udp", Reason::Memory),
    ] {
        let mut firewall = firewall(rules);
        for (port, verdict) in
            [(1, Verdict::Pass), (2, Verdict::Pass), (3, Verdict::Drop), (2, Verdict::Pass)]
        {
            let fate = firewall.packet(&packet(Direction::In, "em0", datagram(port)));
            assert_eq!(fate.verdict, verdict, "{rules}, port {port}");
            if verdict == Verdict::Drop {
                assert_eq!(fate.counted, [Reason::Match.min(reason), Reason::Match.max(reason)]);
                assert_eq!(fate.decision, Decision::Rule(0.into()));
            }
        }
        assert_eq!(firewall.states().count(), 2);
    }
}

#[test]
fn more_states_shorten_adaptive_timeouts() {
    let mut firewall =
        firewall("set timeout { adaptive.start 2, adaptive.end 6 }\npass in proto udp");
    let mut lives = Vec::new();
    for port in 1..=6 {
        let datagram = build::ipv4([10, 0, 1, 5], [192, 0, 2, 1]).udp(&Udp::new(port, 53));
        firewall.packet(&packet(Direction::In, "em0", datagram));
        lives.push(firewall.expires_at(firewall.states().next().unwrap()));
    }
    assert_eq!(lives, [60, 60, 45, 30, 15, 0]);
    assert_eq!(firewall.set_time(0).len(), 6, "all were looked at before the first was removed");
}

#[test]
fn ip_options_need_allow_opts() {
    for (rule, verdict) in [
        ("pass in", Verdict::Drop),
        ("pass in allow-opts", Verdict::Pass),
        ("pass out", Verdict::Drop), // the implicit rule does not allow them either
    ] {
        let mut firewall = firewall(rule);
        let plain = build::ipv4([10, 0, 1, 5], [192, 0, 2, 1]);
        let with_options = plain.clone().options(&[7, 3, 4]).udp(&Udp::new(1, 2));
        let fate = firewall.packet(&packet(Direction::In, "em0", with_options.clone()));
        assert_eq!(fate.verdict, verdict, "{rule}");
        assert_eq!(fate.counted.contains(&Reason::IpOption), verdict == Verdict::Drop);
        // the state keeps `allow-opts`
        firewall.packet(&packet(Direction::In, "em0", plain.udp(&Udp::new(1, 2))));
        let fate = firewall.packet(&packet(Direction::In, "em0", with_options));
        assert_eq!(fate.verdict, verdict, "{rule}, with a state");
    }
}
