//! Names of counters and maps.

use crate::status::{LCOUNT_MAX, REASON_MAX};

/// Names of reasons, in the order of `enum pf_reason` (`PF_REASON_NAMES`). The index of a name is
/// the reason's number in counters and log records:
///
/// ```
/// use skipstep_abi::names::REASONS;
///
/// assert_eq!(REASONS[0], "match");
/// assert_eq!(REASONS.iter().position(|name| *name == "memory"), Some(5));
/// ```
pub const REASONS: [&str; REASON_MAX] = [
    "match",
    "bad-offset",
    "fragment",
    "short",
    "normalize",
    "memory",
    "bad-timestamp",
    "congestion",
    "ip-option",
    "proto-cksum",
    "state-mismatch",
    "state-insert",
    "state-limit",
    "src-limit",
    "synproxy",
    "translate",
    "no-route",
    "link-header",
    "unattached",
];

/// Names of limit counters as `pfctl -si` prints them, in the order of `enum pf_limit_counter`.
pub const LIMIT_COUNTERS: [&str; LCOUNT_MAX] = [
    "max states per rule",
    "max-src-states",
    "max-src-nodes",
    "max-src-conn",
    "max-src-conn-rate",
    "overload table insertion",
    "overload flush states",
    "synfloods detected",
    "syncookies sent",
    "syncookies validated",
];

/// Names of the maps, as `bpf/abi.h` lists them.
pub mod map {
    /// copy -> array of `struct pf_rule`
    pub const RULESETS: &str = "rulesets";
    /// copy, chunk -> array of `struct pf_node`
    pub const TREE_SETS: &str = "tree_sets";
    /// copy -> `struct pf_config`
    pub const CONFIGS: &str = "configs";
    /// one `struct pf_status`
    pub const STATUS: &str = "status";
    /// per CPU, one `struct pf_counters`
    pub const COUNTERS: &str = "counters";
    /// per CPU, slot -> `struct pf_rule_stats`
    pub const RULE_STATS: &str = "rule_stats";
    /// slot -> `struct pf_rule_states`
    pub const RULE_STATES: &str = "rule_states";
    /// slot -> `struct pf_table`
    pub const TABLES: &str = "tables";
    /// `struct pf_table_key` -> `struct pf_table_entry`
    pub const TABLE_ENTRIES: &str = "table_entries";
    /// 2 * slot + (version & 1) -> array of `struct pf_index_cell`
    pub const TABLE_INDEXES: &str = "table_indexes";
    /// per CPU, slot -> `struct pf_table_stats`
    pub const TABLE_STATS: &str = "table_stats";
    /// `struct pf_table_key` -> `struct pf_entry_stats`
    pub const ENTRY_STATS: &str = "entry_stats";
    /// `struct pf_pool_key` -> `struct pf_pool`
    pub const POOLS: &str = "pools";
    /// `struct pf_pool_block_key` -> `struct pf_pool_block`
    pub const POOL_BLOCKS: &str = "pool_blocks";
    /// `struct pf_pool_load_key` -> number of states
    pub const POOL_LOADS: &str = "pool_loads";
    /// `struct pf_endpoint` -> `struct pf_mapping`
    pub const MAPPINGS: &str = "mappings";
    /// `struct pf_pool_member_key` -> `struct pf_pool_member`
    pub const POOL_MEMBERS: &str = "pool_members";
    /// ifindex -> `struct pf_interface`
    pub const INTERFACES: &str = "interfaces";
    /// ifindex below [`crate::limits::NEAR_INTERFACES`] -> `struct pf_near_interface`
    pub const NEAR_INTERFACES: &str = "near_interfaces";
    /// interface id -> ifindex, 0 if the interface does not exist
    pub const INTERFACE_INDEXES: &str = "interface_indexes";
    /// per CPU, interface id -> `struct pf_interface_stats`
    pub const INTERFACE_STATS: &str = "interface_stats";
    /// one `struct pf_key_hash`
    pub const KEY_HASH: &str = "key_hash";
    /// bucket, a hash of `struct pf_state_key` -> `struct pf_key_line`
    pub const STATE_KEYS: &str = "state_keys";
    /// index -> `struct pf_state`
    pub const STATES: &str = "states";
    /// index -> `struct pf_extension`
    pub const EXTENSIONS: &str = "extensions";
    /// stack of freed state indexes
    pub const FREE_STATES: &str = "free_states";
    /// `struct pf_source_key` -> index
    pub const SOURCE_KEYS: &str = "source_keys";
    /// index -> `struct pf_source_node`
    pub const SOURCE_NODES: &str = "source_nodes";
    /// stack of freed source node indexes
    pub const FREE_SOURCES: &str = "free_sources";
    /// ring of `struct pf_log_record`
    pub const LOG_RING: &str = "log_ring";
    /// N of pflogN, or [`crate::limits::LOGS`] + number of a reader of dropped packets -> ring of
    /// `struct pf_log_record`, with longer data
    pub const LOG_READERS: &str = "log_readers";
    /// copy, order -> `struct pf_fingerprint`
    pub const FINGERPRINTS: &str = "fingerprints";
    /// copy, kind, number -> `struct pf_limiter`
    pub const LIMITERS: &str = "limiters";
    /// kind, number -> `struct pf_limiter_use`
    pub const LIMITER_USES: &str = "limiter_uses";
    /// `struct pf_limited_key` -> `struct pf_limited_source`
    pub const LIMITED_SOURCES: &str = "limited_sources";
    /// queue of `struct pf_limited_turn`
    pub const LIMITED_TURNS: &str = "limited_turns";
    /// queue of `struct pf_leaving`
    pub const LEAVING: &str = "leaving";
    /// `struct pf_flush` -> `struct pf_flushed`
    pub const FLUSHES: &str = "flushes";
    /// ring of `struct pf_flow_record`
    pub const FLOW_RING: &str = "flow_ring";
    /// the timer that expires states
    pub const SWEEPER: &str = "sweeper";
    /// per CPU, `struct pf_outcome` and the data plane's private fields
    pub const SCRATCH: &str = "scratch";
    /// one `struct pf_reassembler`
    pub const REASSEMBLER: &str = "reassembler";
    /// one `struct pf_diverter`
    pub const DIVERTER: &str = "diverter";
    /// one `struct pf_delayer`
    pub const DELAYER: &str = "delayer";
    /// ifindex -> number of the bridge port
    pub const BRIDGE_NUMBERS: &str = "bridge_numbers";
    /// number of the port -> `struct pf_bridge_port`
    pub const BRIDGE_PORTS: &str = "bridge_ports";
    /// `struct pf_bridge_key` -> `struct pf_bridge_address`
    pub const BRIDGE_ADDRESSES: &str = "bridge_addresses";
    /// `struct pf_bridge_rule_key` -> `struct pf_bridge_rule`
    pub const BRIDGE_RULES: &str = "bridge_rules";
    /// per CPU, number of the port -> `struct pf_bridge_stats`
    pub const BRIDGE_STATS: &str = "bridge_stats";
    /// one `struct pf_test`
    pub const TEST: &str = "test";
}
