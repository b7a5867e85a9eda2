//! No input makes the model panic, and a packet that it cannot parse does not pass.

mod common;

use common::{firewall, packet};
use proptest::prelude::*;
use skipstep_model::Verdict;
use skipstep_ruleset::Direction;
use skipstep_wire::build::{self, Icmp, Ip, Tcp, Udp};

const RULES: &str = "set reassemble no
set limit states 50
match scrub (no-df, random-id, min-ttl 40, max-mss 1000) set tos 0x10
block return log (all)
pass proto { tcp udp icmp icmp6 } flags any keep state (max 40) allow-opts";

/// Returns packets of several kinds with valid headers.
fn sound() -> impl Strategy<Value = Vec<u8>> {
    let ip = prop_oneof![
        Just(build::ipv4([10, 0, 1, 5], [192, 0, 2, 1])),
        Just(build::ipv4([10, 0, 1, 5], [192, 0, 2, 1]).options(&[148, 4, 0, 0])),
        Just(build::ipv6([0x2001, 0xdb8, 1, 0, 0, 0, 0, 5], [0x2001, 0xdb8, 2, 0, 0, 0, 0, 1])),
        Just(
            build::ipv6([0xfe80, 0, 0, 0, 0, 0, 0, 5], [0xff02, 0, 0, 0, 0, 0, 0, 1])
                .hop_by_hop(&[5, 2, 0, 0])
                .fragment(0, true)
                .destination_options(&[])
        ),
    ];
    (ip, 0usize..6, any::<u8>(), any::<u32>())
        .prop_map(|(ip, kind, bits, number)| transport(&ip, kind, bits, number))
}

fn transport(ip: &Ip, kind: usize, bits: u8, number: u32) -> Vec<u8> {
    let segment = Tcp::new(1, 2).flag_bits(bits).seq(number).mss(1460).window_scale(bits);
    match kind {
        0 | 1 => ip.tcp(&segment.payload(&[0; 5])),
        2 => ip.udp(&Udp::new(1, 2)),
        3 => ip.icmp(&Icmp::new(bits, 0).payload(&[1; 24])),
        4 => ip.icmp(&Icmp::quoting(3, 3, &ip.tcp(&segment))),
        _ => ip.icmp(&Icmp::quoting(1, 4, &ip.icmp(&Icmp::new(bits, 0).payload(&[1; 24])))),
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(conversation in proptest::collection::vec(
        (any::<bool>(), proptest::collection::vec(any::<u8>(), 0..120)), 1..8)
    ) {
        let mut firewall = firewall(RULES);
        for (inbound, bytes) in conversation {
            let direction = if inbound { Direction::In } else { Direction::Out };
            firewall.explain(&packet(direction, "em0", bytes)).1.to_string();
        }
    }

    #[test]
    fn no_damaged_packet_panics(conversation in proptest::collection::vec(
        (any::<bool>(), sound(), 0usize..120, any::<u8>(), 0usize..160, 0u32..100), 1..20)
    ) {
        let mut firewall = firewall(RULES);
        let mut now = 0;
        for (inbound, mut bytes, at, byte, length, wait) in conversation {
            if let Some(target) = bytes.get_mut(at) {
                *target = byte;
            }
            bytes.truncate(length.max(1));
            now += wait;
            firewall.set_time(now);
            let direction = if inbound { Direction::In } else { Direction::Out };
            let fate = firewall.packet(&packet(direction, "em0", bytes.clone()));
            if let Some(out) = fate.out {
                prop_assert!(out.len() <= bytes.len());
            }
        }
        prop_assert!(firewall.states().count() <= 50);
    }

    #[test]
    fn a_truncated_packet_never_passes(bytes in sound(), length in 0usize..40) {
        let mut firewall = firewall("pass all allow-opts");
        let cut = bytes[..length.min(bytes.len() - 1)].to_vec();
        let fate = firewall.packet(&packet(Direction::In, "em0", cut));
        prop_assert_eq!(fate.verdict, Verdict::Drop);
    }
}
