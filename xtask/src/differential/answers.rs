//! Packets of existing states, from either side, with the addresses and ports of that side. So
//! states that rules translated, also to the other family, get answers and continue.

use std::net::IpAddr;

use fastrand::Rng;
use skipstep_ruleset::Direction;
use skipstep_scenario::case::Arrival;
use skipstep_scenario::packet::{
    Body, Damage, Icmp, IcmpBody, Packet, Payload, Sctp, Tcp, Udp, Words,
};
use skipstep_views::{Peer, StateView};

use super::conversation::payload;
use super::malformed::{chained, chunks, damage, header, mutated};
use super::pool::{one_in, pick};
use super::tcp::{ACK, FIN, PUSH, RST, SYN, at_an_edge, synproxy_segment, timestamp};

/// Address and port, or the ICMP id or type in place of the port.
type End = (IpAddr, u16);

/// Draws a packet that should match the state.
pub fn packet_of_state(rng: &mut Rng, state: &StateView) -> Arrival {
    let answers = !one_in(rng, 3);
    let crosses = state.wire[0].0.is_ipv4() != state.stack[0].0.is_ipv4();
    let [wire, stack] = [state.wire, state.stack];
    // index 0 of a key is the source of an inbound and the destination of an outbound packet
    let (direction, from, to) = match (state.direction, answers) {
        (Direction::In, true) if crosses => (Direction::In, stack[0], stack[1]),
        (Direction::In, true) | (Direction::Out, false) => (Direction::Out, stack[1], stack[0]),
        (Direction::In, false) | (Direction::Out, true) => (Direction::In, wire[0], wire[1]),
    };
    let body = match state.protocol {
        6 if answers => Body::Tcp(segment(rng, (from, state.dst), (to, state.src))),
        6 => Body::Tcp(segment(rng, (from, state.src), (to, state.dst))),
        17 => Body::Udp(Udp { source_port: from.1, destination_port: to.1, payload: payload(rng) }),
        132 => Body::Sctp(Sctp {
            source_port: from.1,
            destination_port: to.1,
            tag: None,
            chunks: chunks(rng),
        }),
        1 | 58 => Body::Icmp(message(rng, from, to, answers)),
        other => Body::Other(other, Payload::Length(rng.u16(8..40))),
    };
    let ipv6 = from.0.is_ipv6();
    let mut words = Words {
        source: from.0,
        destination: to.0,
        body,
        ip: header(rng, ipv6),
        damage: Damage::default(),
    };
    words.damage = damage(rng, ipv6);
    let packet = mutated(rng, Packet::Words(Box::new(words)));
    let packet = chained(rng, packet);
    let interface = match &state.interface {
        Some(bound) if !one_in(rng, 6) => bound.clone(),
        _ => pick(rng, &["em0", "em1"]).to_owned(),
    };
    Arrival::new(direction, interface, packet)
}

fn segment(rng: &mut Rng, (from, sender): (End, Peer), (to, receiver): (End, Peer)) -> Tcp {
    let silent = sender.seqhi == 0 || sender.seqlo == 0;
    let handshake = synproxy_segment((sender, receiver)).filter(|_| !one_in(rng, 8));
    let flags = match rng.u8(..16) {
        _ if handshake.is_some() => handshake.map_or(0, |(fitting, ..)| fitting),
        _ if silent && !one_in(rng, 8) => SYN | ACK,
        0 | 1 => FIN | ACK,
        2 => pick(rng, &[RST, RST | ACK]),
        3 => pick(rng, &[SYN, SYN | ACK, FIN, 0, SYN | FIN, 0xff]),
        4..=8 => ACK,
        _ => PUSH | ACK,
    };
    let length = if flags & SYN != 0 { 0 } else { pick(rng, &[0, 0, 1, 100, 536]) };
    let (mut seq, mut ack) = (if silent { rng.u32(..) } else { sender.seqlo }, receiver.seqlo);
    if one_in(rng, 6) {
        (seq, ack) = at_an_edge(rng, (seq, ack), &sender, &receiver, u32::from(length));
    }
    // an acknowledgment has numbers as this side sees them, which may be modulated
    ack = ack.wrapping_add(receiver.seqdiff);
    if let Some((_, fitting_seq, fitting_ack)) = handshake {
        (seq, ack) = (fitting_seq.unwrap_or(seq), fitting_ack);
    }
    let options = if one_in(rng, 3) { timestamp(rng, 40, true) } else { Vec::new() };
    Tcp {
        source_port: from.1,
        destination_port: to.1,
        flags,
        seq: Some(seq),
        ack: Some(if flags & ACK == 0 { 0 } else { ack }),
        window: Some(pick(rng, &[65535, 8192, 0, 512, 29200])),
        urgent: None,
        mss: (flags & SYN != 0 && rng.bool()).then_some(1460),
        scale: (flags & SYN != 0 && rng.bool()).then_some(2),
        options,
        payload: Payload::Length(length),
    }
}

/// Draws an ICMP query or its reply. A key has the id at the sender's end and the type at the
/// other.
fn message(rng: &mut Rng, from: End, to: End, answers: bool) -> Icmp {
    let (query, id) = if answers { (from.1, to.1) } else { (to.1, from.1) };
    let kind = match query {
        _ if !answers => query as u8,
        8 => 0,
        other => (other as u8).wrapping_add(1),
    };
    let body = IcmpBody::Payload(payload(rng));
    Icmp { kind, code: u8::from(one_in(rng, 30)), id: Some(id), seq: Some(rng.u16(..9)), body }
}
