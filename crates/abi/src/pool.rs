//! Pools that translated packets get their addresses from.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `enum pf_purpose`: what a rule uses a pool for.
pub mod purpose {
    /// sources
    pub const NAT: u32 = 0;
    /// destinations
    pub const RDR: u32 = 1;
    /// next hops
    pub const ROUTE: u32 = 2;
}

/// `enum pf_route_kind`.
#[allow(missing_docs)]
pub mod route_kind {
    pub const NO: u8 = 0;
    pub const ROUTE_TO: u8 = 1;
    pub const DUP_TO: u8 = 2;
    pub const REPLY_TO: u8 = 3;
}

/// `enum pf_pool_kind`.
#[allow(missing_docs)]
pub mod pool_kind {
    /// the first address
    pub const NONE: u8 = 0;
    pub const BITMASK: u8 = 1;
    pub const RANDOM: u8 = 2;
    pub const SOURCE_HASH: u8 = 3;
    pub const ROUND_ROBIN: u8 = 4;
    pub const LEAST_STATES: u8 = 5;
}

/// `struct pf_pool_key`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct PoolKey {
    /// Slot of the rule.
    pub slot: u32,
    /// One of [`purpose`].
    pub purpose: u32,
}

/// `struct pf_pool`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Pool {
    /// One of [`pool_kind`].
    pub kind: u8,
    /// 1: choose from the table, not from the network.
    pub listed: u8,
    /// 1: the network is one address.
    pub single: u8,
    /// 1: a source keeps the address that it got.
    pub sticky: u8,
    /// Slot of the table.
    pub table: u32,
    /// Lowest new port; 0 with `high` 0 keeps the packet's.
    pub low: u16,
    /// Highest new port.
    pub high: u16,
    /// The lowest port that the rule looks for.
    pub first: u16,
    /// `af-to`: its length in front of an IPv4 address.
    pub prefix: u8,
    /// 1 for that of an old rule: FreeBSD's ways where they differ.
    pub old: u8,
    /// The network.
    pub address: [u8; 16],
    /// Its mask.
    pub mask: [u8; 16],
    /// Key of `source-hash`.
    pub key: [u8; 16],
    /// Of `map-e-portset`: the set's id.
    pub port_set: u16,
    /// Bits in front of the id, 0 if there is no such option.
    pub set_offset: u8,
    /// Bits of the id.
    pub set_length: u8,
    /// How many members the list of an old rule has; 0: it is none.
    pub members: u16,
    /// 1 for that of `binat`: host bits are those of the address that it replaces.
    pub binat: u8,
    /// 1: UDP from one endpoint looks the same to all.
    pub endpoint_independent: u8,
    /// Id of the interface by which its next hops are; 0: as the routes say.
    pub interface: u32,
    /// 1: IPv4 packets can have a next hop with an IPv6 address.
    pub prefer_ipv6: u8,
    /// [`crate::INET`] or [`crate::INET6`], of the network; 0 fits both.
    pub family: u8,
    /// Zero.
    pub pad: [u8; 2],
    /// The address that is next or was last; the data plane's, as the rest.
    pub counter: [u8; 16],
    /// The block that it is in.
    pub index: u32,
    /// Weighted round-robin: blocks of at least this weight have their turn.
    pub turn: i32,
    /// Of a list: the member that `counter` is in.
    pub member: u32,
    /// With `prefer_ipv6`: 1 when IPv4 addresses have their turn.
    pub turned: u32,
}

/// `struct pf_pool_member_key`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct PoolMemberKey {
    /// Slot of the rule.
    pub slot: u32,
    /// One of [`purpose`].
    pub purpose: u32,
    /// The member's place in the list.
    pub index: u32,
}

/// `struct pf_pool_member`: of the list of an old rule; fields as in [`Pool`].
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct PoolMember {
    /// 1: choose from the table, not from the network.
    pub listed: u8,
    /// [`crate::INET`] or [`crate::INET6`], of the network; 0 fits both.
    pub family: u8,
    /// 0
    pub pad: [u8; 2],
    /// Slot of the table.
    pub table: u32,
    /// As [`Pool::interface`].
    pub interface: u32,
    /// The network.
    pub address: [u8; 16],
    /// Its mask.
    pub mask: [u8; 16],
}

/// `struct pf_pool_block_key`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct PoolBlockKey {
    /// [`crate::Table::list`]
    pub list: u32,
    /// [`crate::INET`] or [`crate::INET6`]
    pub family: u16,
    /// Part of the block.
    pub part: u16,
    /// The block's place in the order of its family.
    pub index: u32,
}

/// `struct pf_pool_block`: an entry of a table that pools use, or a part of it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct PoolBlock {
    /// The entry's network.
    pub base: [u8; 16],
    /// Its mask.
    pub mask: [u8; 16],
    /// Its weight, 0 for none.
    pub weight: u16,
    /// Parts that smaller entries leave of it.
    pub parts: u16,
    /// Lowest address of the part.
    pub low: [u8; 16],
    /// Highest address of the part.
    pub high: [u8; 16],
}

/// `struct pf_endpoint`: inside, which leads to the one outside, or the other way round.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Endpoint {
    /// Routing domain.
    pub rdomain: u32,
    /// [`crate::INET`] or [`crate::INET6`]
    pub family: u8,
    /// 1 if it is outside.
    pub outside: u8,
    /// In network order.
    pub port: u16,
    /// Its address.
    pub address: [u8; 16],
}

/// `struct pf_mapping`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Mapping {
    /// The endpoint on the other side.
    pub other: Endpoint,
    /// Of one inside: states, and packets that may get one.
    pub uses: u32,
}

/// `struct pf_pool_load_key`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct PoolLoadKey {
    /// Where the table counts ([`crate::Table::stats`]), which stays when its contents and its slot
    /// change.
    pub table: u32,
    /// [`crate::INET`] or [`crate::INET6`]
    pub family: u32,
    /// The address.
    pub address: [u8; 16],
}
