//! Sources that are tracked.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Kinds of nodes there are (`PF_NODE_KINDS`).
pub const NODE_KINDS: usize = 4;

/// `enum pf_node_kind`: what a source is remembered for.
pub mod node_kind {
    /// limits
    pub const TRACK: u8 = 0;
    /// `nat-to … sticky-address`
    pub const NAT: u8 = 1;
    /// `rdr-to … sticky-address`
    pub const RDR: u8 = 2;
    /// `route-to … sticky-address`
    pub const ROUTE: u8 = 3;
}

/// `enum pf_node_use`.
pub mod node_use {
    /// nobody has the place
    pub const FREE: u32 = 0;
    /// it holds a node
    pub const USED: u32 = 1;
    /// dropped by pfctl; its last state frees the place
    pub const DROPPED: u32 = 2;
}

/// `struct pf_source_key`: whose node it is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct SourceKey {
    /// Slot of the rule.
    pub rule_slot: u32,
    /// [`node_kind`]
    pub kind: u8,
    /// [`crate::INET`] or [`crate::INET6`]
    pub family: u8,
    /// Zero.
    pub pad: [u8; 2],
    /// Network order, IPv4 in the first four bytes.
    pub address: [u8; 16],
}

/// `struct pf_source_node`: value of the source_nodes map.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct SourceNode {
    /// The kernel's spin lock; reads as zero.
    pub lock: u32,
    /// [`node_use`]
    pub r#use: u32,
    /// Whose it is.
    pub key: SourceKey,
    /// Rate of connections: second of the last in the upper half, thousandths in the lower.
    pub rate: u64,
    /// With the direction of their states, against it.
    pub packets: [u64; 2],
    /// With the direction of their states, against it.
    pub bytes: [u64; 2],
    /// States now.
    pub states: u32,
    /// Connections of these states that were established.
    pub connections: u32,
    /// Second of creation.
    pub creation: u32,
    /// Second at which it goes if it has no states.
    pub expire: u32,
    /// The address that a pool gave it, zero for none.
    pub chosen: [u8; 16],
    /// Of a next hop: as [`crate::Annex::hop_interface`].
    pub interface: u32,
    /// [`crate::INET`] or [`crate::INET6`], of `chosen`.
    pub chosen_family: u8,
    /// Zero.
    pub pad: [u8; 3],
    /// Number of the sweep that last took a state from it; 0 for none.
    pub swept: u32,
    /// Zero.
    pub pad_end: u32,
    /// Id of the oldest state that this sweep took.
    pub oldest: u64,
}

/// `struct pf_source_ref`: argument of the program that drops a node.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct SourceRef {
    /// Place in the source_nodes map.
    pub index: u32,
    /// Zero.
    pub pad: u32,
    /// Key that must be there.
    pub key: SourceKey,
}
