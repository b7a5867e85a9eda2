//! The index of a table with many entries; bpf/abi/table_index.h says what stands where.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::TableEntry;

/// In a value: it is the number of a node.
pub const INDEX_NODE: u32 = 0x8000_0000;
/// In the number of an entry: it is negated.
pub const INDEX_NEGATED: u32 = 0x4000_0000;
/// Keys of a line.
pub const LINE_KEYS: usize = 14;
/// In the flags of a line: networks may have what it has not.
pub const LINE_GOES_ON: u32 = 0x8000_0000;
/// Words of a cell.
pub const INDEX_WORDS: usize = 16;

/// `struct pf_index_cell`
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct IndexCell {
    /// What it is made of.
    pub word: [u32; INDEX_WORDS],
}

/// `struct pf_index_head`: arrays are `[IPv4, IPv6]`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct IndexHead {
    /// Of the hash.
    pub secret: [u32; 4],
    /// Lines of hosts.
    pub lines: [u32; 2],
    /// Cell of the first of them.
    pub first_line: [u32; 2],
    /// Value where the search for networks begins; 0: there are none.
    pub networks: [u32; 2],
    /// Cell of the first node.
    pub first_node: u32,
    /// Cell of the first values.
    pub first_value: u32,
    /// Number of entries.
    pub entries: u32,
    /// Not used.
    pub pad: [u32; 3],
}

/// `struct pf_index_line`
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct IndexLine {
    /// Number of the first key's entry.
    pub first: u32,
    /// Bit n: the entry of key n is negated. [`LINE_GOES_ON`].
    pub flags: u32,
    /// Keys, 0 where there is none.
    pub key: [u32; LINE_KEYS],
}

/// `struct pf_index_node`
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct IndexNode {
    /// A bit for each of 256 values that is not the same as the one before.
    pub starts: [u64; 4],
    /// Place of the first of its values.
    pub first: u32,
    /// Value of what is not behind it.
    pub otherwise: u32,
    /// Bits in the words of `starts` before this one.
    pub before: [u8; 4],
    /// Bytes that all behind it have in common.
    pub depth: u8,
    /// Not used.
    pub pad: [u8; 3],
    /// Those bytes.
    pub common: [u8; 16],
}

/// `struct pf_index_entry`
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct IndexEntry {
    /// What there is to know of it.
    pub entry: TableEntry,
    /// [`crate::INET`] or [`crate::INET6`]
    pub family: u32,
    /// Network order, IPv4 in the first four bytes.
    pub address: [u8; 16],
}
