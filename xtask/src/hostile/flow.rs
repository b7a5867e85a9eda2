//! Two hosts that talk through the firewall and check everything that arrives.

use std::net::IpAddr;

use anyhow::{Context, ensure};
use fastrand::Rng;
use skipstep_model::{Carried, LinkHeader, Packet, Verdict};
use skipstep_ruleset::Direction;
use skipstep_wire::build::{self, Icmp, Sctp, Tcp, Udp};
use skipstep_wire::tcp_flag::{ACK, PUSH, SYN};

use super::ledger::Ledger;
use super::segment::{self, Segment};

/// Address and port, or the number in place of the port.
pub type End = (IpAddr, u16);
/// Direction and interface at which the firewall sees a packet.
pub type Point = (Direction, &'static str);

const GRE: u8 = 47;
/// Number of bytes of a datagram in each of its fragments.
const PIECE: usize = 24;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Tcp,
    Udp,
    Sctp,
    /// UDP. The client's datagrams are sent as fragments.
    Pieces,
    Echo,
    Other,
}

/// The client or the server.
struct Endpoint {
    own: End,
    /// The other side's address and port as this side knows it.
    peer: End,
    /// TCP: sequence number of the next byte to send, and of the next byte to receive.
    next: u32,
    expected: u32,
    heard: Vec<Vec<u8>>,
}

/// A client and a server.
pub struct Flow {
    pub name: &'static str,
    pub kind: Protocol,
    /// Points at which the firewall sees the packets of each side.
    pub places: [Point; 2],
    hosts: [Endpoint; 2],
    said: u16,
}

const LAN_IN: Point = (Direction::In, "em0");
const LAN_OUT: Point = (Direction::Out, "em0");
const WAN_IN: Point = (Direction::In, "em1");
const WAN_OUT: Point = (Direction::Out, "em1");

/// Returns a flow for each kind of state. The last argument is the server's real address, if the
/// client knows another.
pub fn all() -> Vec<Flow> {
    use Protocol::*;
    let lan = [LAN_IN, LAN_OUT];
    let out = [WAN_OUT, WAN_IN];
    let (inet, inet6) = ("10.0.2.10", "2001:db8:2::10");
    let (host, host6) = ("10.0.1.5", "2001:db8:1::5");
    let (server, mapped) = ("198.51.100.7", "64:ff9b::c633:6407");
    vec![
        Flow::new("udp", Udp, lan, (host, 4001), (inet, 53), None),
        Flow::new("udp, IPv6", Udp, lan, (host6, 4002), (inet6, 53), None),
        Flow::new("fragments", Pieces, lan, (host, 4003), (inet, 5000), None),
        Flow::new("source-track", Udp, lan, (host, 4004), (inet, 69), None),
        Flow::new("limiter", Udp, lan, (host, 4005), (inet, 70), None),
        Flow::new("tcp", Tcp, lan, (host, 4006), (inet, 22), None),
        Flow::new("tcp, IPv6", Tcp, lan, (host6, 4007), (inet6, 22), None),
        Flow::new("modulate", Tcp, lan, (host, 4008), (inet, 80), None),
        Flow::new("modulate, IPv6", Tcp, lan, (host6, 4009), (inet6, 80), None),
        Flow::new("synproxy", Tcp, lan, (host, 4010), (inet, 443), None),
        Flow::new("reassemble tcp", Tcp, lan, (host, 4011), (inet, 25), None),
        Flow::new("sctp", Sctp, lan, (host, 4024), (inet, 3868), None),
        Flow::new("sctp, IPv6", Sctp, lan, (host6, 4025), (inet6, 3868), None),
        Flow::new("echo", Echo, lan, (host, 4012), (inet, 4012), None),
        Flow::new("echo, IPv6", Echo, lan, (host6, 4013), (inet6, 4013), None),
        Flow::new("gre", Other, lan, (host, 0), (inet, 0), None),
        Flow::new("gre, IPv6", Other, lan, (host6, 0), (inet6, 0), None),
        Flow::new("nat-to, tcp", Tcp, out, (host, 4016), (server, 80), None),
        Flow::new("nat-to, udp", Udp, out, (host, 4017), (server, 123), None),
        Flow::new("nat-to, sctp", Sctp, out, (host, 4023), (server, 3868), None),
        Flow::new("nat-to, echo", Echo, out, (host, 4018), (server, 4018), None),
        Flow::new(
            "rdr-to",
            Tcp,
            [WAN_IN, WAN_OUT],
            ("198.51.100.9", 4019),
            ("10.0.2.1", 2222),
            Some(("10.0.1.9", 22)),
        ),
        Flow::new(
            "af-to, tcp",
            Tcp,
            [LAN_IN, WAN_IN],
            (host6, 4020),
            (mapped, 81),
            Some((server, 81)),
        ),
        Flow::new(
            "af-to, udp",
            Udp,
            [LAN_IN, WAN_IN],
            (host6, 4021),
            (mapped, 82),
            Some((server, 82)),
        ),
        Flow::new(
            "af-to, echo",
            Echo,
            [LAN_IN, WAN_IN],
            (host6, 4022),
            (mapped, 4022),
            Some((server, 4022)),
        ),
    ]
}

impl Flow {
    fn new(
        name: &'static str,
        kind: Protocol,
        places: [Point; 2],
        client: (&str, u16),
        server: (&str, u16),
        behind: Option<(&str, u16)>,
    ) -> Self {
        let end =
            |(address, port): (&str, u16)| (address.parse().expect("a literal address"), port);
        let (own, known) = (end(client), end(server));
        let host = |own, peer, next| Endpoint { own, peer, next, expected: 0, heard: Vec::new() };
        let server = behind.map_or(known, end);
        // the server learns the client's address from the first packet
        let hosts = [host(own, known, 5_000_000), host(server, own, 9_000_000)];
        Flow { name, kind, places, hosts, said: 0 }
    }

    /// Returns the addresses and ports of a packet from this side: its own and the peer's.
    pub fn ends(&self, side: usize) -> (End, End) {
        (self.hosts[side].own, self.hosts[side].peer)
    }

    /// Completes the handshake, if the protocol has one.
    ///
    /// # Errors
    /// Fails if a packet is dropped or arrives wrong, or if the handshake does not complete.
    pub fn open(&mut self, ledger: &mut Ledger) -> anyhow::Result<()> {
        if self.kind == Protocol::Tcp {
            let syn = self.segment(0, SYN, &[]);
            self.hosts[0].next += 1;
            self.send(ledger, 0, syn)?;
            let known = self.hosts.iter().all(|host| host.expected != 0);
            ensure!(known, "{}: the handshake does not come to its end", self.name);
        }
        Ok(())
    }

    /// Sends a message from each side, and checks that the other side receives exactly this
    /// message.
    ///
    /// # Errors
    /// Fails if a packet is dropped or arrives wrong.
    pub fn talk(&mut self, ledger: &mut Ledger) -> anyhow::Result<()> {
        for side in [0, 1] {
            self.said += 1;
            let words = format!("{} {} {:040}", self.name, side, self.said).into_bytes();
            for packet in self.packets(side, &words) {
                self.send(ledger, side, packet)?;
            }
            self.hosts[side].next = self.hosts[side].next.wrapping_add(words.len() as u32);
            let heard = std::mem::take(&mut self.hosts[1 - side].heard);
            let place = if side == 0 { "client" } else { "server" };
            ensure!(heard == [words], "{}: the data of the {place} did not arrive", self.name);
        }
        Ok(())
    }

    /// Returns the packets in which a side sends data.
    fn packets(&self, side: usize, data: &[u8]) -> Vec<Vec<u8>> {
        let (own, peer) = self.ends(side);
        let ip = build::ip(own.0, peer.0);
        match self.kind {
            Protocol::Tcp => vec![self.segment(side, ACK | PUSH, data)],
            Protocol::Pieces if side == 0 => {
                // an identification that no hostile packet has
                let ip = ip.id(60_000 + self.said);
                let whole = ip.udp(&Udp::new(own.1, peer.1).payload(data));
                let data = &whole[20..];
                let pieces = data.chunks(PIECE).enumerate();
                let last = data.len().div_ceil(PIECE) - 1;
                let piece = |(at, piece): (usize, &[u8])| {
                    ip.clone().fragment((at * PIECE) as u16, at < last).raw(17, piece)
                };
                pieces.map(piece).collect()
            }
            Protocol::Udp | Protocol::Pieces => {
                vec![ip.udp(&Udp::new(own.1, peer.1).payload(data))]
            }
            Protocol::Sctp => vec![ip.sctp(&Sctp::new(own.1, peer.1).chunks(data))],
            Protocol::Echo => {
                let kind = match (own.0, side) {
                    (IpAddr::V4(_), 0) => 8,
                    (IpAddr::V4(_), _) => 0,
                    (IpAddr::V6(_), 0) => 128,
                    (IpAddr::V6(_), _) => 129,
                };
                vec![ip.icmp(&Icmp::new(kind, 0).id(own.1).payload(data))]
            }
            Protocol::Other => vec![ip.raw(GRE, data)],
        }
    }

    fn segment(&self, side: usize, flags: u8, data: &[u8]) -> Vec<u8> {
        let host = &self.hosts[side];
        let tcp = Tcp::new(host.own.1, host.peer.1).flag_bits(flags).seq(host.next);
        let tcp = tcp.ack(if flags & ACK != 0 { host.expected } else { 0 });
        build::ip(host.own.0, host.peer.0).tcp(&tcp.payload(data))
    }

    /// Draws a packet of a side that does not know the sequence numbers of its connection.
    pub fn blind(&self, rng: &mut Rng, side: usize) -> Vec<u8> {
        if self.kind != Protocol::Tcp {
            return self.packets(side, b"what nobody said").remove(0);
        }
        let (own, peer) = self.ends(side);
        let tcp = Tcp::new(own.1, peer.1).flag_bits(rng.u8(..)).seq(rng.u32(..)).ack(rng.u32(..));
        let data = if rng.bool() { &b"what nobody said"[..] } else { &[] };
        build::ip(own.0, peer.0).tcp(&tcp.window(rng.u16(..)).payload(data))
    }

    /// Draws the first packet of another client.
    pub fn newcomer(&self, rng: &mut Rng) -> Vec<u8> {
        let (own, peer) = self.ends(0);
        let (host, port) = (rng.u8(20..250), rng.u16(1024..));
        let source = match own.0 {
            IpAddr::V4(v4) => {
                let [a, b, c, _] = v4.octets();
                IpAddr::from([a, b, c, host])
            }
            IpAddr::V6(v6) => IpAddr::from((v6.to_bits() + u128::from(host)).to_be_bytes()),
        };
        let ip = build::ip(source, peer.0);
        match self.kind {
            Protocol::Tcp => ip.tcp(&Tcp::new(port, peer.1).flags("S").seq(rng.u32(..))),
            Protocol::Udp | Protocol::Pieces => ip.udp(&Udp::new(port, peer.1)),
            Protocol::Sctp => ip.sctp(&Sctp::new(port, peer.1)),
            Protocol::Echo => {
                ip.icmp(&Icmp::new(if own.0.is_ipv4() { 8 } else { 128 }, 0).id(port))
            }
            Protocol::Other => ip.raw(GRE, &[0; 8]),
        }
    }

    /// Sends a packet, and then the answers of the hosts until none is left.
    fn send(&mut self, ledger: &mut Ledger, side: usize, packet: Vec<u8>) -> anyhow::Result<()> {
        let mut underway = vec![(side, packet)];
        while let Some((side, bytes)) = underway.pop() {
            let sent = test_packet(self.places[side], bytes);
            let fate = ledger.play(&sent);
            let mut arrived = fate.replies;
            arrived.extend(fate.forwarded.into_iter().map(|forwarded| forwarded.bytes));
            if fate.verdict == Verdict::Pass {
                arrived.push(fate.out.unwrap_or(sent.bytes));
            }
            let held = self.kind == Protocol::Pieces && fate.verdict == Verdict::Consumed;
            ensure!(
                held || !arrived.is_empty(),
                "{}: a packet of side {side} is dropped: {:?} {:?}",
                self.name,
                fate.reason,
                fate.counted
            );
            for bytes in arrived {
                let line = skipstep_wire::print::line(&bytes);
                let name = self.name;
                let what = || format!("{name}: arrived: {line}");
                let segment = segment::read(&bytes).with_context(what)?;
                let to = usize::from(segment.to.0 == self.hosts[1].own.0);
                let answer = self.receive(to, segment).with_context(what)?;
                underway.extend(answer.map(|answer| (to, answer)));
            }
        }
        Ok(())
    }

    /// Checks a received packet, and returns the host's answer if there is one.
    fn receive(&mut self, to: usize, segment: Segment) -> anyhow::Result<Option<Vec<u8>>> {
        let first = to == 1 && self.said <= 1;
        let host = &mut self.hosts[to];
        if first {
            host.peer = segment.from;
            if self.kind == Protocol::Echo {
                (host.own.1, host.peer.1) = (segment.to.1, segment.to.1);
            }
        }
        ensure!(
            segment.to == host.own,
            "the segment is for {:?}, not for {:?}",
            segment.to,
            host.own
        );
        ensure!(
            segment.from == host.peer,
            "the segment is from {:?}, not {:?}",
            segment.from,
            host.peer
        );
        if self.kind != Protocol::Tcp {
            host.heard.push(segment.payload);
            return Ok(None);
        }
        let opens = segment.flags & SYN != 0;
        if opens {
            host.expected = segment.seq;
        }
        ensure!(segment.seq == host.expected, "seq {}, not {}", segment.seq, host.expected);
        if opens && segment.flags & ACK == 0 {
            host.expected = segment.seq.wrapping_add(1);
            let answer = self.segment(to, SYN | ACK, &[]);
            self.hosts[to].next = self.hosts[to].next.wrapping_add(1);
            return Ok(Some(answer));
        }
        ensure!(segment.ack == host.next, "ack {}, not {}", segment.ack, host.next);
        host.expected = segment.seq.wrapping_add(segment.payload.len() as u32 + u32::from(opens));
        if opens {
            return Ok(Some(self.segment(to, ACK, &[])));
        }
        if !segment.payload.is_empty() {
            host.heard.push(segment.payload);
        }
        Ok(None)
    }
}

/// Creates a test packet without metadata.
pub fn test_packet((direction, interface): Point, bytes: Vec<u8>) -> Packet {
    Packet {
        direction,
        interface: interface.to_owned(),
        bytes,
        link: LinkHeader::default(),
        received_on: None,
        carried: Carried::default(),
        owner: None,
    }
}
