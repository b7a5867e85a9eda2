//! Putting fragments together, and whole packets back into fragments (pf-semantics section 12).
//!
//! The model and skipstepd share this code: it knows neither clock nor socket. A fragment becomes a
//! [`Piece`]; a [`Reassembler`] holds the pieces of each datagram in a queue until none is missing,
//! under pf's limits, and then hands out the [`Whole`]. [`fn@refragment`] makes fragments of the
//! size that an IPv6 datagram had before.

#![forbid(unsafe_code)]

mod datagram;
mod piece;
mod reassembler;
mod refragment;

use skipstep_wire::checksum;

pub use piece::{Key, Piece};
pub use reassembler::{Counters, Outcome, Reassembler};
pub use refragment::{Fragmentation, fragments, refragment, refragment_ipv4};

/// A datagram of which all pieces came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whole {
    /// The packet from its IP header on. The checksum of an IPv4 header is that of the first
    /// fragment still: an ICMP error that answers the datagram quotes it so.
    pub bytes: Vec<u8>,
    /// Length of the longest fragment as a packet.
    pub longest: usize,
    /// How to fragment it again, for IPv6: there nobody on the way may choose other sizes.
    pub fragmentation: Option<Fragmentation>,
}

/// Corrects the checksum of an IPv4 header.
pub fn settle_checksum(packet: &mut [u8]) {
    let header_len = packet.first().map_or(0, |first| usize::from(first & 15) * 4);
    if packet.first().is_some_and(|first| first >> 4 == 4)
        && (20..=packet.len()).contains(&header_len)
    {
        packet[10..12].fill(0);
        let sum = checksum::internet(&packet[..header_len]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}
