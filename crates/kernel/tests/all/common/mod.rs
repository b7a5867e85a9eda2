//! Common parts of the kernel crate's tests: a made-up host, rule sets from text, packets.
#![allow(dead_code, missing_docs, reason = "each test file uses its part")]

pub mod fixture;
pub mod shared_engine;

use etherparse::PacketBuilder;
use skipstep_model::{Carried, LinkHeader, Packet};
use skipstep_pfconf::Context;
use skipstep_ruleset::interface::{Host, Interface, Route};
use skipstep_ruleset::{Direction, Ruleset};

/// Returns a host with em0 10.0.1.1/24, em1 10.0.2.1/24 with the default route, and lo0.
pub fn host() -> Host {
    Host {
        routes: vec![Route::new("0.0.0.0/0", "em1", Some("10.0.2.254"))],
        ..Host::with([
            Interface::new("em0", &["10.0.1.1/24", "fe80::1/64", "2001:db8:1::1/64"]),
            Interface::new("em1", &["10.0.2.1/24", "2001:db8:2::1/64"]).in_group("egress"),
            Interface::new("lo0", &["127.0.0.1/8", "::1/128"]).in_group("lo"),
        ])
    }
}

/// Parses `text` as a rule set for `host`.
pub fn ruleset(text: &str, host: &Host) -> Ruleset {
    match skipstep_pfconf::load(text, &Context::new(host)) {
        Ok(loaded) => loaded.ruleset,
        Err(rejected) => panic!("{text}: {:?}", rejected.diagnostics),
    }
}

/// Returns a TCP packet with `flags` (S, A, F, R), inbound on em0.
pub fn tcp(from: ([u8; 4], u16), to: ([u8; 4], u16), flags: &str) -> Packet {
    let mut builder = PacketBuilder::ipv4(from.0, to.0, 64).tcp(from.1, to.1, 1000, 65_535);
    for flag in flags.chars() {
        builder = match flag {
            'S' => builder.syn(),
            'A' => builder.ack(1),
            'F' => builder.fin(),
            'R' => builder.rst(),
            other => panic!("flag {other}"),
        };
    }
    let mut bytes = Vec::new();
    builder.write(&mut bytes, &[]).unwrap();
    incoming(bytes)
}

/// Returns a UDP packet of `payload` bytes, inbound on em0.
pub fn udp(from: ([u8; 4], u16), to: ([u8; 4], u16), payload: usize) -> Packet {
    let mut bytes = Vec::new();
    let builder = PacketBuilder::ipv4(from.0, to.0, 64).udp(from.1, to.1);
    builder.write(&mut bytes, &vec![0; payload]).unwrap();
    incoming(bytes)
}

/// Returns an IPv4 packet of any protocol, inbound on em0.
pub fn other(from: [u8; 4], to: [u8; 4], protocol: u8, payload: &[u8]) -> Packet {
    let mut bytes = Vec::new();
    let builder = PacketBuilder::ipv4(from, to, 64);
    builder.write(&mut bytes, protocol.into(), payload).unwrap();
    incoming(bytes)
}

fn incoming(bytes: Vec<u8>) -> Packet {
    Packet {
        direction: Direction::In,
        interface: "em0".to_owned(),
        bytes,
        link: LinkHeader::default(),
        received_on: None,
        carried: Carried::default(),
        owner: None,
    }
}
