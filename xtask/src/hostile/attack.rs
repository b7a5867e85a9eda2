//! Hostile packets, with addresses and ports of states or of new flows. They have guessed sequence
//! numbers or spoiled headers, are overlapping fragments, or are errors about packets never sent.

use fastrand::Rng;
use skipstep_model::Packet;
use skipstep_ruleset::Direction;
use skipstep_wire::build::{self, Icmp};
use skipstep_wire::protocol;

use super::flow::{Flow, Point, test_packet};

/// Values of a next-header field, valid and invalid.
const NEXT_HEADERS: [u8; 15] = [0, 1, 2, 4, 6, 17, 41, 43, 44, 50, 51, 58, 60, 132, 135];
const LONGEST: usize = 1300;

/// Draws the next hostile packet.
pub fn packet(rng: &mut Rng, flows: &[Flow]) -> Packet {
    let flow = &flows[rng.usize(..flows.len())];
    let side = rng.usize(..2);
    let (place, mut bytes) = match rng.u8(..10) {
        0..3 => (flow.places[0], flow.newcomer(rng)),
        3 | 4 => error(rng, flow, side),
        5 => (flow.places[side], piece(rng, flow, side)),
        6 => (flow.places[side], junk(rng)),
        _ => (flow.places[side], flow.blind(rng, side)),
    };
    for _ in 0..rng.u8(..4) {
        spoil(rng, &mut bytes);
    }
    bytes.truncate(LONGEST);
    test_packet(elsewhere(rng, place), bytes)
}

/// Draws a valid first packet of another client.
pub fn newcomer(rng: &mut Rng, flow: &Flow) -> Packet {
    test_packet(flow.places[0], flow.newcomer(rng))
}

/// Draws the point at which a packet is seen, sometimes a wrong one.
fn elsewhere(rng: &mut Rng, (direction, interface): Point) -> Point {
    match rng.u8(..20) {
        0 => (opposite(direction), interface),
        1 => (direction, if interface == "em0" { "em1" } else { "em0" }),
        _ => (direction, interface),
    }
}

fn opposite(direction: Direction) -> Direction {
    if direction == Direction::In { Direction::Out } else { Direction::In }
}

/// Draws an ICMP error about a packet of a side, perhaps about another error.
fn error(rng: &mut Rng, flow: &Flow, side: usize) -> (Point, Vec<u8>) {
    let mut quote = flow.blind(rng, side);
    let (own, peer) = flow.ends(side);
    for _ in 0..[1, 1, 1, 2, 3, 6][rng.usize(..6)] {
        if rng.u8(..3) == 0 {
            spoil(rng, &mut quote);
        }
        quote.truncate(rng.usize(..200).max(1));
        let kind = if own.0.is_ipv4() {
            [3, 4, 5, 11, 12][rng.usize(..5)]
        } else {
            [1, 2, 3, 4, 137][rng.usize(..5)]
        };
        let message = Icmp::quoting(kind, rng.u8(..6), &quote);
        quote = build::ip(peer.0, own.0).icmp(&message);
    }
    let (direction, interface) = flow.places[side];
    ((opposite(direction), interface), quote)
}

/// Draws a fragment of one of a few datagrams, so that fragments overlap and disagree about the
/// end.
fn piece(rng: &mut Rng, flow: &Flow, side: usize) -> Vec<u8> {
    let (own, peer) = flow.ends(side);
    let data = vec![0; rng.usize(..9) * 8 + usize::from(rng.u8(..8) == 0)];
    let offset = [0, 8, 16, 24, 1480, 65_528][rng.usize(..6)];
    let protocol = [6, 17, 1, 58, 47, 132][rng.usize(..6)];
    let ip = build::ip(own.0, peer.0).id(rng.u16(..100));
    ip.fragment(offset, rng.bool()).raw(protocol, &data)
}

/// Draws random bytes with the version of IPv4 or IPv6.
fn junk(rng: &mut Rng) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..rng.usize(1..120)).map(|_| rng.u8(..)).collect();
    bytes[0] = if rng.bool() { 0x40 } else { 0x60 } | bytes[0] & 15;
    bytes
}

/// Changes one part of a packet. The version stays.
fn spoil(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let inet = bytes[0] >> 4 == 4;
    let transport = if inet { usize::from(bytes[0] & 15) * 4 } else { 40 };
    let mut set = |at: usize, value: u8| {
        if let Some(byte) = bytes.get_mut(at).filter(|_| at > 0) {
            *byte = value;
        }
    };
    match rng.u8(..10) {
        0 => {
            let length = rng.usize(..bytes.len()).max(1);
            bytes.truncate(length);
        }
        1 => set(rng.usize(1..64), rng.u8(..)),
        // header length, or traffic class
        2 => bytes[0] = bytes[0] & 0xf0 | rng.u8(..16),
        // total length, or payload length
        3 => {
            let at = if inet { 2 } else { 4 };
            set(at, if rng.bool() { 0 } else { rng.u8(..) });
            set(at + 1, rng.u8(..));
        }
        // flags and offset of a fragment, or hop limit
        4 if inet => {
            set(6, rng.u8(..));
            set(7, rng.u8(..));
        }
        4 => set(7, rng.u8(..)),
        5 => set(if inet { 9 } else { 6 }, NEXT_HEADERS[rng.usize(..NEXT_HEADERS.len())]),
        // ports, numbers, data offset, flags, length, chunks
        6 => set(transport + rng.usize(..20), rng.u8(..)),
        7 if inet => options(rng, bytes),
        7 => chain(rng, bytes),
        8 => bytes.extend((0..rng.usize(1..30)).map(|_| 0xaa)),
        _ => set(transport + 12, rng.u8(..)),
    }
}

/// Inserts IPv4 options of any kind and length.
fn options(rng: &mut Rng, bytes: &mut Vec<u8>) {
    if bytes.len() < 20 || bytes[0] != 0x45 {
        return;
    }
    let options: Vec<u8> = (0..rng.usize(1..11) * 4)
        .map(|_| [0, 1, 2, 3, 4, 7, 40, 68, 131, 137, 148, 255][rng.usize(..12)])
        .collect();
    bytes[0] += (options.len() / 4) as u8;
    let length = u16::from_be_bytes([bytes[2], bytes[3]]).wrapping_add(options.len() as u16);
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    bytes.splice(20..20, options);
}

/// Inserts extension headers in any order, repeated, with right and wrong lengths and options.
fn chain(rng: &mut Rng, bytes: &mut Vec<u8>) {
    if bytes.len() < 40 {
        return;
    }
    let mut next = bytes[6];
    for _ in 0..[1, 1, 2, 3, 8, 19, 20, 30][rng.usize(..8)] {
        let kind = [0, 43, 44, 51, 60, 60, 135][rng.usize(..7)];
        let length = [0, 0, 0, 1, 4, 255][rng.usize(..6)];
        let data = if length < 5 { usize::from(length) * 8 + 6 } else { 6 };
        let data = if kind == protocol::FRAGMENT { 6 } else { data };
        let mut header = vec![next, length];
        header.extend((0..data).map(|_| [0, 0, 1, 2, 5, 0xc2][rng.usize(..6)]));
        bytes.splice(40..40, header);
        next = kind;
    }
    bytes[6] = next;
    let payload = (bytes.len() - 40) as u16;
    bytes[4..6].copy_from_slice(&payload.to_be_bytes());
}
