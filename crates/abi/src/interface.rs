//! Interfaces as criteria of rules.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::limits::IFNAMSIZ;

/// `enum pf_interface_match`: comparisons with [`crate::Rule::interface`].
pub mod interface_match {
    /// No criterion: the rule has no `on`.
    pub const NONE: u8 = 0;
    /// Id of an interface name.
    pub const NAME: u8 = 1;
    /// A bit of [`super::Interface::groups`].
    pub const GROUP: u8 = 2;
    /// `on any`: all interfaces but loopback.
    pub const ANY: u8 = 3;
    /// Number of a routing domain.
    pub const RDOMAIN: u8 = 4;
}

/// `enum pf_interface_flags`: bits of [`Interface::flags`].
pub mod interface_flags {
    /// A loopback interface.
    pub const LOOPBACK: u32 = 1 << 0;
    /// An interface whose frames begin with the IP header.
    pub const NO_LINK: u32 = 1 << 1;
    /// A port of a bridge, ours or the kernel's.
    pub const PORT: u32 = 1 << 2;
    /// `set skip on` in copy 0; the bits of the other copies follow.
    pub const SKIP: u32 = 1 << 3;
}

/// `struct pf_interface`: value of the interfaces map, whose key is the ifindex.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Interface {
    /// Number of the interface that never changes; 0 is no interface.
    pub id: u32,
    /// Bits of [`interface_flags`].
    pub flags: u32,
    /// One bit for each group of the interface.
    pub groups: u64,
    /// Interface name, padded with zeros.
    pub name: [u8; IFNAMSIZ],
    /// Table of the interface's VRF, 0 without a VRF.
    pub rdomain: u32,
    #[allow(missing_docs, reason = "the values are those of bpf/abi")]
    pub pad: u32,
    /// Link-local IPv6 address of the interface, 0 for none.
    pub link_address: [u8; 16],
}

/// `struct pf_near_interface`: two copies of an interface. Packets read one while pfctl writes the
/// other.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct NearInterface {
    /// Number of the valid copy, 1 or 2; 0 if neither is valid.
    pub known: u32,
    #[allow(missing_docs, reason = "the values are those of bpf/abi")]
    pub pad: u32,
    /// The two copies.
    pub one: [Interface; 2],
}

/// `struct pf_interface_stats`: counters indexed `[inet, inet6][in, out][pass, block]`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct InterfaceStats {
    /// Packets, indexed `[inet, inet6][in, out][pass, block]`.
    pub packets: [[[u64; 2]; 2]; 2],
    /// Bytes from the IP header on, indexed in the same way.
    pub bytes: [[[u64; 2]; 2]; 2],
}
