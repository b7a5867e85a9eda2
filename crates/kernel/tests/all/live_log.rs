//! A program that reads a log itself gets whole packets of its own log only. When the program ends,
//! skipstepd gets the log again.

use std::net::UdpSocket;
use std::time::Duration;

use crate::common::fixture::{Fixture, isolated, receiver};
use skipstep_kernel::{Instance, LiveLog, LogReader, LoggedPacket, RECORDS_A_TURN};

#[test]
#[ignore = "needs root"]
fn a_reader_gets_the_packets_of_its_log_as_a_whole() {
    isolated(|| {
        let mut fixture = Fixture::new("live");
        let (to, other) = (receiver(), receiver());
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        fixture.load(&format!(
            "block in log proto udp to port {}\n\
             pass in log (all, user, to pflog7) inet proto udp to port {}\n",
            other.1.port(),
            to.1.port(),
        ));
        let instance = fixture.instance();
        instance.enable().unwrap();
        let mut owner = instance.own_anchors("live-log").unwrap();
        instance.take_log(&mut owner, 7).unwrap();
        let mut second = instance.own_anchors("another").unwrap();
        assert!(instance.take_log(&mut second, 7).is_err(), "one reader a log");

        let mut live = LiveLog::open(instance, 7).unwrap();
        let mut log = LogReader::open(instance).unwrap();
        let texts = [vec![b'a'; 10], vec![b'b'; 1000], vec![b'c'; 20_000]];
        for text in &texts {
            from.send_to(text, to.1).unwrap();
        }
        from.send_to(b"elsewhere", other.1).unwrap();
        let seen = packets(&mut live);
        assert!(seen.iter().all(|packet| packet.passed));
        let said: Vec<_> = seen.iter().map(|packet| packet.data[28..].to_vec()).collect();
        assert_eq!(said, texts);
        assert_eq!(logs(&mut log), [0], "only what is not the reader's");

        instance.give_ring_back(&mut owner).unwrap();
        from.send_to(b"hello", to.1).unwrap();
        assert_eq!(packets(&mut live), []);
        assert_eq!(logs(&mut log), [7]);
    });
}

#[test]
#[ignore = "needs root"]
fn records_that_find_the_ring_full_are_counted_and_their_packets_pass() {
    isolated(|| {
        let mut fixture = Fixture::new("full");
        let to = receiver();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = to.1.port();
        fixture.load(&format!("pass in log (all, to pflog7) inet proto udp to port {port}\n"));
        let instance = fixture.instance();
        instance.enable().unwrap();
        let mut owner = instance.own_anchors("live-log").unwrap();
        instance.take_log(&mut owner, 7).unwrap();
        let mut live = LiveLog::open(instance, 7).unwrap();
        let lost = |instance: &Instance| instance.status().unwrap().log_lost;

        // without a reader: short records, and records with room for the longest packet
        let mut sent = 0;
        for length in [10, 1000] {
            let before = lost(instance);
            let text = vec![b'x'; length];
            for _ in 0..20_000 {
                from.send_to(&text, to.1).unwrap();
                to.0.recv(&mut [0; 1500]).expect("no packet waits for the log");
                sent += 1;
                if lost(instance) >= before + 3 {
                    break;
                }
            }
            assert_eq!(lost(instance), before + 3, "records of {length} bytes");
        }
        assert_eq!(packets(&mut live).len() as u64, sent - lost(instance));

        from.send_to(b"hello", to.1).unwrap();
        assert_eq!(packets(&mut live).len(), 1, "there is room again");
        assert_eq!(lost(instance), 6);
    });
}

/// A turn must end even while packets come faster than their records are read.
#[test]
#[ignore = "needs root"]
fn a_turn_takes_a_bounded_number_of_records() {
    isolated(|| {
        let mut fixture = Fixture::new("turn");
        let to = receiver();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = to.1.port();
        fixture.load(&format!("block in log inet proto udp to port {port}\n"));
        let instance = fixture.instance();
        instance.enable().unwrap();
        let sent = 2 * RECORDS_A_TURN + 10;
        for _ in 0..sent {
            from.send_to(b"hello", to.1).unwrap();
        }
        let mut log = LogReader::open(instance).unwrap();
        let mut turn = || {
            let mut seen = Vec::new();
            let taken = log.poll(Duration::ZERO, |record| seen.push(record.family)).unwrap();
            seen.retain(|family| *family == skipstep_abi::INET);
            (taken, seen.len())
        };
        let mut of_packets = 0;
        for _ in 0..2 {
            let (taken, seen) = turn();
            assert_eq!(taken, RECORDS_A_TURN);
            of_packets += seen;
        }
        let (_, seen) = turn();
        assert_eq!(of_packets + seen, sent, "the rest comes in the next turn");
    });
}

#[test]
#[ignore = "needs root"]
fn the_log_of_a_dead_process_is_given_back() {
    isolated(|| {
        let mut fixture = Fixture::new("dead");
        let instance = fixture.instance();
        let mut owner = instance.own_anchors("live-log").unwrap();
        instance.take_log(&mut owner, 1).unwrap();
        assert_eq!(instance.remove_orphans().unwrap(), 0, "it lives");
        assert!(LiveLog::open(instance, 1).is_ok());
        drop(owner);
        assert_eq!(instance.remove_orphans().unwrap(), 1);
        assert!(LiveLog::open(instance, 1).is_err());
    });
}

fn packets(live: &mut LiveLog) -> Vec<LoggedPacket> {
    let mut seen = Vec::new();
    while live.poll(Duration::from_millis(100), |packet| seen.push(packet.clone())).unwrap() > 0 {}
    seen
}

/// Returns the logs of the IPv4 records, without the kernel's own IPv6 packets.
fn logs(log: &mut LogReader) -> Vec<u8> {
    let mut seen = Vec::new();
    log.drain(|record| seen.push((record.family, record.log_to))).unwrap();
    seen.retain(|(family, _)| *family == skipstep_abi::INET);
    seen.into_iter().map(|(_, log)| log).collect()
}
