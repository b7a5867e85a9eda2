//! Fingerprints of operating systems.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `enum pf_measure`: comparisons of a packet's number with a fingerprint's.
pub mod measure {
    /// Any number matches.
    pub const ANY: u8 = 0;
    /// The number must be equal.
    pub const EXACTLY: u8 = 1;
    /// The number must be a multiple of the fingerprint's.
    pub const MULTIPLE: u8 = 2;
    /// Window only: the number is a multiple of the MSS.
    pub const SEGMENTS: u8 = 3;
    /// Window only: the number is a multiple of the MTU.
    pub const PACKETS: u8 = 4;
}

/// `enum pf_syn_flags`: bits of [`Fingerprint::flags`].
pub mod syn_flags {
    /// The packet has DF; true for all IPv6 packets.
    pub const DF: u8 = 1 << 0;
    /// The TCP timestamp is 0.
    pub const ZERO_TIMESTAMP: u8 = 1 << 1;
}

/// `struct pf_fingerprint`: the features of the SYNs of an operating system.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Fingerprint {
    /// Bits of the `os` names in rules that match these systems.
    pub systems: u64,
    /// Kinds of TCP options, 3 bits each, the first option in the highest bits.
    pub options: u64,
    /// TCP window, or its factor; see `window_kind`.
    pub window: u16,
    /// Bytes of the IP packet; see `size_kind`.
    pub size: u16,
    /// Maximum segment size in bytes; see `mss_kind`.
    pub mss: u16,
    /// Window scale; see `scale_kind`.
    pub scale: u8,
    /// TTL that the system sends with.
    pub ttl: u8,
    /// Number of TCP options.
    pub option_count: u8,
    /// Bits of [`syn_flags`].
    pub flags: u8,
    /// Comparison of `window`, one of [`measure`].
    pub window_kind: u8,
    /// Comparison of `size`, one of [`measure`].
    pub size_kind: u8,
    /// Comparison of `mss`, one of [`measure`].
    pub mss_kind: u8,
    /// Comparison of `scale`, one of [`measure`].
    pub scale_kind: u8,
    /// Zero.
    pub pad: [u8; 2],
}
