//! Packets as bytes and as text. [`build`] makes packets for tests, scenario files and the answers
//! of the firewall. [`mod@print`] prints a packet as one line. [`checksum`] has the checksums,
//! [`pcap`] the headers of capture files.
//!
//! The parser of the firewall is not here. `model` has a parser of its own, because pf and a
//! general library accept different packets.

pub mod build;
pub mod checksum;
pub mod pcap;
pub mod print;

/// Numbers of the IP protocols that the firewall knows (IANA, "Protocol Numbers").
pub mod protocol {
    /// IPv6 hop-by-hop options header.
    pub const HOP_BY_HOP: u8 = 0;
    /// Internet Control Message Protocol for IPv4.
    pub const ICMP: u8 = 1;
    /// Internet Group Management Protocol.
    pub const IGMP: u8 = 2;
    /// Transmission Control Protocol.
    pub const TCP: u8 = 6;
    /// User Datagram Protocol.
    pub const UDP: u8 = 17;
    /// IPv6 routing header.
    pub const ROUTING: u8 = 43;
    /// IPv6 fragment header.
    pub const FRAGMENT: u8 = 44;
    /// Authentication header of IPsec.
    pub const AH: u8 = 51;
    /// Internet Control Message Protocol for IPv6.
    pub const ICMP6: u8 = 58;
    /// IPv6 destination options header.
    pub const DESTINATION_OPTIONS: u8 = 60;
    /// Stream Control Transmission Protocol.
    pub const SCTP: u8 = 132;
}

/// Bits of the TCP flags byte (RFC 9293 section 3.1).
pub mod tcp_flag {
    /// The sender has no more data.
    pub const FIN: u8 = 0x01;
    /// Synchronize sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Reset the connection.
    pub const RST: u8 = 0x04;
    /// Push the data to the application.
    pub const PUSH: u8 = 0x08;
    /// The acknowledgment number is valid.
    pub const ACK: u8 = 0x10;
    /// The urgent pointer is valid.
    pub const URG: u8 = 0x20;
    /// Explicit congestion notification echo.
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced.
    pub const CWR: u8 = 0x80;
    /// Letters of the flags in pf.conf, lowest bit first.
    pub const LETTERS: [char; 8] = ['F', 'S', 'R', 'P', 'A', 'U', 'E', 'W'];
}

/// Returns source and destination of an IP packet; `None` for other packets and truncated ones.
pub fn addresses(packet: &[u8]) -> Option<(std::net::IpAddr, std::net::IpAddr)> {
    let part = |range: std::ops::Range<usize>| packet.get(range);
    match packet.first()? >> 4 {
        4 => {
            let address =
                |range| Some(std::net::IpAddr::from(<[u8; 4]>::try_from(part(range)?).ok()?));
            Some((address(12..16)?, address(16..20)?))
        }
        6 => {
            let address =
                |range| Some(std::net::IpAddr::from(<[u8; 16]>::try_from(part(range)?).ok()?));
            Some((address(8..24)?, address(24..40)?))
        }
        _ => None,
    }
}

/// Returns the length in bytes that the IP header gives, or `packet.len()` without a valid header.
/// The result is at least 20, and at most `packet.len()` if that is more than 20.
pub fn ip_length(packet: &[u8]) -> usize {
    let length = match packet {
        [first, _, high, low, ..] if first >> 4 == 4 => {
            usize::from(u16::from_be_bytes([*high, *low]))
        }
        [first, _, _, _, high, low, ..] if first >> 4 == 6 => {
            40 + usize::from(u16::from_be_bytes([*high, *low]))
        }
        _ => packet.len(),
    };
    length.clamp(20, packet.len().max(20))
}
