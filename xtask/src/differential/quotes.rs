//! ICMP errors about earlier packets, valid and invalid.

use fastrand::Rng;
use skipstep_ruleset::Direction;
use skipstep_scenario::case::Arrival;
use skipstep_scenario::packet::{Body, Icmp, IcmpBody, Ip, Packet, Words};

use super::malformed::{self, chained, damage, mutated};
use super::pool::{Pool, one_in, pick};

/// Draws an error about `about`, which was seen at `interface`.
pub fn error(
    rng: &mut Rng,
    pool: &Pool,
    about: &Words,
    (direction, interface): (Direction, &str),
) -> Arrival {
    let mut quoted = about.clone();
    if let (Body::Tcp(tcp), true) = (&mut quoted.body, one_in(rng, 5)) {
        tcp.seq = Some(tcp.seq.unwrap_or(0).wrapping_add(pick(
            rng,
            &[1, u32::MAX, 65535, 65536, 1 << 31, 0u32.wrapping_sub(70_000)],
        )));
    }
    let mut words = about_packet(rng, pool, quoted);
    // an error about an error, which no host should send
    for _ in 0..pick(rng, &[0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 4]) {
        words = about_packet(rng, pool, words);
    }
    words.damage = damage(rng, words.source.is_ipv6());
    let packet = mutated(rng, Packet::Words(Box::new(words)));
    // the error goes back to where the packet came from
    let back = if direction == Direction::In { Direction::Out } else { Direction::In };
    let other = if interface == "em0" { "em1" } else { "em0" };
    let (direction, interface) = match rng.u8(..8) {
        0..=4 => (back, interface),
        5 | 6 => (direction, other),
        _ => (direction, interface),
    };
    Arrival::new(direction, interface.to_owned(), packet)
}

fn about_packet(rng: &mut Rng, pool: &Pool, quoted: Words) -> Words {
    let ipv6 = quoted.source.is_ipv6();
    let (kind, code) = if ipv6 {
        pick(rng, &[(1, 0), (1, 4), (2, 0), (3, 0), (4, 1), (1, 3)])
    } else {
        pick(rng, &[(3, 1), (3, 3), (3, 4), (11, 0), (12, 0), (5, 1), (4, 0), (3, 13)])
    };
    let destination = if one_in(rng, 12) { pool.pair(rng, ipv6).0 } else { quoted.source };
    let source = if one_in(rng, 2) { quoted.destination } else { pool.pair(rng, ipv6).0 };
    let whole = if ipv6 { 40 } else { 20 };
    let lengths = [whole + 8, whole + 8, whole + 20, whole + 4, whole, 10, 0];
    let kept = (!one_in(rng, 4)).then(|| pick(rng, &lengths));
    let mut quote = Packet::Words(Box::new(quoted));
    if one_in(rng, 10) {
        quote = spoiled(rng, quote);
        quote = chained(rng, quote);
    }
    let body = IcmpBody::Quoted(Box::new(quote), kept);
    let body = Body::Icmp(Icmp { kind, code, id: None, seq: None, body });
    Words { source, destination, body, ip: Ip::default(), damage: Default::default() }
}

/// Changes one of the first bytes of a quote.
fn spoiled(rng: &mut Rng, quote: Packet) -> Packet {
    let mut bytes = quote.bytes();
    let place = pick(rng, &[0, 2, 3, 4, 5, 6, 7, 9, 12, 20, 32, 40, 52]);
    if let Some(byte) = bytes.get_mut(place) {
        *byte = malformed::byte(rng, &[0, 1, 0x40, 0x44, 0x4f, 0x60, 0xff]);
    }
    Packet::Hex(bytes)
}
