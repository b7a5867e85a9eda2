//! Packets that the firewall makes: RST, ICMP errors, challenge ACK (pf-semantics section 11, block
//! returns). They are not filtered.

use std::net::{IpAddr, Ipv4Addr};

use skipstep_ruleset::interface::Interface;
use skipstep_ruleset::{BlockReturn, Family};
use skipstep_views::Peer;
use skipstep_wire::tcp_flag::{ACK, FIN, RST, SYN};
use skipstep_wire::{build, checksum, protocol};

use crate::address::is_on_every_link;
use crate::own_address;
use crate::packet::icmp6_type::{ECHO_REQUEST, REDIRECT};
use crate::packet::{Descriptor, Tcp};
use crate::world::World;

const DEFAULT_TTL: u8 = 64;
const ICMP_TTL: u8 = 255;
const LOW_DELAY: u8 = 0x10;

/// Bytes of a packet that an ICMPv6 error quotes: as many as fit with the headers into 1280.
const ICMP6_QUOTE: usize = 1232;

/// ICMP and ICMPv6 type and code of "port unreachable", which `block return` sends.
const PORT_UNREACHABLE: (u8, u8) = (3, 3);
const PORT_UNREACHABLE_6: (u8, u8) = (1, 4);

/// The answer of a block rule to a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Nothing,
    Send(Vec<u8>),
    /// A RST would have answered, but the packet's checksum is wrong.
    BadChecksum,
}

/// Returns the answer of a block rule. Fragments are not answered.
pub(crate) fn block(packet: &Descriptor, how: BlockReturn, world: &World) -> Answer {
    let (rst_ttl, inet, inet6) = match how {
        BlockReturn::Drop => return Answer::Nothing,
        BlockReturn::Return => (Some(0), Some(PORT_UNREACHABLE), Some(PORT_UNREACHABLE_6)),
        BlockReturn::Rst { ttl } => (Some(ttl), None, None),
        BlockReturn::Icmp { inet, inet6 } => (None, Some(inet), Some(inet6)),
    };
    if packet.is_fragment() {
        return Answer::Nothing;
    }
    if let (Some(tcp), Some(ttl)) = (packet.tcp(), rst_ttl)
        && !tcp.has(RST)
    {
        return if tcp_checksum_is_right(packet) {
            Answer::Send(rst(packet, tcp, ttl, world))
        } else {
            Answer::BadChecksum
        };
    }
    let error = match packet.family {
        Family::Inet => inet.filter(|_| may_answer_inet(packet)),
        Family::Inet6 => inet6.filter(|_| may_answer_inet6(packet)),
    };
    error
        .and_then(|error| icmp_error(packet, error, 0, world))
        .map_or(Answer::Nothing, Answer::Send)
}

/// Returns the RST that refuses a connection.
fn rst(packet: &Descriptor, tcp: &Tcp, ttl: u8, world: &World) -> Vec<u8> {
    let length = tcp.payload_len + u32::from(tcp.has(SYN)) + u32::from(tcp.has(FIN));
    let numbers = Numbers { seq: tcp.ack, ack: tcp.seq.wrapping_add(length), flags: RST | ACK };
    segment(packet, tcp, ttl, numbers, world)
}

/// Returns the RST for a segment that does not fit a handshake, so its sender starts again.
pub(crate) fn handshake_rst(packet: &Descriptor, tcp: &Tcp, world: &World) -> Vec<u8> {
    segment(packet, tcp, 0, Numbers { seq: tcp.ack, ack: 0, flags: RST }, world)
}

/// Returns the ACK that challenges a SYN on an open connection (RFC 5961 section 4). A sender that
/// means the SYN answers with a RST. The ACK is sent in the name of the other side, `to`.
pub(crate) fn challenge_ack(
    packet: &Descriptor,
    tcp: &Tcp,
    from: &Peer,
    to: &Peer,
    world: &World,
) -> Vec<u8> {
    segment(packet, tcp, 0, Numbers { seq: to.seqlo, ack: from.seqlo, flags: ACK }, world)
}

/// Returns the source address of a segment. The system replaces the unspecified address by one of
/// the interface where the segment leaves.
fn sender(from: IpAddr, to: IpAddr, rdomain: u32, world: &World) -> IpAddr {
    match from {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) if world.is_local(to) => to,
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => {
            let route = world.route(to, rdomain);
            route.and_then(|route| own_address::towards(to, route, world)).unwrap_or(from)
        }
        _ => from,
    }
}

/// The fields that differ between the segments that the firewall makes.
struct Numbers {
    seq: u32,
    ack: u32,
    flags: u8,
}

/// Returns a segment to the sender of `packet`. A `ttl` of 0 is the default, which IPv6 always has.
fn segment(packet: &Descriptor, tcp: &Tcp, ttl: u8, numbers: Numbers, world: &World) -> Vec<u8> {
    let Numbers { seq, ack, flags } = numbers;
    let source = sender(packet.destination, packet.source, packet.rdomain, world);
    let ip = build::ip(source, packet.source).ttl(DEFAULT_TTL);
    let ip = match packet.family {
        Family::Inet => ip.tos(LOW_DELAY).df(true).ttl(if ttl == 0 { DEFAULT_TTL } else { ttl }),
        Family::Inet6 => ip,
    };
    let answer = build::Tcp::new(tcp.destination_port, tcp.source_port);
    ip.tcp(&answer.flag_bits(flags).seq(seq).ack(ack).window(0))
}

/// A segment of a handshake that the firewall does in the name of a side.
pub(crate) struct Segment {
    pub source: (IpAddr, u16),
    pub destination: (IpAddr, u16),
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    /// MSS option in bytes, 0 for none.
    pub mss: u16,
}

/// Returns the bytes of a segment to the other side of a connection.
pub(crate) fn proxied(segment: Segment, rdomain: u32, world: &World) -> Vec<u8> {
    let (from, port) = segment.source;
    let source = (sender(from, segment.destination.0, rdomain, world), port);
    written(&Segment { source, ..segment }, DEFAULT_TTL)
}

/// Returns the bytes of a segment.
pub(crate) fn written(segment: &Segment, ttl: u8) -> Vec<u8> {
    let Segment { source, destination, seq, ack, flags, window, mss } = *segment;
    let ip = build::ip(source.0, destination.0).ttl(ttl);
    let ip = if source.0.is_ipv4() { ip.tos(LOW_DELAY).df(true) } else { ip };
    let tcp = build::Tcp::new(source.1, destination.1);
    let tcp = tcp.flag_bits(flags).seq(seq).ack(ack).window(window);
    ip.tcp(&if mss == 0 { tcp } else { tcp.mss(mss) })
}

fn tcp_checksum_is_right(packet: &Descriptor) -> bool {
    let data = &packet.readable().0[packet.offset..];
    checksum::transport(packet.source, packet.destination, protocol::TCP, data) == 0
}

/// Returns true if an ICMP error may answer the packet: not another error, only harmless messages.
fn may_answer_inet(packet: &Descriptor) -> bool {
    packet.icmp().is_none_or(|icmp| matches!(icmp.kind, 0 | 8 | 9 | 10 | 13..=18))
}

fn may_answer_inet6(packet: &Descriptor) -> bool {
    packet.icmp().is_none_or(|icmp| icmp.kind >= ECHO_REQUEST && icmp.kind != REDIRECT)
}

/// The reasons why a packet cannot be forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Undelivered {
    /// The TTL or hop limit has expired.
    Expired,
    /// No route leads to the next hop.
    NoRoute,
    /// The packet is longer than this MTU in bytes and must not be fragmented.
    TooBig(u32),
}

/// Returns the ICMP error of a router to the sender of a packet that it cannot forward.
pub(crate) fn undelivered(
    packet: &Descriptor,
    reason: Undelivered,
    world: &World,
) -> Option<Vec<u8>> {
    let (may_answer, (kind, code)) = match (packet.family, reason) {
        (Family::Inet, Undelivered::Expired) => (may_answer_inet(packet), (11, 0)),
        (Family::Inet, Undelivered::NoRoute) => (may_answer_inet(packet), (3, 1)),
        (Family::Inet, Undelivered::TooBig(_)) => (may_answer_inet(packet), (3, 4)),
        (Family::Inet6, Undelivered::Expired) => (may_answer_inet6(packet), (3, 0)),
        (Family::Inet6, Undelivered::NoRoute) => (may_answer_inet6(packet), (1, 0)),
        (Family::Inet6, Undelivered::TooBig(_)) => (may_answer_inet6(packet), (2, 0)),
    };
    let mtu = if let Undelivered::TooBig(mtu) = reason { mtu } else { 0 };
    icmp_error(packet, (kind, code), mtu, world).filter(|_| may_answer)
}

/// Returns an ICMP error about `packet`, if the packet may be answered and there is a route back.
/// `rest` has the four bytes behind the checksum.
fn icmp_error(
    packet: &Descriptor,
    (kind, code): (u8, u8),
    rest: u32,
    world: &World,
) -> Option<Vec<u8>> {
    let source = match (packet.source, packet.destination) {
        (IpAddr::V4(source), IpAddr::V4(_)) if !is_answerable_ipv4(source) => return None,
        (IpAddr::V6(source), IpAddr::V6(destination))
            if source.is_unspecified() || source.is_multicast() || destination.is_multicast() =>
        {
            return None;
        }
        _ => source_address(packet, world)?,
    };
    let (quoted, ttl) = match packet.family {
        Family::Inet => (usize::from(packet.bytes[0] & 15) * 4 + 8, ICMP_TTL),
        Family::Inet6 => (ICMP6_QUOTE, DEFAULT_TTL),
    };
    let quote = &packet.bytes[..quoted.min(packet.bytes.len())];
    let message = build::Icmp::quoting(kind, code, quote).id((rest >> 16) as u16).seq(rest as u16);
    Some(build::ip(source, packet.source).ttl(ttl).icmp(&message))
}

/// Returns true if a host that may be answered can have the address.
fn is_answerable_ipv4(address: Ipv4Addr) -> bool {
    address.octets()[0] != 0 && !address.is_multicast()
}

/// Returns the source address of an error about `packet`: the packet's destination, or its source,
/// if that is ours. Otherwise it is our address on the route to the sender.
///
/// A sender with a link-local address gets that of the packet's interface. Other senders never get
/// an address that is valid on one link only. If the host has no address, the error names the
/// packet's destination. So does an error on a port of a bridge, because a bridge shows no other
/// address of this host.
// Differs from OpenBSD: linux.md, "Answers"
// Differs from OpenBSD: linux.md, "Rejections on a bridge"
fn source_address(packet: &Descriptor, world: &World) -> Option<IpAddr> {
    let is_own = |address| world.is_local(address) && !is_on_every_link(address);
    if is_own(packet.destination) || world.interface(&packet.interface)?.port {
        return Some(packet.destination);
    }
    if is_own(packet.source) {
        return Some(packet.source);
    }
    let own = if is_on_every_link(packet.source) {
        world.interface(&packet.interface).and_then(Interface::link_local).map(IpAddr::V6)
    } else {
        match world.route(packet.source, packet.rdomain) {
            Some(route) => own_address::towards(packet.source, route, world),
            None => return None,
        }
    };
    Some(own.unwrap_or(packet.destination))
}

#[cfg(test)]
mod tests {
    use super::*;
    use skipstep_ruleset::interface::{Host, InterfaceAddress, Route};

    // sender 10.0.1.5 --- em0 10.0.1.1 [firewall] em1 10.0.2.1 --- default route
    fn world() -> World {
        let interface = |name: &str, addresses: &[&str]| Interface {
            name: name.into(),
            addresses: addresses
                .iter()
                .map(|net| InterfaceAddress {
                    net: net.parse().unwrap(),
                    broadcast: None,
                    peer: None,
                })
                .collect(),
            ..Interface::default()
        };
        let route = |destination: &str, name: &str| Route {
            destination: destination.parse().unwrap(),
            interface: name.into(),
            gateway: None,
            table: 0,
            label: None,
        };
        World {
            host: Host {
                interfaces: vec![
                    interface("em0", &["10.0.1.1/24", "fe80::1/64", "2001:db8:1::1/64"]),
                    interface("em1", &["10.0.2.1/24"]),
                ],
                routes: vec![
                    route("10.0.1.0/24", "em0"),
                    route("0.0.0.0/0", "em1"),
                    route("2001:db8:1::/64", "em0"),
                ],
            },
            ..World::default()
        }
    }

    fn descriptor(bytes: Vec<u8>) -> Descriptor {
        Descriptor::arriving(bytes).unwrap()
    }

    fn answer(packet: Vec<u8>, how: BlockReturn) -> String {
        match block(&descriptor(packet), how, &world()) {
            Answer::Send(bytes) => skipstep_wire::print::line(&bytes),
            Answer::Nothing => "nothing".into(),
            Answer::BadChecksum => "bad checksum".into(),
        }
    }

    fn syn() -> Vec<u8> {
        build::ipv4([10, 0, 1, 5], [192, 0, 2, 1])
            .tcp(&build::Tcp::new(4000, 22).flags("S").seq(7).payload(b"hi"))
    }

    #[test]
    fn rst_acknowledges_all_it_saw() {
        let rst = "tcp 192.0.2.1:22 > 10.0.1.5:4000 RA seq 0 ack 10 win 0 tos 0x10";
        assert_eq!(answer(syn(), BlockReturn::Return), rst);
        assert_eq!(answer(syn(), BlockReturn::Rst { ttl: 0 }), rst);
        assert!(answer(syn(), BlockReturn::Rst { ttl: 9 }).contains("ttl 9"));
        let mut damaged = syn();
        damaged[37] ^= 1;
        assert_eq!(answer(damaged, BlockReturn::Return), "bad checksum");
    }

    #[test]
    fn errors_quote_the_header_and_eight_bytes() {
        let code = BlockReturn::Icmp { inet: (3, 13), inet6: (1, 1) };
        let error = answer(syn(), code);
        assert!(error.starts_with("icmp 10.0.1.1 > 10.0.1.5 type 3 code 13"), "{error}");
        let datagram = build::ipv4([10, 0, 1, 5], [192, 0, 2, 1])
            .udp(&build::Udp::new(1, 2).payload(&[0; 64]));
        let Answer::Send(bytes) = block(&descriptor(datagram), code, &world()) else { panic!() };
        assert_eq!(bytes.len(), 20 + 8 + 20 + 8);
    }

    #[test]
    fn an_error_comes_from_the_address_it_was_sent_to_or_the_nearest() {
        let from = |destination: [u8; 4]| {
            let packet = build::ipv4([10, 0, 1, 5], destination).udp(&build::Udp::new(1, 2));
            answer(packet, BlockReturn::Return).split(' ').nth(1).unwrap().to_owned()
        };
        assert_eq!(from([10, 0, 2, 1]), "10.0.2.1");
        assert_eq!(from([10, 0, 2, 9]), "10.0.1.1");
        let (a, b) = ([0x2001, 0xdb8, 1, 0, 0, 0, 0, 5], [0x2001, 0xdb8, 9, 0, 0, 0, 0, 1]);
        let packet = build::ipv6(a, b).udp(&build::Udp::new(1, 2));
        assert!(
            answer(packet, BlockReturn::Return)
                .starts_with("icmp6 2001:db8:1::1 > 2001:db8:1::5 type 1 code 4")
        );
    }

    #[test]
    fn errors_multicast_and_fragments_are_not_answered() {
        let error = build::ipv4([10, 0, 1, 5], [192, 0, 2, 1]).icmp(&build::Icmp::new(3, 3));
        assert_eq!(answer(error, BlockReturn::Return), "nothing");
        let echo = build::ipv4([10, 0, 1, 5], [192, 0, 2, 1]).icmp(&build::Icmp::new(8, 0));
        assert_ne!(answer(echo.clone(), BlockReturn::Return), "nothing");
        assert_eq!(answer(echo, BlockReturn::Rst { ttl: 0 }), "nothing");
        let multicast = build::ipv4([224, 0, 0, 5], [192, 0, 2, 1]).udp(&build::Udp::new(1, 2));
        assert_eq!(answer(multicast, BlockReturn::Return), "nothing");
        let fragment =
            build::ipv4([10, 0, 1, 5], [192, 0, 2, 1]).fragment(8, true).raw(17, &[0; 8]);
        assert_eq!(answer(fragment, BlockReturn::Return), "nothing");
    }
}
