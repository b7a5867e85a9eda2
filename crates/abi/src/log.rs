//! Records of the log ring.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::limits::{IFNAMSIZ, SNAPLEN};

/// `enum pf_log_rewritten`: what became of the addresses and ports of a logged packet.
pub mod rewritten {
    /// They are those in its data.
    pub const UNCHANGED: u8 = 0;
    /// They are others.
    pub const TRANSLATED: u8 = 1;
    /// They are others, of the other family (`af-to`).
    pub const CROSSES: u8 = 2;
}

/// `struct pf_log_record`: a packet as pflog keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct LogRecord {
    /// Boot clock, nanoseconds.
    pub time: u64,
    /// Interface, padded with zeros.
    pub ifname: [u8; IFNAMSIZ],
    /// Network order.
    pub source: [u8; 16],
    /// Network order.
    pub destination: [u8; 16],
    /// Network order: two bytes.
    pub source_port: [u8; 2],
    /// Network order: two bytes.
    pub destination_port: [u8; 2],
    /// Rule number, -1 for the default rule.
    pub rule: i32,
    /// Number of the anchor rule that led to it, -1 for none.
    pub anchor_rule: i32,
    /// Id of the anchor that was walked, 0 for none.
    pub anchor: u32,
    /// Owner of the socket if `log (user)` asks, else all ones.
    pub uid: u32,
    /// [`crate::INET`] or [`crate::INET6`]
    pub family: u8,
    /// [`crate::verdict::action`]
    pub action: u8,
    /// Index of [`crate::names::REASONS`].
    pub reason: u8,
    /// [`crate::verdict::direction`]
    pub direction: u8,
    /// n of pflogN.
    pub log_to: u8,
    /// One of [`rewritten`].
    pub rewritten: u8,
    /// Bytes in `data`.
    pub caplen: u16,
    /// Length of the packet.
    pub wirelen: u32,
    /// From the IP header on.
    pub data: [u8; SNAPLEN],
}
