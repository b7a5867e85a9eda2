//! Packets for programs (`divert-packet`) on their way to skipstepd's device and back.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct pf_diverter`: value of the diverter map, which skipstepd writes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Diverter {
    /// Index of skipstepd's device; 0: skipstepd has never created one.
    pub ifindex: u32,
    /// Zero.
    pub pad: u32,
    /// Nonce of the frames that pass the device.
    pub nonce: u64,
    /// Packets that programs received.
    pub delivered: u64,
    /// Packets that programs wrote.
    pub returned: u64,
    /// Packets dropped because no program has the port.
    pub no_program: u64,
    /// Packets dropped because the program reads too slowly.
    pub full: u64,
    /// Writes of programs that are not valid packets.
    pub malformed: u64,
    /// Frames dropped by skipstepd because another process had sent them.
    pub foreign: u64,
}

/// `struct pf_diverted`: the first bytes of a frame on its way to skipstepd. On the way back they
/// follow the Ethernet header.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Diverted {
    /// [`Diverter::nonce`] of the device.
    pub nonce: u64,
    /// Index of the interface where the packet was diverted.
    pub ifindex: u32,
    /// Lower half of the packet's `skb->mark`, which belongs to the user.
    pub mark: u32,
    /// Port of the program, in network byte order.
    pub port: [u8; 2],
    /// [`crate::verdict::direction`]: in or out.
    pub direction: u8,
    /// Bytes between this struct and the IP header: 0, or the length of an Ethernet header.
    pub link_header: u8,
    /// EtherType of the packet's VLAN tag in network byte order, 0 for no tag.
    pub vlan_protocol: [u8; 2],
    /// The VLAN tag, in host byte order.
    pub vlan_tag: u16,
}
