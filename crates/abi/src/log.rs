//! Records of the log ring.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::limits::{IFNAMSIZ, SNAPLEN};

/// `enum pf_log_rewritten`: relation of a record's addresses to the addresses in its data.
pub mod rewritten {
    /// Addresses and ports are the same as in the data.
    pub const UNCHANGED: u8 = 0;
    /// Addresses or ports differ from the data.
    pub const TRANSLATED: u8 = 1;
    /// Addresses and ports differ from the data, which is of the other family (`af-to`).
    pub const CROSSES: u8 = 2;
}

/// `struct pf_log_record`: a logged packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct LogRecord {
    /// Boot-clock nanosecond.
    pub time: u64,
    /// Interface name, padded with zeros.
    pub ifname: [u8; IFNAMSIZ],
    /// Source address in network byte order, IPv4 in the first 4 bytes.
    pub source: [u8; 16],
    /// Destination address in network byte order, IPv4 in the first 4 bytes.
    pub destination: [u8; 16],
    /// Source port, two bytes in network byte order.
    pub source_port: [u8; 2],
    /// Destination port, two bytes in network byte order.
    pub destination_port: [u8; 2],
    /// Number of the rule, -1 for the default rule.
    pub rule: i32,
    /// Number of the anchor rule that called the rule, -1 for none.
    pub anchor_rule: i32,
    /// Id of the rule's anchor, 0 for none.
    pub anchor: u32,
    /// Owner of the socket if the rule has `log (user)`, else all ones.
    pub uid: u32,
    /// [`crate::INET`] or [`crate::INET6`]
    pub family: u8,
    /// [`crate::verdict::action`]
    pub action: u8,
    /// Index into [`crate::names::REASONS`].
    pub reason: u8,
    /// [`crate::verdict::direction`]
    pub direction: u8,
    /// Number N of pflogN.
    pub log_to: u8,
    /// One of [`rewritten`].
    pub rewritten: u8,
    /// Number of bytes in `data`.
    pub caplen: u16,
    /// Length of the packet in bytes.
    pub wirelen: u32,
    /// Bytes of the packet from the IP header on.
    pub data: [u8; SNAPLEN],
}
