//! The header in front of a packet between skipstepd and a program that gets diverted packets
//! (skipstepd(8), DIVERTED PACKETS). The program returns the header unchanged.

use skipstep_abi::diverted::Diverted;
use skipstep_abi::verdict::direction;
use skipstep_wire::checksum;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Length of an Ethernet header.
const ETHERNET: usize = 14;

const IPV6_HEADER: usize = 40;

/// Interface, direction and link header of a packet. Numbers are in host byte order, except `link`
/// and `vlan_protocol`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Envelope {
    /// Name of the interface, padded with zeros.
    pub interface: [u8; 16],
    /// Index of the interface.
    pub ifindex: u32,
    /// Bits of the packet's mark that belong to the user (the lower half).
    pub mark: u32,
    /// Number of the `divert-packet` port.
    pub port: u16,
    /// Direction: 1 for in, 2 for out.
    pub direction: u8,
    /// Length of `link` in bytes: 0 or 14.
    pub link_length: u8,
    /// Protocol of the VLAN tag that the kernel keeps beside the packet; 0 for none.
    pub vlan_protocol: [u8; 2],
    /// VLAN tag; 0 if there is none.
    pub vlan_tag: u16,
    /// Ethernet header; zeros if `link_length` is 0.
    pub link: [u8; ETHERNET],
    /// Padding; zero.
    pub pad: [u8; 2],
}

/// Splits a frame of the device into envelope and packet. The caller adds the interface's name.
/// Returns `None` if the frame is malformed or lacks `nonce`, so that it is not the data plane's.
pub fn from_frame(frame: &[u8], nonce: u64) -> Option<(Envelope, &[u8])> {
    let (label, rest) = Diverted::read_from_prefix(frame).ok()?;
    let (header, packet) = rest.split_at_checked(label.link_header.into())?;
    let (length, _) = length_and_type(packet)?;
    let packet = packet.get(..length)?;
    if label.nonce != nonce {
        return None;
    }
    let mut link = [0; ETHERNET];
    link.get_mut(..header.len())?.copy_from_slice(header);
    let Diverted { ifindex, mark, port, direction, link_header, vlan_protocol, vlan_tag, .. } =
        label;
    let envelope = Envelope {
        interface: [0; 16],
        ifindex,
        mark,
        port: u16::from_be_bytes(port),
        direction,
        link_length: link_header,
        vlan_protocol,
        vlan_tag,
        link,
        pad: [0; 2],
    };
    Some((envelope, packet))
}

/// Makes the frame for the device from a program's message, with `nonce` and corrected checksums.
/// Returns `None` if the message is no valid packet.
pub fn to_frame(message: &[u8], nonce: u64) -> Option<Vec<u8>> {
    let (envelope, packet) = Envelope::read_from_prefix(message).ok()?;
    let (length, ethertype) = length_and_type(packet)?;
    let has_place = envelope.ifindex != 0
        && [direction::IN, direction::OUT].contains(&envelope.direction)
        && [0, ETHERNET].contains(&envelope.link_length.into());
    if length != packet.len() || !has_place {
        return None;
    }
    let label = Diverted {
        nonce,
        ifindex: envelope.ifindex,
        mark: envelope.mark,
        port: envelope.port.to_be_bytes(),
        direction: envelope.direction,
        link_header: envelope.link_length,
        vlan_protocol: envelope.vlan_protocol,
        vlan_tag: envelope.vlan_tag,
    };
    let mut packet = packet.to_vec();
    checksum::fix(&mut packet);
    let addresses = &envelope.link[..ETHERNET - ethertype.len()];
    Some([addresses, &ethertype, label.as_bytes(), &packet].concat())
}

/// Returns the packet length in the IP header, and the packet's EtherType in network byte order.
fn length_and_type(packet: &[u8]) -> Option<(usize, [u8; 2])> {
    let length =
        |at: usize| Some(usize::from(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?])));
    match packet.first()? >> 4 {
        4 => {
            let header = usize::from(packet[0] & 15) * 4;
            let length = length(2)?;
            (header >= 20 && length >= header).then_some((length, [0x08, 0x00]))
        }
        6 => Some((IPV6_HEADER + length(4)?, [0x86, 0xdd])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: [u8; 28] = [
        0x45, 0, 0, 28, 0, 7, 0, 0, 64, 17, 0x66, 0xc8, 10, 0, 0, 1, 10, 0, 0, 2, 0, 7, 0, 9, 0, 8,
        0xeb, 0xcb,
    ];

    const NONCE: u64 = 0x0706_0504_0302_0100;

    fn label() -> Diverted {
        Diverted {
            nonce: NONCE,
            ifindex: 3,
            mark: 5,
            port: [2, 188],
            direction: direction::IN,
            link_header: 14,
            vlan_protocol: [0x81, 0],
            vlan_tag: 9,
        }
    }

    fn link() -> [u8; ETHERNET] {
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 8, 0]
    }

    /// Returns the message of a program that changes nothing.
    fn message() -> Vec<u8> {
        let frame = [label().as_bytes(), &link(), &PACKET].concat();
        let (envelope, packet) = from_frame(&frame, NONCE).unwrap();
        [envelope.as_bytes(), packet].concat()
    }

    #[test]
    fn a_packet_goes_through_a_program_and_back() {
        let padded = [label().as_bytes(), &link(), &PACKET, &[0; 18]].concat();
        let (envelope, packet) = from_frame(&padded, NONCE).unwrap();
        assert_eq!((envelope.port, envelope.link), (700, link()));
        assert_eq!(packet, PACKET);
        let back = to_frame(&message(), NONCE).unwrap();
        assert_eq!(back, [&link()[..], label().as_bytes(), &PACKET].concat());
    }

    #[test]
    fn checksums_of_what_a_program_changed_are_put_right() {
        let mut message = message();
        let ttl = size_of::<Envelope>() + 8;
        message[ttl] = 63;
        let back = to_frame(&message, NONCE).unwrap();
        let packet = &back[ETHERNET + size_of::<Diverted>()..];
        assert_eq!(checksum::internet(&packet[..20]), 0);
    }

    #[test]
    fn invalid_messages_are_refused() {
        let whole = message();
        for length in [0, 10, size_of::<Envelope>(), whole.len() - 1] {
            assert_eq!(to_frame(&whole[..length], NONCE), None, "{length} bytes");
        }
        let long = [&whole[..], &[0]].concat();
        assert_eq!(to_frame(&long, NONCE), None, "a byte too many");
        for (at, value) in [(26, 3), (27, 18), (16, 0), (size_of::<Envelope>(), 0x55)] {
            let mut message = whole.clone();
            message[at] = value;
            assert_eq!(to_frame(&message, NONCE), None, "{value} at {at}");
        }
    }

    #[test]
    fn frames_without_the_nonce_are_refused() {
        let frame = [label().as_bytes(), &link(), &PACKET].concat();
        for length in [0, 15, 20, 30, 40] {
            assert_eq!(from_frame(&frame[..length], NONCE), None, "{length} bytes");
        }
        // flip one bit in each byte of the nonce
        for byte in 0..size_of::<u64>() {
            let mut other = frame.clone();
            other[byte] ^= 1 << byte;
            assert_eq!(from_frame(&other, NONCE), None);
        }
        assert!(from_frame(&frame, NONCE).is_some());
    }
}
