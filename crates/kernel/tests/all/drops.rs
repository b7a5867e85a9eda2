//! Programs that read dropped packets get a record of each one, whatever rules log.

use std::net::UdpSocket;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::fixture::{Fixture, arrives, isolated, receiver};
use crate::common::shared_engine::ENGINES;
use crate::common::{host, other, ruleset, tcp, udp};
use skipstep_abi::verdict::{action, direction};
use skipstep_kernel::{DroppedPacket, Drops, Error};
use skipstep_model::{Fate, Packet, Verdict};
use skipstep_ruleset::{Direction, Reason};
use skipstep_scenario::{Engine, parse, run};
use skipstep_testing::TestEngine;
use skipstep_wire::protocol;

#[test]
#[ignore = "needs root"]
fn each_reader_gets_the_dropped_packets() {
    isolated(|| {
        let mut fixture = Fixture::new("drops");
        let (to, other) = (receiver(), receiver());
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = to.1.port();
        fixture.load(&format!("pass\nblock in inet proto udp to port {port}\n"));
        let instance = fixture.instance();
        instance.enable().unwrap();
        assert!(!arrives(&from, &to));
        assert_eq!(instance.drop_readers(), 0);

        let mut first = instance.read_drops().unwrap();
        assert_eq!(instance.drop_readers(), 1);
        let mut second = instance.read_drops().unwrap();
        assert_eq!(instance.drop_readers(), 3);
        assert!(!arrives(&from, &to));
        assert!(arrives(&from, &other), "other packets pass");
        let seen = udp_packets(&mut first);
        assert_eq!(seen.len(), 1, "not the packet from before: {seen:?}");
        let same = udp_packets(&mut second);
        assert_eq!((same.len(), &same[0].data), (1, &seen[0].data));
        let DroppedPacket { record, data } = &seen[0];
        assert_eq!((record.rule, record.anchor_rule, record.anchor), (1, -1, 0));
        assert_eq!((record.reason, record.action), (Reason::Match as u8, action::BLOCK));
        assert_eq!((record.direction, &record.ifname[..4]), (direction::IN, b"lo0\0".as_slice()));
        assert_eq!((record.wirelen, &data[28..]), (33, b"hello".as_slice()));

        let long = vec![b'x'; 20_000];
        let _ = from.send_to(&long, to.1);
        assert_eq!(udp_packets(&mut first)[0].data[28..], long, "packets are whole");
        drop(first);
        assert_eq!(instance.drop_readers(), 2);
        assert!(!arrives(&from, &to));
        assert_eq!(udp_packets(&mut second).len(), 2);
        assert_eq!(second.lost().unwrap(), 0);
        drop(second);
        assert_eq!(instance.drop_readers(), 0);
        assert!(!instance.remove_orphans().is_ok_and(|dead| dead > 0), "no file is left");
    });
}

#[test]
#[ignore = "needs root"]
fn four_programs_read_at_once_and_no_more() {
    isolated(|| {
        let mut fixture = Fixture::new("readers");
        let instance = fixture.instance();
        let mut readers: Vec<Drops> = (0..4).map(|_| instance.read_drops().unwrap()).collect();
        assert_eq!(instance.drop_readers(), 15);
        assert!(matches!(instance.read_drops(), Err(Error::DropReaders { most: 4 })));
        readers.remove(1);
        assert_eq!(instance.drop_readers(), 13);
        readers.push(instance.read_drops().unwrap());
        assert_eq!(instance.drop_readers(), 15, "a free place is used again");
    });
}

/// Records that find no room are counted, and the log's counter does not rise.
#[test]
#[ignore = "needs root"]
fn records_that_find_no_room_are_lost() {
    isolated(|| {
        let mut fixture = Fixture::new("lost");
        let to = receiver();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        fixture.load("block in inet proto udp\n");
        let instance = fixture.instance();
        instance.enable().unwrap();
        let mut drops = instance.read_drops().unwrap();
        let long = vec![b'x'; 30_000];
        let mut sent = 0;
        while drops.lost().unwrap() < 3 {
            let _ = from.send_to(&long, to.1);
            sent += 1;
            assert!(sent < 1000, "4 MB have no room for {sent} packets");
        }
        assert_eq!(udp_packets(&mut drops).len(), sent - 3);
        assert_eq!(instance.status().unwrap().log_lost, 0);
    });
}

/// A CPU writes records of 10,000 packets in a second, and counts the others.
#[test]
#[ignore = "needs root"]
fn a_flood_has_records_of_some_packets_and_a_number_of_the_others() {
    isolated(|| {
        let mut fixture = Fixture::new("flood");
        let to = receiver();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        fixture.load("pass\nblock in inet proto udp\n");
        let instance = fixture.instance();
        instance.enable().unwrap();
        let mut drops = instance.read_drops().unwrap();
        let (begin, mut seen, mut sent) = (Instant::now(), 0, 0);
        while sent < 200_000 {
            for _ in 0..1_000 {
                let _ = from.send_to(b"flood", to.1);
            }
            sent += 1_000;
            while drops.poll(Duration::ZERO, |_| seen += 1).unwrap() > 0 {}
        }
        let cpus = std::thread::available_parallelism().unwrap().get() as u64;
        let most = 10_000 * cpus * (begin.elapsed().as_secs() + 2);
        assert!((10_000..=most).contains(&seen), "{seen} records, at most {most}");
        assert_eq!(seen + drops.lost().unwrap(), sent);
    });
}

/// Returns the IPv4 packets of a reader, without the kernel's own IPv6 packets.
fn udp_packets(drops: &mut Drops) -> Vec<DroppedPacket> {
    let mut seen = Vec::new();
    while drops.poll(Duration::from_millis(100), |packet| seen.push(packet.clone())).unwrap() > 0 {}
    seen.retain(|packet| packet.record.family == skipstep_abi::INET);
    seen
}

const CLIENT: ([u8; 4], u16) = ([10, 0, 1, 9], 4000);
const SERVER: ([u8; 4], u16) = ([10, 0, 1, 1], 22);

/// Reason and rule of the last packet's record.
type Expected = (Reason, i32);

thread_local! {
    static EXPECTED: std::cell::Cell<Option<Expected>> = const { std::cell::Cell::new(None) };
}

fn is_expected(packet: &Packet, fate: &Fate, records: &[DroppedPacket]) {
    let found: Vec<Expected> = records
        .iter()
        .map(|dropped| (Reason::from_code(dropped.record.reason).unwrap(), dropped.record.rule))
        .collect();
    let expected: Vec<_> = EXPECTED.get().into_iter().collect();
    assert_eq!(found, expected, "{packet:?}: {fate:?}");
    if let [dropped] = records {
        assert_eq!(dropped.data, packet.bytes);
    }
}

/// A record has the reason why the packet is dropped, also where the log has `match`.
#[test]
#[ignore = "needs root"]
fn a_record_has_the_reason_and_the_rule() {
    fn reasons(engine: &mut TestEngine) {
        engine.check_drops(Some(is_expected)).unwrap();
        let rules = "pass\n\
            block in proto udp to port 1\n\
            block return in proto tcp to port 2\n\
            pass in proto udp to port 3 keep state (max 1)\n\
            pass in proto udp to port 4 route-to 198.51.100.1\n";
        let host = host();
        engine.load(&ruleset(rules, &host), &host).unwrap();
        let mut send = |packet: Packet, expected: Option<Expected>| {
            EXPECTED.set(expected);
            engine.packet(&packet);
        };
        let to_port = |port| (SERVER.0, port);
        send(udp(CLIENT, to_port(1), 9), Some((Reason::Match, 1)));
        send(tcp(CLIENT, to_port(2), "S"), Some((Reason::Match, 2)));
        send(udp(CLIENT, to_port(3), 9), None);
        send(udp((CLIENT.0, 4001), to_port(3), 9), Some((Reason::StateLimit, 3)));
        send(tcp(CLIENT, SERVER, "S"), None);
        send(tcp(CLIENT, SERVER, "SR"), Some((Reason::Normalize, -1)));
        let mut cut = udp(CLIENT, SERVER, 9);
        cut.bytes.truncate(25);
        send(cut, Some((Reason::Short, -1)));
        let mut damaged = udp(CLIENT, SERVER, 9);
        damaged.bytes[8] ^= 1;
        send(damaged, Some((Reason::ProtoCksum, -1)));
        send(other(CLIENT.0, SERVER.0, 1, &[11, 0, 0, 0, 0, 0, 0, 0, 0x45]), None);
        engine.check_drops(None).unwrap();
    }
    ENGINES.iter().for_each(|engine| engine.run(reasons));
}

/// A dropped packet has one record, and another packet has none. A packet that a rule routes, or a
/// copy, is judged again where it leaves: a record from there does not count.
fn is_complete(packet: &Packet, fate: &Fate, records: &[DroppedPacket]) {
    // skipstepd's part in a test drops fragments, and packets without a rule are not the filter's
    let is_fragment = |bytes: &[u8]| match bytes.first().map(|byte| byte >> 4) {
        Some(4) => bytes.get(6..8).is_some_and(|field| field[0] & 0x3f | field[1] != 0),
        _ => bytes.get(6) == Some(&44),
    };
    let answers_for_server = |reply: &Vec<u8>| {
        let (protocol, flags) = if reply[0] >> 4 == 4 { (9, 33) } else { (6, 53) };
        reply[protocol] == 6 && reply.get(flags).is_some_and(|flags| flags & 0x12 == 0x12)
    };
    let is_judged = fate.decision != skipstep_model::Decision::None;
    if is_fragment(&packet.bytes) || packet.carried.fragmentation.is_some() || !is_judged {
        return;
    }
    let is_icmp = |reply: &Vec<u8>| match reply[0] >> 4 {
        4 => reply[9] == protocol::ICMP,
        _ => reply[6] == protocol::ICMP6,
    };
    let expected = match fate.verdict {
        Verdict::Drop if fate.replies.iter().any(answers_for_server) => 0..=0,
        Verdict::Drop => 1..=1,
        Verdict::Pass => 0..=0,
        // the packet was routed or converted, or it is part of a handshake of the filter's
        Verdict::Consumed if !fate.forwarded.is_empty() => 0..=0,
        // it was dropped where it came in, or where a rule routed it
        Verdict::Consumed if fate.replies.iter().any(is_icmp) => {
            assert_eq!(records.len(), 1, "{packet:?}\n{fate:?}");
            0..=1
        }
        // perhaps the sender of an undelivered packet may not be told
        Verdict::Consumed => 0..=1,
    };
    let code = match packet.direction {
        Direction::In => direction::IN,
        Direction::Out => direction::OUT,
    };
    let is_of_packet = |dropped: &&DroppedPacket| {
        let name = dropped.record.ifname.split(|byte| *byte == 0).next().unwrap_or_default();
        name == packet.interface.as_bytes() && dropped.record.direction == code
    };
    let count = records.iter().filter(is_of_packet).count();
    assert!(expected.contains(&count), "{packet:?}\n{fate:?}\n{records:?}");
    assert!(records.len() - count <= 1, "{packet:?}\n{fate:?}\n{records:?}");
    for dropped in records {
        let reason = Reason::from_code(dropped.record.reason).unwrap();
        let is_plausible = fate.reason == reason
            || fate.counted.contains(&reason)
            || reason == Reason::StateMismatch
            || dropped.record.action == action::PASS;
        assert!(is_plausible, "{reason:?}: {fate:?}");
    }
}

/// All scenarios have the same results with a reader, and each drop in them has a record.
#[test]
#[ignore = "needs root"]
fn every_drop_of_the_scenarios_has_a_record() {
    fn scenarios(engine: &mut TestEngine) {
        engine.check_drops(Some(is_complete)).unwrap();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios");
        let mut cases = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "scn") {
                continue;
            }
            let name = path.display().to_string();
            let file = parse::file(&std::fs::read_to_string(&path).unwrap(), &name).unwrap();
            for outcome in run::file(&file, &name, engine) {
                assert!(outcome.passed(), "{}", run::report(&outcome, &name));
                cases += 1;
            }
        }
        assert!(cases > 500, "{cases} cases");
        engine.check_drops(None).unwrap();
    }
    ENGINES.iter().for_each(|engine| engine.run(scenarios));
}
