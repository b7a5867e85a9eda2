//! Trees that find the deciding rule among many.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Words of a cell.
pub const CELL_WORDS: usize = 16;
/// Cuts of a node.
pub const CELL_CUTS: usize = 14;
/// Word of a leaf, or a line, in which its rules begin.
pub const CELL_RULES: usize = 2;
/// Words of a rule of IPv4 there; one of IPv6 has twice as many.
pub const RULE_WORDS: usize = 6;
/// A chunk has 1 << so many cells.
pub const CHUNK_BITS: u32 = 16;
/// Cells of a chunk.
pub const CHUNK_CELLS: usize = 1 << CHUNK_BITS;
/// Chunks of a generation.
pub const CHUNKS: u32 = 64;
/// The axis of a leaf.
pub const AXIS_LEAF: u32 = 255;
/// Forests of a stretch of rules in either direction, numbered by [`forest_of`].
pub const FORESTS: usize = 10;
/// Word of a stretch's cells: not 0 if all of its rules that match are met, instead of the one that
/// decides.
pub const STRETCH_MEETS_ALL: usize = 1 + FORESTS;
/// Word of a stretch's cells: index of its first rule.
pub const STRETCH_FIRST: usize = 2 + FORESTS;
/// Word of a stretch's cells: what trees cut along besides, [`stretch_asks`].
pub const STRETCH_ASKS: usize = 3 + FORESTS;
/// On the axis of what is asked besides: nobody has looked at it.
pub const ASKED_UNKNOWN: u32 = 0xffff_fffe;
/// In place of a forest: no rule of the stretch can match.
pub const FOREST_NONE: u32 = 0;
/// In place of a forest: skip steps are faster than a search.
pub const FOREST_WALK: u32 = 1;
/// A rule's order is its place in the stretch if it is `quick`, else this less that place.
pub const ORDER_LAST: u32 = 0x4000_0000;
/// In cells an order is shifted by so much.
pub const ORDER_SHIFT: u32 = 1;
/// The bit below it: the rule's box does not say all that it asks.
pub const ORDER_ASKS_MORE: u32 = 1;
/// Class of the interfaces whose ids are not below it; an id below is a class of its own.
pub const CLASS_OTHER: u32 = 255;

/// `enum pf_forest_of`.
pub mod forest_of {
    /// first segments of TCP
    pub const TCP: usize = 0;
    /// all other segments
    pub const TCP_FOLLOWS: usize = 1;
    /// UDP
    pub const UDP: usize = 2;
    /// what has none of its own
    pub const OTHER: usize = 3;
    /// the answer to a query of ICMP
    pub const ICMP_FOLLOWS: usize = 4;
    /// so many more are the same packets over IPv6
    pub const INET6: usize = 5;
}

/// `enum pf_stretch_asks`.
pub mod stretch_asks {
    /// no such axis
    pub const NOTHING: u32 = 0;
    /// the packet's tag
    pub const TAG: u32 = 1;
    /// who owns its socket
    pub const USER: u32 = 2;
    /// the group of the same
    pub const GROUP: u32 = 3;
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
