//! Transparent bridges.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Maximum number of ports of all bridges together; ports count from 1 (`PF_BRIDGE_PORTS`).
pub const BRIDGE_PORTS: u32 = 64;
/// Maximum number of addresses that all bridges together know (`PF_BRIDGE_ADDRESSES`).
pub const BRIDGE_ADDRESSES: u32 = 4096;
/// Default seconds until a bridge forgets a silent address (`PF_BRIDGE_TIMEOUT`).
pub const BRIDGE_TIMEOUT: u32 = 240;
/// Maximum timeout of an address, in seconds (`PF_BRIDGE_TIMEOUT_MAX`).
pub const BRIDGE_TIMEOUT_MAX: u32 = 0x7fff_ffff;
/// Maximum number of rules of one port in one direction (`PF_BRIDGE_RULES`).
pub const BRIDGE_RULES: u32 = 256;
/// Maximum number of rules of all ports together (`PF_BRIDGE_ALL_RULES`).
pub const BRIDGE_ALL_RULES: u32 = 4096;

/// `enum pf_bridge_port_flags`: bits of [`BridgePort::flags`].
pub mod bridge_port_flags {
    /// Drops all frames but IPv4, IPv6, ARP and reverse ARP.
    pub const BLOCK_NON_IP: u32 = 1 << 0;
    /// The host has addresses on this bridge, so it gets frames for groups, too.
    pub const HEARS: u32 = 1 << 1;
}

/// `struct pf_bridge_port`: a port of a bridge; value of the bridge_ports map, by number.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct BridgePort {
    /// Interface index of the port; 0: the port does not exist.
    pub ifindex: u32,
    /// Number of the port's bridge, from 1.
    pub bridge: u32,
    /// Bits of [`bridge_port_flags`].
    pub flags: u32,
    /// Seconds until the port's bridge forgets a silent address; 0: never.
    pub timeout: u32,
    /// Number of the port's rules, by direction: in, out.
    pub rules: [u32; 2],
}

/// `struct pf_bridge_key`: a station on a bridge; key of the bridge_addresses map.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct BridgeKey {
    /// Link address of the station.
    pub address: [u8; 6],
    /// VLAN id of the outer tag, 0 for none.
    pub vlan: u16,
    /// Number of the bridge.
    pub bridge: u32,
}

/// `struct pf_bridge_address`: the port of a station; value of the bridge_addresses map.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct BridgeAddress {
    /// Number of the port where the station's frames come in.
    pub port: u32,
    /// Boot-clock second of the station's last frame.
    pub seen: u32,
}

/// `enum pf_bridge_match`: the criteria of a rule, bits of `BridgeRule::match`.
pub mod bridge_match {
    /// The source address.
    pub const SOURCE: u8 = 1 << 0;
    /// The destination address.
    pub const DESTINATION: u8 = 1 << 1;
    /// The EtherType.
    pub const TYPE: u8 = 1 << 2;
}

/// `struct pf_bridge_rule_key`: port and number of a rule. The first matching rule of a port
/// decides.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct BridgeRuleKey {
    /// Interface index of the port.
    pub ifindex: u32,
    /// [`crate::verdict::direction`]: in or out.
    pub direction: u16,
    /// Position among the port's rules of this direction, from 0.
    pub number: u16,
}

/// `struct pf_bridge_rule`: value of the bridge_rules map.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct BridgeRule {
    /// [`crate::verdict::action`]: pass or block.
    pub action: u8,
    /// Bits of [`bridge_match`].
    pub r#match: u8,
    /// EtherType behind the outer tag, in network byte order.
    pub r#type: [u8; 2],
    /// Source link address.
    pub source: [u8; 6],
    /// Destination link address.
    pub destination: [u8; 6],
}

/// `enum pf_bridge_drop`: reasons of dropped frames, indexes of [`BridgeStats::dropped`].
pub mod bridge_drop {
    /// A rule for frames blocks the frame.
    pub const RULE: usize = 0;
    /// The frame is not IP, and the port has [`super::bridge_port_flags::BLOCK_NON_IP`].
    pub const NON_IP: usize = 1;
    /// The frame is too long for the link where it would leave.
    pub const TOO_BIG: usize = 2;
    /// The source address is a group address.
    pub const SOURCE: usize = 3;
    /// Number of reasons.
    pub const MAX: usize = 4;
}

/// `struct pf_bridge_stats`: counters of one CPU, by port number.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct BridgeStats {
    /// Frames by direction: in, out.
    pub packets: [u64; 2],
    /// Bytes by direction: in, out.
    pub bytes: [u64; 2],
    /// Received frames that the bridge sent out by all other ports.
    pub flooded: u64,
    /// Addresses that the full table could not store.
    pub unlearned: u64,
    /// Dropped frames, by [`bridge_drop`].
    pub dropped: [u64; bridge_drop::MAX],
}
