/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The structs, enums, limits and map names that data plane and userland share. The structs are in
 * the files of abi/.
 *
 * crates/abi mirrors these files in Rust. A test compares the size of each struct and the offset of
 * each field with the BTF of the compiled object.
 *
 * Rules: types of fixed width, explicit padding, no pointers. Addresses and ports are in network
 * byte order, all other numbers in host order. An IPv4 address has the first 4 of 16 bytes; the
 * other bytes are zero. Times are whole seconds of the boot clock, as pf counts uptime in seconds.
 */
#ifndef SKIPSTEP_ABI_H
#define SKIPSTEP_ABI_H

/* Raised with each change of these files: pfctl refuses pins of another version. */
#define PF_ABI_VERSION		75

/* ---- limits ------------------------------------------------------------------------------- */

#define PF_IFNAMSIZ		16
/* Differs from OpenBSD: linux.md, "Rules" */
#define PF_MAX_RULES		131072	/* in one rule set; the rules map is as large as needed */
/* rule slots: the rule set in force, the next one, orphaned rules with states */
/* Differs from OpenBSD: linux.md, "Rules with counters" */
#define PF_RULE_SLOTS		262144
/* Differs from OpenBSD: linux.md, "Tables and dynamic addresses" */
#define PF_TABLE_SLOTS		4096	/* tables and dynamic interface addresses */
/* Differs from OpenBSD: linux.md, "Interfaces" */
#define PF_MAX_INTERFACES	4096
#define PF_NEAR_INTERFACES	1024	/* ifindexes below it are stored in an array */
/* Differs from OpenBSD: linux.md, "Match rules" */
#define PF_MATCH_RULES		16	/* match rules that one state counts for */
#define PF_MAX_DEPTH		64	/* nested anchors */
/* rules evaluated for one packet, each as often as it is called; more in larger rule sets */
/* Differs from OpenBSD: linux.md, "Rules evaluated for one packet" */
#define PF_MAX_STEPS		16384
/* bytes of a packet that the log keeps (pflogd's default) */
#define PF_SNAPLEN		160
/* bytes of a packet for a program that reads a log itself */
#define PF_LOG_WHOLE		65535
/* Differs from OpenBSD: linux.md, "Log files" */
#define PF_LOGS			256	/* number of logs, pflogN; N is the place of its reader */
/* programs that may read dropped packets at once; their places are behind those of the logs */
#define PF_DROP_READERS		4
#define PF_IDLE_SLOT		0	/* rule slot of the implicit default rule */
/* Differs from OpenBSD: linux.md, "Number of fingerprints" */
#define PF_FINGERPRINTS		4096	/* fingerprints in one rule set */
/* Differs from OpenBSD: linux.md, "Operating systems" */
#define PF_SYSTEMS		63	/* different `os` names in one rule set */
#define PF_LIMITERS		256	/* limiters of one kind have numbers below it, from 1 */
/* slot of the host's own addresses; broadcast addresses are negated entries */
#define PF_SELF_TABLE		0

/* ---- verdicts, directions ----------------------------------------------------------------- */

enum pf_verdict {
	PF_VERDICT_PASS = 0,
	PF_VERDICT_DROP = 1,
	PF_VERDICT_REPLY = 2,	/* dropped, and turned into its answer (RST, ICMP error, ACK) */
	PF_VERDICT_CONSUMED = 3, /* synproxy: turned into the packet sent in its place */
	PF_VERDICT_HELD = 4,	/* a fragment, handed to skipstepd */
	PF_VERDICT_REFRAGMENT = 5,	/* passed; skipstepd splits it into fragments */
	PF_VERDICT_ROUTED = 6,	/* passed; leaves by pf_outcome.ifindex */
	PF_VERDICT_CROSSED = 7,	/* forwarded as a packet of the other family */
};

enum pf_direction {
	PF_INOUT = 0,
	PF_IN = 1,
	PF_OUT = 2,
};

enum pf_action {			/* the numbers of pflog records */
	PF_ACTION_PASS = 0,
	PF_ACTION_BLOCK = 1,
	PF_ACTION_SCRUB = 2,	/* this action and the next six are of legacy rules */
	PF_ACTION_NAT = 4,
	PF_ACTION_NO_NAT = 5,
	PF_ACTION_BINAT = 6,
	PF_ACTION_NO_BINAT = 7,
	PF_ACTION_RDR = 8,
	PF_ACTION_NO_RDR = 9,
	PF_ACTION_MATCH = 12,
};

enum pf_evaluator {
	PF_EVALUATOR_LINEAR = 0,
	PF_EVALUATOR_SKIP_STEPS = 1,
	PF_EVALUATOR_COMPILED = 2,	/* trees; skip steps for rules with side effects */
};

/* ---- reasons of dropped and logged packets. Setting one counts it -------------------------- */

enum pf_reason {
	PF_REASON_MATCH = 0,
	PF_REASON_BAD_OFFSET,
	PF_REASON_FRAGMENT,
	PF_REASON_SHORT,
	PF_REASON_NORMALIZE,
	PF_REASON_MEMORY,
	PF_REASON_BAD_TIMESTAMP,
	PF_REASON_CONGESTION,
	PF_REASON_IP_OPTION,
	PF_REASON_PROTO_CKSUM,
	PF_REASON_STATE_MISMATCH,
	PF_REASON_STATE_INSERT,
	PF_REASON_STATE_LIMIT,
	PF_REASON_SRC_LIMIT,
	PF_REASON_SYNPROXY,
	PF_REASON_TRANSLATE,
	PF_REASON_NO_ROUTE,
	PF_REASON_LINK_HEADER,		/* IP behind headers that are not parsed; ours alone */
	PF_REASON_UNATTACHED,		/* on a device that pf is not attached to; ours alone */
	PF_REASON_MAX,
};

#define PF_REASON_NAMES {						\
	"match", "bad-offset", "fragment", "short", "normalize",	\
	"memory", "bad-timestamp", "congestion", "ip-option",		\
	"proto-cksum", "state-mismatch", "state-insert",		\
	"state-limit", "src-limit", "synproxy", "translate",		\
	"no-route", "link-header", "unattached",			\
}

/* Counters of the state table (pfctl -si, "State Table"). */
enum pf_state_counter {
	PF_COUNT_SEARCHES = 0,
	PF_COUNT_INSERTS,
	PF_COUNT_REMOVALS,
	PF_COUNT_MAX,
};

/* Counters of source nodes (pfctl -si, "Source Tracking Table"). */
enum pf_source_counter {
	PF_SOURCE_COUNT_SEARCHES = 0,
	PF_SOURCE_COUNT_INSERTS,
	PF_SOURCE_COUNT_REMOVALS,
	PF_SOURCE_COUNT_MAX,
};

/* Counters of rule limits (pfctl -si, "Limit Counters"), in OpenBSD's order. */
enum pf_limit_counter {
	PF_LCOUNT_STATES = 0,		/* max states per rule */
	PF_LCOUNT_SRC_STATES,
	PF_LCOUNT_SRC_NODES,
	PF_LCOUNT_SRC_CONN,
	PF_LCOUNT_SRC_CONN_RATE,
	PF_LCOUNT_OVERLOAD_TABLE,
	PF_LCOUNT_OVERLOAD_FLUSH,
	PF_LCOUNT_SYNFLOODS,
	PF_LCOUNT_SYNCOOKIES_SENT,
	PF_LCOUNT_SYNCOOKIES_VALID,
	PF_LCOUNT_MAX,
};

/* ---- timeouts ------------------------------------------------------------------------------ */

enum pf_timeout {
	PF_TIMEOUT_TCP_FIRST = 0,
	PF_TIMEOUT_TCP_OPENING,
	PF_TIMEOUT_TCP_ESTABLISHED,
	PF_TIMEOUT_TCP_CLOSING,
	PF_TIMEOUT_TCP_FINWAIT,
	PF_TIMEOUT_TCP_CLOSED,
	PF_TIMEOUT_UDP_FIRST,
	PF_TIMEOUT_UDP_SINGLE,
	PF_TIMEOUT_UDP_MULTIPLE,
	PF_TIMEOUT_ICMP_FIRST,
	PF_TIMEOUT_ICMP_ERROR,
	PF_TIMEOUT_OTHER_FIRST,
	PF_TIMEOUT_OTHER_SINGLE,
	PF_TIMEOUT_OTHER_MULTIPLE,
	PF_TIMEOUT_FRAG,
	PF_TIMEOUT_INTERVAL,
	PF_TIMEOUT_ADAPTIVE_START,	/* a number of states, as ADAPTIVE_END */
	PF_TIMEOUT_ADAPTIVE_END,
	PF_TIMEOUT_SRC_TRACK,
	PF_TIMEOUT_TCP_TSDIFF,
	PF_TIMEOUT_MAX,
};

/* ---- peer states: BSD's TCP states, of which pf uses these -------------------------------- */

enum pf_tcp_state {
	PF_TCPS_CLOSED = 0,
	PF_TCPS_LISTEN = 1,
	PF_TCPS_SYN_SENT = 2,
	PF_TCPS_SYN_RECEIVED = 3,
	PF_TCPS_ESTABLISHED = 4,
	PF_TCPS_CLOSE_WAIT = 5,
	PF_TCPS_FIN_WAIT_1 = 6,
	PF_TCPS_CLOSING = 7,
	PF_TCPS_LAST_ACK = 8,
	PF_TCPS_FIN_WAIT_2 = 9,
	PF_TCPS_TIME_WAIT = 10,
	PF_TCPS_PROXY_SRC = 11,		/* synproxy: waits for the client's handshake */
	PF_TCPS_PROXY_DST = 12,		/* synproxy: waits for the server's handshake */
};

enum pf_other_state {	/* of protocols other than TCP and ICMP */
	PF_OTHERS_NO_TRAFFIC = 0,
	PF_OTHERS_SINGLE = 1,
	PF_OTHERS_MULTIPLE = 2,
};

#include "abi/rule.h"
#include "abi/tree_set.h"
#include "abi/limiter.h"
#include "abi/table.h"
#include "abi/table_index.h"
#include "abi/state.h"
#include "abi/status.h"
#include "abi/record.h"
#include "abi/bridge.h"

/* ---- names of the maps --------------------------------------------------------------------- *
 * rulesets         array of maps     copy -> array of struct pf_rule
 * tree_sets        array of maps     copy, chunk -> struct pf_chunk (search.h): nodes
 * configs          array             copy -> struct pf_config
 * status           array of 1        struct pf_status
 * counters         per-CPU array     struct pf_counters
 * rule_stats       per-CPU array     slot -> struct pf_rule_stats
 * rule_states      array             slot -> struct pf_rule_states
 * tables           array             slot -> struct pf_table
 * table_entries    LPM trie          struct pf_table_key -> struct pf_table_entry
 * table_indexes    array of maps     2 * slot + (version & 1) -> array of struct pf_index_cell
 * table_stats      per-CPU array     slot -> struct pf_table_stats
 * entry_stats      LPM trie          struct pf_table_key -> struct pf_entry_stats
 * pools            hash              struct pf_pool_key -> struct pf_pool
 * pool_blocks      hash              struct pf_pool_block_key -> struct pf_pool_block
 * pool_loads       hash              struct pf_pool_load_key -> __u32
 * mappings         hash              struct pf_endpoint -> struct pf_mapping
 * pool_members     hash              struct pf_pool_member_key -> struct pf_pool_member
 * interfaces       hash              ifindex -> struct pf_interface
 * near_interfaces  array             ifindex < PF_NEAR_INTERFACES -> struct pf_near_interface
 * interface_indexes array          interface id -> ifindex, 0 if it does not exist
 * interface_stats  per-CPU array     interface id -> struct pf_interface_stats
 * key_hash         array of 1        struct pf_key_hash
 * state_keys       array             hash of struct pf_state_key -> struct pf_key_line
 * states           array             index -> struct pf_state
 * extensions       hash              index -> struct pf_extension
 * free_states      stack             freed index of states
 * reassembler      array of 1        struct pf_reassembler
 * diverter         array of 1        struct pf_diverter
 * delayer          array of 1        struct pf_delayer
 * source_keys      hash              struct pf_source_key -> index
 * source_nodes     array             index -> struct pf_source_node
 * free_sources     stack             freed index of source_nodes
 * fingerprints     array             copy, order -> struct pf_fingerprint
 * limiters         array             copy, kind, number -> struct pf_limiter
 * limiter_uses     array             kind, number -> struct pf_limiter_use
 * limited_sources  hash              struct pf_limited_key -> struct pf_limited_source
 * limited_turns    queue             struct pf_limited_turn
 * leaving          queue             struct pf_leaving
 * flushes          hash              struct pf_flush -> struct pf_flushed
 * log_ring         ring buffer       struct pf_log_record
 * log_readers      array of maps     place of a reader -> ring buffer of longer records
 * flow_ring        ring buffer       struct pf_flow_record
 * sweeper          array of 1        the bpf_timer that expires states
 * scratch          per-CPU array     struct pf_outcome, then fields of the data plane alone
 * bridge_numbers   hash              ifindex -> number of the port
 * bridge_ports     array             number -> struct pf_bridge_port
 * bridge_addresses hash              struct pf_bridge_key -> struct pf_bridge_address
 * bridge_rules     hash              struct pf_bridge_rule_key -> struct pf_bridge_rule
 * bridge_stats     per-CPU array     number -> struct pf_bridge_stats
 * test             array of 1        struct pf_test
 */

#endif /* SKIPSTEP_ABI_H */
