//! Malformed headers, and packets that were damaged on their way.

use fastrand::Rng;
use skipstep_scenario::packet::{Damage, Extension, Ip, Packet, Payload};

use super::pool::{one_in, pick};

/// Draws one of the meaningful bytes, or sometimes any byte.
pub(super) fn byte(rng: &mut Rng, known: &[u8]) -> u8 {
    if one_in(rng, known.len() as u32 + 1) { rng.u8(..) } else { pick(rng, known) }
}

/// Draws the fields of an IP header besides the addresses.
pub(super) fn header(rng: &mut Rng, ipv6: bool) -> Ip {
    let mut ip = Ip::default();
    if one_in(rng, 6) {
        ip.ttl = Some(pick(rng, &[0, 1, 5, 64, 128, 255]));
    }
    if one_in(rng, 6) {
        ip.tos = Some(pick(rng, &[0x10, 0x11, 0x28, 0x08, 0xb8, 0x03, 0xff]));
    }
    if !ipv6 {
        ip.id = one_in(rng, 4).then(|| rng.u16(..));
        ip.df = one_in(rng, 5);
        ip.options = one_in(rng, 20).then(|| ipv4_options(rng));
    } else if one_in(rng, 12) {
        ip.extensions = (0..rng.usize(1..4)).map(|_| extension(rng)).collect();
    }
    if one_in(rng, 40) {
        ip.fragment = Some((pick(rng, &[0, 0, 8, 1480]), rng.bool()));
    }
    ip
}

/// Draws known and unknown IPv4 options, with right and wrong lengths and an end in the middle.
fn ipv4_options(rng: &mut Rng) -> Vec<u8> {
    let mut options = Vec::new();
    for _ in 0..rng.usize(1..4) {
        let kind = byte(rng, &[0, 1, 1, 7, 68, 82, 130, 131, 136, 137, 148, 148]);
        options.push(kind);
        if kind < 2 {
            continue;
        }
        let fits = pick(rng, &[3, 4, 4, 7, 8, 11]);
        options.push(match rng.u8(..6) {
            0 => rng.u8(..3),
            1 => rng.u8(..),
            _ => fits,
        });
        options.extend((2..fits).map(|_| byte(rng, &[0, 4, 10])));
    }
    options.truncate(40);
    options
}

fn extension(rng: &mut Rng) -> Extension {
    match rng.u8(..8) {
        0 => Extension::HopByHop(vec![]),
        1 => Extension::HopByHop(ipv6_options(rng)),
        2 => Extension::HopByHop(vec![5, 2, 0, 0]),
        3 => Extension::HopByHop(vec![0xc2, 4, 0, 1, 0, 0]),
        4 => Extension::Destination(vec![1, 4, 0, 0, 0, 0]),
        5 => Extension::Destination(ipv6_options(rng)),
        6 => Extension::Routing(pick(rng, &[0, 2, 4]), vec![0; pick(rng, &[4, 4, 12, 20])]),
        _ => Extension::Destination(vec![0x80; 13]),
    }
}

/// Draws the options of a hop-by-hop or destination header: paddings, known options, and options
/// that ask receivers to drop the packet. Lengths are right or wrong.
fn ipv6_options(rng: &mut Rng) -> Vec<u8> {
    let mut options = Vec::new();
    for _ in 0..rng.usize(1..5) {
        let kind = byte(rng, &[0, 1, 1, 4, 5, 0x26, 0x3e, 0x4a, 0x8a, 0xc2, 0xc9]);
        options.push(kind);
        if kind == 0 {
            continue;
        }
        let fits = pick(rng, &[0, 1, 2, 4, 6]);
        options.push(if one_in(rng, 6) { rng.u8(..) } else { fits });
        options.extend((0..fits).map(|_| byte(rng, &[0, 1])));
    }
    options
}

/// Inserts extension headers into some IPv6 packets: unusual ones, in any order, repeated, and
/// longer than the packet.
pub(super) fn chained(rng: &mut Rng, packet: Packet) -> Packet {
    let mut bytes = packet.bytes();
    if !one_in(rng, 25) || bytes.first().is_none_or(|first| first >> 4 != 6) || bytes.len() < 40 {
        return packet;
    }
    let mut next = bytes[6];
    for _ in 0..pick(rng, &[1, 2, 2, 3, 5, 9, 21, 40]) {
        let kind = pick(rng, &[0, 43, 44, 51, 60, 60, 135, 139, 59, 50, 41]);
        let (length, data) = match kind {
            // an authentication header has its length in words of four bytes, less two
            51 => (pick(rng, &[4, 4, 1, 0]), 22),
            44 => (0, 6),
            _ => pick(rng, &[(0, 6), (0, 6), (1, 14), (2, 14), (0xff, 6)]),
        };
        let mut header = vec![next, length];
        header.extend((0..data).map(|_| byte(rng, &[0, 0, 1])));
        bytes.splice(40..40, header);
        next = kind;
    }
    bytes[6] = next;
    let payload = (bytes.len() - 40) as u16;
    bytes[4..6].copy_from_slice(&payload.to_be_bytes());
    Packet::Hex(bytes)
}

/// Draws SCTP chunks with right and wrong lengths: zero, less than a chunk header, more than the
/// data.
pub(super) fn chunks(rng: &mut Rng) -> Payload {
    let mut chunks = Vec::new();
    for _ in 0..pick(rng, &[0, 1, 1, 1, 2, 4]) {
        let data = pick(rng, &[0, 0, 4, 16, 30]);
        let length = match rng.u8(..5) {
            0 => pick(rng, &[0, 1, 3, 0xffff]),
            _ => 4 + data,
        };
        // DATA, INIT and its answer, HEARTBEAT, ABORT, SHUTDOWN, COOKIE ECHO, ASCONF
        chunks.extend([byte(rng, &[0, 1, 2, 4, 6, 7, 10, 0xc1]), rng.u8(..4)]);
        chunks.extend(u16::to_be_bytes(length));
        chunks.extend((0..data).map(|_| byte(rng, &[0, 1])));
    }
    Payload::Bytes(chunks)
}

/// Draws the damage of a packet; most packets have none.
pub(super) fn damage(rng: &mut Rng, ipv6: bool) -> Damage {
    let mut damage = Damage::default();
    if one_in(rng, 40) {
        match rng.u8(..7) {
            0 => damage.truncate = Some(rng.u16(1..70)),
            // not for IPv6, because pf quotes bytes behind the packet's end that the kernel drops
            1 if !ipv6 => damage.ip_length = Some(rng.u16(..100)),
            2 => damage.header_length = Some(rng.u8(..16) * 4),
            3 => damage.data_offset = Some(rng.u8(..16) * 4),
            4 => damage.udp_length = Some(rng.u16(..60)),
            _ => damage.bad_sum = true,
        }
    }
    damage
}

/// Changes random bytes of some packets.
pub(super) fn mutated(rng: &mut Rng, packet: Packet) -> Packet {
    if !one_in(rng, 50) {
        return packet;
    }
    let mut bytes = packet.bytes();
    for _ in 0..rng.usize(1..3) {
        if let Some(place) = (!bytes.is_empty()).then(|| rng.usize(..bytes.len().min(64))) {
            bytes[place] = rng.u8(..);
        }
    }
    Packet::Hex(bytes)
}
