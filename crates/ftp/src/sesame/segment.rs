//! A TCP segment in a packet that the filter has logged.

use std::net::{IpAddr, SocketAddr};

use etherparse::{NetSlice, SlicedPacket, TransportSlice};

/// A segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment<'p> {
    /// Who sends it.
    pub from: SocketAddr,
    /// To whom.
    pub to: SocketAddr,
    /// Number of the first byte, or of the SYN before it.
    pub sequence: u32,
    /// The next number that it expects.
    pub acknowledgment: u32,
    /// SYN
    pub syn: bool,
    /// ACK
    pub ack: bool,
    /// FIN or RST: there is no more to come, or nobody to hear it.
    pub end: bool,
    /// The bytes.
    pub payload: &'p [u8],
}

impl Segment<'_> {
    /// Reads a packet from its IP header on; `None` if it is a fragment, not whole, or no TCP.
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
        // what a link adds to short frames is none of it
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
    fn what_is_not_whole_is_nothing() {
        let packet = packet();
        for length in 0..packet.len() {
            assert_eq!(Segment::parse(&packet[..length]), None, "{length}");
        }
        let mut fragment = packet;
        fragment[6] |= 0x20;
        assert_eq!(Segment::parse(&fragment), None);
    }
}
