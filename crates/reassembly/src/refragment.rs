//! Making fragments of an IPv6 datagram that was put together, no longer than it had before.

use skipstep_wire::protocol;

/// How a datagram was fragmented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragmentation {
    /// Length of the headers in front of the fragment header.
    pub header_len: usize,
    /// Place of the byte that named the fragment header.
    pub next_header_at: usize,
    /// Length of the data in the longest fragment.
    pub largest: usize,
}

/// The fragments of `packet`, with this identification. `None` if they would have less than 8 bytes
/// of data.
pub fn refragment(packet: &[u8], how: &Fragmentation, id: u32) -> Option<Vec<Vec<u8>>> {
    let (header, data) = packet.split_at_checked(how.header_len)?;
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
        let length = (header.len() - 40 + 8 + chunk.len()) as u16;
        fragment[4..6].copy_from_slice(&length.to_be_bytes());
        fragment.extend([next, 0]);
        fragment.extend((offset as u16 | u16::from(more)).to_be_bytes());
        fragment.extend(id.to_be_bytes());
        fragment.extend(chunk);
        fragment
    });
    Some(fragments.collect())
}
