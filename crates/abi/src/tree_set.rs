//! Trees that find the deciding rule among many; `bpf/abi/tree_set.h` has the layout.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// 32-bit words of a node.
pub const NODE_WORDS: usize = 16;
/// Maximum number of cuts of a node.
pub const NODE_CUTS: usize = 14;
/// Index of the word where the rules of a leaf or of a line begin.
pub const NODE_RULES: usize = 2;
/// Words of an IPv4 rule in a leaf; an IPv6 rule has twice as many.
pub const RULE_WORDS: usize = 6;
/// Binary logarithm of the number of nodes of a chunk.
pub const CHUNK_BITS: u32 = 16;
/// Number of nodes of a chunk.
pub const CHUNK_NODES: usize = 1 << CHUNK_BITS;
/// Maximum number of chunks of a generation.
pub const CHUNKS: u32 = 64;
/// Axis number that marks a leaf.
pub const AXIS_LEAF: u32 = 255;
/// Number of tree sets of a superblock in either direction, numbered by [`tree_set_of`].
pub const TREE_SETS: usize = 10;
/// Word of a superblock's nodes: not 0 if each matching rule takes effect in order, instead of one
/// rule that decides.
pub const SUPERBLOCK_MEETS_ALL: usize = 1 + TREE_SETS;
/// Word of a superblock's nodes: index of its first rule.
pub const SUPERBLOCK_FIRST: usize = 2 + TREE_SETS;
/// Word of a superblock's nodes: its metadata dimension, one of [`superblock_metadata`].
pub const SUPERBLOCK_METADATA: usize = 3 + TREE_SETS;
/// Value on the metadata dimension of a packet whose tag or owner has not been read.
pub const METADATA_UNKNOWN: u32 = 0xffff_fffe;
/// In place of a tree set: no rule of the superblock can match.
pub const TREE_SET_NONE: u32 = 0;
/// In place of a tree set: skip steps are faster than a search.
pub const TREE_SET_WALK: u32 = 1;
/// Orders are positions in the superblock: `quick` rules count up from 0, others down from here.
pub const ORDER_LAST: u32 = 0x4000_0000;
/// Shift of an order in a node, in bits.
pub const ORDER_SHIFT: u32 = 1;
/// Bit below a shifted order: the rule has criteria beyond its hyper-rectangle.
pub const ORDER_ASKS_MORE: u32 = 1;
/// Class of all interfaces with an id of 255 or more; a lower id is its own class.
pub const CLASS_OTHER: u32 = 255;

/// `enum pf_tree_set_of`: kinds of packets, each with its own tree set.
pub mod tree_set_of {
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

/// `enum pf_superblock_metadata`: the metadata dimension of a superblock's trees.
pub mod superblock_metadata {
    /// No metadata dimension.
    pub const NOTHING: u32 = 0;
    /// The packet's tag.
    pub const TAG: u32 = 1;
    /// The user that owns the packet's socket.
    pub const USER: u32 = 2;
    /// The group that owns the packet's socket.
    pub const GROUP: u32 = 3;
}

/// `struct pf_node`: a cache line of a tree. A value of the tree sets map is a chunk of nodes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Node {
    /// Words whose meaning depends on the node's place in the tree.
    pub word: [u32; NODE_WORDS],
}
