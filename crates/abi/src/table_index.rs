//! The index of a table with many entries; bpf/abi/table_index.h has the layout.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::TableEntry;

/// Bit of a value: the value is the number of a node.
pub const INDEX_NODE: u32 = 0x8000_0000;
/// Bit of an entry number: the entry is negated.
pub const INDEX_NEGATED: u32 = 0x4000_0000;
/// Maximum number of keys in a bucket.
pub const LINE_KEYS: usize = 14;
/// Bit of a bucket's flags: some hosts of the bucket are stored among the networks.
pub const LINE_GOES_ON: u32 = 0x8000_0000;
/// 32-bit words of a cell.
pub const INDEX_WORDS: usize = 16;

/// `struct pf_index_cell`: one cache line of an index.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct IndexCell {
    /// Words whose meaning depends on the cell's place.
    pub word: [u32; INDEX_WORDS],
}

/// `struct pf_index_head`: the first cell; arrays are `[IPv4, IPv6]`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct IndexHead {
    /// Secret of the keyed hash.
    pub secret: [u32; 4],
    /// Number of buckets of hosts.
    pub lines: [u32; 2],
    /// Cell of the first bucket.
    pub first_line: [u32; 2],
    /// Value where the search for networks begins; 0: no networks.
    pub networks: [u32; 2],
    /// Cell of the first node.
    pub first_node: u32,
    /// Cell of the first value.
    pub first_value: u32,
    /// Number of entries.
    pub entries: u32,
    /// Not used.
    pub pad: [u32; 3],
}

/// `struct pf_index_line`: a bucket of hosts.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct IndexLine {
    /// Number of the entry of the first key.
    pub first: u32,
    /// Bit n: the entry of key n is negated. Also has [`LINE_GOES_ON`].
    pub flags: u32,
    /// Keys of hosts, 0 if unused.
    pub key: [u32; LINE_KEYS],
}

/// `struct pf_index_node`: a node of the trie of networks, which branches by one byte.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct IndexNode {
    /// 256 bits, one for each value that differs from the value before.
    pub starts: [u64; 4],
    /// Index of the first value of this node, counted from [`IndexHead::first_value`].
    pub first: u32,
    /// Value of addresses that differ from `common`.
    pub otherwise: u32,
    /// Number of bits set in the words of `starts` before each word.
    pub before: [u8; 4],
    /// Number of leading bytes that all networks below this node share.
    pub depth: u8,
    /// Zero.
    pub pad: [u8; 3],
    /// The shared leading bytes, in network byte order.
    pub common: [u8; 16],
}

/// `struct pf_index_entry`: an entry with its key.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct IndexEntry {
    /// The entry, as in the table_entries map.
    pub entry: TableEntry,
    /// [`crate::INET`] or [`crate::INET6`]
    pub family: u32,
    /// Address in network byte order, IPv4 in the first 4 bytes.
    pub address: [u8; 16],
}
