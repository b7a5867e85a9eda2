//! Records of the flow ring.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct pf_flow_record`: a state with `pflow` that has ended.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct FlowRecord {
    /// Of who made it, and of the other side, …
    pub address: [[u8; 16]; 2],
    /// … and as the other side knows them.
    pub translated_address: [[u8; 16]; 2],
    /// In the same order, in network byte order.
    pub port: [[u8; 2]; 2],
    /// As the other side knows them.
    pub translated_port: [[u8; 2]; 2],
    /// Where its first packet came in, 0 if none did.
    pub ifindex_in: u32,
    /// Where one left, 0 if none did.
    pub ifindex_out: u32,
    /// Of who made it, of the other side.
    pub packets: [u64; 2],
    /// In the same order.
    pub bytes: [u64; 2],
    /// Second of the boot clock.
    pub creation: u32,
    /// Second of the last packet.
    pub last: u32,
    /// [`crate::INET`] or [`crate::INET6`]
    pub family: u8,
    /// IP protocol.
    pub protocol: u8,
    /// That its rule asks for.
    pub tos: u8,
    /// 1: the other side knows other ends, in the same family.
    pub translated: u8,
    #[allow(missing_docs)]
    pub pad: u32,
}
