//! Tables of addresses.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bits of [`TableKey`] between `prefixlen` and the address.
pub const TABLE_KEY_FIXED_BITS: u32 = 64;

/// `struct pf_table_key`: key of the one LPM trie that holds all tables without an index.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct TableKey {
    /// [`TABLE_KEY_FIXED_BITS`] and the prefix's length.
    pub prefixlen: u32,
    /// [`Table::version`] for entries, [`Table::counters`] for their counters.
    pub version: u32,
    /// [`crate::INET`] or [`crate::INET6`]
    pub family: u32,
    /// Address in network byte order, IPv4 in the first 4 bytes.
    pub address: [u8; 16],
}

/// `struct pf_table_entry`: value of the table_entries map.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct TableEntry {
    /// Second since 1970 of the entry's creation, or of the last clearing of its counters.
    pub cleared: u32,
    /// In [`crate::limits::SELF_TABLE`]: id of the interface that has the address.
    pub interface: u32,
    /// Relative weight of the entry in a pool; 0: not set.
    pub weight: u16,
    /// Prefix length of the entry, 0 to 128.
    pub prefix: u8,
    /// 1: a longest match with this entry means that the address is not in the table.
    pub negated: u8,
}

/// Bit of a [`Table::version`]: the table has an index.
pub const TABLE_INDEXED: u32 = 0x8000_0000;

/// `struct pf_table`: value of the tables map, by slot.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Table {
    /// Version of the valid entries, with [`TABLE_INDEXED`]; 0: the table is empty.
    pub version: u32,
    /// Version of the entries' counters; 0: the table has none.
    pub counters: u32,
    /// Slot of the table's own counters, which stays when the table moves to another slot.
    pub stats: u32,
    /// Version of the table's list in pool_blocks; 0: no pool uses the table.
    pub list: u32,
    /// Number of entries of both families, negated ones included.
    pub total: u32,
    /// 1: some entries have weights.
    pub weighted: u32,
    /// Greatest common divisor of the weights.
    pub gcd: u32,
    /// Greatest weight.
    pub heaviest: u32,
}

/// `struct pf_entry_stats`: counters of an entry; arrays are `[in, out][table_op]`, without
/// [`table_op::XPASS`].
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct EntryStats {
    /// Packets by direction and [`table_op`].
    pub packets: [[u64; table_op::XPASS]; 2],
    /// Bytes by direction and [`table_op`].
    pub bytes: [[u64; table_op::XPASS]; 2],
    /// Prefix length of the entry.
    pub prefix: u32,
    /// Zero.
    pub pad: u32,
}

/// `enum pf_table_op`: results of packets, as `pfctl -vvT show` counts them.
pub mod table_op {
    /// A block rule decided.
    pub const BLOCK: usize = 0;
    /// A match rule applied.
    pub const MATCH: usize = 1;
    /// A pass rule decided.
    pub const PASS: usize = 2;
    /// A state passed the packet, but the table no longer has the address.
    pub const XPASS: usize = 3;
    /// Number of results.
    pub const MAX: usize = 4;
}

/// `struct pf_table_stats`: counters of one CPU, by slot; arrays are `[in, out][table_op]`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct TableStats {
    /// Rule evaluations that found the address.
    pub r#match: u64,
    /// Rule evaluations that did not find the address.
    pub nomatch: u64,
    /// Packets by direction and [`table_op`].
    pub packets: [[u64; table_op::MAX]; 2],
    /// Bytes by direction and [`table_op`].
    pub bytes: [[u64; table_op::MAX]; 2],
}
