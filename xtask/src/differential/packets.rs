//! Random packets that follow conversations and break them, made while the model plays along: its
//! states say where the edges of windows and timeouts are.

use std::net::IpAddr;

use fastrand::Rng;
use skipstep_ruleset::Direction;
use skipstep_scenario::case::{Action, Arrival};
use skipstep_scenario::engine::{Draw, PeerView, SocketOwner, StateView, Verdict};
use skipstep_scenario::expect::Expectation;
use skipstep_scenario::observe::Observation;
use skipstep_scenario::packet::{
    Body, Damage, Extension, Icmp, IcmpBody, Ip, Packet, Payload, Tcp, Udp, Words,
};
use skipstep_wire::build;

use super::pool::{IDS, Pool, one_in, pick};
use super::systems;

/// How far pf lets acknowledgments stray (pf-semantics section 8).
const MAX_ACK_WINDOW: u32 = 65535 + 1500;

/// TCP flags.
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const PUSH: u8 = 8;
const ACK: u8 = 16;

/// What the maker of a state is while `synproxy` waits for it, and then for the other side.
const PROXY_SRC: u8 = 11;
const PROXY_DST: u8 = 12;

/// Two hosts that talk.
#[derive(Clone)]
struct Conversation {
    kind: Kind,
    /// Address, port and interface of the client and of the server.
    ends: [(IpAddr, u16, &'static str); 2],
    /// The next sequence number of each.
    next: [u32; 2],
    /// What each offers in its SYN.
    scale: [Option<u8>; 2],
    /// Where the firewall mostly sees it: at the interface of this end.
    watched: usize,
    /// Packets so far.
    age: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Tcp,
    Udp,
    Echo,
    Other(u8),
}

/// Makes the steps of one case.
pub struct Traffic<'p> {
    pool: &'p Pool,
    /// Tags that the rules know; the data plane has no other.
    tags: Vec<String>,
    conversations: Vec<Conversation>,
    /// Packets sent, with the direction and interface they were seen at.
    recent: Vec<(Packet, Direction, String)>,
}

impl<'p> Traffic<'p> {
    pub fn new(pool: &'p Pool, tags: Vec<String>) -> Self {
        Traffic { pool, tags, conversations: Vec::new(), recent: Vec::new() }
    }

    /// The next step. `last` is what became of the packet before, `now` the clock.
    pub fn step(
        &mut self,
        rng: &mut Rng,
        last: Option<(&Action, &Observation)>,
        now: u32,
    ) -> Action {
        let states: &[(u32, StateView)] = last.map_or(&[], |(_, observation)| &observation.states);
        if one_in(rng, 25) {
            return Action::Wait { seconds: pause(rng, states, now), expired: None };
        }
        if one_in(rng, 40) {
            let draws = [
                0,
                1,
                u32::MAX,
                u32::MAX / 2,
                u32::MAX / 2 - 1,
                u32::MAX / 2 + 1,
                u32::MAX / 10,
                rng.u32(..),
            ];
            let draw = pick(rng, &draws);
            return Action::Random(match rng.u8(..3) {
                0 => Draw::Bounded(draw),
                1 => Draw::Sequence(draw),
                _ => Draw::Timestamp(draw),
            });
        }
        if let Some((Action::Packet(arrival, _), observation)) = last {
            let goes_on =
                arrival.direction == Direction::In && observation.fate.verdict == Verdict::Pass;
            if goes_on && one_in(rng, 3) {
                let out = if arrival.interface == "em0" { "em1" } else { "em0" };
                return Action::Forward(out.into(), Expectation::default());
            }
        }
        if let Some((Action::Packet(arrival, _), observation)) = last
            && let Some(answer) = shaken_hand(arrival, observation)
            && !one_in(rng, 4)
        {
            return Action::Packet(answer, Expectation::default());
        }
        let arrival = match rng.u8(..20) {
            0 | 1 if !self.recent.is_empty() => self.error(rng),
            2 => self.stray(rng),
            _ => self.talk(rng, states),
        };
        self.recent.push((arrival.packet.clone(), arrival.direction, arrival.interface.clone()));
        if self.recent.len() > 16 {
            self.recent.remove(0);
        }
        Action::Packet(arrival, Expectation::default())
    }

    /// A packet of a conversation.
    fn talk(&mut self, rng: &mut Rng, states: &[(u32, StateView)]) -> Arrival {
        let limit = 1 + rng.usize(..6);
        if self.conversations.len() < limit || one_in(rng, 25) {
            let fresh = self.conversation(rng);
            self.conversations.push(fresh);
        }
        let place = rng.usize(..self.conversations.len());
        let mut talk = self.conversations[place].clone();
        let side = match talk.age {
            0 => 0,
            1 => 1,
            _ => usize::from(rng.bool()),
        };
        let packet = self.packet(rng, &mut talk, side, states);
        talk.age += 1;
        let (direction, interface) = seen_at(rng, &talk, side);
        self.conversations[place] = talk;
        self.carried(rng, Arrival::new(direction, interface, packet))
    }

    fn conversation(&self, rng: &mut Rng) -> Conversation {
        let ipv6 = one_in(rng, 3);
        let kind = match rng.u8(..12) {
            0..=5 => Kind::Tcp,
            6..=8 => Kind::Udp,
            9 | 10 => Kind::Echo,
            _ => Kind::Other(pick(rng, &[50, 47, 132, 2])),
        };
        let (client, server) = self.pool.pair(rng, ipv6);
        let (near, far) = if one_in(rng, 3) { ("em1", "em0") } else { ("em0", "em1") };
        let mut scale = || (!one_in(rng, 3)).then(|| pick(rng, &[0, 1, 2, 7, 14, 15]));
        let scale = [scale(), scale()];
        Conversation {
            kind,
            ends: [(client, self.pool.port(rng), near), (server, self.pool.port(rng), far)],
            next: [first_number(rng), first_number(rng)],
            scale,
            watched: rng.usize(..2),
            age: 0,
        }
    }

    fn packet(
        &self,
        rng: &mut Rng,
        talk: &mut Conversation,
        side: usize,
        states: &[(u32, StateView)],
    ) -> Packet {
        let [from, to] = [talk.ends[side], talk.ends[1 - side]];
        let body = match talk.kind {
            Kind::Tcp => Body::Tcp(segment(rng, talk, side, states)),
            Kind::Udp => Body::Udp(Udp {
                source_port: from.1,
                destination_port: to.1,
                payload: payload(rng),
            }),
            Kind::Echo => Body::Icmp(echo(rng, from.0.is_ipv6(), talk.ends[0].1, side)),
            Kind::Other(protocol) => Body::Other(protocol, Payload::Length(rng.u16(8..40))),
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

    /// An ICMP error about a packet seen before, more or less right.
    fn error(&mut self, rng: &mut Rng) -> Arrival {
        let (about, direction, interface) = pick(rng, &self.recent);
        let quoted = match &about {
            Packet::Words(words) => words.as_ref().clone(),
            Packet::Hex(_) => return self.stray(rng),
        };
        let ipv6 = quoted.source.is_ipv6();
        let (kind, code) = if ipv6 {
            pick(rng, &[(1, 0), (1, 4), (2, 0), (3, 0), (4, 1), (1, 3)])
        } else {
            pick(rng, &[(3, 1), (3, 3), (3, 4), (11, 0), (12, 0), (5, 1), (4, 0), (3, 13)])
        };
        let destination = if one_in(rng, 12) { self.pool.pair(rng, ipv6).0 } else { quoted.source };
        let source = if one_in(rng, 2) { quoted.destination } else { self.pool.pair(rng, ipv6).0 };
        let mut inner = quoted;
        if let (Body::Tcp(tcp), true) = (&mut inner.body, one_in(rng, 5)) {
            tcp.seq = Some(tcp.seq.unwrap_or(0).wrapping_add(pick(
                rng,
                &[1, u32::MAX, 65535, 65536, 1 << 31, 0u32.wrapping_sub(70_000)],
            )));
        }
        let whole = if ipv6 { 40 } else { 20 };
        let kept = pick(
            rng,
            &[
                None,
                None,
                Some(whole + 8),
                Some(whole + 8),
                Some(whole + 20),
                Some(whole + 4),
                Some(whole),
                Some(10),
                Some(0),
            ],
        );
        let body = Body::Icmp(Icmp {
            kind,
            code,
            id: None,
            seq: None,
            body: IcmpBody::Quoted(Box::new(Packet::Words(Box::new(inner))), kept),
        });
        let packet = Packet::Words(Box::new(Words {
            source,
            destination,
            body,
            ip: Ip::default(),
            damage: damage(rng, ipv6),
        }));
        // the error goes where the packet came from
        let back = if direction == Direction::In { Direction::Out } else { Direction::In };
        let other = if interface == "em0" { "em1" } else { "em0" };
        let (direction, interface) = match rng.u8(..8) {
            0..=4 => (back, interface),
            5 | 6 => (direction, other.to_owned()),
            _ => (direction, interface),
        };
        Arrival::new(direction, interface, packet)
    }

    /// Now and then a packet carries what an earlier pass attached to it.
    fn carried(&self, rng: &mut Rng, mut arrival: Arrival) -> Arrival {
        if !self.tags.is_empty() && one_in(rng, 30) {
            arrival.tag = Some(pick(rng, &self.tags));
        }
        if one_in(rng, 30) {
            arrival.prio = Some(rng.u8(..8));
        }
        if self.pool.has_queues && one_in(rng, 10) {
            arrival.queue = Some(pick(rng, &["bulk", "prompt"]).to_owned());
        }
        if one_in(rng, 3) {
            let (uid, gid) = (pick(rng, IDS), pick(rng, IDS));
            arrival.owner = Some(SocketOwner { uid, gid });
        }
        if arrival.direction == Direction::Out && one_in(rng, 12) {
            arrival.received_on =
                Some(if arrival.interface == "em0" { "em1" } else { "em0" }.into());
        }
        arrival
    }

    /// A packet that belongs to nothing: odd ICMP, neighbour discovery, fragments, other protocols.
    fn stray(&mut self, rng: &mut Rng) -> Arrival {
        let ipv6 = one_in(rng, 2);
        let (source, destination) = self.pool.pair(rng, ipv6);
        let mut ip = header(rng, ipv6);
        let icmp = |kind, code, payload| {
            Body::Icmp(Icmp { kind, code, body: IcmpBody::Payload(payload), ..Icmp::default() })
        };
        let body = match rng.u8(..6) {
            0 | 1 if ipv6 => {
                ip.ttl = Some(pick(rng, &[255, 255, 254]));
                icmp(
                    pick(rng, &[133, 134, 135, 136, 137]),
                    0,
                    Payload::Length(pick(rng, &[0, 8, 16, 24, 32])),
                )
            }
            2 if ipv6 => {
                ip.ttl = Some(pick(rng, &[1, 1, 64]));
                icmp(pick(rng, &[130, 131, 132, 143]), 0, Payload::Length(16))
            }
            0 => icmp(rng.u8(..45), rng.u8(..4), payload(rng)),
            1 => icmp(pick(rng, &[13, 14, 15, 16, 17, 18]), 0, Payload::Length(12)),
            3 => {
                ip.fragment = Some((pick(rng, &[0, 8, 24, 1480, 65528]), rng.bool()));
                Body::Other(pick(rng, &[6, 17, 1, 58, 50]), Payload::Length(rng.u16(..64)))
            }
            _ => Body::Other(
                pick(rng, &[2, 41, 47, 50, 51, 89, 132, 58, 1, 59, 0, 255]),
                Payload::Length(rng.u16(..40)),
            ),
        };
        let words = Words { source, destination, body, ip, damage: damage(rng, ipv6) };
        let direction = if rng.bool() { Direction::In } else { Direction::Out };
        let interface = pick(rng, &["em0", "em1", "em0", "em1", "lo0"]).to_owned();
        let packet = mutated(rng, Packet::Words(Box::new(words)));
        self.carried(rng, Arrival::new(direction, interface, packet))
    }
}

/// Where a packet from `side` passes the firewall. A reply belongs to a state if it passes where
/// the request did, the other way.
fn seen_at(rng: &mut Rng, talk: &Conversation, side: usize) -> (Direction, String) {
    let direction = |inbound| {
        if inbound { Direction::In } else { Direction::Out }
    };
    let at = if one_in(rng, 5) { rng.usize(..2) } else { talk.watched };
    let inbound = (at == side) != one_in(rng, 30);
    let interface = talk.ends[at].2;
    (direction(inbound), if one_in(rng, 30) { "lo0".into() } else { interface.into() })
}

/// Seconds to the end of some state, or one more or less, or just a few.
fn pause(rng: &mut Rng, states: &[(u32, StateView)], now: u32) -> u32 {
    if states.is_empty() || one_in(rng, 3) {
        return rng.u32(1..12);
    }
    let end = states[rng.usize(..states.len())].1.expires_at.saturating_sub(now);
    // established connections last a day; do not let the clock run away
    (end + rng.u32(..3)).saturating_sub(1).clamp(1, 1_000_000)
}

/// Sequence numbers begin anywhere, often shortly before they wrap.
fn first_number(rng: &mut Rng) -> u32 {
    match rng.u8(..4) {
        0 => 0u32.wrapping_sub(rng.u32(..3000)),
        1 => rng.u32(..5),
        _ => rng.u32(..),
    }
}

fn segment(
    rng: &mut Rng,
    talk: &mut Conversation,
    side: usize,
    states: &[(u32, StateView)],
) -> Tcp {
    let [from, to] = [talk.ends[side], talk.ends[1 - side]];
    let mut flags = match talk.age {
        0 => SYN,
        1 => SYN | ACK,
        2 => ACK,
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
    let handshake = peers(states, from, to).and_then(of_proxy).filter(|_| !one_in(rng, 8));
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
    // an acknowledgment means the numbers that this side saw, which may be modulated
    let modulated = peers(states, from, to).map_or(0, |(_, receiver)| receiver.seqdiff);
    let options = match rng.u8(..24) {
        0 => vec![1, 1, 4, 2],
        1 => vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2],
        2 => vec![3, 0],
        3 => vec![2, 9, 1],
        4 => vec![0, 2, 4, 1, 1],
        5 => sack(rng, ack.wrapping_add(modulated)),
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

/// A timestamp that goes on from those before, mostly; at an even or an odd place.
fn timestamp(rng: &mut Rng, age: u32, echoes: bool) -> Vec<u8> {
    let near = |rng: &mut Rng| match rng.u8(..8) {
        0 => rng.u32(..),
        1 => 0,
        2 => 1000 + age + 33_000,
        _ => 1000 + rng.u32(..age + 1),
    };
    let mut option = pick(rng, &[&[1, 1][..], &[1], &[]]).to_vec();
    option.extend([8, if one_in(rng, 20) { rng.u8(..) } else { 10 }]);
    option.extend(near(rng).to_be_bytes());
    option.extend(if echoes { near(rng) } else { 0 }.to_be_bytes());
    option
}

/// A SACK option at an even or an odd place; its length may be wrong.
fn sack(rng: &mut Rng, ack: u32) -> Vec<u8> {
    let blocks = rng.u8(1..4);
    let mut option = pick(rng, &[&[1, 1][..], &[1], &[]]).to_vec();
    option.extend([5, if one_in(rng, 8) { rng.u8(..) } else { 2 + 8 * blocks }]);
    for edge in 0..u32::from(blocks) * 2 {
        option.extend(ack.wrapping_add(edge * 1000).to_be_bytes());
    }
    option
}

/// The client's last word in a handshake with the firewall, if it just sent a SYN|ACK.
fn shaken_hand(syn: &Arrival, observation: &Observation) -> Option<Arrival> {
    let answer = observation.fate.replies.first()?;
    let (ends, tcp): ([IpAddr; 2], &[u8]) = match answer.first()? >> 4 {
        4 => {
            let at =
                |at: usize| <[u8; 4]>::try_from(answer.get(at..at + 4)?).ok().map(IpAddr::from);
            ([at(12)?, at(16)?], answer.get(20..)?)
        }
        _ => {
            let at =
                |at: usize| <[u8; 16]>::try_from(answer.get(at..at + 16)?).ok().map(IpAddr::from);
            ([at(8)?, at(24)?], answer.get(40..)?)
        }
    };
    let word = |at: usize| tcp.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
    if *tcp.get(13)? != SYN | ACK || syn.direction != Direction::In {
        return None;
    }
    let ports = word(0)?;
    let segment = build::Tcp::new(ports as u16, (ports >> 16) as u16);
    let segment = segment.flag_bits(ACK).seq(word(8)?).ack(word(4)?.wrapping_add(1));
    let packet = Packet::Hex(build::ip(ends[1], ends[0]).tcp(&segment));
    Some(Arrival { packet, ..syn.clone() })
}

/// What a proxy waits for while it shakes hands: flags, sequence number if there is but one, and
/// acknowledgment.
fn of_proxy((sender, receiver): (PeerView, PeerView)) -> Option<(u8, Option<u32>, u32)> {
    if matches!(sender.state, PROXY_SRC | PROXY_DST) {
        let (seq, ack) = (sender.seqlo.wrapping_add(1), sender.seqhi.wrapping_add(1));
        Some((ACK, Some(seq), ack))
    } else if receiver.state == PROXY_DST {
        Some((SYN | ACK, None, sender.seqhi.wrapping_add(1)))
    } else {
        None
    }
}

/// The sender's and the receiver's side of the state of a flow, if there is one.
fn peers(
    states: &[(u32, StateView)],
    from: (IpAddr, u16, &str),
    to: (IpAddr, u16, &str),
) -> Option<(PeerView, PeerView)> {
    let (from, to) = ((from.0, from.1), (to.0, to.1));
    states.iter().rev().map(|(_, state)| state).filter(|state| state.protocol == 6).find_map(
        |state| {
            let maker = if state.direction == Direction::In { 0 } else { 1 };
            let (source, destination) = (state.wire[maker], state.wire[1 - maker]);
            if (source, destination) == (from, to) {
                Some((state.src, state.dst))
            } else if (destination, source) == (from, to) {
                Some((state.dst, state.src))
            } else {
                None
            }
        },
    )
}

/// Numbers right at the edge of what pf accepts, or one beyond.
fn at_an_edge(
    rng: &mut Rng,
    (seq, ack): (u32, u32),
    sender: &PeerView,
    receiver: &PeerView,
    length: u32,
) -> (u32, u32) {
    let shift = |peer: &PeerView| u32::from(peer.wscale & 15);
    let near = rng.u32(..3).wrapping_sub(1);
    match rng.u8(..10) {
        0 => (sender.seqhi.wrapping_sub(length).wrapping_add(near), ack),
        1 => (
            sender
                .seqlo
                .wrapping_sub(u32::from(receiver.max_win) << shift(receiver))
                .wrapping_add(near),
            ack,
        ),
        2 => (sender.seqlo.wrapping_add(near), ack),
        3 => {
            (sender.seqhi.wrapping_add(MAX_ACK_WINDOW).wrapping_sub(length).wrapping_add(near), ack)
        }
        4 => (sender.seqlo.wrapping_sub(MAX_ACK_WINDOW).wrapping_add(near), ack),
        5 => (seq, receiver.seqlo.wrapping_add(MAX_ACK_WINDOW).wrapping_add(near)),
        6 => (seq, receiver.seqlo.wrapping_sub(MAX_ACK_WINDOW << shift(sender)).wrapping_add(near)),
        7 => (seq, receiver.seqlo.wrapping_add(near)),
        8 => (seq.wrapping_add(1 << 31), ack),
        _ => (rng.u32(..), rng.u32(..)),
    }
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

fn payload(rng: &mut Rng) -> Payload {
    Payload::Length(pick(rng, &[0, 0, 1, 8, 33, 500]))
}

fn header(rng: &mut Rng, ipv6: bool) -> Ip {
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
        if one_in(rng, 20) {
            ip.options = Some(pick(
                rng,
                &[
                    vec![1],
                    vec![0],
                    vec![0x94, 4, 0, 0],
                    vec![7, 7, 4, 0, 0, 0, 0],
                    vec![0x83, 1],
                    vec![0x94, 40],
                    vec![1; 40],
                ],
            ));
        }
    } else if one_in(rng, 12) {
        for _ in 0..rng.usize(1..4) {
            ip.extensions.push(match rng.u8(..6) {
                0 => Extension::HopByHop(vec![]),
                1 => Extension::HopByHop(vec![5, 2, 0, 0]),
                2 => Extension::HopByHop(vec![0xc2, 4, 0, 1, 0, 0]),
                3 => Extension::Destination(vec![1, 4, 0, 0, 0, 0]),
                4 => Extension::Routing(pick(rng, &[0, 2, 4]), vec![0; 4]),
                _ => Extension::Destination(vec![0x80; 13]),
            });
        }
    }
    if one_in(rng, 40) {
        ip.fragment = Some((pick(rng, &[0, 0, 8, 1480]), rng.bool()));
    }
    ip
}

fn damage(rng: &mut Rng, ipv6: bool) -> Damage {
    let mut damage = Damage::default();
    if one_in(rng, 40) {
        match rng.u8(..7) {
            0 => damage.truncate = Some(rng.u16(1..70)),
            // of bytes behind an IPv6 packet's end pf quotes more than the kernel keeps
            1 if !ipv6 => damage.ip_length = Some(rng.u16(..100)),
            2 => damage.header_length = Some(rng.u8(..16) * 4),
            3 => damage.data_offset = Some(rng.u8(..16) * 4),
            4 => damage.udp_length = Some(rng.u16(..60)),
            _ => damage.bad_sum = true,
        }
    }
    damage
}

/// Now and then some byte of a packet becomes another.
fn mutated(rng: &mut Rng, packet: Packet) -> Packet {
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
