//! Settings of a generation.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::state::timeout;

/// `enum pf_reassemble`: bits of [`Config::reassemble`]. Without a bit, each fragment is filtered
/// alone.
pub mod reassemble {
    /// skipstepd reassembles fragments before rules are evaluated.
    pub const YES: u32 = 1 << 0;
    /// `no-df`: fragments with DF are accepted, and DF is cleared.
    pub const NO_DF: u32 = 1 << 1;
    /// Exempts fragments that match a `scrub` rule with `fragment no reassemble`.
    pub const BY_RULE: u32 = 1 << 2;
}

/// `struct pf_config`: the settings of a generation; the map has two.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Config {
    /// Number of rules in the main rule set.
    pub rules: u32,
    /// Maximum number of rules evaluated for one packet.
    pub steps: u32,
    /// One of [`crate::verdict::evaluator`].
    pub evaluator: u32,
    /// `set limit states`: maximum number of states.
    pub limit_states: u32,
    /// Bits of [`reassemble`].
    pub reassemble: u32,
    /// `set loginterface`: interface id, 0 for none.
    pub loginterface: u32,
    /// `set hostid`: the host's number in records of states.
    pub hostid: u32,
    /// `set limit src-nodes`: maximum number of source nodes.
    pub limit_src_nodes: u32,
    /// `set limit table-entries`: maximum number of entries in all tables.
    pub limit_table_entries: u32,
    /// One of [`syncookies`].
    pub syncookies: u32,
    /// Adaptive: number of half-open states above which syncookies are sent.
    pub syncookies_start: u32,
    /// Adaptive: number of half-open states below which syncookies end.
    pub syncookies_end: u32,
    /// Index of the default rule, which decides if no other rule does.
    pub default_rule: u32,
    /// Ranges of legacy rules of the main rule set, by [`old_list`].
    pub old: [RuleRange; old_list::LISTS],
    /// Timeouts in seconds, by [`timeout`]; the adaptive ones are numbers of states.
    pub timeouts: [u32; timeout::MAX],
    /// Number of fingerprints.
    pub fingerprints: u32,
    /// 1 if a rule has ports of SCTP, so the data plane reads them.
    pub sctp_ports: u32,
    /// One of [`fast_forward`].
    pub fast_forward: u32,
    /// 1 if the fast path may evaluate the rules; it reads header fields only.
    pub fast_path: u32,
    /// [`crate::Rule::superblock`] of the first rule of the main rule set.
    pub superblock: u32,
    /// One of [`unattached`].
    pub unattached: u32,
    /// Most rules that one packet may be evaluated against, as computed at load.
    pub longest_walk: u32,
    /// Value of [`crate::Fingerprint::systems`] for packets that no fingerprint matches.
    pub unknown_systems: u64,
}

/// `struct pf_rule_range`: a range of neighbouring rules.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct RuleRange {
    /// Index of the first rule.
    pub first: u32,
    /// Index of the last rule plus 1.
    pub end: u32,
}

/// `enum pf_old_list`: lists of legacy rules, evaluated before the filter rules.
pub mod old_list {
    /// `nat` rules.
    pub const NAT: usize = 0;
    /// `rdr` rules.
    pub const RDR: usize = 1;
    /// `binat` rules for packets that leave.
    pub const BINAT_OUT: usize = 2;
    /// `binat` rules for packets that arrive.
    pub const BINAT_IN: usize = 3;
    /// `scrub` rules, evaluated before the other lists.
    pub const SCRUB: usize = 4;
    /// Number of lists.
    pub const LISTS: usize = 5;
}

/// `enum pf_unattached`: `set unattached`, for interfaces that pf is not attached to.
pub mod unattached {
    /// The guard drops the packets of such interfaces.
    pub const BLOCK: u32 = 0;
    /// The packets of such interfaces pass unfiltered.
    pub const PASS: u32 = 1;
}

/// `enum pf_fast_forward`: `set fast-forward`.
pub mod fast_forward {
    /// All packets take the slow path.
    pub const NO: u32 = 0;
    /// The fast path is on, and forwards packets that the kernel would only forward.
    pub const AUTO: u32 = 1;
    /// As [`AUTO`], and forwarded packets bypass netfilter's rules, too.
    pub const YES: u32 = 2;
}

/// `enum pf_syncookie_mode`: `set syncookies`.
pub mod syncookies {
    /// Never sends syncookies.
    pub const NEVER: u32 = 0;
    /// Answers each SYN with a syncookie.
    pub const ALWAYS: u32 = 1;
    /// Sends syncookies while too many states are half-open.
    pub const ADAPTIVE: u32 = 2;
}
