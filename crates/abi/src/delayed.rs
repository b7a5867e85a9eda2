//! Delayed packets on their way to skipstepd's device and back.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct pf_delayer`: value of the map that skipstepd writes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Delayer {
    /// Index of its device, 0 if there never was one.
    pub ifindex: u32,
    /// Packets it holds.
    pub waiting: u32,
    /// Of frames by its device.
    pub nonce: u64,
    /// Packets whose time has come.
    pub sent: u64,
    /// Packets dropped because it holds as many as it may …
    pub refused: u64,
    /// … or because it did not take them in time.
    pub full: u64,
    /// Frames that the daemon dropped because the data plane had not sent them.
    pub foreign: u64,
}

/// `enum pf_delayed_order`: what is to be done with a packet.
pub mod delayed_order {
    /// to the daemon
    pub const HOLD: u8 = 1;
    /// back: send it
    pub const SEND: u8 = 2;
    /// back: the first bytes of one that was dropped
    pub const REFUSED: u8 = 3;
}

/// The longest delay (`PF_MAX_DELAY`): what is more in `skb->tstamp` is a time.
pub const MAX_DELAY: u32 = 0xffff;

/// `struct pf_delayed`: the first bytes of a frame on its way to the daemon; on the way back they
/// stand behind its Ethernet header.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Delayed {
    /// [`Delayer::nonce`]
    pub nonce: u64,
    /// Nanosecond of the boot clock before which the packet does not leave.
    pub due: u64,
    /// Interface by which it leaves.
    pub ifindex: u32,
    /// The user's half of its mark.
    pub mark: u32,
    /// `skb->priority`, with the queue.
    pub priority: u32,
    /// Of the tag that the packet has besides, 0 for none, in network byte order.
    pub vlan_protocol: [u8; 2],
    /// That tag.
    pub vlan_tag: u16,
    /// [`delayed_order`]
    pub order: u8,
    /// Bytes between this and the IP header: 0, or those of an Ethernet header.
    pub link_header: u8,
    /// Zero.
    pub pad: [u8; 6],
}
