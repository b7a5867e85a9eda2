//! Splits a reassembled datagram into fragments no longer than the original ones.

use skipstep_wire::{checksum, protocol};

/// Length in bytes of the IPv6 fragment header.
const FRAGMENT_HEADER: usize = 8;

/// The shape of the fragments of an IPv6 datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragmentation {
    /// Length in bytes of the headers in front of the fragment header.
    pub header_len: usize,
    /// Offset in the packet of the byte that announces the fragment header.
    pub next_header_at: usize,
    /// Length in bytes of the data in the longest fragment.
    pub largest: usize,
}

impl Fragmentation {
    /// Returns the length in bytes of the longest fragment, headers included.
    pub fn longest(&self) -> usize {
        self.header_len + FRAGMENT_HEADER + self.largest
    }

    /// Returns the shape of fragments of at most `longest` bytes. The fragment header follows the
    /// headers that routers read (RFC 8200 section 4.5). `None` if the packet is damaged.
    pub fn for_packet(packet: &[u8], longest: usize) -> Option<Self> {
        let behind = |header_len: usize, next_header_at| Fragmentation {
            header_len,
            next_header_at,
            largest: longest.saturating_sub(header_len + FRAGMENT_HEADER),
        };
        let mut how = behind(40, 6);
        let (mut next_header_at, mut at) = (6, 40);
        loop {
            match *packet.get(next_header_at)? {
                protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION_OPTIONS => {
                    let stays = packet[next_header_at] != protocol::DESTINATION_OPTIONS;
                    next_header_at = at;
                    at += (usize::from(*packet.get(at + 1)?) + 1) * 8;
                    // destination options stay in front only if a routing header follows
                    if stays {
                        how = behind(at, next_header_at);
                    }
                }
                _ => return (packet.len() >= how.header_len).then_some(how),
            }
        }
    }
}

/// Splits a packet into fragments of at most `longest` bytes, with identification `id` for IPv6.
/// `None` if a fragment would have less than 8 bytes of data, or if the packet is damaged.
pub fn fragments(packet: &[u8], longest: usize, id: u32) -> Option<Vec<Vec<u8>>> {
    if packet.first()? >> 4 == 4 {
        return refragment_ipv4(packet, longest);
    }
    refragment(packet, &Fragmentation::for_packet(packet, longest)?, id)
}

/// Splits an IPv6 packet, up to the length in its header, into fragments with identification `id`.
/// `None` if a fragment would have less than 8 bytes of data, or if the packet is damaged.
pub fn refragment(packet: &[u8], how: &Fragmentation, id: u32) -> Option<Vec<Vec<u8>>> {
    let length = 40 + usize::from(u16::from_be_bytes([*packet.get(4)?, *packet.get(5)?]));
    let (header, data) = packet.get(..length)?.split_at_checked(how.header_len)?;
    let step = how.largest & !7;
    if step < 8 || header.len() < 40 {
        return None;
    }
    let next = *header.get(how.next_header_at)?;
    let fragments = data.chunks(step).enumerate().map(|(count, chunk)| {
        let offset = count * step;
        let more = offset + chunk.len() < data.len();
        let mut fragment = header.to_vec();
        fragment[how.next_header_at] = protocol::FRAGMENT;
        let length = (header.len() - 40 + FRAGMENT_HEADER + chunk.len()) as u16;
        fragment[4..6].copy_from_slice(&length.to_be_bytes());
        fragment.extend([next, 0]);
        fragment.extend((offset as u16 | u16::from(more)).to_be_bytes());
        fragment.extend(id.to_be_bytes());
        fragment.extend(chunk);
        fragment
    });
    Some(fragments.collect())
}

/// Splits an IPv4 packet, up to the length in its header, into fragments of at most `longest`
/// bytes. `None` if a fragment would have less than 8 bytes of data, or if the packet is damaged.
pub fn refragment_ipv4(packet: &[u8], longest: usize) -> Option<Vec<Vec<u8>>> {
    let header_len = usize::from(packet.first()? & 15) * 4;
    let length = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
    let (header, data) = packet.get(..length)?.split_at_checked(header_len)?;
    let step = longest.saturating_sub(header_len) & !7;
    if step < 8 || header_len < 20 {
        return None;
    }
    let fragments = data.chunks(step).enumerate().map(|(count, chunk)| {
        let offset = count * step;
        let more = offset + chunk.len() < data.len();
        let mut fragment = if count == 0 { header.to_vec() } else { later_header(header) };
        let length = (fragment.len() + chunk.len()) as u16;
        fragment[2..4].copy_from_slice(&length.to_be_bytes());
        let offset_field = (offset / 8) as u16 | (u16::from(more) << 13);
        fragment[6..8].copy_from_slice(&offset_field.to_be_bytes());
        checksum::fix_ipv4_header(&mut fragment);
        fragment.extend(chunk);
        fragment
    });
    Some(fragments.collect())
}

/// Returns the header of later fragments, with the options that must be copied (RFC 791).
fn later_header(header: &[u8]) -> Vec<u8> {
    let (fixed, mut options) = header.split_at(20);
    let mut later = fixed.to_vec();
    while let [kind, rest @ ..] = options {
        let length = match kind {
            0 => break,
            1 => 1,
            _ => usize::from(rest.first().copied().unwrap_or(0)).max(2),
        };
        let option = &options[..length.min(options.len())];
        if kind & 0x80 != 0 {
            later.extend(option);
        }
        options = &options[option.len()..];
    }
    later.resize(later.len().next_multiple_of(4), 0);
    later[0] = 0x40 | (later.len() / 4) as u8;
    later
}
