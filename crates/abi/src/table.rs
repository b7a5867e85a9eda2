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
    /// [`Table::version`], or [`Table::counters`] where counters are kept.
    pub version: u32,
    /// [`crate::INET`] or [`crate::INET6`]
    pub family: u32,
    /// Network order, IPv4 in the first four bytes.
    pub address: [u8; 16],
}

/// `struct pf_table_entry`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct TableEntry {
    /// Second since 1970 when it was written, or its counters were cleared.
    pub cleared: u32,
    /// In the table of the host's own addresses: id of the interface that has it.
    pub interface: u32,
    /// How often a pool takes it, compared with the others; 0: nothing was said.
    pub weight: u16,
    /// Length of its prefix.
    pub prefix: u8,
    /// 1: where this is the longest match, the address is not in the table.
    pub negated: u8,
}

/// In a [`Table::version`]: it has an index.
pub const TABLE_INDEXED: u32 = 0x8000_0000;

/// `struct pf_table`: indexed by slot.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Table {
    /// Version whose entries count, with [`TABLE_INDEXED`]; 0: empty, nothing to look up.
    pub version: u32,
    /// What the counters of its entries are kept under; 0: they have none.
    pub counters: u32,
    /// Slot of its own counters, the same whatever slot it moves to.
    pub stats: u32,
    /// Version of its list, which only tables have that pools use; else 0.
    pub list: u32,
    /// Entries of both families, negated ones too.
    pub total: u32,
    /// 1: some have weights.
    pub weighted: u32,
    /// Greatest common divisor of the weights.
    pub gcd: u32,
    /// Greatest weight.
    pub heaviest: u32,
}

/// `struct pf_entry_stats`: arrays are `[in, out][table_op]`, without [`table_op::XPASS`].
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct EntryStats {
    /// Packets.
    pub packets: [[u64; table_op::XPASS]; 2],
    /// Bytes.
    pub bytes: [[u64; table_op::XPASS]; 2],
    /// Length of the entry's prefix.
    pub prefix: u32,
    /// Not used.
    pub pad: u32,
}

/// `enum pf_table_op`: what was done with a packet, as `pfctl -vvT show` counts it.
pub mod table_op {
    /// blocked
    pub const BLOCK: usize = 0;
    /// a match rule applied
    pub const MATCH: usize = 1;
    /// passed
    pub const PASS: usize = 2;
    /// passed by a state, but the table no longer holds the address
    pub const XPASS: usize = 3;
    /// How many there are.
    pub const MAX: usize = 4;
}

/// `struct pf_table_stats`: per CPU, indexed by slot; arrays are `[in, out][table_op]`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct TableStats {
    /// Rule evaluations that found the address.
    pub r#match: u64,
    /// Rule evaluations that did not.
    pub nomatch: u64,
    /// Packets.
    pub packets: [[u64; table_op::MAX]; 2],
    /// Bytes.
    pub bytes: [[u64; table_op::MAX]; 2],
}
