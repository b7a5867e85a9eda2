//! Trees that find the deciding rule among many; `bpf/abi/forest.h` has the layout.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// 32-bit words of a cell.
pub const CELL_WORDS: usize = 16;
/// Maximum number of cuts of a node.
pub const CELL_CUTS: usize = 14;
/// Index of the word where the rules of a leaf or of a line begin.
pub const CELL_RULES: usize = 2;
/// Words of an IPv4 rule in a leaf; an IPv6 rule has twice as many.
pub const RULE_WORDS: usize = 6;
/// Binary logarithm of the number of cells of a chunk.
pub const CHUNK_BITS: u32 = 16;
/// Number of cells of a chunk.
pub const CHUNK_CELLS: usize = 1 << CHUNK_BITS;
/// Maximum number of chunks of a generation.
pub const CHUNKS: u32 = 64;
/// Axis number that marks a leaf.
pub const AXIS_LEAF: u32 = 255;
/// Number of tree sets of a superblock in either direction, numbered by [`forest_of`].
pub const FORESTS: usize = 10;
/// Word of a superblock's cells: not 0 if each matching rule takes effect in order, instead of one
/// rule that decides.
pub const STRETCH_MEETS_ALL: usize = 1 + FORESTS;
/// Word of a superblock's cells: index of its first rule.
pub const STRETCH_FIRST: usize = 2 + FORESTS;
/// Word of a superblock's cells: its metadata dimension, one of [`stretch_asks`].
pub const STRETCH_ASKS: usize = 3 + FORESTS;
/// Value on the metadata dimension of a packet whose tag or owner has not been read.
pub const ASKED_UNKNOWN: u32 = 0xffff_fffe;
/// In place of a tree set: no rule of the superblock can match.
pub const FOREST_NONE: u32 = 0;
/// In place of a tree set: skip steps are faster than a search.
pub const FOREST_WALK: u32 = 1;
/// Orders are positions in the superblock: `quick` rules count up from 0, others down from here.
pub const ORDER_LAST: u32 = 0x4000_0000;
/// Shift of an order in a cell, in bits.
pub const ORDER_SHIFT: u32 = 1;
/// Bit below a shifted order: the rule has criteria beyond its hyper-rectangle.
pub const ORDER_ASKS_MORE: u32 = 1;
/// Class of all interfaces with an id of 255 or more; a lower id is its own class.
pub const CLASS_OTHER: u32 = 255;

/// `enum pf_forest_of`: kinds of packets, each with its own tree set.
pub mod forest_of {
    /// TCP segments that begin a connection.
    pub const TCP: usize = 0;
    /// All other TCP segments.
    pub const TCP_FOLLOWS: usize = 1;
    /// UDP datagrams.
    pub const UDP: usize = 2;
    /// Packets of no other kind.
    pub const OTHER: usize = 3;
    /// ICMP answers to a query.
    pub const ICMP_FOLLOWS: usize = 4;
    /// Offset of the same kinds over IPv6.
    pub const INET6: usize = 5;
}

/// `enum pf_stretch_asks`: the metadata dimension of a superblock's trees.
pub mod stretch_asks {
    /// No metadata dimension.
    pub const NOTHING: u32 = 0;
    /// The packet's tag.
    pub const TAG: u32 = 1;
    /// The user that owns the packet's socket.
    pub const USER: u32 = 2;
    /// The group that owns the packet's socket.
    pub const GROUP: u32 = 3;
}

/// `struct pf_cell`: a cache line of a tree; value of the forests map.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Cell {
    /// Words whose meaning depends on the cell's place in the tree.
    pub word: [u32; CELL_WORDS],
}
