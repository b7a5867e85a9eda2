//! Fingerprints of operating systems.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `enum pf_measure`: how a number must fit.
pub mod measure {
    /// any number does
    pub const ANY: u8 = 0;
    /// this number
    pub const EXACTLY: u8 = 1;
    /// a multiple of it
    pub const MULTIPLE: u8 = 2;
    /// of a window: so many times the MSS
    pub const SEGMENTS: u8 = 3;
    /// or the MTU
    pub const PACKETS: u8 = 4;
}

/// `enum pf_syn_flags`.
pub mod syn_flags {
    /// don't fragment
    pub const DF: u8 = 1 << 0;
    /// a timestamp is 0
    pub const ZERO_TIMESTAMP: u8 = 1 << 1;
}

/// `struct pf_fingerprint`: what the SYNs of a system look like.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Fingerprint {
    /// Bits of the names in rules that its systems have.
    pub systems: u64,
    /// Kinds of TCP options, 3 bits each, the first one highest.
    pub options: u64,
    /// Window.
    pub window: u16,
    /// Size of the IP packet.
    pub size: u16,
    /// MSS.
    pub mss: u16,
    /// Window scale.
    pub scale: u8,
    /// TTL.
    pub ttl: u8,
    /// How many options there are.
    pub option_count: u8,
    /// [`syn_flags`]
    pub flags: u8,
    /// [`measure`]
    pub window_kind: u8,
    /// [`measure`]
    pub size_kind: u8,
    /// [`measure`]
    pub mss_kind: u8,
    /// [`measure`]
    pub scale_kind: u8,
    /// Zero.
    pub pad: [u8; 2],
}
