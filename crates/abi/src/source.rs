//! Source nodes: the sources that rules and pools track.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Number of kinds of source nodes (`PF_NODE_KINDS`).
pub const NODE_KINDS: usize = 4;

/// `enum pf_node_kind`: the purposes of a source node.
pub mod node_kind {
    /// `source-track`: limits.
    pub const TRACK: u8 = 0;
    /// `nat-to … sticky-address`
    pub const NAT: u8 = 1;
    /// `rdr-to … sticky-address`
    pub const RDR: u8 = 2;
    /// `route-to … sticky-address`
    pub const ROUTE: u8 = 3;
}

/// `enum pf_node_use`: the states of an entry of the source_nodes map.
pub mod node_use {
    /// The entry is free.
    pub const FREE: u32 = 0;
    /// The entry has a node.
    pub const USED: u32 = 1;
    /// pfctl has dropped the node; its last state frees the entry.
    pub const DROPPED: u32 = 2;
}

/// `struct pf_source_key`: rule, kind and source of a node.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct SourceKey {
    /// Slot of the rule.
    pub rule_slot: u32,
    /// One of [`node_kind`].
    pub kind: u8,
    /// [`crate::INET`] or [`crate::INET6`]
    pub family: u8,
    /// Zero.
    pub pad: [u8; 2],
    /// Source address in network byte order, IPv4 in the first 4 bytes.
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
    /// One of [`node_use`].
    pub r#use: u32,
    /// Key of the node.
    pub key: SourceKey,
    /// Rate of connections: second of the last one in the upper half, thousandths in the lower.
    pub rate: u64,
    /// Packets with the direction of their states, and against it.
    pub packets: [u64; 2],
    /// Bytes with the direction of their states, and against it.
    pub bytes: [u64; 2],
    /// Number of states now.
    pub states: u32,
    /// Number of these states whose connection has been established.
    pub connections: u32,
    /// Boot-clock second of creation.
    pub creation: u32,
    /// Boot-clock second at which the node is removed if it has no states.
    pub expire: u32,
    /// Address that the pool chose, in network byte order; zero for none.
    pub chosen: [u8; 16],
    /// Interface of the next hop, as [`crate::Extension::hop_interface`].
    pub interface: u32,
    /// Family of `chosen`, [`crate::INET`] or [`crate::INET6`].
    pub chosen_family: u8,
    /// Zero.
    pub pad: [u8; 3],
    /// Number of the last sweep that removed a state of this node; 0 for none.
    pub swept: u32,
    /// Zero.
    pub pad_end: u32,
    /// Id of the oldest state that this sweep removed.
    pub oldest: u64,
}

/// `struct pf_source_ref`: argument of the program that drops a node.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct SourceRef {
    /// Index in the source_nodes map.
    pub index: u32,
    /// Zero.
    pub pad: u32,
    /// Key that the node must have, else the program does nothing.
    pub key: SourceKey,
}
