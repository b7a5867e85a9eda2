//! Trees that find the deciding rule among many.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Words of a cell.
pub const CELL_WORDS: usize = 16;
/// Cuts of a node.
pub const CELL_CUTS: usize = 14;
/// The axis of a leaf.
pub const AXIS_LEAF: u32 = 255;
/// Forests of a stretch of rules, numbered by [`forest_of`].
pub const FORESTS: usize = 8;
/// A rule's order is its index if it is `quick`, else this less its index.
pub const ORDER_LAST: u32 = 0x4000_0000;
/// Class of the interfaces whose ids are not below it; an id below is a class of its own.
pub const CLASS_OTHER: u32 = 255;

/// `enum pf_forest_of`.
pub mod forest_of {
    /// TCP but no first segment, or the answer to an ICMP query
    pub const FOLLOWS: usize = 1 << 0;
    /// IPv6
    pub const INET6: usize = 1 << 1;
    /// outbound
    pub const OUT: usize = 1 << 2;
}

/// `struct pf_cell`: what forests are made of.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Cell {
    /// What they say hangs on the way that led here.
    pub word: [u32; CELL_WORDS],
}
