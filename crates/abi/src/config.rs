//! Settings of a generation.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::state::timeout;

/// `enum pf_reassemble`: bits of [`Config::reassemble`]; none: fragments are matched one by one.
pub mod reassemble {
    /// fragments are put together before rules see them
    pub const YES: u32 = 1 << 0;
    /// `no-df`: fragments with DF are not bad, DF is cleared
    pub const NO_DF: u32 = 1 << 1;
    /// but not those that a `scrub` rule wants left alone
    pub const BY_RULE: u32 = 1 << 2;
}

/// `struct pf_config`: one for each of the two generations.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Config {
    /// How many rules there are in the main rule set.
    pub rules: u32,
    /// Most rules to look at for one packet.
    pub steps: u32,
    /// [`crate::verdict::evaluator`]
    pub evaluator: u32,
    /// `set limit states`
    pub limit_states: u32,
    /// [`reassemble`]
    pub reassemble: u32,
    /// Interface id, 0 for none.
    pub loginterface: u32,
    /// `set hostid`
    pub hostid: u32,
    /// `set limit src-nodes`
    pub limit_src_nodes: u32,
    /// `set limit table-entries`
    pub limit_table_entries: u32,
    /// [`syncookies`]
    pub syncookies: u32,
    /// Adaptive: with more half-open states than these …
    pub syncookies_start: u32,
    /// … until there are fewer than these.
    pub syncookies_end: u32,
    /// Index of what decides if no rule does.
    pub default_rule: u32,
    /// Lists of old rules of the main rule set, by [`old_list`].
    pub old: [Stretch; old_list::LISTS],
    /// Seconds; the adaptive ones count states.
    pub timeouts: [u32; timeout::MAX],
    /// How many fingerprints there are.
    pub fingerprints: u32,
    /// 1 if some rule names ports of SCTP.
    pub sctp_ports: u32,
    /// One of [`fast_forward`].
    pub fast_forward: u32,
    /// 1 if rules may be asked by those who have the packet's headers and nothing else.
    pub plain: u32,
    /// [`crate::Rule::segment`] of the first rule of the main rule set.
    pub segment: u32,
    /// One of [`unattached`].
    pub unattached: u32,
    /// Rules that a packet may be tested against, as far as a load can tell.
    pub longest_walk: u32,
    /// As [`crate::Fingerprint::systems`], if none fits.
    pub unknown_systems: u64,
}

/// `struct pf_stretch`: rules that stand together.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Stretch {
    /// Index of the first.
    pub first: u32,
    /// One more than that of the last.
    pub end: u32,
}

/// `enum pf_old_list`: lists of old rules, walked before the filter rules.
pub mod old_list {
    /// `nat`
    pub const NAT: usize = 0;
    /// `rdr`
    pub const RDR: usize = 1;
    /// `binat` for packets that leave
    pub const BINAT_OUT: usize = 2;
    /// `binat` for packets that arrive
    pub const BINAT_IN: usize = 3;
    /// `scrub`, which is walked before the others
    pub const SCRUB: usize = 4;
    /// How many there are.
    pub const LISTS: usize = 5;
}

/// `enum pf_unattached`: `set unattached`.
pub mod unattached {
    /// packets of interfaces that pf is not attached to are dropped
    pub const BLOCK: u32 = 0;
    /// nobody judges them
    pub const PASS: u32 = 1;
}

/// `enum pf_fast_forward`: `set fast-forward`.
pub mod fast_forward {
    /// every packet goes the long way
    pub const NO: u32 = 0;
    /// the short way, past the kernel's where that has nothing more to do
    pub const AUTO: u32 = 1;
    /// past netfilter too
    pub const YES: u32 = 2;
}

/// `enum pf_syncookie_mode`: `set syncookies`.
pub mod syncookies {
    /// no
    pub const NEVER: u32 = 0;
    /// every SYN is answered with one
    pub const ALWAYS: u32 = 1;
    /// while there are too many handshakes under way
    pub const ADAPTIVE: u32 = 2;
}
