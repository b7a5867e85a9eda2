//! Fragments on their way to skipstepd's device and back.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct pf_reassembler`: value of the reassembler map, which skipstepd writes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Reassembler {
    /// Index of skipstepd's device; 0: skipstepd has never created one.
    pub ifindex: u32,
    /// Number of fragments that skipstepd holds.
    pub pieces: u32,
    /// Nonce of the frames that pass the device.
    pub nonce: u64,
    /// Lookups of a fragment's datagram.
    pub searches: u64,
    /// Fragments stored.
    pub inserts: u64,
    /// Fragments removed.
    pub removals: u64,
    /// Frames dropped by the kernel because skipstepd reads too slowly.
    pub lost: u64,
    /// Frames dropped by skipstepd because another process had sent them.
    pub foreign: u64,
}

/// `enum pf_handoff_order`: the orders that a frame carries.
pub mod handoff_order {
    /// To skipstepd: add the fragment to its datagram.
    pub const FRAGMENT: u8 = 1;
    /// From skipstepd: filter the datagram where its fragments came in.
    pub const WHOLE: u8 = 2;
    /// From skipstepd: drop the fragment.
    pub const REFUSED: u8 = 3;
    /// To skipstepd: split the packet into fragments.
    pub const REFRAGMENT: u8 = 4;
    /// From skipstepd: send the fragment.
    pub const SEND: u8 = 5;
}

/// [`Handoff::reason`] of a fragment that is dropped without a reason (`PF_HANDOFF_NO_REASON`).
pub const HANDOFF_NO_REASON: u8 = 255;

/// `struct pf_handoff`: the last bytes of a frame between the data plane and skipstepd.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Handoff {
    /// [`Reassembler::nonce`] of the device.
    pub nonce: u64,
    /// Index of the interface where the packet is filtered.
    pub ifindex: u32,
    /// Outbound: index of the interface where the packet came in, 0 for a local packet.
    pub received: u32,
    /// The packet's `skb->mark`.
    pub mark: u32,
    /// `skb->priority` of the packet when it leaves, which names its queue.
    pub priority: u32,
    /// Bytes of the longest received fragment, or the longest allowed one, as IP packets; 0:
    /// unknown.
    pub longest: u16,
    /// One of [`handoff_order`].
    pub order: u8,
    /// [`crate::verdict::direction`]: in or out.
    pub direction: u8,
    /// Reason of a refused fragment, or [`HANDOFF_NO_REASON`].
    pub reason: u8,
    /// Bytes in front of the IP header; 0: the frame has an invented Ethernet header.
    pub link_header: u8,
    /// Milliseconds that the packet waits before it leaves.
    pub delay: u16,
    /// Routing domain of the interface.
    pub rdomain: u32,
    /// Number that makes the Internet checksum of this struct 0.
    pub balance: u16,
    /// Zero.
    pub pad: u16,
}
