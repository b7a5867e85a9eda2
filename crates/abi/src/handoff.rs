//! Fragments on their way to skipstepd's device and back.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct pf_reassembler`: value of the map that skipstepd writes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Reassembler {
    /// Index of its device, 0 if there never was one.
    pub ifindex: u32,
    /// Fragments it holds.
    pub pieces: u32,
    /// Of frames by its device.
    pub nonce: u64,
    /// Datagrams looked for.
    pub searches: u64,
    /// Fragments put in.
    pub inserts: u64,
    /// Fragments taken out.
    pub removals: u64,
    /// Dropped by the kernel, since the daemon does not keep up.
    pub lost: u64,
    /// Frames that the daemon dropped because the data plane had not sent them.
    pub foreign: u64,
}

/// `enum pf_handoff_order`: what is to be done with a packet.
pub mod handoff_order {
    /// to the daemon: put it to the others of its datagram
    pub const FRAGMENT: u8 = 1;
    /// back: the datagram, to be filtered where its fragments were
    pub const WHOLE: u8 = 2;
    /// back: the fragment, to be dropped
    pub const REFUSED: u8 = 3;
    /// to the daemon: make fragments of it
    pub const REFRAGMENT: u8 = 4;
    /// back: one of those
    pub const SEND: u8 = 5;
}

/// [`Handoff::reason`] of a fragment that pf drops without one (`PF_HANDOFF_NO_REASON`).
pub const HANDOFF_NO_REASON: u8 = 255;

/// `struct pf_handoff`: the last bytes of a frame.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Handoff {
    /// [`Reassembler::nonce`]
    pub nonce: u64,
    /// Where the packet was.
    pub ifindex: u32,
    /// Outbound: where it had come in, 0 if it was made here.
    pub received: u32,
    /// `skb->mark`
    pub mark: u32,
    /// `skb->priority`: of the way out, with the queue.
    pub priority: u32,
    /// Length of the longest fragment as a packet: as it came, or as it may leave. 0 if unknown.
    pub longest: u16,
    /// [`handoff_order`]
    pub order: u8,
    /// [`crate::verdict::direction`]
    pub direction: u8,
    /// Of a refused fragment.
    pub reason: u8,
    /// Bytes in front of the IP header; 0: a made-up Ethernet header is.
    pub link_header: u8,
    /// Milliseconds that it waits before it leaves.
    pub delay: u16,
    /// Routing domain of the interface.
    pub rdomain: u32,
    /// Makes the Internet checksum of this 0.
    pub balance: u16,
    /// Unused.
    pub pad: u16,
}
