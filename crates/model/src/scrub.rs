//! Changes of packets that pass, as rules and states request (pf-semantics section 13).

use skipstep_ruleset::Family;

use crate::actions::Actions;
use crate::normalize::IP_CHECKSUM;
use crate::packet::Descriptor;
use crate::tcp_option;
use crate::{patch, world::World};

const DONT_FRAGMENT: u8 = 0x40;
const ECN: u8 = 0x03;

/// Applies `scrub (no-df, min-ttl, random-id)` and `set tos`.
pub(crate) fn header(packet: &mut Descriptor, actions: &Actions, world: &World) {
    match packet.family {
        Family::Inet => ipv4(&mut packet.bytes, actions, world),
        Family::Inet6 => ipv6(&mut packet.bytes, actions),
    }
}

fn ipv4(bytes: &mut [u8], actions: &Actions, world: &World) {
    if actions.no_df {
        let cleared = [bytes[6] & !DONT_FRAGMENT, bytes[7]];
        patch::word(bytes, IP_CHECKSUM, 6, cleared);
    }
    if bytes[8] < actions.min_ttl {
        patch::byte(bytes, IP_CHECKSUM, 0, 8, actions.min_ttl);
    }
    if let Some(tos) = actions.set_tos {
        let tos = tos | bytes[1] & ECN;
        patch::byte(bytes, IP_CHECKSUM, 0, 1, tos);
    }
    let is_fragment = bytes[6] & !DONT_FRAGMENT != 0 || bytes[7] != 0;
    if actions.random_id && !is_fragment {
        patch::word(bytes, IP_CHECKSUM, 4, world.random_id().to_be_bytes());
    }
}

fn ipv6(bytes: &mut [u8], actions: &Actions) {
    bytes[7] = bytes[7].max(actions.min_ttl);
    if let Some(tos) = actions.set_tos {
        // the traffic class spans two bytes; its ECN bits stay
        let class = (bytes[0] << 4 | bytes[1] >> 4) & ECN | tos;
        bytes[0] = bytes[0] & 0xf0 | class >> 4;
        bytes[1] = bytes[1] & 0x0f | class << 4;
    }
}

/// Applies `scrub (max-mss)`: lowers the MSS that a TCP segment offers.
pub(crate) fn mss(packet: &mut Descriptor, highest: u16) {
    let options = packet.offset + 20;
    for value in tcp_option::mss(packet.tcp_options()) {
        let at = options + value.start;
        if u16::from_be_bytes([packet.bytes[at], packet.bytes[at + 1]]) > highest {
            let (start, checksum) = (packet.offset, packet.offset + 16);
            if (at - start).is_multiple_of(2) {
                patch::word(&mut packet.bytes, checksum, at, highest.to_be_bytes());
            } else {
                let [high, low] = highest.to_be_bytes();
                patch::byte(&mut packet.bytes, checksum, start, at, high);
                patch::byte(&mut packet.bytes, checksum, start, at + 1, low);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skipstep_wire::build::{Tcp, ipv4, ipv6};
    use skipstep_wire::checksum;

    fn descriptor(bytes: Vec<u8>) -> Descriptor {
        Descriptor::arriving(bytes).unwrap()
    }

    const ALL: Actions = Actions {
        no_df: true,
        random_id: true,
        reassemble_tcp: false,
        min_ttl: 60,
        set_tos: Some(0x10),
        log_all: false,
        log_matches: false,
        allow_opts: false,
        max_mss: 0,
        max_pkt_size: 0,
        set_prio: None,
        rtable: None,
        queued_by: None,
        delay: 0,
    };

    #[test]
    fn ipv4_header() {
        let world = World { random: 0x1234, ..World::default() };
        let mut packet = descriptor(
            ipv4([1, 1, 1, 1], [2, 2, 2, 2])
                .df(true)
                .ttl(5)
                .tos(0xa3)
                .id(9)
                .tcp(&Tcp::new(1, 2).flags("S")),
        );
        header(&mut packet, &ALL, &world);
        let expected = ipv4([1, 1, 1, 1], [2, 2, 2, 2]).ttl(60).tos(0x13).id(0x1234);
        assert_eq!(packet.bytes, expected.tcp(&Tcp::new(1, 2).flags("S")));
    }

    #[test]
    fn ipv6_header() {
        let (a, b) = ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], [0x2001, 0xdb8, 0, 0, 0, 0, 0, 2]);
        let mut packet = descriptor(ipv6(a, b).ttl(5).tos(0xa3).tcp(&Tcp::new(1, 2).flags("S")));
        header(&mut packet, &ALL, &World::default());
        assert_eq!(packet.bytes, ipv6(a, b).ttl(60).tos(0x13).tcp(&Tcp::new(1, 2).flags("S")));
    }

    #[test]
    fn mss_is_lowered_never_raised() {
        for padding in [&[][..], &[1]] {
            let offer = |mss| {
                let segment = Tcp::new(1, 2).flags("S").option(padding).mss(mss);
                ipv4([1, 1, 1, 1], [2, 2, 2, 2]).tcp(&segment)
            };
            let mut packet = descriptor(offer(1460));
            mss(&mut packet, 1300);
            assert_eq!(packet.bytes, offer(1300), "checksum included, padding {padding:?}");
            mss(&mut packet, 1400);
            assert_eq!(packet.bytes, offer(1300));
            checksum::fix(&mut packet.bytes);
            assert_eq!(packet.bytes, offer(1300));
        }
    }
}
