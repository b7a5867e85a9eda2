//! Input: any bytes as packets, in any order and direction. The model decides about each packet
//! without a panic. `explain` reports the real fate. Packets that the firewall itself sends are
//! well-formed.
//!
//! Each packet follows two bytes: how it arrives ([`How`]), and its length.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use skipstep_model::{Carried, Draw, Firewall, LinkHeader, Packet};
use skipstep_pfconf::{Context, load};
use skipstep_ruleset::{Direction, Reason, Ruleset};
use skipstep_scenario::host;

/// Rules of all kinds that look into a packet, change it, answer it or create a state.
const RULES: &str = r#"
set reassemble no
set limit states 50
set timeout { adaptive.start 20, adaptive.end 60 }
table <inner> counters { 10.0.1.0/24, !10.0.1.7, 2001:db8:1::/64 }
match in all scrub (no-df, random-id, min-ttl 64, max-mss 1220)
match out inet6 all set tos ef
block return log (all) all
pass log (all, matches) proto tcp all
pass in proto tcp from <inner> flags any keep state (max 8, tcp.opening 5)
pass out proto tcp to port 80:90 no state
pass proto tcp to port 100:200 keep state (sloppy)
pass proto udp all keep state (if-bound) set prio (5, 6)
pass proto { icmp, icmp6 } all allow-opts
pass proto gre all
block return-rst (ttl 9) in log proto tcp to port 23
block return-icmp (host-unr, addr-unr) in proto udp to port 7
block in quick from urpf-failed
block in quick from no-route
pass fragment
pass inet proto icmp icmp-type unreach code needfrag
pass tos lowdelay prio 5 probability 50%
pass in on em0 tag inner
pass out received-on em0 tagged inner
"#;

static RULESET: LazyLock<Ruleset> = LazyLock::new(|| {
    let loaded = load(RULES, &Context::new(&host::standard()));
    loaded.expect("a constant").ruleset
});

/// The byte in front of a packet, whose bits say how the packet arrives.
struct How(u8);

impl How {
    fn direction(&self) -> Direction {
        if self.0 & 1 == 0 { Direction::In } else { Direction::Out }
    }

    /// Returns the interface (bit 1) and, for a forwarded packet (bit 2), the interface that it
    /// came in by.
    fn interfaces(&self) -> (&'static str, Option<&'static str>) {
        let (here, there) = if self.0 & 2 == 0 { ("em0", "em1") } else { ("em1", "em0") };
        (here, (self.0 & 4 != 0).then_some(there))
    }

    /// True if the header gets a valid version and valid lengths. Without them hardly any packet
    /// passes the first checks.
    fn is_repaired(&self) -> bool {
        self.0 & 8 != 0
    }

    /// True if the packet gets the reversed addresses and ports of the packet before it.
    fn is_answer(&self) -> bool {
        self.0 & 16 != 0
    }

    fn seconds(&self) -> u32 {
        u32::from(self.0 >> 6) * 20
    }

    fn draw(&self) -> u32 {
        if self.0 & 32 == 0 { 0 } else { u32::MAX }
    }
}

/// Returns offset and length, in bytes, of source address and source port in a header without
/// options. The destination follows the source.
fn field_ranges(bytes: &[u8]) -> [(usize, usize); 2] {
    match bytes.first().map(|first| first >> 4) {
        Some(6) => [(8, 16), (40, 2)],
        _ => [(12, 4), (20, 2)],
    }
}

fn repair(bytes: &mut [u8]) {
    let length = bytes.len() as u16;
    match bytes.first().map(|first| first & 0x10) {
        Some(0) if bytes.len() >= 20 => {
            bytes[0] = 0x45;
            bytes[2..4].copy_from_slice(&length.to_be_bytes());
        }
        Some(_) if bytes.len() >= 40 => {
            bytes[0] = 0x60;
            bytes[4..6].copy_from_slice(&(length - 40).to_be_bytes());
        }
        _ => {}
    }
}

/// Gives `bytes` the reversed addresses and ports of `before`.
fn answer(bytes: &mut [u8], before: &[u8]) {
    for (start, length) in field_ranges(before) {
        let end = start + 2 * length;
        if before.len() >= end && bytes.len() >= end {
            bytes[start..start + length].copy_from_slice(&before[start + length..end]);
            bytes[start + length..end].copy_from_slice(&before[start..start + length]);
        }
    }
}

fn packet(how: &How, bytes: Vec<u8>) -> Packet {
    let (interface, received_on) = how.interfaces();
    Packet {
        direction: how.direction(),
        interface: interface.to_string(),
        bytes,
        link: LinkHeader::default(),
        received_on: received_on.map(str::to_string),
        carried: Carried::default(),
        owner: None,
    }
}

/// Checks that a packet of the firewall itself passes the firewall's own header checks.
fn check_reply(firewall: &Firewall, bytes: Vec<u8>) {
    if quotes_authentication(&bytes) {
        return;
    }
    let reply = packet(&How(1), bytes);
    let fate = firewall.clone().packet(&reply);
    assert_ne!(fate.reason, Reason::Short, "{:02x?}", reply.bytes);
}

/// True for an ICMP error over IPv4 about a packet with an authentication header. The error quotes
/// eight bytes of this header, which do not show the next one. pf drops such errors, too.
fn quotes_authentication(bytes: &[u8]) -> bool {
    const ICMP: u8 = 1;
    const AUTHENTICATION: u8 = 51;
    matches!(bytes, [0x45, _, _, _, _, _, _, _, _, ICMP, ..])
        && bytes.get(20 + 8 + 9) == Some(&AUTHENTICATION)
}

fuzz_target!(|input: &[u8]| {
    let mut firewall = Firewall::new(RULESET.clone(), host::standard());
    let mut now = 0;
    let mut before = Vec::new();
    let mut rest = input;
    while let [how, length, behind @ ..] = rest {
        let how = How(*how);
        let (bytes, behind) = behind.split_at(behind.len().min(usize::from(*length)));
        rest = behind;

        let mut bytes = bytes.to_vec();
        if how.is_repaired() {
            repair(&mut bytes);
        }
        if how.is_answer() {
            answer(&mut bytes, &before);
        }
        before.clone_from(&bytes);

        now += how.seconds();
        firewall.set_time(now);
        firewall.set_random(Draw::Bounded(how.draw()));
        let packet = packet(&how, bytes);
        let told = firewall.clone().explain(&packet).0;
        let fate = firewall.packet(&packet);
        assert_eq!(told, fate);
        for reply in fate.replies {
            check_reply(&firewall, reply);
        }
        for state in firewall.states() {
            assert!(firewall.expires_at(state) <= now.saturating_add(86_400));
        }
    }
});
