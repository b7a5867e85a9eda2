//! Packets for programs on their way to skipstepd's device and back.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct pf_diverter`: value of the map that skipstepd writes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Diverter {
    /// Index of its device, 0 if there never was one.
    pub ifindex: u32,
    /// Zero.
    pub pad: u32,
    /// Of frames by its device.
    pub nonce: u64,
    /// Packets that programs got …
    pub delivered: u64,
    /// … and that they wrote.
    pub returned: u64,
    /// Packets dropped because no program is at their port …
    pub no_program: u64,
    /// … or because it does not keep up.
    pub full: u64,
    /// What programs wrote and is no packet.
    pub malformed: u64,
    /// Frames that the daemon dropped because the data plane had not sent them.
    pub foreign: u64,
}

/// `struct pf_diverted`: the first bytes of a frame on its way to the daemon; on the way back they
/// stand behind its Ethernet header.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Diverted {
    /// [`Diverter::nonce`]
    pub nonce: u64,
    /// Where the packet was.
    pub ifindex: u32,
    /// The user's half of its mark.
    pub mark: u32,
    /// Of the program, in network byte order.
    pub port: [u8; 2],
    /// [`crate::verdict::direction`]
    pub direction: u8,
    /// Bytes between this and the IP header: 0, or those of an Ethernet header.
    pub link_header: u8,
    /// Of the tag that the packet has besides, 0 for none, in network byte order.
    pub vlan_protocol: [u8; 2],
    /// That tag.
    pub vlan_tag: u16,
}
