//! Sizes that the data plane is built with.

/// Number of rule sets that the maps have room for, a power of two (`PF_COPIES`).
pub const COPIES: u32 = 4;

/// Returns the copy of a generation: the place of its rules and settings in the maps (`pf_copy`).
pub const fn copy_of(generation: u32) -> u32 {
    generation & (COPIES - 1)
}

/// Bytes of an interface name with its terminating zero (`PF_IFNAMSIZ`).
pub const IFNAMSIZ: usize = 16;
/// Maximum number of rules in one rule set (`PF_MAX_RULES`).
pub const MAX_RULES: u32 = 131_072;
/// Number of rule slots: for the rule set in force, the next one, and orphaned rules that still
/// have states (`PF_RULE_SLOTS`).
pub const RULE_SLOTS: u32 = 262_144;
/// Number of slots for tables and dynamic interface addresses (`PF_TABLE_SLOTS`).
pub const TABLE_SLOTS: u32 = 4096;
/// Maximum number of interfaces with an id (`PF_MAX_INTERFACES`).
pub const MAX_INTERFACES: u32 = 4096;
/// Interface indexes below this number are stored in an array (`PF_NEAR_INTERFACES`).
pub const NEAR_INTERFACES: u32 = 1024;
/// Maximum number of match rules that one state counts for (`PF_MATCH_RULES`).
pub const MATCH_RULES: usize = 16;
/// Maximum depth of nested anchors (`PF_MAX_DEPTH`).
pub const MAX_DEPTH: usize = 64;
/// Maximum number of rules evaluated for one packet, unless the rule set has more (`PF_MAX_STEPS`).
/// A rule counts as often as it is called.
pub const MAX_STEPS: u32 = 16_384;
/// Bytes of a packet that the log keeps (`PF_SNAPLEN`).
pub const SNAPLEN: usize = 160;
/// Maximum bytes of a packet in the ring of a program that reads a log itself (`PF_LOG_WHOLE`).
pub const LOG_WHOLE: usize = 65_535;
/// Number of logs, `pflog0` and up (`PF_LOGS`).
pub const LOGS: u32 = 256;
/// Number of programs that may read dropped packets at once (`PF_DROP_READERS`).
pub const DROP_READERS: u32 = 4;
/// Rule slot of the implicit default rule (`PF_IDLE_SLOT`).
pub const IDLE_SLOT: u32 = 0;
/// Number of interface groups, the bits of [`crate::Interface::groups`].
pub const MAX_GROUPS: u32 = 64;
/// Maximum number of fingerprints in one rule set (`PF_FINGERPRINTS`).
pub const FINGERPRINTS: u32 = 4096;
/// Maximum number of different `os` names in one rule set (`PF_SYSTEMS`).
pub const SYSTEMS: usize = 63;
/// Limiters of one kind have numbers below this one, from 1 (`PF_LIMITERS`).
pub const LIMITERS: u32 = 256;
/// Slot of the table with the host's own addresses (`PF_SELF_TABLE`).
pub const SELF_TABLE: u32 = 0;
