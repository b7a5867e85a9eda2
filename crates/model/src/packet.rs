//! A parsed packet: pf's packet descriptor, with pf's header checks (pf-semantics section 4).

use std::net::{IpAddr, Ipv6Addr};

use skipstep_ruleset::{Direction, Family, Reason};
use skipstep_wire::{protocol, tcp_flag};

use crate::fate::Packet;
use crate::header::{self, Ipv4Fields, Ipv6Fields, Readable};
use crate::key::{Ends, Key};

/// A packet whose headers are valid.
#[derive(Debug, Clone)]
pub(crate) struct Descriptor {
    /// Bytes of the packet with all changes. IPv4 packets end where their header says.
    pub bytes: Vec<u8>,
    pub direction: Direction,
    /// Name of the interface where the packet is.
    pub interface: String,
    /// Routing domain of the interface.
    pub rdomain: u32,
    /// True if the packet came in by a port of a bridge, which it crosses.
    pub stays_on_bridge: bool,
    pub family: Family,
    pub source: IpAddr,
    pub destination: IpAddr,
    /// Protocol behind the IP headers, or that of the fragment header if the protocol is unknown.
    pub protocol: u8,
    /// Offset of the transport header, in bytes.
    pub offset: usize,
    /// Length of the IP packet by its header, in bytes, as counters use it.
    pub total_len: usize,
    /// TOS or traffic class without its ECN bits.
    pub tos: u8,
    /// TTL or hop limit as received.
    pub ttl: u8,
    /// True for IP options or extension headers that need `allow-opts`.
    pub options: bool,
    pub transport: Transport,
    /// Addresses and ports in the other family, if an `af-to` state lets the packet cross.
    pub crosses_to: Option<Ends>,
    /// True for a SYN that was recreated from a syncookie.
    pub recreated: bool,
}

/// The transport header behind the IP header.
#[derive(Debug, Clone)]
pub(crate) enum Transport {
    Tcp(Tcp),
    Udp {
        source_port: u16,
        destination_port: u16,
    },
    /// SCTP, whose ports are read only if rules have ports of SCTP.
    Sctp {
        source_port: u16,
        destination_port: u16,
    },
    /// ICMP; an error in an IPv6 packet.
    Icmp(Icmp),
    /// ICMPv6; an error in an IPv4 packet.
    Icmp6(Icmp),
    /// No header: it may be in another fragment, and all fragments are treated alike.
    Fragment,
    /// A protocol without ports.
    Other,
}

#[derive(Debug, Clone)]
pub(crate) struct Tcp {
    pub source_port: u16,
    pub destination_port: u16,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    /// Length of the header with its options, in bytes.
    pub header_len: usize,
    /// Number of data bytes.
    pub payload_len: u32,
}

impl Tcp {
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Returns true for SYN without ACK.
    pub fn opens(&self) -> bool {
        self.flags & (tcp_flag::SYN | tcp_flag::ACK) == tcp_flag::SYN
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Icmp {
    pub kind: u8,
    pub code: u8,
    /// Identifier, 0 or meaningless for types without one.
    pub id: u16,
    /// Target of neighbour discovery or group of listener discovery; zero for all other types.
    pub target: Ipv6Addr,
}

/// ICMPv6 types that the filter parses (RFC 4861, RFC 2710).
pub(crate) mod icmp6_type {
    pub const ECHO_REQUEST: u8 = 128;
    pub const ECHO_REPLY: u8 = 129;
    pub const LISTENER_QUERY: u8 = 130;
    pub const LISTENER_REPORT: u8 = 131;
    pub const ROUTER_SOLICIT: u8 = 133;
    pub const NEIGHBOR_SOLICIT: u8 = 135;
    pub const NEIGHBOR_ADVERT: u8 = 136;
    pub const REDIRECT: u8 = 137;
}

/// A packet that PF drops for its headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub reason: Reason,
    /// Bytes to count for the interface: the packet's length, or 0 if the length was not yet read.
    pub total_len: usize,
    pub family: Family,
}

impl Descriptor {
    /// Parses a packet. Its routing domain is 0, because this function does not know its interface:
    /// see [`Firewall::describe`](crate::Firewall).
    ///
    /// # Errors
    ///
    /// Fails with the reason if a header is damaged, too short, or has forbidden options.
    pub fn parse(packet: &Packet) -> Result<Self, Malformed> {
        match packet.bytes.first().map(|byte| byte >> 4) {
            Some(6) => Self::parse_ipv6(packet),
            _ => Self::parse_ipv4(packet),
        }
    }

    fn parse_ipv4(packet: &Packet) -> Result<Self, Malformed> {
        let malformed = |reason, total_len| Malformed { reason, total_len, family: Family::Inet };
        let mut bytes = packet.bytes.clone();
        let header = Readable(&bytes).array(0).map_err(|reason| malformed(reason, 0))?;
        let ip = Ipv4Fields::new(header);
        // a host's IP input drops packets of unknown IP versions before pf sees them
        if bytes.len() < ip.total_len || bytes[0] >> 4 != 4 {
            return Err(malformed(Reason::Short, 0));
        }
        bytes.truncate(ip.total_len);
        let readable = Readable(&bytes);
        let walked = header::walk_ipv4(readable, 0, &ip).map_err(|reason| malformed(reason, 0))?;
        let transport = if ip.is_fragment() {
            Transport::Fragment
        } else {
            parse_transport(readable, &walked, ip.ttl)
                .map_err(|reason| malformed(reason, ip.total_len))?
        };
        Ok(Descriptor {
            direction: packet.direction,
            interface: packet.interface.clone(),
            rdomain: 0,
            stays_on_bridge: false,
            family: Family::Inet,
            source: ip.source.into(),
            destination: ip.destination.into(),
            protocol: walked.protocol,
            offset: walked.offset,
            total_len: ip.total_len,
            tos: header[1] & 0xfc,
            ttl: ip.ttl,
            options: walked.options,
            transport,
            crosses_to: None,
            recreated: false,
            bytes,
        })
    }

    fn parse_ipv6(packet: &Packet) -> Result<Self, Malformed> {
        let malformed = |reason, total_len| Malformed { reason, total_len, family: Family::Inet6 };
        let bytes = packet.bytes.clone();
        let header = Readable(&bytes).array(0).map_err(|reason| malformed(reason, 0))?;
        let ip = Ipv6Fields::new(header);
        let total_len = 40 + ip.payload_len;
        if bytes.len() < total_len {
            return Err(malformed(Reason::Short, 0));
        }
        let readable = Readable(&bytes[..total_len]);
        let walked = header::walk_ipv6(readable, 0, &ip).map_err(|reason| malformed(reason, 0))?;
        let transport = if walked.fragment {
            Transport::Fragment
        } else {
            parse_transport(readable, &walked, ip.hop_limit)
                .map_err(|reason| malformed(reason, total_len))?
        };
        Ok(Descriptor {
            direction: packet.direction,
            interface: packet.interface.clone(),
            rdomain: 0,
            stays_on_bridge: false,
            family: Family::Inet6,
            source: ip.source.into(),
            destination: ip.destination.into(),
            protocol: walked.protocol,
            offset: walked.offset,
            total_len,
            tos: (header[0] << 4 | header[1] >> 4) & 0xfc,
            ttl: ip.hop_limit,
            options: walked.options,
            transport,
            crosses_to: None,
            recreated: false,
            bytes,
        })
    }

    /// Returns the key of a packet of this family and routing domain that travels in `direction`.
    pub fn key(
        &self,
        protocol: u8,
        direction: Direction,
        source: (IpAddr, u16),
        destination: (IpAddr, u16),
    ) -> Key {
        Key::new(self.rdomain, self.family, protocol, direction, source, destination)
    }

    /// Returns source and destination as in the header now, after any translation.
    pub fn header_addresses(&self) -> (IpAddr, IpAddr) {
        match self.family {
            Family::Inet => {
                let ip = Ipv4Fields::new(self.header());
                (ip.source.into(), ip.destination.into())
            }
            Family::Inet6 => {
                let ip = Ipv6Fields::new(self.header());
                (ip.source.into(), ip.destination.into())
            }
        }
    }

    fn header<const N: usize>(&self) -> [u8; N] {
        Readable(&self.bytes).array(0).expect("parsing has found it complete")
    }

    /// Returns source and destination port, 0 for protocols without ports.
    pub fn ports(&self) -> (u16, u16) {
        match &self.transport {
            Transport::Tcp(tcp) => (tcp.source_port, tcp.destination_port),
            Transport::Udp { source_port, destination_port }
            | Transport::Sctp { source_port, destination_port } => {
                (*source_port, *destination_port)
            }
            _ => (0, 0),
        }
    }

    /// Reads the ports of an SCTP packet.
    ///
    /// # Errors
    ///
    /// Fails with the reason `short` if the header is incomplete, or a port is 0.
    pub fn read_sctp_ports(&mut self) -> Result<(), Malformed> {
        if self.protocol != protocol::SCTP || self.is_fragment() {
            return Ok(());
        }
        let malformed =
            |reason| Malformed { reason, total_len: self.total_len, family: self.family };
        self.transport = parse_sctp(self.readable(), self.offset).map_err(malformed)?;
        Ok(())
    }

    /// Returns true if rules translate only the addresses. An SCTP association may have more
    /// addresses, so its ports stay, as in FreeBSD.
    pub fn keeps_ports(&self) -> bool {
        matches!(self.transport, Transport::Sctp { .. })
    }

    /// Returns the TCP header, or `None` for other packets.
    pub fn tcp(&self) -> Option<&Tcp> {
        match &self.transport {
            Transport::Tcp(tcp) => Some(tcp),
            _ => None,
        }
    }

    /// Returns the ICMP or ICMPv6 header, or `None` for other packets.
    pub fn icmp(&self) -> Option<&Icmp> {
        match &self.transport {
            Transport::Icmp(icmp) | Transport::Icmp6(icmp) => Some(icmp),
            _ => None,
        }
    }

    pub fn is_fragment(&self) -> bool {
        matches!(self.transport, Transport::Fragment)
    }

    /// Returns the bytes of the IP packet, as far as its length says.
    pub fn readable(&self) -> Readable<'_> {
        Readable(&self.bytes[..self.total_len])
    }

    /// Returns the options of the TCP header, empty for other packets.
    pub fn tcp_options(&self) -> &[u8] {
        match self.tcp() {
            Some(tcp) => &self.bytes[self.offset + 20..self.offset + tcp.header_len],
            None => &[],
        }
    }
}

fn parse_transport(
    packet: Readable,
    walked: &header::Walked,
    ttl: u8,
) -> Result<Transport, Reason> {
    match walked.protocol {
        protocol::TCP => parse_tcp(packet, walked.offset).map(Transport::Tcp),
        protocol::UDP => parse_udp(packet, walked.offset),
        protocol::ICMP => parse_icmp(packet, walked.offset).map(Transport::Icmp),
        protocol::ICMP6 => parse_icmp6(packet, walked.offset, ttl).map(Transport::Icmp6),
        _ => Ok(Transport::Other),
    }
}

fn parse_tcp(packet: Readable, offset: usize) -> Result<Tcp, Reason> {
    let header: [u8; 20] = packet.array(offset)?;
    let destination_port = u16::from_be_bytes([header[2], header[3]]);
    let header_len = usize::from(header[12] >> 4) * 4;
    if destination_port == 0 || header_len < 20 || offset + header_len > packet.0.len() {
        return Err(Reason::Short);
    }
    Ok(Tcp {
        source_port: u16::from_be_bytes([header[0], header[1]]),
        destination_port,
        seq: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
        ack: u32::from_be_bytes([header[8], header[9], header[10], header[11]]),
        flags: header[13],
        window: u16::from_be_bytes([header[14], header[15]]),
        header_len,
        payload_len: (packet.0.len() - offset - header_len) as u32,
    })
}

fn parse_udp(packet: Readable, offset: usize) -> Result<Transport, Reason> {
    let header: [u8; 8] = packet.array(offset)?;
    let destination_port = u16::from_be_bytes([header[2], header[3]]);
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    if destination_port == 0 || length < 8 || offset + length > packet.0.len() {
        return Err(Reason::Short);
    }
    Ok(Transport::Udp { source_port: u16::from_be_bytes([header[0], header[1]]), destination_port })
}

fn parse_sctp(packet: Readable, offset: usize) -> Result<Transport, Reason> {
    let header: [u8; 12] = packet.array(offset)?;
    let source_port = u16::from_be_bytes([header[0], header[1]]);
    let destination_port = u16::from_be_bytes([header[2], header[3]]);
    if source_port == 0 || destination_port == 0 {
        return Err(Reason::Short);
    }
    Ok(Transport::Sctp { source_port, destination_port })
}

/// Parses the first 8 bytes of an ICMP or ICMPv6 message. Fails with the reason `short`.
pub(crate) fn parse_icmp(packet: Readable, offset: usize) -> Result<Icmp, Reason> {
    let header: [u8; 8] = packet.array(offset)?;
    Ok(Icmp {
        kind: header[0],
        code: header[1],
        id: u16::from_be_bytes([header[4], header[5]]),
        target: Ipv6Addr::UNSPECIFIED,
    })
}

fn parse_icmp6(packet: Readable, offset: usize, hop_limit: u8) -> Result<Icmp, Reason> {
    use icmp6_type::*;
    let mut icmp = parse_icmp(packet, offset)?;
    let on_link = (ROUTER_SOLICIT..=REDIRECT).contains(&icmp.kind);
    if on_link && hop_limit != 255 {
        return Err(Reason::Normalize); // RFC 4861: it came from beyond a router
    }
    let has_target = [LISTENER_QUERY, LISTENER_REPORT, NEIGHBOR_SOLICIT, NEIGHBOR_ADVERT];
    if has_target.contains(&icmp.kind) {
        icmp.target = packet.array::<16>(offset + 8)?.into();
    }
    Ok(icmp)
}

#[cfg(test)]
impl Descriptor {
    /// Parses a packet that comes in on em0.
    pub(crate) fn arriving(bytes: Vec<u8>) -> Result<Descriptor, Malformed> {
        Descriptor::parse(&Packet {
            direction: Direction::In,
            interface: "em0".into(),
            bytes,
            link: Default::default(),
            received_on: None,
            carried: Default::default(),
            owner: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skipstep_wire::build::{Icmp as BuiltIcmp, Tcp as BuiltTcp, Udp, ipv4, ipv6};

    fn parse(bytes: &[u8]) -> Result<Descriptor, Reason> {
        Descriptor::arriving(bytes.to_vec()).map_err(|malformed| malformed.reason)
    }

    #[test]
    fn tcp() {
        let segment = ipv4([10, 0, 0, 1], [10, 0, 0, 2])
            .tos(0x13)
            .tcp(&BuiltTcp::new(4000, 22).flags("SEW").seq(7).mss(1460).payload(b"abc"));
        let descriptor = parse(&segment).unwrap();
        assert_eq!(descriptor.tos, 0x10, "ECN bits are masked off");
        assert_eq!(descriptor.tcp_options(), [2, 4, 5, 180]);
        let tcp = descriptor.tcp().unwrap();
        assert_eq!((tcp.seq, tcp.header_len, tcp.payload_len, tcp.flags), (7, 24, 3, 0xc2));
    }

    #[test]
    fn short_packets_are_refused() {
        let segment = ipv4([10, 0, 0, 1], [10, 0, 0, 2]).tcp(&BuiltTcp::new(1, 2).flags("S"));
        for length in 0..segment.len() {
            assert_eq!(parse(&segment[..length]).unwrap_err(), Reason::Short, "{length} bytes");
        }
        let no_port = ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(&Udp::new(1, 0));
        assert_eq!(parse(&no_port).unwrap_err(), Reason::Short);
        let mut beyond = ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(&Udp::new(1, 2));
        beyond[25] = 9;
        assert_eq!(parse(&beyond).unwrap_err(), Reason::Short, "UDP length beyond the packet");
    }

    #[test]
    fn neighbour_discovery_must_not_have_crossed_a_router() {
        let solicit = |hops| {
            ipv6([0xfe80, 0, 0, 0, 0, 0, 0, 5], [0xfe80, 0, 0, 0, 0, 0, 0, 6])
                .ttl(hops)
                .icmp(&BuiltIcmp::new(135, 0).payload(&[0xaa; 16]))
        };
        assert_eq!(
            parse(&solicit(255)).unwrap().icmp().unwrap().target,
            Ipv6Addr::from([0xaa; 16])
        );
        assert_eq!(parse(&solicit(64)).unwrap_err(), Reason::Normalize);
    }

    #[test]
    fn trailing_bytes_are_not_part_of_the_packet() {
        let mut datagram = ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(&Udp::new(1, 2));
        datagram.extend([0; 18]);
        assert_eq!(parse(&datagram).unwrap().bytes.len(), 28);
    }
}
