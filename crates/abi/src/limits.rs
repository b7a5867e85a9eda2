//! Sizes that the data plane is built with.

/// Bytes of an interface name with its terminating zero (`PF_IFNAMSIZ`).
pub const IFNAMSIZ: usize = 16;
/// Rules in one rule set (`PF_MAX_RULES`).
pub const MAX_RULES: u32 = 131_072;
/// Statistics of rules in use: a running set, a new one, old states (`PF_RULE_SLOTS`).
pub const RULE_SLOTS: u32 = 262_144;
/// Tables and dynamic interface addresses in use (`PF_TABLE_SLOTS`).
pub const TABLE_SLOTS: u32 = 4096;
/// Interfaces that have an id (`PF_MAX_INTERFACES`).
pub const MAX_INTERFACES: u32 = 4096;
/// Indexes below it have a place in an array (`PF_NEAR_INTERFACES`).
pub const NEAR_INTERFACES: u32 = 1024;
/// Match rules remembered by one state (`PF_MATCH_RULES`).
pub const MATCH_RULES: usize = 16;
/// Anchors inside each other (`PF_MAX_DEPTH`).
pub const MAX_DEPTH: usize = 64;
/// Rules looked at for one packet, each as often as it is called (`PF_MAX_STEPS`), or as many as
/// there are if that is more.
pub const MAX_STEPS: u32 = 16_384;
/// Bytes of a packet kept by the log (`PF_SNAPLEN`).
pub const SNAPLEN: usize = 160;
/// Those that who reads a log itself gets at most (`PF_LOG_WHOLE`).
pub const LOG_WHOLE: usize = 65_535;
/// Logs there can be: pflogN (`PF_LOGS`).
pub const LOGS: u32 = 256;
/// Statistics slot of the implicit default rule (`PF_IDLE_SLOT`).
pub const IDLE_SLOT: u32 = 0;
/// Interface groups there can be: bits of [`crate::Interface::groups`].
pub const MAX_GROUPS: u32 = 64;
/// Fingerprints of systems in one rule set (`PF_FINGERPRINTS`).
pub const FINGERPRINTS: u32 = 4096;
/// Different names behind `os` in one rule set (`PF_SYSTEMS`).
pub const SYSTEMS: usize = 63;
/// Numbers of limiters of one kind; none has 0 (`PF_LIMITERS`).
pub const LIMITERS: u32 = 256;
/// Slot of the table with the host's own addresses (`PF_SELF_TABLE`).
pub const SELF_TABLE: u32 = 0;
