//! Packets as scenarios describe them, and their bytes.

use std::net::IpAddr;

use skipstep_wire::{build, checksum, protocol};

/// A packet from its IP header on.
#[derive(Debug, Clone, PartialEq)]
pub enum Packet {
    /// Bytes: `hex …`.
    Hex(Vec<u8>),
    /// Fields in words.
    Words(Box<Words>),
}

/// A packet described field by field. Missing fields have defaults. Lengths and checksums are
/// correct unless `damage` changes them.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names say all")]
pub struct Words {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub body: Body,
    pub ip: Ip,
    pub damage: Damage,
}

/// The payload of the IP header.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names say all")]
pub enum Body {
    Tcp(Tcp),
    Udp(Udp),
    Sctp(Sctp),
    Icmp(Icmp),
    /// Any other protocol, or a fragment that is not the first: protocol number and payload.
    Other(u8, Payload),
}

/// A TCP segment.
#[derive(Debug, Clone, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say all")]
pub struct Tcp {
    pub source_port: u16,
    pub destination_port: u16,
    /// TCP flags; FIN is the lowest bit.
    pub flags: u8,
    pub seq: Option<u32>,
    pub ack: Option<u32>,
    pub window: Option<u16>,
    pub urgent: Option<u16>,
    pub mss: Option<u16>,
    pub scale: Option<u8>,
    /// Further options, as encoded in the header.
    pub options: Vec<u8>,
    pub payload: Payload,
}

/// A UDP datagram.
#[derive(Debug, Clone, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say all")]
pub struct Udp {
    pub source_port: u16,
    pub destination_port: u16,
    pub payload: Payload,
}

/// An SCTP packet.
#[derive(Debug, Clone, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say all")]
pub struct Sctp {
    pub source_port: u16,
    pub destination_port: u16,
    pub tag: Option<u32>,
    pub chunks: Payload,
}

/// An ICMP or ICMPv6 message.
#[derive(Debug, Clone, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say all")]
pub struct Icmp {
    pub kind: u8,
    pub code: u8,
    pub id: Option<u16>,
    pub seq: Option<u16>,
    pub body: IcmpBody,
}

/// The data behind the first 8 bytes of an ICMP message.
#[derive(Debug, Clone, PartialEq)]
pub enum IcmpBody {
    /// Data.
    Payload(Payload),
    /// Packet that the message reports, and the number of its bytes that are quoted if not all.
    Quoted(Box<Packet>, Option<u16>),
}

impl Default for IcmpBody {
    fn default() -> Self {
        IcmpBody::Payload(Payload::default())
    }
}

/// The data of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// Number of bytes, with arbitrary contents.
    Length(u16),
    /// Exact bytes.
    Bytes(Vec<u8>),
}

impl Default for Payload {
    fn default() -> Self {
        Payload::Length(0)
    }
}

impl Payload {
    fn len(&self) -> usize {
        match self {
            Payload::Length(length) => usize::from(*length),
            Payload::Bytes(bytes) => bytes.len(),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            Payload::Length(length) => (0..*length).map(|i| i as u8).collect(),
            Payload::Bytes(bytes) => bytes.clone(),
        }
    }
}

/// Given fields of the IP header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say all")]
pub struct Ip {
    pub ttl: Option<u8>,
    pub tos: Option<u8>,
    pub id: Option<u16>,
    pub df: bool,
    /// IPv4 options; padded to a multiple of 4 bytes.
    pub options: Option<Vec<u8>>,
    /// IPv6 extension headers, in order.
    pub extensions: Vec<Extension>,
    /// Offset of a fragment in bytes, and its "more fragments" flag.
    pub fragment: Option<(u16, bool)>,
}

/// An IPv6 extension header: its contents without the first two bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extension {
    /// Options for every router.
    HopByHop(Vec<u8>),
    /// Options for the destination.
    Destination(Vec<u8>),
    /// Routing header of a type, with no segments left.
    Routing(u8, Vec<u8>),
}

/// Deliberate errors in a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Damage {
    /// Number of bytes of the packet that arrive.
    pub truncate: Option<u16>,
    /// Total length (IPv4) or payload length (IPv6) in the header, in bytes.
    pub ip_length: Option<u16>,
    /// Header length of IPv4 in the header, in bytes.
    pub header_length: Option<u8>,
    /// TCP data offset, in bytes.
    pub data_offset: Option<u8>,
    /// UDP length, in bytes.
    pub udp_length: Option<u16>,
    /// True if the checksum of TCP, UDP, SCTP or ICMP is wrong.
    pub bad_sum: bool,
}

impl Packet {
    /// Returns the packet's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Packet::Hex(bytes) => bytes.clone(),
            Packet::Words(words) => words.bytes(),
        }
    }
}

impl Words {
    fn bytes(&self) -> Vec<u8> {
        let header = self.header();
        let mut packet = match &self.body {
            Body::Tcp(tcp) => header.tcp(&tcp.build()),
            Body::Udp(udp) => header.udp(
                &build::Udp::new(udp.source_port, udp.destination_port)
                    .payload(&udp.payload.bytes()),
            ),
            Body::Sctp(sctp) => header.sctp(
                &build::Sctp::new(sctp.source_port, sctp.destination_port)
                    .tag(sctp.tag.unwrap_or(0))
                    .chunks(&sctp.chunks.bytes()),
            ),
            Body::Icmp(icmp) => header.icmp(&icmp.build()),
            Body::Other(protocol, payload) => header.raw(*protocol, &payload.bytes()),
        };
        self.patch(&mut packet);
        self.damage.inflict(&mut packet);
        packet
    }

    fn header(&self) -> build::Ip {
        let Ip { ttl, tos, id, df, options, extensions, fragment } = &self.ip;
        let mut header = build::ip(self.source, self.destination)
            .ttl(ttl.unwrap_or(64))
            .tos(tos.unwrap_or(0))
            .id(id.unwrap_or(0))
            .df(*df)
            .options(options.as_deref().unwrap_or_default());
        for extension in extensions {
            header = match extension {
                Extension::HopByHop(options) => header.hop_by_hop(options),
                Extension::Destination(options) => header.destination_options(options),
                Extension::Routing(kind, data) => header.routing(*kind, data),
            };
        }
        match fragment {
            Some((offset, more)) => header.fragment(*offset, *more),
            None => header,
        }
    }

    /// Returns the offset of the transport header.
    fn transport_at(&self, packet: &[u8]) -> usize {
        let length = match &self.body {
            Body::Tcp(tcp) => tcp.build_len(),
            Body::Udp(udp) => 8 + udp.payload.len(),
            Body::Sctp(sctp) => 12 + sctp.chunks.len(),
            Body::Icmp(icmp) => 8 + icmp.body.bytes().len(),
            Body::Other(_, payload) => payload.len(),
        };
        packet.len() - length
    }

    /// Writes fields that the builder does not support to the transport header, and updates its
    /// checksum.
    fn patch(&self, packet: &mut [u8]) {
        let at = self.transport_at(packet);
        let data = &mut packet[at..];
        let protocol = match &self.body {
            Body::Tcp(tcp) => {
                data[18..20].copy_from_slice(&tcp.urgent.unwrap_or(0).to_be_bytes());
                if let Some(bytes) = self.damage.data_offset {
                    data[12] = (bytes / 4) << 4;
                }
                protocol::TCP
            }
            Body::Udp(_) => {
                if let Some(length) = self.damage.udp_length {
                    data[4..6].copy_from_slice(&length.to_be_bytes());
                }
                protocol::UDP
            }
            Body::Icmp(_) if self.source.is_ipv6() => protocol::ICMP6,
            Body::Icmp(_) => protocol::ICMP,
            Body::Sctp(_) if self.damage.bad_sum => {
                data[8] ^= 0x55;
                return;
            }
            Body::Sctp(_) | Body::Other(..) => return,
        };
        checksum::fix_transport(self.source, self.destination, protocol, data);
        if self.damage.bad_sum
            && let Some(at) = checksum::field(protocol)
        {
            data[at..at + 2].iter_mut().for_each(|byte| *byte ^= 0x55);
        }
    }
}

impl Damage {
    /// Damages the IP header, with a correct checksum, and truncates the packet.
    fn inflict(&self, packet: &mut Vec<u8>) {
        let ipv4 = packet[0] >> 4 == 4;
        if let Some(length) = self.ip_length {
            let at = if ipv4 { 2 } else { 4 };
            packet[at..at + 2].copy_from_slice(&length.to_be_bytes());
        }
        if let Some(bytes) = self.header_length.filter(|_| ipv4) {
            packet[0] = 0x40 | (bytes / 4);
        }
        if ipv4 {
            packet[10..12].fill(0);
            let length = usize::from(packet[0] & 15) * 4;
            let sum = checksum::internet(&packet[..length.min(packet.len())]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        if let Some(length) = self.truncate {
            packet.truncate(usize::from(length));
        }
    }
}

impl Tcp {
    fn build(&self) -> build::Tcp {
        let mut tcp = build::Tcp::new(self.source_port, self.destination_port)
            .flag_bits(self.flags)
            .seq(self.seq.unwrap_or(0))
            .ack(self.ack.unwrap_or(0))
            .window(self.window.unwrap_or(65535));
        if let Some(mss) = self.mss {
            tcp = tcp.mss(mss);
        }
        if let Some(shift) = self.scale {
            tcp = tcp.window_scale(shift);
        }
        tcp.option(&self.options).payload(&self.payload.bytes())
    }

    /// Returns the number of bytes of header and payload.
    fn build_len(&self) -> usize {
        let options = self.mss.map_or(0, |_| 4) + self.scale.map_or(0, |_| 3) + self.options.len();
        20 + options.min(40).next_multiple_of(4) + self.payload.len()
    }
}

impl Icmp {
    fn build(&self) -> build::Icmp {
        build::Icmp::new(self.kind, self.code)
            .id(self.id.unwrap_or(0))
            .seq(self.seq.unwrap_or(0))
            .payload(&self.body.bytes())
    }
}

impl IcmpBody {
    fn bytes(&self) -> Vec<u8> {
        match self {
            IcmpBody::Payload(payload) => payload.bytes(),
            IcmpBody::Quoted(packet, kept) => {
                let mut bytes = packet.bytes();
                bytes.truncate(kept.map_or(usize::MAX, usize::from));
                bytes
            }
        }
    }
}
