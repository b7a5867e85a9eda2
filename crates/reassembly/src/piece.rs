//! The parser of fragments.

use std::net::IpAddr;

use skipstep_wire::protocol;

/// Most extension headers that the parser walks.
const HEADER_LIMIT: usize = 20;

/// The fields that all datagrams from one sender to one receiver have in common. The direction is
/// not part of the key: pf stores it and never compares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// Source address of the fragments.
    pub source: IpAddr,
    /// Destination address of the fragments.
    pub destination: IpAddr,
    /// Number of the routing domain of the addresses.
    pub rdomain: u32,
    /// IPv4: the protocol. IPv6: 0, because only the first fragment's protocol counts.
    pub protocol: u8,
}

/// A parsed fragment: its headers, its data, and the offset of the data in the datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Sender, receiver and protocol of the datagram.
    pub key: Key,
    /// Identification, which tells datagrams of the same key apart.
    pub id: u32,
    /// Offset in bytes of the data in the datagram.
    pub offset: usize,
    /// True if more fragments follow (the MF bit).
    pub more: bool,
    /// The headers in front of the data. IPv6: the headers in front of the fragment header.
    pub header: Vec<u8>,
    /// IPv6: offset in `header` of the byte that announces the fragment header, and the protocol
    /// behind the fragment header. `None` for IPv4.
    pub next_header: Option<(usize, u8)>,
    /// The bytes behind the headers.
    pub data: Vec<u8>,
}

impl Piece {
    /// Parses a packet of a routing domain. Bytes beyond the length in the IP header are cut off.
    /// `None` if the packet is damaged or not a fragment.
    pub fn parse(packet: &[u8], rdomain: u32) -> Option<Piece> {
        match packet.first()? >> 4 {
            4 => parse_ipv4(packet, rdomain),
            6 => parse_ipv6(packet, rdomain),
            _ => None,
        }
    }

    /// Returns the offset of the first byte behind the fragment's data in the datagram.
    pub fn end(&self) -> usize {
        self.offset + self.data.len()
    }

    /// Removes bytes from the beginning of the data.
    pub(crate) fn cut_head(&mut self, bytes: usize) {
        self.data.drain(..bytes);
        self.offset += bytes;
    }
}

fn parse_ipv4(packet: &[u8], rdomain: u32) -> Option<Piece> {
    let header: &[u8; 20] = packet.first_chunk()?;
    let header_len = usize::from(header[0] & 15) * 4;
    let total_len = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let offset_field = u16::from_be_bytes([header[6], header[7]]);
    let (more, offset) = (offset_field & 0x2000 != 0, usize::from(offset_field & 0x1fff) * 8);
    if header_len < 20 || !more && offset == 0 {
        return None;
    }
    let address =
        |at: usize| -> Option<IpAddr> { Some(IpAddr::from(*packet[at..].first_chunk::<4>()?)) };
    Some(Piece {
        key: Key { source: address(12)?, destination: address(16)?, rdomain, protocol: header[9] },
        id: u32::from(u16::from_be_bytes([header[4], header[5]])),
        offset,
        more,
        header: packet.get(..header_len)?.to_vec(),
        next_header: None,
        data: packet.get(header_len..total_len)?.to_vec(),
    })
}

fn parse_ipv6(packet: &[u8], rdomain: u32) -> Option<Piece> {
    let header: &[u8; 40] = packet.first_chunk()?;
    let total_len = 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
    let packet = packet.get(..total_len)?;
    let address =
        |at: usize| -> Option<IpAddr> { Some(IpAddr::from(*packet[at..].first_chunk::<16>()?)) };
    let (mut named_at, mut at) = (6, 40);
    for _ in 0..HEADER_LIMIT {
        match packet[named_at] {
            protocol::FRAGMENT => break,
            protocol::HOP_BY_HOP
            | protocol::ROUTING
            | protocol::DESTINATION_OPTIONS
            | protocol::AH => {
                let length = usize::from(*packet.get(at + 1)?);
                let bytes = match packet[named_at] {
                    protocol::AH => (length + 2) * 4,
                    _ => (length + 1) * 8,
                };
                (named_at, at) = (at, at + bytes);
            }
            _ => return None,
        }
    }
    if packet[named_at] != protocol::FRAGMENT {
        return None;
    }
    let fragment: &[u8; 8] = packet.get(at..)?.first_chunk()?;
    let offset_field = u16::from_be_bytes([fragment[2], fragment[3]]);
    let (more, offset) = (offset_field & 1 != 0, usize::from(offset_field & 0xfff8));
    if !more && offset == 0 {
        return None; // RFC 6946: an atomic fragment is a whole datagram
    }
    Some(Piece {
        key: Key { source: address(8)?, destination: address(24)?, rdomain, protocol: 0 },
        id: u32::from_be_bytes([fragment[4], fragment[5], fragment[6], fragment[7]]),
        offset,
        more,
        header: packet[..at].to_vec(),
        next_header: Some((named_at, fragment[0])),
        data: packet[at + 8..].to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use skipstep_wire::build::{ipv4, ipv6};

    #[test]
    fn ipv4_fragments() {
        let packet = ipv4([10, 0, 0, 1], [10, 0, 0, 2]).id(7).fragment(16, true).raw(17, &[9; 8]);
        let piece = Piece::parse(&packet, 0).unwrap();
        assert_eq!((piece.id, piece.offset, piece.more, piece.end()), (7, 16, true, 24));
        assert_eq!((piece.header, piece.data), (packet[..20].to_vec(), vec![9; 8]));
        assert_eq!(Piece::parse(&packet[..27], 0), None, "cut off");
        let whole = ipv4([10, 0, 0, 1], [10, 0, 0, 2]).raw(17, &[9; 8]);
        assert_eq!(Piece::parse(&whole, 0), None);
    }

    #[test]
    fn ipv6_fragments_behind_extension_headers() {
        let (a, b) = ([0xfd00, 0, 0, 0, 0, 0, 0, 1], [0xfd00, 0, 0, 0, 0, 0, 0, 2]);
        // a header of destination options, then the fragment header
        let chain = [44, 0, 1, 4, 0, 0, 0, 0, 17, 0, 0, 0x11, 0, 0, 0, 5, 1, 2, 3, 4, 5, 6, 7, 8];
        let packet = ipv6(a, b).raw(protocol::DESTINATION_OPTIONS, &chain);
        let piece = Piece::parse(&packet, 0).unwrap();
        assert_eq!((piece.id, piece.offset, piece.more), (5, 16, true));
        assert_eq!((piece.header.len(), piece.next_header), (48, Some((40, 17))));
        assert_eq!(piece.data, [1, 2, 3, 4, 5, 6, 7, 8]);
        for length in 0..packet.len() {
            assert_eq!(Piece::parse(&packet[..length], 0), None, "{length} bytes");
        }
    }
}
