//! TCP segments of logged packets.

use std::net::{IpAddr, SocketAddr};

use etherparse::{NetSlice, SlicedPacket, TransportSlice};

/// A TCP segment with the fields that ftpsesame needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment<'p> {
    /// Source address and port.
    pub from: SocketAddr,
    /// Destination address and port.
    pub to: SocketAddr,
    /// Sequence number of the first byte, or of the SYN before it.
    pub sequence: u32,
    /// Acknowledgment number, the next byte that the sender expects.
    pub acknowledgment: u32,
    /// The SYN flag.
    pub syn: bool,
    /// The ACK flag.
    pub ack: bool,
    /// True if FIN or RST is set, so the connection ends.
    pub end: bool,
    /// The bytes after the TCP header.
    pub payload: &'p [u8],
}

impl Segment<'_> {
    /// Parses a packet from its IP header on. Returns `None` for fragments, truncated packets and
    /// other protocols.
    pub fn parse(packet: &[u8]) -> Option<Segment<'_>> {
        let sliced = SlicedPacket::from_ip(packet).ok()?;
        let (from, to): (IpAddr, IpAddr) = match sliced.net? {
            NetSlice::Ipv4(ip) => {
                (ip.header().source_addr().into(), ip.header().destination_addr().into())
            }
            NetSlice::Ipv6(ip) => {
                (ip.header().source_addr().into(), ip.header().destination_addr().into())
            }
            _ => return None,
        };
        let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { return None };
        Some(Segment {
            from: (from, tcp.source_port()).into(),
            to: (to, tcp.destination_port()).into(),
            sequence: tcp.sequence_number(),
            acknowledgment: tcp.acknowledgment_number(),
            syn: tcp.syn(),
            ack: tcp.ack(),
            end: tcp.fin() || tcp.rst(),
            payload: tcp.payload(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;

    fn packet() -> Vec<u8> {
        let builder = PacketBuilder::ipv4([10, 0, 0, 5], [192, 0, 2, 1], 64)
            .tcp(40_000, 21, 7, 1000)
            .ack(9)
            .fin();
        let mut packet = Vec::new();
        builder.write(&mut packet, b"QUIT\r\n").unwrap();
        packet
    }

    #[test]
    fn a_packet_is_read() {
        let mut packet = packet();
        // a link may pad short frames; padding is not payload
        packet.extend([0; 4]);
        assert_eq!(
            Segment::parse(&packet),
            Some(Segment {
                from: "10.0.0.5:40000".parse().unwrap(),
                to: "192.0.2.1:21".parse().unwrap(),
                sequence: 7,
                acknowledgment: 9,
                syn: false,
                ack: true,
                end: true,
                payload: b"QUIT\r\n",
            })
        );
    }

    #[test]
    fn truncated_packets_and_fragments_are_not_parsed() {
        let packet = packet();
        for length in 0..packet.len() {
            assert_eq!(Segment::parse(&packet[..length]), None, "{length}");
        }
        let mut fragment = packet;
        fragment[6] |= 0x20;
        assert_eq!(Segment::parse(&fragment), None);
    }
}
