//! Interfaces as rules see them.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::limits::IFNAMSIZ;

/// `enum pf_interface_match`: how [`crate::Rule::interface`] is compared.
pub mod interface_match {
    /// rule does not say `on`
    pub const NONE: u8 = 0;
    /// id of an interface name
    pub const NAME: u8 = 1;
    /// bit of [`super::Interface::groups`]
    pub const GROUP: u8 = 2;
    /// everything but loopback
    pub const ANY: u8 = 3;
    /// number of a routing domain
    pub const RDOMAIN: u8 = 4;
}

/// `enum pf_interface_flags`.
pub mod interface_flags {
    /// loopback
    pub const LOOPBACK: u32 = 1 << 0;
    /// frames begin with the IP header
    pub const NO_LINK: u32 = 1 << 1;
    /// `set skip on` in even generations
    pub const SKIP_0: u32 = 1 << 2;
    /// `set skip on` in odd generations
    pub const SKIP_1: u32 = 1 << 3;
    /// port of a bridge, ours or the kernel's
    pub const PORT: u32 = 1 << 4;
}

/// `struct pf_interface`: value of the interfaces map, whose key is the ifindex.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Interface {
    /// Names an interface for good; 0 is no interface.
    pub id: u32,
    /// [`interface_flags`]
    pub flags: u32,
    /// Bit per group.
    pub groups: u64,
    /// Name, padded with zeros.
    pub name: [u8; IFNAMSIZ],
    /// The table of the VRF it is in, 0 if it is in none.
    pub rdomain: u32,
    #[allow(missing_docs)]
    pub pad: u32,
    /// Its link-local IPv6 address; 0 if it has none.
    pub link_address: [u8; 16],
}

/// `struct pf_near_interface`: the same in two places, of which packets read one while the other is
/// written.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct NearInterface {
    /// 1 or 2: which of them is known; 0 if neither is.
    pub known: u32,
    #[allow(missing_docs)]
    pub pad: u32,
    /// Both.
    pub one: [Interface; 2],
}

/// `struct pf_interface_stats`, indexed `[inet, inet6][in, out][pass, block]`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct InterfaceStats {
    /// Packets.
    pub packets: [[[u64; 2]; 2]; 2],
    /// Bytes from the IP header on.
    pub bytes: [[[u64; 2]; 2]; 2],
}
