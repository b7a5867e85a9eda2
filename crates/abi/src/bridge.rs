//! Transparent bridges.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Ports of all bridges together; port 0 is none (`PF_BRIDGE_PORTS`).
pub const BRIDGE_PORTS: u32 = 64;
/// Addresses known to all bridges together (`PF_BRIDGE_ADDRESSES`).
pub const BRIDGE_ADDRESSES: u32 = 4096;
/// Seconds that an address is known from which nothing comes, unless told otherwise
/// (`PF_BRIDGE_TIMEOUT`).
pub const BRIDGE_TIMEOUT: u32 = 240;
/// Most that can be said (`PF_BRIDGE_TIMEOUT_MAX`).
pub const BRIDGE_TIMEOUT_MAX: u32 = 0x7fff_ffff;
/// Rules of a port for one direction (`PF_BRIDGE_RULES`).
pub const BRIDGE_RULES: u32 = 256;
/// Rules of all ports (`PF_BRIDGE_ALL_RULES`).
pub const BRIDGE_ALL_RULES: u32 = 4096;

/// `enum pf_bridge_port_flags`.
pub mod bridge_port_flags {
    /// nothing but IPv4, IPv6, ARP and reverse ARP
    pub const BLOCK_NON_IP: u32 = 1 << 0;
    /// the host has addresses there
    pub const HEARS: u32 = 1 << 1;
}

/// `struct pf_bridge_port`: value of the bridge_ports map, by number.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct BridgePort {
    /// 0: there is no such port.
    pub ifindex: u32,
    /// Number of its bridge, from 1.
    pub bridge: u32,
    /// [`bridge_port_flags`]
    pub flags: u32,
    /// Of its bridge: seconds that an address is known from which nothing comes; 0: for good.
    pub timeout: u32,
    /// How many it has, by direction: in, out.
    pub rules: [u32; 2],
}

/// `struct pf_bridge_key`: a station on a bridge.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct BridgeKey {
    /// Its link address.
    pub address: [u8; 6],
    /// Of the outer tag, 0 for none.
    pub vlan: u16,
    /// Number of the bridge.
    pub bridge: u32,
}

/// `struct pf_bridge_address`: where it is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct BridgeAddress {
    /// The number of the port that it is behind.
    pub port: u32,
    /// Boot-clock second of the last frame from it.
    pub seen: u32,
}

/// `enum pf_bridge_match`: what a rule asks for.
pub mod bridge_match {
    /// the source
    pub const SOURCE: u8 = 1 << 0;
    /// the destination
    pub const DESTINATION: u8 = 1 << 1;
    /// the EtherType
    pub const TYPE: u8 = 1 << 2;
}

/// `struct pf_bridge_rule_key`: the first rule of a port that matches a frame decides.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct BridgeRuleKey {
    /// The port's.
    pub ifindex: u32,
    /// [`crate::verdict::direction`]
    pub direction: u16,
    /// From 0.
    pub number: u16,
}

/// `struct pf_bridge_rule`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct BridgeRule {
    /// [`crate::verdict::action`]: pass or block.
    pub action: u8,
    /// [`bridge_match`]
    pub r#match: u8,
    /// EtherType, behind the outer tag; network byte order.
    pub r#type: [u8; 2],
    /// Link address.
    pub source: [u8; 6],
    /// Link address.
    pub destination: [u8; 6],
}

/// `enum pf_bridge_drop`: why a frame does not come through.
pub mod bridge_drop {
    /// a rule for frames blocks it
    pub const RULE: usize = 0;
    /// the port takes nothing but IP
    pub const NON_IP: usize = 1;
    /// too long for the link that it would leave by
    pub const TOO_BIG: usize = 2;
    /// it claims to come from a group
    pub const SOURCE: usize = 3;
    /// how many there are
    pub const MAX: usize = 4;
}

/// `struct pf_bridge_stats`: per CPU, by number of the port.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct BridgeStats {
    /// By direction: in, out.
    pub packets: [u64; 2],
    /// By direction.
    pub bytes: [u64; 2],
    /// Of those that came in, sent out by all other ports.
    pub flooded: u64,
    /// Addresses there was no room for.
    pub unlearned: u64,
    /// By `enum pf_bridge_drop`.
    pub dropped: [u64; bridge_drop::MAX],
}
