//! Reassembly of fragments, and refragmentation of datagrams (pf-semantics section 12).
//!
//! The model and skipstepd share this code, so it uses neither clock nor sockets. [`Piece`] is a
//! parsed fragment. [`Reassembler`] queues the fragments of each datagram under pf's limits, and
//! returns a [`Reassembled`] when a datagram is complete. [`fn@refragment`] makes fragments of the
//! size that an IPv6 datagram had before.

#![forbid(unsafe_code)]

mod datagram;
mod piece;
mod reassembler;
mod refragment;

pub use piece::{Key, Piece};
pub use reassembler::{Counters, FragmentFate, Reassembler};
pub use refragment::{Fragmentation, fragments, refragment, refragment_ipv4};

/// A reassembled datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reassembled {
    /// The packet from its IP header on. The IPv4 header still has the checksum of the first
    /// fragment, because an ICMP error that answers the datagram quotes that checksum.
    pub bytes: Vec<u8>,
    /// Length in bytes of the longest fragment, headers included.
    pub longest: usize,
    /// Sizes for refragmentation: IPv6 routers must not choose other sizes. `None` for IPv4.
    pub fragmentation: Option<Fragmentation>,
}
