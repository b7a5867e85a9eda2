//! Pools, which supply the addresses of translated packets.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `enum pf_purpose`: the uses of a rule's pools.
pub mod purpose {
    /// New source addresses.
    pub const NAT: u32 = 0;
    /// New destination addresses.
    pub const RDR: u32 = 1;
    /// Next hops.
    pub const ROUTE: u32 = 2;
}

/// `enum pf_route_kind`: the rule's routing option.
#[allow(missing_docs, reason = "the values are those of bpf/abi")]
pub mod route_kind {
    pub const NO: u8 = 0;
    pub const ROUTE_TO: u8 = 1;
    pub const DUP_TO: u8 = 2;
    pub const REPLY_TO: u8 = 3;
}

/// `enum pf_pool_kind`: the methods that choose an address from a pool.
#[allow(missing_docs, reason = "the values are those of bpf/abi")]
pub mod pool_kind {
    /// the first address of the pool
    pub const NONE: u8 = 0;
    pub const BITMASK: u8 = 1;
    pub const RANDOM: u8 = 2;
    pub const SOURCE_HASH: u8 = 3;
    pub const ROUND_ROBIN: u8 = 4;
    pub const LEAST_STATES: u8 = 5;
}

/// `struct pf_pool_key`: key of the pools map.
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

/// `struct pf_pool`: value of the pools map.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Pool {
    /// One of [`pool_kind`].
    pub kind: u8,
    /// 1: the addresses come from the table, else from the network.
    pub listed: u8,
    /// 1: the network is a single address.
    pub single: u8,
    /// 1: `sticky-address`, a source keeps its address.
    pub sticky: u8,
    /// Slot of the table, with `listed`.
    pub table: u32,
    /// Lowest new port, in host byte order; 0 with `high` 0 keeps the packet's port.
    pub low: u16,
    /// Highest new port, in host byte order.
    pub high: u16,
    /// Lowest port of the rule's port criterion, which maps to `low`.
    pub first: u16,
    /// `af-to`: length of the IPv6 prefix in front of an IPv4 address.
    pub prefix: u8,
    /// 1: a legacy rule's pool, which behaves as FreeBSD's where OpenBSD's differs.
    pub old: u8,
    /// Address of the network, in network byte order.
    pub address: [u8; 16],
    /// Mask of the network.
    pub mask: [u8; 16],
    /// Key of `source-hash`.
    pub key: [u8; 16],
    /// `map-e-portset`: id of the port set.
    pub port_set: u16,
    /// `map-e-portset`: bits in front of the id, 0 without the option.
    pub set_offset: u8,
    /// `map-e-portset`: bits of the id.
    pub set_length: u8,
    /// Number of members of a legacy rule's list; 0: the pool is not a list.
    pub members: u16,
    /// 1: `binat`, host bits come from the replaced address.
    pub binat: u8,
    /// 1: a UDP endpoint has the same translation for all its peers.
    pub endpoint_independent: u8,
    /// Id of the interface where the next hops are; 0: the routes decide.
    pub interface: u32,
    /// 1: IPv4 packets may get an IPv6 next hop.
    pub prefer_ipv6: u8,
    /// Family of the network, [`crate::INET`] or [`crate::INET6`]; 0 matches both.
    pub family: u8,
    /// Zero.
    pub pad: [u8; 2],
    /// Generation on trial that has another table; 0: there is none.
    pub trial: u32,
    /// Slot of that table.
    pub trial_table: u32,
    /// Next or last address. The data plane writes this field and the following ones.
    pub counter: [u8; 16],
    /// Index of the block that has `counter`.
    pub index: u32,
    /// Weighted round-robin: minimum weight of a block in this round.
    pub turn: i32,
    /// List: index of the member that has `counter`.
    pub member: u32,
    /// With `prefer_ipv6`: 1 while IPv4 addresses are chosen.
    pub turned: u32,
}

/// `struct pf_pool_member_key`: key of the pool_members map.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct PoolMemberKey {
    /// Slot of the rule.
    pub slot: u32,
    /// One of [`purpose`].
    pub purpose: u32,
    /// Index of the member in the list.
    pub index: u32,
}

/// `struct pf_pool_member`: a member of a legacy rule's list; fields as in [`Pool`].
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct PoolMember {
    /// 1: the addresses come from the table, else from the network.
    pub listed: u8,
    /// Family of the network, [`crate::INET`] or [`crate::INET6`]; 0 matches both.
    pub family: u8,
    /// Zero.
    pub pad: [u8; 2],
    /// Slot of the table, with `listed`.
    pub table: u32,
    /// Interface of the next hops, as [`Pool::interface`].
    pub interface: u32,
    /// Address of the network, in network byte order.
    pub address: [u8; 16],
    /// Mask of the network.
    pub mask: [u8; 16],
    /// Generation on trial that has another table, as [`Pool::trial`].
    pub trial: u32,
    /// Slot of that table.
    pub trial_table: u32,
}

/// `struct pf_pool_block_key`: key of the pool_blocks map.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct PoolBlockKey {
    /// [`crate::Table::list`] of the table.
    pub list: u32,
    /// [`crate::INET`] or [`crate::INET6`]
    pub family: u16,
    /// Number of the part in its block.
    pub part: u16,
    /// Index of the block among the blocks of its family.
    pub index: u32,
}

/// `struct pf_pool_block`: a part of a table entry, of a table that pools use.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct PoolBlock {
    /// Address of the entry's network.
    pub base: [u8; 16],
    /// Mask of the entry's network.
    pub mask: [u8; 16],
    /// Weight of the entry, 0 for none.
    pub weight: u16,
    /// Number of parts that smaller entries leave of this entry.
    pub parts: u16,
    /// Lowest address of the part.
    pub low: [u8; 16],
    /// Highest address of the part.
    pub high: [u8; 16],
}

/// `struct pf_endpoint`: an endpoint on one side of a mapping; key of the mappings map.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Endpoint {
    /// Routing domain of the endpoint.
    pub rdomain: u32,
    /// [`crate::INET`] or [`crate::INET6`]
    pub family: u8,
    /// 1 for the translated side, 0 for the inside.
    pub outside: u8,
    /// Port in network byte order.
    pub port: u16,
    /// Address in network byte order, IPv4 in the first 4 bytes.
    pub address: [u8; 16],
}

/// `struct pf_mapping`: value of the mappings map.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Mapping {
    /// The endpoint on the other side.
    pub other: Endpoint,
    /// Inside endpoints: number of states, and of packets that may create one.
    pub uses: u32,
}

/// `struct pf_pool_load_key`: key of the pool_loads map, which counts states for least-states.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct PoolLoadKey {
    /// [`crate::Table::stats`] of the table, which stays when contents and slot change.
    pub table: u32,
    /// [`crate::INET`] or [`crate::INET6`]
    pub family: u32,
    /// Address in network byte order, IPv4 in the first 4 bytes.
    pub address: [u8; 16],
}
