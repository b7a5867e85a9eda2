//! Random conversations of two hosts in valid protocol steps.

use std::net::IpAddr;

use fastrand::Rng;
use skipstep_ruleset::Direction;
use skipstep_scenario::packet::{
    Body, Damage, Icmp, IcmpBody, Packet, Payload, Sctp, Tcp, Udp, Words,
};
use skipstep_views::StateView;

use super::malformed::{chunks, damage, header, mutated};
use super::pool::{Pool, one_in, pick};
use super::systems;
use super::tcp::{
    ACK, FIN, PUSH, RST, SYN, at_an_edge, odd_options, peers, sack, synproxy_segment, timestamp,
};

/// A conversation of two hosts.
#[derive(Clone)]
pub struct Conversation {
    kind: Protocol,
    /// Address, port and interface of the client and of the server.
    ends: [(IpAddr, u16, &'static str); 2],
    /// The next sequence number of each side.
    next: [u32; 2],
    /// The window scale that each side offers in its SYN.
    scale: [Option<u8>; 2],
    opening: Opening,
    /// The end at whose interface the firewall sees most packets.
    watched: usize,
    /// Number of packets so far.
    age: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum Protocol {
    Tcp,
    Udp,
    Sctp,
    Echo,
    Other(u8),
}

/// The way a connection begins.
#[derive(Clone, Copy, PartialEq)]
enum Opening {
    Usual,
    /// Both sides send a SYN.
    Simultaneous,
    /// No side answers the SYNs.
    HalfOpen,
}

impl Conversation {
    /// Draws a new conversation.
    pub fn begin(rng: &mut Rng, pool: &Pool) -> Self {
        let ipv6 = one_in(rng, 3);
        let kind = match rng.u8(..12) {
            0..=5 => Protocol::Tcp,
            6..=8 => Protocol::Udp,
            9 | 10 => Protocol::Echo,
            _ if rng.bool() => Protocol::Sctp,
            _ => Protocol::Other(pick(rng, &[50, 47, 132, 2])),
        };
        let (client, server) = pool.pair(rng, ipv6);
        let (near, far) = if one_in(rng, 3) { ("em1", "em0") } else { ("em0", "em1") };
        let mut scale = || (!one_in(rng, 3)).then(|| pick(rng, &[0, 1, 2, 7, 14, 15]));
        let scale = [scale(), scale()];
        Conversation {
            kind,
            ends: [(client, pool.port(rng), near), (server, pool.port(rng), far)],
            next: [first_number(rng), first_number(rng)],
            scale,
            opening: match rng.u8(..10) {
                0 => Opening::Simultaneous,
                1 => Opening::HalfOpen,
                _ => Opening::Usual,
            },
            watched: rng.usize(..2),
            age: 0,
        }
    }

    /// Draws the next packet, and the direction and interface at which the firewall sees it.
    pub fn next(
        &mut self,
        rng: &mut Rng,
        states: &[(u32, StateView)],
    ) -> (Direction, String, Packet) {
        let side = match self.age {
            0 => 0,
            1..4 if self.opening == Opening::HalfOpen => 0,
            1 | 3 => 1,
            2 if self.opening == Opening::Simultaneous => 0,
            _ => usize::from(rng.bool()),
        };
        let packet = self.packet(rng, side, states);
        self.age += 1;
        let (direction, interface) = self.seen_at(rng, side);
        (direction, interface, packet)
    }

    fn packet(&mut self, rng: &mut Rng, side: usize, states: &[(u32, StateView)]) -> Packet {
        let [from, to] = [self.ends[side], self.ends[1 - side]];
        let body = match self.kind {
            Protocol::Tcp => Body::Tcp(segment(rng, self, side, states)),
            Protocol::Udp => Body::Udp(Udp {
                source_port: from.1,
                destination_port: to.1,
                payload: payload(rng),
            }),
            Protocol::Sctp => Body::Sctp(Sctp {
                source_port: from.1,
                destination_port: to.1,
                tag: (self.age > 0).then_some(7),
                chunks: chunks(rng),
            }),
            Protocol::Echo => Body::Icmp(echo(rng, from.0.is_ipv6(), self.ends[0].1, side)),
            Protocol::Other(protocol) => Body::Other(protocol, Payload::Length(rng.u16(8..40))),
        };
        let mut words = Words {
            source: from.0,
            destination: to.0,
            body,
            ip: header(rng, from.0.is_ipv6()),
            damage: Damage::default(),
        };
        words.damage = damage(rng, from.0.is_ipv6());
        mutated(rng, Packet::Words(Box::new(words)))
    }

    /// Draws the point at which a packet from `side` passes the firewall. A reply belongs to a
    /// state if it passes at the request's interface in the other direction.
    fn seen_at(&self, rng: &mut Rng, side: usize) -> (Direction, String) {
        let at = if one_in(rng, 5) { rng.usize(..2) } else { self.watched };
        let inbound = (at == side) != one_in(rng, 30);
        let interface = if one_in(rng, 30) { "lo0" } else { self.ends[at].2 };
        (if inbound { Direction::In } else { Direction::Out }, interface.into())
    }
}

/// Draws a first sequence number, often shortly before the wrap.
fn first_number(rng: &mut Rng) -> u32 {
    match rng.u8(..4) {
        0 => 0u32.wrapping_sub(rng.u32(..3000)),
        1 => rng.u32(..5),
        _ => rng.u32(..),
    }
}

/// Draws a segment from one side, mostly the next in order.
fn segment(
    rng: &mut Rng,
    talk: &mut Conversation,
    side: usize,
    states: &[(u32, StateView)],
) -> Tcp {
    let [from, to] = [talk.ends[side], talk.ends[1 - side]];
    let mut flags = match (talk.age, talk.opening) {
        (0, _) | (1, Opening::Simultaneous) | (1..4, Opening::HalfOpen) => SYN,
        (1, Opening::Usual) | (2 | 3, Opening::Simultaneous) => SYN | ACK,
        (2, Opening::Usual) => ACK,
        _ => match rng.u8(..16) {
            0 => FIN | ACK,
            1 => RST,
            2 => RST | ACK,
            3 => SYN,
            4 => SYN | ACK,
            5 => FIN | PUSH | ACK,
            6..=9 => ACK,
            _ => PUSH | ACK,
        },
    };
    if one_in(rng, 20) {
        flags = rng.u8(..);
    }
    let handshake = peers(states, from, to).and_then(synproxy_segment).filter(|_| !one_in(rng, 8));
    if let Some((fitting, ..)) = handshake {
        flags = fitting;
    }
    let length = if flags & SYN != 0 && !one_in(rng, 20) {
        0
    } else {
        pick(rng, &[0, 0, 1, 100, 536, 1000])
    };
    let (mut seq, mut ack) = (talk.next[side], talk.next[1 - side]);
    if let Some((sender, receiver)) = peers(states, from, to) {
        if !one_in(rng, 4) && talk.age > 2 {
            seq = sender.seqlo;
            ack = receiver.seqlo;
        }
        if one_in(rng, 4) {
            (seq, ack) = at_an_edge(rng, (seq, ack), &sender, &receiver, u32::from(length));
        }
    }
    if let Some((_, fitting_seq, fitting_ack)) = handshake {
        (seq, ack) = (fitting_seq.unwrap_or(seq), fitting_ack);
    }
    // an acknowledgment has numbers as this side sees them, which may be modulated
    let modulated = peers(states, from, to).map_or(0, |(_, receiver)| receiver.seqdiff);
    let options = match rng.u8(..24) {
        0 => vec![1, 1, 4, 2],
        1 => vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2],
        2 => vec![3, 0],
        3 => vec![2, 9, 1],
        4 => vec![0, 2, 4, 1, 1],
        5 => sack(rng, ack.wrapping_add(modulated)),
        13 => odd_options(rng),
        6..=12 => timestamp(rng, talk.age, flags & ACK != 0),
        _ => Vec::new(),
    };
    ack = ack.wrapping_add(modulated);
    if flags & ACK == 0 && !one_in(rng, 6) {
        ack = 0;
    }
    let occupied = u32::from(length) + u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
    talk.next[side] = seq.wrapping_add(occupied);
    let syn = flags & SYN != 0;
    let scale = if syn { talk.scale[side] } else { one_in(rng, 40).then(|| rng.u8(..)) };
    let segment = Tcp {
        source_port: from.1,
        destination_port: to.1,
        flags,
        seq: Some(seq),
        ack: Some(ack),
        window: Some(pick(rng, &[65535, 8192, 0, 1, 512, 29200])),
        urgent: one_in(rng, 30).then(|| rng.u16(..)),
        mss: (syn && rng.bool() || one_in(rng, 40)).then(|| pick(rng, &[1460, 536, 0, 9000])),
        scale,
        options,
        payload: Payload::Length(length),
    };
    if flags & (SYN | ACK) != SYN || !one_in(rng, 4) {
        return segment;
    }
    let (window, options) = systems::syn(rng);
    Tcp { window: Some(window), options, mss: None, scale: None, ..segment }
}

fn echo(rng: &mut Rng, ipv6: bool, id: u16, side: usize) -> Icmp {
    let (request, reply) = if ipv6 { (128, 129) } else { (8, 0) };
    let asks = (side == 0) != one_in(rng, 12);
    Icmp {
        kind: if asks { request } else { reply },
        code: u8::from(one_in(rng, 30)),
        id: Some(id),
        seq: Some(rng.u16(..9)),
        body: IcmpBody::Payload(payload(rng)),
    }
}

/// Draws the data of a datagram.
pub(super) fn payload(rng: &mut Rng) -> Payload {
    Payload::Length(pick(rng, &[0, 0, 1, 8, 33, 500]))
}
