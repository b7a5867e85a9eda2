//! State limiters and source limiters.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Kinds there are (`PF_LIMITER_KINDS`).
pub const LIMITER_KINDS: usize = 2;
/// In [`crate::Rule::limiter`]: beyond the limit the rule does not match (`PF_LIMITER_NO_MATCH`).
pub const LIMITER_NO_MATCH: u16 = 0x100;

/// `enum pf_limiter_kind`.
#[allow(missing_docs)]
pub mod limiter_kind {
    pub const STATE: u8 = 0;
    pub const SOURCE: u8 = 1;
}

/// `struct pf_limiter`: what was written of one.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Limiter {
    /// Nanoseconds in which one more state may be made.
    pub token: u64,
    /// Nanoseconds whose states can be saved; 0 for no rate.
    pub bucket: u64,
    /// States; 0: there is no such limiter.
    pub limit: u32,
    /// Sources.
    pub entries: u32,
    /// Slot of the table…
    pub table: u32,
    /// …where a source goes with so many states; 0 for none…
    pub above: u32,
    /// …and leaves with less than these.
    pub below: u32,
    /// Prefix length of sources, IPv4.
    pub inet_mask: u8,
    /// Prefix length of sources, IPv6.
    pub inet6_mask: u8,
    /// Zero.
    pub pad: [u8; 2],
}

/// `struct pf_limiter_use`: what is used of one.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct LimiterUse {
    /// Moment in nanoseconds, signed, from which on tokens were saved.
    pub saved_since: u64,
    /// States that were let be made.
    pub admitted: u64,
    /// Packets refused by `limit`.
    pub hard_limited: u64,
    /// Packets refused by `rate`.
    pub rate_limited: u64,
    /// Sources ever met.
    pub sources_made: u64,
    /// Packets refused by `entries`.
    pub sources_limited: u64,
    /// Packets refused for want of memory.
    pub sources_lost: u64,
    /// Rises when the limiter goes.
    pub serial: u32,
    /// States now.
    pub states: u32,
    /// Sources now.
    pub sources: u32,
    /// [`LimitedSource::serial`] of the source made last.
    pub last_source: u32,
}

/// `struct pf_limited_key`: a source of a limiter.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct LimitedKey {
    /// [`LimiterUse::serial`]
    pub serial: u32,
    /// Number of the limiter.
    pub id: u8,
    /// [`crate::INET`] or [`crate::INET6`]
    pub family: u8,
    /// Zero.
    pub pad: [u8; 2],
    /// Of the interface that its packets come in by.
    pub rdomain: u32,
    /// Network order, IPv4 in the first four bytes.
    pub address: [u8; 16],
}

/// `struct pf_limited_source`: what is known of it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct LimitedSource {
    /// The kernel's spin lock; reads as zero.
    pub lock: u32,
    /// States now.
    pub states: u32,
    /// Moment in nanoseconds from which on tokens were saved.
    pub saved_since: u64,
    /// States that were let be made.
    pub admitted: u64,
    /// Packets refused by `limit`.
    pub hard_limited: u64,
    /// Packets refused by `rate`.
    pub rate_limited: u64,
    /// Second until which it stays without states.
    pub stays_until: u32,
    /// 1 if its address was put in the limiter's table.
    pub in_table: u8,
    /// 1 while it is being removed.
    pub gone: u8,
    /// Zero.
    pub pad: [u8; 2],
    /// What states hold of another that had its key before is void.
    pub serial: u32,
    /// Zero.
    pub pad2: u32,
}

/// `struct pf_limited_turn`: a source of a limiter that waits for the sweep to look at it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct LimitedTurn {
    /// The source.
    pub key: LimitedKey,
    /// [`LimitedSource::serial`] of the source.
    pub source: u32,
}

/// `struct pf_leaving`: a source that is to leave its limiter's table.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Leaving {
    /// The source.
    pub key: LimitedKey,
    /// Slot of the table.
    pub table: u32,
    /// Length of the mask.
    pub prefix: u32,
    /// It leaves unless it has as many states again.
    pub below: u32,
}

/// `struct pf_limited`: what a state holds of a limiter.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Limited {
    /// [`LimiterUse::serial`]
    pub serial: u32,
    /// Number of the limiter; 0 for none.
    pub id: u8,
    /// Length of the mask.
    pub prefix: u8,
    /// Zero.
    pub pad: [u8; 2],
    /// [`LimitedSource::serial`] of the source.
    pub source: u32,
}
