//! Delayed packets on their way to skipstepd's device and back.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct pf_delayer`: value of the delayer map, which skipstepd writes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Delayer {
    /// Index of skipstepd's device; 0: skipstepd has never created one.
    pub ifindex: u32,
    /// Number of packets that skipstepd holds.
    pub waiting: u32,
    /// Nonce of the frames that pass the device.
    pub nonce: u64,
    /// Packets sent after their delay.
    pub sent: u64,
    /// Packets dropped because skipstepd holds its maximum number of packets.
    pub refused: u64,
    /// Packets dropped because skipstepd read too slowly.
    pub full: u64,
    /// Frames dropped by skipstepd because another process had sent them.
    pub foreign: u64,
}

/// `enum pf_delayed_order`: the orders that a frame carries.
pub mod delayed_order {
    /// To skipstepd: delay the packet.
    pub const HOLD: u8 = 1;
    /// From skipstepd: send the packet.
    pub const SEND: u8 = 2;
    /// From skipstepd: the first bytes of a dropped packet, to count the drop.
    pub const REFUSED: u8 = 3;
}

/// The longest delay in milliseconds (`PF_MAX_DELAY`); more in `skb->tstamp` is a time.
pub const MAX_DELAY: u32 = 0xffff;

/// `struct pf_delayed`: the first bytes of a frame on its way to skipstepd. On the way back they
/// follow the Ethernet header.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Delayed {
    /// [`Delayer::nonce`] of the device.
    pub nonce: u64,
    /// Boot-clock nanosecond before which the packet must not leave.
    pub due: u64,
    /// Index of the interface where the packet leaves.
    pub ifindex: u32,
    /// Lower half of the packet's `skb->mark`, which belongs to the user.
    pub mark: u32,
    /// The packet's `skb->priority`, which names its queue.
    pub priority: u32,
    /// EtherType of the packet's VLAN tag in network byte order, 0 for no tag.
    pub vlan_protocol: [u8; 2],
    /// The VLAN tag, in host byte order.
    pub vlan_tag: u16,
    /// One of [`delayed_order`].
    pub order: u8,
    /// Bytes between this struct and the IP header: 0, or the length of an Ethernet header.
    pub link_header: u8,
    /// Zero.
    pub pad: [u8; 6],
}
