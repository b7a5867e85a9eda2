//! State limiters and source limiters.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Number of kinds of limiters (`PF_LIMITER_KINDS`).
pub const LIMITER_KINDS: usize = 2;
/// Flag in [`crate::Rule::limiter`]: beyond the limit the rule does not match, instead of a drop
/// (`PF_LIMITER_NO_MATCH`).
pub const LIMITER_NO_MATCH: u16 = 0x100;

/// `enum pf_limiter_kind`: indexes of the limiter maps and of [`crate::Rule::limiter`].
#[allow(missing_docs, reason = "the values are those of bpf/abi")]
pub mod limiter_kind {
    pub const STATE: u8 = 0;
    pub const SOURCE: u8 = 1;
}

/// `struct pf_limiter`: the settings of a limiter.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Limiter {
    /// Rate: nanoseconds until one more state is allowed.
    pub token: u64,
    /// Rate: nanoseconds whose states can be saved up; 0 for no rate.
    pub bucket: u64,
    /// Maximum number of states; 0: the limiter does not exist.
    pub limit: u32,
    /// Maximum number of sources.
    pub entries: u32,
    /// Slot of the table for busy sources.
    pub table: u32,
    /// Number of states with which a source enters the table; 0: there is no table.
    pub above: u32,
    /// Number of states below which a source leaves the table.
    pub below: u32,
    /// Prefix length of IPv4 sources.
    pub inet_mask: u8,
    /// Prefix length of IPv6 sources.
    pub inet6_mask: u8,
    /// Zero.
    pub pad: [u8; 2],
}

/// `struct pf_limiter_use`: the counters of a limiter.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct LimiterUse {
    /// Signed boot-clock nanosecond since which tokens have been saved up.
    pub saved_since: u64,
    /// Number of states created.
    pub admitted: u64,
    /// Packets refused by `limit`.
    pub hard_limited: u64,
    /// Packets refused by `rate`.
    pub rate_limited: u64,
    /// Number of sources ever created.
    pub sources_made: u64,
    /// Packets refused by `entries`.
    pub sources_limited: u64,
    /// Packets refused because memory was short.
    pub sources_lost: u64,
    /// Number that rises when the limiter is removed, so references of states become void.
    pub serial: u32,
    /// Number of states now.
    pub states: u32,
    /// Number of sources now.
    pub sources: u32,
    /// [`LimitedSource::serial`] of the newest source.
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
    /// Routing domain of the interface where the source's packets come in.
    pub rdomain: u32,
    /// Address under the limiter's mask, in network byte order, IPv4 in the first 4 bytes.
    pub address: [u8; 16],
}

/// `struct pf_limited_source`: the counters of a limiter's source.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct LimitedSource {
    /// The kernel's spin lock; reads as zero.
    pub lock: u32,
    /// Number of states now.
    pub states: u32,
    /// Boot-clock nanosecond since which tokens have been saved up.
    pub saved_since: u64,
    /// Number of states created.
    pub admitted: u64,
    /// Packets refused by `limit`.
    pub hard_limited: u64,
    /// Packets refused by `rate`.
    pub rate_limited: u64,
    /// Boot-clock second until which the source is kept without states.
    pub stays_until: u32,
    /// 1 if the source is in the limiter's table.
    pub in_table: u8,
    /// 1 while the source is being removed; no state may take a reference.
    pub gone: u8,
    /// Zero.
    pub pad: [u8; 2],
    /// Number of this source, so references to an earlier source with the same key are void.
    pub serial: u32,
    /// Zero.
    pub pad2: u32,
}

/// `struct pf_limited_turn`: a source in the queue of the sweep.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct LimitedTurn {
    /// Key of the source.
    pub key: LimitedKey,
    /// [`LimitedSource::serial`] of the source.
    pub source: u32,
}

/// `struct pf_leaving`: a source that must leave its limiter's table.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Leaving {
    /// Key of the source.
    pub key: LimitedKey,
    /// Slot of the table.
    pub table: u32,
    /// Prefix length of the source.
    pub prefix: u32,
    /// Number of states with which the source stays in the table after all.
    pub below: u32,
}

/// `struct pf_limited`: a state's reference to a limiter.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Limited {
    /// [`LimiterUse::serial`]
    pub serial: u32,
    /// Number of the limiter; 0 for none.
    pub id: u8,
    /// Source limiter: prefix length of the source.
    pub prefix: u8,
    /// Zero.
    pub pad: [u8; 2],
    /// Source limiter: [`LimitedSource::serial`] of the source.
    pub source: u32,
}
