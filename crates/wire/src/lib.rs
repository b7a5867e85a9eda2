//! Packets for people: [`build`] makes them for tests and scenario files and for the answers of the
//! firewall, [`mod@print`] shows one in a line, [`checksum`] is the arithmetic both need.
//!
//! What the firewall itself reads from a packet is not here: `model` has a parser of its own, with
//! pf's decisions, because a general library accepts and refuses other packets than pf does.

pub mod build;
pub mod checksum;
pub mod print;

/// Numbers of the IP protocols that the firewall knows (IANA, "Protocol Numbers").
pub mod protocol {
    /// IPv6 hop-by-hop options
    pub const HOP_BY_HOP: u8 = 0;
    /// ICMP for IPv4
    pub const ICMP: u8 = 1;
    /// IGMP
    pub const IGMP: u8 = 2;
    /// TCP
    pub const TCP: u8 = 6;
    /// UDP
    pub const UDP: u8 = 17;
    /// IPv6 routing header
    pub const ROUTING: u8 = 43;
    /// IPv6 fragment header
    pub const FRAGMENT: u8 = 44;
    /// Authentication header
    pub const AH: u8 = 51;
    /// ICMP for IPv6
    pub const ICMP6: u8 = 58;
    /// IPv6 destination options
    pub const DESTINATION_OPTIONS: u8 = 60;
    /// SCTP
    pub const SCTP: u8 = 132;
}

/// Bits of the TCP flags byte (RFC 9293 section 3.1).
pub mod tcp_flag {
    /// no more data from the sender
    pub const FIN: u8 = 0x01;
    /// synchronize sequence numbers
    pub const SYN: u8 = 0x02;
    /// reset
    pub const RST: u8 = 0x04;
    /// push
    pub const PUSH: u8 = 0x08;
    /// the acknowledgment number counts
    pub const ACK: u8 = 0x10;
    /// the urgent pointer counts
    pub const URG: u8 = 0x20;
    /// congestion echo
    pub const ECE: u8 = 0x40;
    /// congestion window reduced
    pub const CWR: u8 = 0x80;
    /// Letters of the flags, lowest bit first, as pf.conf writes them.
    pub const LETTERS: [char; 8] = ['F', 'S', 'R', 'P', 'A', 'U', 'E', 'W'];
}

/// Source and destination of an IP packet; `None` if it is none, or ends before them.
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

/// The length of a packet as its IP header gives it; all of `packet` if that makes no sense.
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
