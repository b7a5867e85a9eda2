//! The Internet checksum (RFC 1071) of whole packets, and the CRC32c of SCTP.

use std::net::IpAddr;

use crate::protocol;

/// Returns the checksum of `data`, in host byte order; its checksum field must be zero.
pub fn internet(data: &[u8]) -> u16 {
    !fold(sum(data))
}

/// Returns the checksum of a TCP, UDP or ICMPv6 packet, in host byte order. The checksum also
/// covers a pseudo header (RFC 9293 section 3.1, RFC 8200 section 8.1). The checksum field in
/// `data` must be zero.
pub fn transport(source: IpAddr, destination: IpAddr, protocol: u8, data: &[u8]) -> u16 {
    let addresses = match (source, destination) {
        (IpAddr::V4(a), IpAddr::V4(b)) => sum(&a.octets()) + sum(&b.octets()),
        (a, b) => sum(&octets16(a)) + sum(&octets16(b)),
    };
    let length = data.len() as u32;
    !fold(addresses + u32::from(protocol) + (length >> 16) + (length & 0xffff) + sum(data))
}

/// Returns the CRC32c of an SCTP packet in the byte order of its header (RFC 9260, appendix A). The
/// CRC covers no addresses. The checksum field in `data` must be zero.
pub fn crc32c(data: &[u8]) -> [u8; 4] {
    const REVERSED_POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut crc = u32::MAX;
    for byte in data {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            let carry = crc & 1;
            crc = (crc >> 1) ^ (carry * REVERSED_POLYNOMIAL);
        }
    }
    (!crc).to_le_bytes()
}

/// Recomputes the checksums of a packet that a test has changed. These are the checksum of the IPv4
/// header, and that of TCP, UDP, ICMP or ICMPv6 directly behind the IP header. Does nothing where
/// the packet is too short for a checksum field.
pub fn fix(packet: &mut [u8]) {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => fix_ipv4(packet),
        Some(6) if packet.len() >= 40 => {
            let source = IpAddr::from(<[u8; 16]>::try_from(&packet[8..24]).unwrap_or_default());
            let destination =
                IpAddr::from(<[u8; 16]>::try_from(&packet[24..40]).unwrap_or_default());
            let protocol = packet[6];
            fix_transport(source, destination, protocol, &mut packet[40..]);
        }
        _ => {}
    }
}

fn fix_ipv4(packet: &mut [u8]) {
    let header_len = usize::from(packet[0] & 15) * 4;
    if header_len < 20 || packet.len() < header_len {
        return;
    }
    packet[10..12].fill(0);
    let header_sum = internet(&packet[..header_len]);
    packet[10..12].copy_from_slice(&header_sum.to_be_bytes());
    if packet[6] & 0x3f != 0 || packet[7] != 0 {
        return; // a fragment has no checksum of its own
    }
    let source = IpAddr::from(<[u8; 4]>::try_from(&packet[12..16]).unwrap_or_default());
    let destination = IpAddr::from(<[u8; 4]>::try_from(&packet[16..20]).unwrap_or_default());
    let protocol = packet[9];
    fix_transport(source, destination, protocol, &mut packet[header_len..]);
}

fn fix_transport(source: IpAddr, destination: IpAddr, protocol: u8, data: &mut [u8]) {
    let at = match protocol {
        protocol::TCP => 16,
        protocol::UDP => 6,
        protocol::ICMP | protocol::ICMP6 => 2,
        _ => return,
    };
    if data.len() < at + 2 {
        return;
    }
    data[at..at + 2].fill(0);
    let sum = match protocol {
        protocol::ICMP => internet(data),
        protocol::UDP => match transport(source, destination, protocol, data) {
            0 => 0xffff, // zero would mean "no checksum"
            sum => sum,
        },
        _ => transport(source, destination, protocol, data),
    };
    data[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

fn octets16(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// Returns the sum of the 16-bit words. No packet has enough words to overflow 32 bits.
fn sum(data: &[u8]) -> u32 {
    let words = data.chunks_exact(2);
    let odd = words.remainder().first().map_or(0, |byte| u32::from(*byte) << 8);
    words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum::<u32>() + odd
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_with_its_checksum_sums_to_zero() {
        // RFC 1071 section 3: the words 0001 f203 f4f5 f6f7 sum to ddf2
        assert_eq!(internet(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        assert_eq!(internet(&[0x12, 0x34, 0x56, 0x78, 0x97, 0x53]), 0);
    }

    #[test]
    fn crc32c_of_known_bytes() {
        // RFC 3720, appendix B.4
        assert_eq!(crc32c(&[0; 32]), [0xaa, 0x36, 0x91, 0x8a]);
        assert_eq!(crc32c(&[0xff; 32]), [0x43, 0xab, 0xa8, 0x62]);
    }

    #[test]
    fn odd_length_is_padded_with_zero() {
        assert_eq!(internet(&[0x12, 0x34, 0x56]), internet(&[0x12, 0x34, 0x56, 0x00]));
    }
}
