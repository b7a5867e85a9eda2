//! Reads fields of packets that the firewall sent or changed. A missing field is `None`.

use skipstep_wire::{checksum, protocol};

/// Returns bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub(crate) fn hex_or(bytes: &Option<Vec<u8>>, otherwise: &str) -> String {
    bytes.as_deref().map_or_else(|| otherwise.to_owned(), hex)
}

/// Returns the bytes of a hexadecimal number, or `None` if the text is not one.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits
        .chunks(2)
        .map(|pair| {
            Some((char::from(pair[0]).to_digit(16)? << 4 | char::from(pair[1]).to_digit(16)?) as u8)
        })
        .collect()
}

/// The fields of a TCP header by which replies are compared.
pub(crate) struct Tcp {
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
}

/// Returns the protocol and payload of an IP packet without extension headers.
fn transport(packet: &[u8]) -> Option<(u8, &[u8])> {
    match packet.first()? >> 4 {
        4 => Some((*packet.get(9)?, packet.get(usize::from(packet[0] & 15) * 4..)?)),
        6 => Some((*packet.get(6)?, packet.get(40..)?)),
        _ => None,
    }
}

/// True if two packets are equal, apart from the two forms of a zero checksum.
///
/// For TCP, ICMP and the IPv4 header, checksums 0 and 0xffff are equivalent and a receiver accepts
/// both. pf updates a checksum by adding the old word and subtracting the new one, or adding its
/// complement, which gives either form. The kernel's helper (RFC 1624) always gives 0xffff. In UDP,
/// 0 means no checksum.
pub(crate) fn same(one: &[u8], other: &[u8]) -> bool {
    one == other || one.len() == other.len() && settled(one) == settled(other)
}

fn settled(packet: &[u8]) -> Vec<u8> {
    let mut bytes = packet.to_vec();
    let header = (packet.first().map(|byte| byte >> 4) == Some(4)).then_some(10);
    let at = transport(packet).and_then(|(protocol, payload)| {
        let field = checksum::field(protocol).filter(|_| protocol != protocol::UDP)?;
        Some(packet.len() - payload.len() + field)
    });
    for at in header.into_iter().chain(at) {
        if let Some(sum) = bytes.get_mut(at..at + 2)
            && sum == [0xff, 0xff]
        {
            sum.fill(0);
        }
    }
    bytes
}

pub(crate) fn tcp(packet: &[u8]) -> Option<Tcp> {
    let (protocol, header) = transport(packet)?;
    if protocol != 6 || header.len() < 20 {
        return None;
    }
    let word = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    Some(Tcp { seq: word(4), ack: word(8), flags: header[13] })
}

/// The fields of an ICMP or ICMPv6 message by which replies are compared.
pub(crate) struct Icmp {
    pub ipv6: bool,
    pub kind: u8,
    pub code: u8,
}

pub(crate) fn icmp(packet: &[u8]) -> Option<Icmp> {
    let (protocol, message) = transport(packet)?;
    if !matches!(protocol, 1 | 58) {
        return None;
    }
    Some(Icmp { ipv6: protocol == 58, kind: *message.first()?, code: *message.get(1)? })
}

/// Fields of a packet that `scrub` and `set` can change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say all")]
pub struct OutFields {
    pub ttl: Option<u8>,
    pub tos: Option<u8>,
    pub df: Option<bool>,
    pub id: Option<u16>,
    pub mss: Option<u16>,
    pub seq: Option<u32>,
    pub ack: Option<u32>,
}

/// Returns the fields that `scrub` and `set` can change.
pub(crate) fn fields(packet: &[u8]) -> OutFields {
    let half = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
    let tcp = tcp(packet);
    let of_tcp = OutFields {
        mss: mss(packet),
        seq: tcp.as_ref().map(|tcp| tcp.seq),
        ack: tcp.as_ref().map(|tcp| tcp.ack),
        ..OutFields::default()
    };
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => OutFields {
            ttl: packet.get(8).copied(),
            tos: packet.get(1).copied(),
            df: half(6).map(|word| word & 0x4000 != 0),
            id: half(4),
            ..of_tcp
        },
        Some(6) => OutFields {
            ttl: packet.get(7).copied(),
            tos: half(0).map(|word| (word >> 4) as u8),
            ..of_tcp
        },
        _ => OutFields::default(),
    }
}

fn mss(packet: &[u8]) -> Option<u16> {
    let (protocol, header) = transport(packet)?;
    let end = usize::from(header.get(12)? >> 4) * 4;
    let mut options = header.get(20..end).filter(|_| protocol == 6)?;
    loop {
        match options {
            [2, 4, high, low, ..] => return Some(u16::from_be_bytes([*high, *low])),
            [1, rest @ ..] => options = rest,
            [0, ..] | [] | [_] => return None,
            [_, length, ..] => options = options.get(usize::from(*length).max(2)..)?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an IPv4 packet of a protocol, with two bytes of a checksum at offset `at`.
    fn packet(protocol: u8, at: usize, checksum: u8) -> Vec<u8> {
        let mut bytes = vec![0; 40];
        (bytes[0], bytes[9]) = (0x45, protocol);
        bytes[at..at + 2].fill(checksum);
        bytes
    }

    #[test]
    fn zero_checksums_have_two_forms_except_in_udp() {
        for (protocol, at, alike) in [
            (6, 36, true),
            (1, 22, true),
            (58, 22, true),
            (17, 26, false),
            (6, 10, true),
            (17, 10, true),
            (6, 8, false),
            (6, 34, false),
        ] {
            let (one, other) = (packet(protocol, at, 0), packet(protocol, at, 0xff));
            assert_eq!(same(&one, &other), alike, "protocol {protocol}, {at}");
        }
    }
}
