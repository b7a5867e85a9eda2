//! The Internet checksum (RFC 1071) of whole packets, and the CRC32c of SCTP.

use std::net::IpAddr;

use etherparse::checksum::Sum16BitWords;

use crate::protocol;

/// Returns the checksum of `data`, in host byte order; its checksum field must be zero. Returns
/// zero if the field holds the checksum.
pub fn internet(data: &[u8]) -> u16 {
    u16::from_be(Sum16BitWords::new().add_slice(data).ones_complement())
}

/// Returns the checksum of a TCP, UDP, ICMP or ICMPv6 packet as [`internet`] does. That of all but
/// ICMP also covers a pseudo header (RFC 9293 section 3.1, RFC 8200 section 8.1).
pub fn transport(source: IpAddr, destination: IpAddr, protocol: u8, data: &[u8]) -> u16 {
    if protocol == protocol::ICMP {
        return internet(data);
    }
    let addresses = match (source, destination) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            Sum16BitWords::new().add_slice(&a.octets()).add_slice(&b.octets())
        }
        (a, b) => Sum16BitWords::new().add_slice(&octets16(a)).add_slice(&octets16(b)),
    };
    let length = (data.len() as u32).to_be_bytes();
    let sum = addresses.add_slice(&length).add_2bytes([0, protocol]).add_slice(data);
    u16::from_be(sum.ones_complement())
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
    let Some(header_len) = fix_ipv4_header(packet) else { return };
    if packet[6] & 0x3f != 0 || packet[7] != 0 {
        return; // a fragment has no checksum of its own
    }
    let source = IpAddr::from(<[u8; 4]>::try_from(&packet[12..16]).unwrap_or_default());
    let destination = IpAddr::from(<[u8; 4]>::try_from(&packet[16..20]).unwrap_or_default());
    let protocol = packet[9];
    fix_transport(source, destination, protocol, &mut packet[header_len..]);
}

/// Recomputes the checksum of an IPv4 header, and returns the header's length in bytes. Other
/// packets and damaged headers stay as they are, with `None`.
pub fn fix_ipv4_header(packet: &mut [u8]) -> Option<usize> {
    let first = packet.first()?;
    let header_len = usize::from(first & 15) * 4;
    if first >> 4 != 4 || header_len < 20 {
        return None;
    }
    let header = packet.get_mut(..header_len)?;
    header[10..12].fill(0);
    let sum = internet(header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    Some(header_len)
}

/// Recomputes the checksum of a TCP, UDP, ICMP or ICMPv6 packet. Other protocols, and packets too
/// short for the checksum field, stay as they are.
pub fn fix_transport(source: IpAddr, destination: IpAddr, protocol: u8, data: &mut [u8]) {
    let Some(at) = field(protocol).filter(|at| data.len() >= at + 2) else { return };
    data[at..at + 2].fill(0);
    let sum = match transport(source, destination, protocol, data) {
        0 if protocol == protocol::UDP => 0xffff, // zero would mean "no checksum"
        sum => sum,
    };
    data[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

/// Returns the offset of the checksum field in a TCP, UDP, ICMP or ICMPv6 packet. `None` for other
/// protocols.
pub fn field(protocol: u8) -> Option<usize> {
    match protocol {
        protocol::TCP => Some(16),
        protocol::UDP => Some(6),
        protocol::ICMP | protocol::ICMP6 => Some(2),
        _ => None,
    }
}

fn octets16(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
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
    fn checksums_of_a_known_packet() {
        let packet = [
            0x45, 0, 0, 28, 0, 7, 0, 0, 64, 17, 0x66, 0xc8, 10, 0, 0, 1, 10, 0, 0, 2, 0, 7, 0, 9,
            0, 8, 0xeb, 0xcb,
        ];
        let mut damaged = packet;
        damaged[10..12].fill(0x55);
        damaged[26..].fill(0x55);
        fix(&mut damaged);
        assert_eq!(damaged, packet);
        // ports 0xebcb higher make a sum of zero, which in UDP would mean "no checksum"
        damaged[20..22].copy_from_slice(&[0xeb, 0xd2]);
        fix(&mut damaged);
        assert_eq!(damaged[26..], [0xff, 0xff]);
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
