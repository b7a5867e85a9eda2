/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Everything that the data plane and userland share: structs, enums, limits and map names.
 *
 * crates/abi mirrors this file in Rust; a test there compares the size of every struct and the
 * offset of every field with the BTF of the compiled object, so the two cannot drift apart.
 *
 * Rules: fixed-width types, explicit padding, no pointers. Addresses and ports are in network
 * byte order, everything else in host order. An IPv4 address occupies the first 4 of 16 bytes
 * and the rest is zero. Times are whole seconds of the boot clock (pf counts uptime in seconds).
 */
#ifndef SKIPSTEP_ABI_H
#define SKIPSTEP_ABI_H

/* bumped on every change of this file: pfctl refuses to talk to pins of another version */
#define PF_ABI_VERSION		27

/* ---- limits ------------------------------------------------------------------------------- */

#define PF_IFNAMSIZ		16
#define PF_MAX_RULES		131072	/* rules in one rule set; the rules map is made to measure */
#define PF_RULE_SLOTS		262144	/* statistics of rules in use: a running set, a new one, old states */
#define PF_TABLE_SLOTS		4096	/* tables, and dynamic interface addresses, in use */
#define PF_MAX_INTERFACES	4096
#define PF_MATCH_RULES		16	/* match rules remembered by one state */
#define PF_MAX_DEPTH		64	/* anchors inside each other */
#define PF_MAX_STEPS		1048576	/* rules looked at for one packet, each as often as it is called */
#define PF_SNAPLEN		160	/* bytes of a packet kept by the log (pflogd's default) */
#define PF_IDLE_SLOT		0	/* statistics slot of the implicit default rule */
#define PF_FINGERPRINTS		4096	/* fingerprints of systems in one rule set */
#define PF_SYSTEMS		63	/* different names behind `os` in one rule set */
#define PF_LIMITERS		256	/* numbers of limiters of one kind; none has 0 */
#define PF_SELF_TABLE		0	/* table slot with the host's own addresses; broadcast ones negated */

/* ---- verdicts, directions ----------------------------------------------------------------- */

enum pf_verdict {
	PF_VERDICT_PASS = 0,
	PF_VERDICT_DROP = 1,
	PF_VERDICT_REPLY = 2,	/* dropped, and the packet was turned into its answer (RST, ICMP error, ACK) */
	PF_VERDICT_CONSUMED = 3, /* taken, and turned into what is sent in its place (syn proxy) */
	PF_VERDICT_HELD = 4,	/* a fragment: skipstepd has it */
	PF_VERDICT_REFRAGMENT = 5,	/* passed, and skipstepd makes fragments of it */
	PF_VERDICT_ROUTED = 6,	/* passed, and leaves where the outcome says */
	PF_VERDICT_CROSSED = 7,	/* taken, and forwarded as a packet of the other family */
};

enum pf_direction {
	PF_INOUT = 0,
	PF_IN = 1,
	PF_OUT = 2,
};

enum pf_action {			/* values of pflog records */
	PF_ACTION_PASS = 0,
	PF_ACTION_BLOCK = 1,
	PF_ACTION_SCRUB = 2,	/* rules of old times, and the next six */
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
};

/* ---- reasons: why a packet was dropped or logged. Setting one counts it -------------------- */

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
	PF_REASON_MAX,
};

#define PF_REASON_NAMES {						\
	"match", "bad-offset", "fragment", "short", "normalize",	\
	"memory", "bad-timestamp", "congestion", "ip-option",		\
	"proto-cksum", "state-mismatch", "state-insert",		\
	"state-limit", "src-limit", "synproxy", "translate",		\
	"no-route",							\
}

/* counters of the state table (pfctl -si, "State Table") */
enum pf_state_counter {
	PF_COUNT_SEARCHES = 0,
	PF_COUNT_INSERTS,
	PF_COUNT_REMOVALS,
	PF_COUNT_MAX,
};

/* counters of source nodes (pfctl -si, "Source Tracking Table") */
enum pf_source_counter {
	PF_SOURCE_COUNT_SEARCHES = 0,
	PF_SOURCE_COUNT_INSERTS,
	PF_SOURCE_COUNT_REMOVALS,
	PF_SOURCE_COUNT_MAX,
};

/* counters of rule limits (pfctl -si, "Limit Counters"), OpenBSD's order */
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
	PF_TIMEOUT_ADAPTIVE_START,	/* a number of states, as the next */
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
	PF_TCPS_PROXY_SRC = 11,		/* synproxy: we wait for the client … */
	PF_TCPS_PROXY_DST = 12,		/* … and then for the server */
};

enum pf_other_state {	/* UDP and everything that is neither TCP nor ICMP */
	PF_OTHERS_NO_TRAFFIC = 0,
	PF_OTHERS_SINGLE = 1,
	PF_OTHERS_MULTIPLE = 2,
};

/* ---- interfaces ---------------------------------------------------------------------------- */

enum pf_interface_match {
	PF_IFMATCH_NONE = 0,	/* rule does not say `on` */
	PF_IFMATCH_NAME = 1,	/* id is that of an interface name */
	PF_IFMATCH_GROUP = 2,	/* id is a bit of pf_interface.groups */
	PF_IFMATCH_ANY = 3,	/* `on any`: everything but loopback */
	PF_IFMATCH_RDOMAIN = 4,	/* `on rdomain`: id is the number */
};

enum pf_interface_flags {
	PF_INTERFACE_LOOPBACK = 1 << 0,
	PF_INTERFACE_NO_LINK = 1 << 1,	/* for userland; the data plane asks the kernel's device itself */
	PF_INTERFACE_SKIP_0 = 1 << 2,	/* `set skip on`, seen by even generations … */
	PF_INTERFACE_SKIP_1 = 1 << 3,	/* … and by odd ones */
};

/* value of the interfaces map, whose key is the ifindex. An ifindex that is not there is an
 * interface nobody has told us about yet: only rules without `on`, and `on any`, match on it. */
struct pf_interface {
	__u32 id;			/* names an interface for good; 0 is no interface */
	__u32 flags;			/* pf_interface_flags */
	__u64 groups;			/* bit per group */
	char name[PF_IFNAMSIZ];
	__u32 rdomain;			/* the table of the VRF it is in, 0 if it is in none */
	__u32 pad;
};

/* per CPU, indexed by pf_interface.id: [inet, inet6][in, out][pass, block] */
struct pf_interface_stats {
	__u64 packets[2][2][2];
	__u64 bytes[2][2][2];
};

/* ---- rules --------------------------------------------------------------------------------- */

/* skip steps: parameter k of rule r differs from that of the rules before r.skip[k] */
enum pf_skip {
	PF_SKIP_INTERFACE = 0,
	PF_SKIP_DIRECTION,
	PF_SKIP_RDOMAIN,
	PF_SKIP_FAMILY,
	PF_SKIP_PROTOCOL,
	PF_SKIP_SRC_ADDRESS,
	PF_SKIP_DST_ADDRESS,
	PF_SKIP_SRC_PORT,
	PF_SKIP_DST_PORT,
	PF_SKIP_MAX,
};

enum pf_address_kind {
	PF_ADDRESS_ANY = 0,
	PF_ADDRESS_MASK = 1,		/* (packet & high) == low */
	PF_ADDRESS_RANGE = 2,		/* low <= packet <= high */
	PF_ADDRESS_TABLE = 3,		/* table slot; dynamic interface addresses are tables too */
	PF_ADDRESS_NO_ROUTE = 4,
	PF_ADDRESS_URPF_FAILED = 5,
	PF_ADDRESS_NEVER = 6,		/* an interface without such an address: matches nothing, negated or not */
};

struct pf_address {
	__u8 kind;			/* pf_address_kind */
	__u8 negated;
	__u8 pad[2];
	__u32 table;			/* slot */
	__u8 low[16];
	__u8 high[16];
};

enum pf_port_op {			/* values of OpenBSD's PF_OP_* */
	PF_PORT_ANY = 0,
	PF_PORT_INSIDE = 1,		/* ><, exclusive */
	PF_PORT_EQ = 2,
	PF_PORT_NE = 3,
	PF_PORT_LT = 4,
	PF_PORT_LE = 5,
	PF_PORT_GT = 6,
	PF_PORT_GE = 7,
	PF_PORT_OUTSIDE = 8,		/* <> */
	PF_PORT_RANGE = 9,		/* :, inclusive */
};

struct pf_port {			/* ports in host order */
	__u16 low;
	__u16 high;
	__u8 op;			/* pf_port_op */
	__u8 pad[3];
};

struct pf_owner {			/* of a socket; ids in host order, ~0 is who owns none */
	__u32 low;
	__u32 high;
	__u8 op;			/* pf_port_op */
	__u8 pad[3];
};

enum pf_rule_flags {
	PF_RULE_QUICK = 1 << 0,		/* nat pass and its like have it too */
	PF_RULE_LOG = 1 << 1,
	PF_RULE_LOG_ALL = 1 << 2,
	PF_RULE_LOG_MATCHES = 1 << 3,
	PF_RULE_FRAGMENT = 1 << 4,	/* only fragments */
	PF_RULE_ALLOW_OPTS = 1 << 5,
	PF_RULE_KEEP_STATE = 1 << 6,
	PF_RULE_IF_BOUND = 1 << 7,
	PF_RULE_SLOPPY = 1 << 8,
	PF_RULE_NO_SYNC = 1 << 9,
	PF_RULE_RETURN = 1 << 10,	/* block return: RST for TCP, ICMP error for the rest */
	PF_RULE_RETURN_RST = 1 << 11,
	PF_RULE_RETURN_ICMP = 1 << 12,
	PF_RULE_NO_DF = 1 << 13,	/* scrub (no-df) */
	PF_RULE_SET_TOS = 1 << 14,
	PF_RULE_SET_PRIO = 1 << 15,
	PF_RULE_MATCH_TOS = 1 << 16,
	PF_RULE_MATCH_PRIO = 1 << 17,
	PF_RULE_MATCH_ICMP_TYPE = 1 << 18,
	PF_RULE_MATCH_ICMP_CODE = 1 << 19,
	PF_RULE_PROBABILITY = 1 << 20,
	PF_RULE_INTERFACE_NOT = 1 << 21,
	PF_RULE_RECEIVED_NOT = 1 << 22,
	PF_RULE_TAGGED_NOT = 1 << 23,
	PF_RULE_LOG_USER = 1 << 24,
	PF_RULE_RANDOM_ID = 1 << 25,
	PF_RULE_ANCHOR = 1 << 26,	/* calls other rules; quick ends the walk if they decided */
	PF_RULE_ONCE = 1 << 27,		/* matches but one packet: see pf_rule_states */
	PF_RULE_MAX_PKT_RATE = 1 << 28,	/* does not match what comes too fast: there too */
	PF_RULE_MODULATE = 1 << 29,	/* modulate state */
	PF_RULE_REASSEMBLE_TCP = 1 << 30, /* scrub (reassemble tcp) */
	PF_RULE_SYNPROXY = 1u << 31,	/* synproxy state */
};

struct pf_rule {
	__u32 skip[PF_SKIP_MAX];	/* index of the next rule worth looking at; the count of rules at the end */
	__u32 flags;			/* pf_rule_flags */

	/* criteria */
	__u32 interface;		/* id or group bit */
	__u32 received_on;
	__u8 interface_match;		/* pf_interface_match */
	__u8 received_match;
	__u8 direction;			/* pf_direction */
	__u8 family;			/* 0, 2 (AF_INET) or 10 (AF_INET6) */
	__u8 protocol;			/* 0 is any */
	__u8 tcp_flags;			/* of those in tcp_mask these must be set */
	__u8 tcp_mask;			/* 0: do not look */
	__u8 icmp_type;
	__u8 icmp_code;
	__u8 tos;
	__u8 prio;
	__u8 action;			/* pf_action */
	__u16 tag;			/* 0: none */
	__u16 tagged;			/* 0: do not look */
	__u32 probability;		/* of 2^32 - 1 */
	struct pf_address source;
	struct pf_address destination;
	struct pf_port source_port;
	struct pf_port destination_port;
	struct pf_owner user;
	struct pf_owner group;

	/* actions */
	__u8 return_ttl;		/* of the RST; 0 is the default */
	__u8 return_icmp_type;		/* block return*, IPv4 */
	__u8 return_icmp_code;
	__u8 return_icmp6_type;
	__u8 return_icmp6_code;
	__u8 set_tos;
	__u8 set_prio[2];		/* ordinary; lowdelay and empty ACKs */
	__u8 min_ttl;
	__u8 log_to;			/* n of pflogN */
	__u16 max_mss;
	__u16 max_pkt_size;		/* longer packets are dropped; 0: no limit */
	__u8 pools;			/* 1 << pf_purpose of those it has: see struct pf_pool_key */
	__u8 route;			/* pf_route_kind */
	__u16 queue[2];			/* ordinary; lowdelay and empty ACKs. 0: leaves it */
	__u32 slot;			/* in rule_stats and rule_states */
	__u32 number;			/* in its rule set */
	__u32 anchor;			/* id of the anchor it is in, 0 for the main rule set */
	__u32 call_first;		/* PF_RULE_ANCHOR: index of the first rule it calls … */
	__u32 call_end;			/* … and one more than that of the last */
	__u16 rtable;			/* one more than the routing table's number; 0: not said */
	__u8 cross_to;			/* af-to: family that its packets get, else 0 */
	__u8 os;			/* 1 + bit of the name in pf_fingerprint.systems; 0: do not look */
	__u16 limiter[2];		/* by pf_limiter_kind: number, with PF_LIMITER_NO_MATCH; 0: none */
	__u32 set_end;			/* one more than the index of the last rule of its rule set */
};

/* Lists of old rules, which a packet walks before the filter rules. `binat` makes two: for packets that
 * leave and for those that arrive. A rule in both is one and the same but for its criteria. */
enum pf_old_list {
	PF_OLD_NAT = 0,
	PF_OLD_RDR,
	PF_OLD_BINAT_OUT,
	PF_OLD_BINAT_IN,
	PF_OLD_SCRUB,
	PF_OLD_LISTS,
};

struct pf_stretch {			/* of the array of rules */
	__u32 first;
	__u32 end;			/* one more than the last */
};

/* per CPU, indexed by slot */
struct pf_rule_stats {
	__u64 evaluations;
	__u64 packets[2];		/* in, out */
	__u64 bytes[2];
};

/* a table that a rule compares an address with, whose counters rise with the rule's */
struct pf_rule_table {
	__u32 slot;
	__u8 used;
	__u8 negated;
	__u8 pad[2];
};

enum pf_source_flags {			/* how a rule tracks sources */
	PF_SOURCE_TRACK = 1 << 0,
	PF_SOURCE_OVERLOAD = 1 << 1,	/* one with too many connections is put in a table */
	PF_SOURCE_FLUSH = 1 << 2,	/* and its states that the rule made end … */
	PF_SOURCE_FLUSH_GLOBAL = 1 << 3,	/* … or all of them */
};

/* shared by all CPUs, indexed by slot. Lives until the last state made by the rule is gone */
struct pf_rule_states {
	__u64 total;			/* states ever made */
	__u64 pkt_rate;			/* of matching packets, as rate.h keeps it */
	__u32 current;			/* states now */
	__u32 max;			/* keep state (max n); 0: no limit */
	__s32 number;			/* of the rule; -1 once its rule set was replaced */
	__u32 timeouts[PF_TIMEOUT_MAX];	/* 0: the global one */
	struct pf_rule_table tables[2];	/* source, destination */
	__u32 anchor;			/* id of the anchor it is in */
	__u32 expired;			/* `once`: it has matched its packet */
	__u32 max_packets;		/* max-pkt-rate: in … */
	__u32 max_packets_seconds;
	__u32 source_flags;		/* pf_source_flags */
	__u32 source_nodes;		/* nodes now, of every kind */
	__u32 max_src_nodes;		/* these four: 0 is no limit */
	__u32 max_src_states;
	__u32 max_src_conn;
	__u32 max_src_conn_rate;	/* in … */
	__u32 max_src_conn_seconds;
	__u32 overload_table;		/* slot */
	__u8 divert;			/* pf_divert_kind */
	__u8 pflow;			/* its states are reported when they end … */
	__be16 divert_port;		/* of the socket that divert-to, or divert-packet, names */
	__u8 divert_address[16];
	__u32 flow_tos;			/* … with the `tos` that it asks for */
	__u32 old;			/* pf_action of an old rule, else 0 */
};

enum pf_divert_kind {
	PF_DIVERT_NO = 0,
	PF_DIVERT_TO = 1,
	PF_DIVERT_REPLY = 2,
	PF_DIVERT_PACKET = 3,
};

/* ---- fingerprints: what the SYNs of a system look like; by generation & 1 and their order -------- */

enum pf_measure {
	PF_MEASURE_ANY = 0,
	PF_MEASURE_EXACTLY,
	PF_MEASURE_MULTIPLE,
	PF_MEASURE_SEGMENTS,		/* of a window: so many times the MSS … */
	PF_MEASURE_PACKETS,		/* … or the MTU */
};

enum pf_syn_flags {
	PF_SYN_DF = 1 << 0,		/* over IPv6 always */
	PF_SYN_ZERO_TIMESTAMP = 1 << 1,
};

struct pf_fingerprint {
	__u64 systems;			/* bits of the names in rules that its systems have */
	__u64 options;			/* kinds of TCP options, 3 bits each, the first one highest */
	__u16 window;
	__u16 size;			/* of the IP packet */
	__u16 mss;
	__u8 scale;
	__u8 ttl;
	__u8 option_count;
	__u8 flags;			/* pf_syn_flags */
	__u8 window_kind;		/* pf_measure, as the next three */
	__u8 size_kind;
	__u8 mss_kind;
	__u8 scale_kind;
	__u8 pad[2];
};

/* ---- limiters: what many rules may use up together -------------------------------------------- */

enum pf_limiter_kind {
	PF_LIMITER_STATE = 0,
	PF_LIMITER_SOURCE = 1,
	PF_LIMITER_KINDS,
};

/* in pf_rule.limiter: beyond the limit the rule does not match; else the packet is dropped */
#define PF_LIMITER_NO_MATCH	0x100

/* What was written of one, by generation & 1, kind and number. Times are in nanoseconds. */
struct pf_limiter {
	__u64 token;			/* rate: one more state in this time … */
	__u64 bucket;			/* … and those of this time can be saved; 0: no rate */
	__u32 limit;			/* states; 0: there is no such limiter */
	__u32 entries;			/* the rest is of source limiters */
	__u32 table;			/* slot … */
	__u32 above;			/* … of the table where a source goes with as many states; 0: none … */
	__u32 below;			/* … and leaves with less */
	__u8 inet_mask;			/* prefix lengths */
	__u8 inet6_mask;
	__u8 pad[2];
};

/* What is used of one, by kind and number; shared by all CPUs */
struct pf_limiter_use {
	__u64 saved_since;		/* state limiter: moment, signed, from which on its tokens were saved */
	__u64 admitted;			/* states */
	__u64 hard_limited;		/* packets that were refused, by limit … */
	__u64 rate_limited;		/* … and by rate */
	__u64 sources_made;
	__u64 sources_limited;		/* packets refused, by entries … */
	__u64 sources_lost;		/* … and for want of memory */
	__u32 serial;			/* rises when the limiter goes: what states hold of it is void */
	__u32 states;			/* now, as the next */
	__u32 sources;
	__u32 pad;
};

/* A source limiter's sources have a place in a hash: */
struct pf_limited_key {
	__u32 serial;			/* of pf_limiter_use */
	__u8 id;
	__u8 family;
	__u8 pad[2];
	__u8 address[16];		/* without the bits that the mask leaves out */
};

struct pf_limited_source {
#ifdef __bpf__
	struct bpf_spin_lock lock;
#else
	__u32 lock;
#endif
	__u32 states;			/* now */
	__u64 saved_since;
	__u64 admitted;
	__u64 hard_limited;
	__u64 rate_limited;
	__u32 stays_until;		/* second, without states */
	__u8 in_table;
	__u8 gone;			/* it is being removed: nobody may hold it any more */
	__u8 pad[2];
};

/* A source that is to leave its limiter's table. pfctl's programs and the timer may not touch tables, so
 * the next packet that asks rules sees to it. */
struct pf_leaving {
	struct pf_limited_key key;
	__u32 table;			/* slot */
	__u32 prefix;
	__u32 below;			/* it leaves unless it has as many states again */
	__u32 pad;
};

/* What a state holds of a limiter */
struct pf_limited {
	__u32 serial;			/* of pf_limiter_use */
	__u8 id;			/* 0: nothing */
	__u8 prefix;			/* source limiter: length of the mask */
	__u8 pad[2];
};

/* ---- tables -------------------------------------------------------------------------------- */

/* key of the one LPM trie that holds all tables; prefixlen counts the bits after itself */
struct pf_table_key {
	__u32 prefixlen;		/* 64 + the prefix's */
	__u32 version;			/* pf_table.version */
	__u32 family;			/* 2 or 10 */
	__u8 address[16];
};

struct pf_table_entry {
	__u32 negated;			/* the longest match says: not in the table */
	__u32 interface;		/* in PF_SELF_TABLE: id of the interface that has the address */
	__u32 cleared;			/* wall-clock second when it was written, or its counters cleared */
	__u32 weight;			/* how often a pool takes it, compared with the others; or 0 */
	__u32 prefix;			/* the length of its own, which a longest match does not tell */
};

/* indexed by slot. Contents are replaced by writing a new version beside the old one */
struct pf_table {
	__u32 version;			/* 0: empty, nothing to look up */
	__u32 counters;			/* each entry has counters of its own */
	__u32 list;			/* version of its pool_blocks, which only tables have that pools use */
	__u32 total;			/* entries of both families, negated ones too */
	__u32 weighted;			/* some have weights, of which … */
	__u32 gcd;			/* … this is the greatest common divisor … */
	__u32 heaviest;			/* … and this the greatest */
};

enum pf_table_op {			/* what was done with a packet, as pfctl -vvT show counts it */
	PF_TABLE_BLOCK = 0,
	PF_TABLE_MATCH,
	PF_TABLE_PASS,
	PF_TABLE_XPASS,			/* passed by a state, but the table no longer holds the address */
	PF_TABLE_OP_MAX,
};

/* per CPU, indexed by slot: [in, out][pf_table_op] */
struct pf_table_stats {
	__u64 match;
	__u64 nomatch;
	__u64 packets[2][PF_TABLE_OP_MAX];
	__u64 bytes[2][PF_TABLE_OP_MAX];
};

/* shared by all CPUs: of an entry that was hit, in a table with counters. An entry that passes its
 * packet only because of a state is not counted, so there is no PF_TABLE_XPASS */
struct pf_entry_stats {
	__u64 packets[2][PF_TABLE_XPASS];
	__u64 bytes[2][PF_TABLE_XPASS];
};

/* ---- pools --------------------------------------------------------------------------------- */

enum pf_purpose {
	PF_POOL_NAT = 0,
	PF_POOL_RDR = 1,
	PF_POOL_ROUTE = 2,
};

enum pf_route_kind {			/* values of OpenBSD's PF_ROUTETO and its like */
	PF_HOP_NO = 0,
	PF_HOP_ROUTE_TO = 1,
	PF_HOP_DUP_TO = 2,
	PF_HOP_REPLY_TO = 3,
};

enum pf_pool_kind {
	PF_POOL_NONE = 0,		/* the first address */
	PF_POOL_BITMASK,
	PF_POOL_RANDOM,
	PF_POOL_SOURCE_HASH,
	PF_POOL_ROUND_ROBIN,
	PF_POOL_LEAST_STATES,
};

struct pf_pool_key {
	__u32 slot;			/* of the rule */
	__u32 purpose;			/* pf_purpose */
};

struct pf_pool {
	__u8 kind;			/* pf_pool_kind */
	__u8 listed;			/* choose from the table, not from the network */
	__u8 single;			/* the network is one address */
	__u8 sticky;			/* sticky-address: a source keeps the one that it got */
	__u32 table;			/* slot */
	__u16 low;			/* new ports, host order; 0 and 0 keep the packet's */
	__u16 high;
	__u16 first;			/* the lowest port that the rule looks for: where low belongs */
	__u8 prefix;			/* af-to: its length in front of an IPv4 address */
	__u8 old;			/* of an old rule: FreeBSD's ways where they differ */
	__u8 address[16];		/* the network */
	__u8 mask[16];
	__u8 key[16];			/* of source-hash */
	/* where the choice stands; two CPUs at once may choose alike */
	__u8 counter[16];		/* the address that is next or was last; 0 at the beginning */
	__u32 index;			/* the block that it is in */
	__s32 turn;			/* weighted round-robin: blocks of at least this weight have it */
};

/* The entries of a table that pools use, in the order of a radix tree, without negated ones. One with
 * smaller entries inside of it is in several parts: what those leave of it. */
struct pf_pool_block_key {
	__u32 list;			/* pf_table.list */
	__u16 family;
	__u16 part;
	__u32 index;
};

struct pf_pool_block {
	__u8 base[16];			/* of the entry, as the next three */
	__u8 mask[16];
	__u16 weight;
	__u16 parts;
	__u8 low[16];			/* of the part */
	__u8 high[16];
};

/* how many states have this address from a table: for least-states */
struct pf_pool_load_key {
	__u32 table;			/* slot */
	__u32 family;
	__u8 address[16];
};

/* ---- configuration, one for each of the two generations ------------------------------------ */

enum pf_reassemble {			/* none of them: fragments are matched one by one */
	PF_REASSEMBLE_YES = 1 << 0,	/* needs skipstepd: without it fragments are dropped */
	PF_REASSEMBLE_NO_DF = 1 << 1,	/* `no-df`: fragments with DF are not bad, DF is cleared */
};

enum pf_syncookie_mode {
	PF_SYNCOOKIES_NEVER = 0,
	PF_SYNCOOKIES_ALWAYS,
	PF_SYNCOOKIES_ADAPTIVE,
};

struct pf_config {
	__u32 rules;			/* how many there are in the main rule set, with which a walk begins */
	__u32 steps;			/* most rules to look at for one packet */
	__u32 evaluator;		/* pf_evaluator */
	__u32 limit_states;
	__u32 reassemble;		/* pf_reassemble */
	__u32 loginterface;		/* interface id, 0 for none */
	__u32 hostid;
	__u32 if_bound_states;		/* some rule makes them: look for one before a floating state */
	__u32 limit_src_nodes;
	__u32 limit_table_entries;
	__u32 syncookies;		/* pf_syncookie_mode */
	__u32 syncookies_start;		/* adaptive: with more half-open states than these … */
	__u32 syncookies_end;		/* … until there are fewer than these */
	__u32 default_rule;		/* index of what decides if no rule does */
	struct pf_stretch old[PF_OLD_LISTS];	/* those of the main rule set */
	__u32 timeouts[PF_TIMEOUT_MAX];
	__u32 fingerprints;		/* how many there are */
	__u32 pad;
	__u64 unknown_systems;		/* as pf_fingerprint.systems, if none fits */
};

/* ---- states -------------------------------------------------------------------------------- */

/* What a state's key leads to */
enum pf_made {
	PF_MADE_PLAIN = 0,		/* a state that has but this one */
	PF_MADE_IN = PF_IN,		/* a translated one of two keys, made in this direction */
	PF_MADE_OUT = PF_OUT,
	PF_MADE_NEAR = 3,		/* one whose packets cross to the other family: on the side of its
					 * maker … */
	PF_MADE_FAR = 4,		/* … and on the other. Packets that come in have both */
};

/* Index 0 is the source of inbound and the destination of outbound packets, so that a reply has
 * the key of what it answers. For ICMP queries one port is the id, the other the type. */
struct pf_state_key {
	__u8 address[2][16];
	__be16 port[2];
	__u32 interface;		/* the id of an if-bound state's interface, 0 for floating ones */
	__u32 rdomain;			/* of the interface where its packets are */
	__u8 made;			/* pf_made */
	__u8 family;
	__u8 protocol;
	__u8 pad;
};

/* value of the state_keys map: where the state is, and that it still is the one meant */
struct pf_state_ref {
	__u32 index;
	__u32 serial;
};

struct pf_peer {
	__u32 seqlo;			/* highest sequence number seen */
	__u32 seqhi;			/* highest the other side allows */
	__u32 seqdiff;			/* added to this side's sequence numbers */
	__u16 max_win;			/* largest window, unscaled */
	__u8 state;			/* pf_tcp_state or pf_other_state */
	__u8 wscale;			/* low 4 bits the shift; PF_WSCALE_* */
};

#define PF_WSCALE_MASK	0x0f
#define PF_WSCALE_FLAG	0x80		/* this side's SYN offered scaling */

enum pf_state_flags {			/* values of OpenBSD's PFSTATE_* */
	PF_STATE_ALLOW_OPTS = 0x0001,
	PF_STATE_SLOPPY = 0x0002,
	PF_STATE_PFLOW = 0x0004,
	PF_STATE_NO_SYNC = 0x0008,
	PF_STATE_NO_DF = 0x0020,
	PF_STATE_SET_TOS = 0x0040,
	PF_STATE_RANDOM_ID = 0x0080,
	PF_STATE_REASSEMBLE_TCP = 0x0100,
	PF_STATE_SET_PRIO = 0x0200,
	/* ours alone */
	PF_STATE_MAX_PKT_RATE = 0x10000,	/* its rule has one */
	PF_STATE_CONNECTED = 0x20000,	/* counts among the connections of its source */
};

enum pf_state_key_side {
	PF_WIRE = 0,
	PF_STACK = 1,
};

enum pf_log_flags {			/* what a state remembers of a rule's log options */
	PF_LOG_ALL = 1 << 0,		/* every packet, not only the first */
	PF_LOG_USER = 1 << 1,
};

/* a match rule whose counters rise with those of the state */
struct pf_match_rule {
	__u32 slot;
	__u8 log;			/* pf_log_flags */
	__u8 log_to;
	__u8 action;			/* pf_action: an old rule counts like a match rule */
	__u8 pad;
};

enum pf_node_kind {			/* what a source is remembered for */
	PF_NODE_TRACK = 0,		/* limits */
	PF_NODE_NAT,			/* sticky-address of these pools */
	PF_NODE_RDR,
	PF_NODE_ROUTE,
	PF_NODE_KINDS,
};

/* timeouts of states that are over */
#define PF_TIMEOUT_PURGE	0xfd	/* the next sweep will remove it */
#define PF_TIMEOUT_DETACHED	0xfe	/* so too; a new state has taken over its key, so nobody sees it */
#define PF_TIMEOUT_UNLINKED	0xff	/* it is being removed: nobody may use it any more */

/* what `reassemble tcp` knows of a side; values of OpenBSD's PFSS_* */
enum pf_scrub_flags {
	PF_SCRUB_TIMESTAMP = 0x01,	/* its SYN had a timestamp: they are modulated */
	PF_SCRUB_PAWS = 0x10,		/* and it echoed the other side's: they are checked */
	PF_SCRUB_PAWS_IDLED = 0x20,	/* not any more: it was silent for too long */
	PF_SCRUB_DATA_TS = 0x40,	/* its first data had a timestamp */
	PF_SCRUB_DATA_NO_TS = 0x80,	/* or none */
};

struct pf_scrub {
	__u32 offset;			/* added to its timestamps */
	__u32 value;			/* its latest timestamp */
	__u32 first;			/* its first */
	__u32 echo;			/* the latest that it echoed */
	__u32 last;			/* second of the latest */
	__u16 flags;			/* pf_scrub_flags */
	__u8 ttl;			/* highest of its packets, which all of them get */
	__u8 present;
};

struct pf_state {
#ifdef __bpf__
	struct bpf_spin_lock lock;
#else
	__u32 lock;
#endif
	__u32 serial;			/* rises at every reuse of this place; odd while in use */
	__u64 id;
	struct pf_state_key key[2];	/* wire, stack */
	struct pf_peer src;		/* who made the state */
	struct pf_peer dst;
	__u64 packets[2];		/* with the state's direction, against it */
	__u64 bytes[2];
	__u32 creation;
	__u32 expire;			/* time of the last accepted packet, from which the timeout runs */
	__u32 rule_slot;
	__u32 anchor_slot;		/* of the anchor rule that led to the rule; PF_IDLE_SLOT for none */
	__u32 flags;			/* pf_state_flags */
	__u8 timeout;			/* pf_timeout */
	__u8 direction;
	__u8 log;			/* pf_log_flags */
	__u8 log_to;
	__u8 set_prio[2];
	__u8 set_tos;
	__u8 min_ttl;
	__u16 max_mss;
	__u16 tag;
	__u16 queue[2];
	__u32 nat_slot;			/* of the rules whose pools gave the source … */
	__u32 rdr_slot;			/* … and the destination; PF_IDLE_SLOT for none */
	__u32 match_count;
	struct pf_match_rule match[PF_MATCH_RULES];
	__u16 max_pkt_size;		/* longer packets are dropped; 0: no limit */
	__u16 proxy_mss;		/* synproxy: what both sides can have */
	__u16 rtable;			/* as pf_rule.rtable, for packets with the state's direction */
	__u8 route;			/* pf_route_kind */
	__u8 pad;
	__u8 next_hop[16];
	__u32 source_nodes[PF_NODE_KINDS];	/* places in the source_nodes map plus 1; 0: none */
	struct pf_scrub scrub[2];	/* of src, of dst */
	struct pf_state_ref next_far;	/* the next state that has its far key; serial 0: none */
	struct pf_limited limited[PF_LIMITER_KINDS];
	__u32 ifindex_in;		/* of one that is reported: where its first packet came in, … */
	__u32 ifindex_out;		/* … and where one left */
};

/* ---- sources ------------------------------------------------------------------------------- */

/* What a rule, or a pool of it, remembers of a source. Nodes are of one rule each, whatever it says
 * behind source-track: so they are in OpenBSD. */
struct pf_source_key {
	__u32 rule_slot;
	__u8 kind;			/* pf_node_kind */
	__u8 family;
	__u8 pad[2];
	__u8 address[16];
};

enum pf_node_use {
	PF_NODE_FREE = 0,
	PF_NODE_USED = 1,
	PF_NODE_DROPPED = 2,		/* by pfctl: nobody finds it, and its last state frees the place */
};

struct pf_source_node {
#ifdef __bpf__
	struct bpf_spin_lock lock;
#else
	__u32 lock;
#endif
	__u32 use;			/* pf_node_use */
	struct pf_source_key key;
	__u64 rate;			/* of connections, as rate.h keeps it */
	__u64 packets[2];		/* with the direction of their states, against it */
	__u64 bytes[2];
	__u32 states;			/* now */
	__u32 connections;		/* of these states that were established */
	__u32 creation;
	__u32 expire;			/* second at which it goes if it has no states */
	__u8 chosen[16];		/* the address that a pool gave it; zero for none */
};

/* argument of the pf_drop_source program */
struct pf_source_ref {
	__u32 index;
	__u32 pad;
	struct pf_source_key key;	/* that must be there */
};

/* ---- status -------------------------------------------------------------------------------- */

enum pf_cookies_active {
	PF_COOKIES_OFF = 0,
	PF_COOKIES_ON,
	PF_COOKIES_BEGIN,		/* somebody makes the first key */
};

struct pf_syncookies {
	__u64 key[2][2];
	__u32 in_flight[2];		/* of each key: cookies sent that did not come back */
	__u32 keys_made;		/* the lowest bit says which of the two is in use */
	__u32 next_key_at;		/* second of its end; 0: there is none */
	__u32 active;			/* pf_cookies_active */
	__u32 pad;
};

/* shared by all CPUs; one element */
struct pf_status {
	__u32 abi_version;
	__u32 generation;		/* of rule set and configuration; its lowest bit says which of the two */
	__u32 running;
	__u32 since;			/* boot-clock second of the last enable or disable */
	__u32 states;			/* current */
	__u32 half_open;		/* TCP states whose maker is not established */
	__u64 next_state_id;
	__u32 states_used;		/* places of the states map ever used; freed ones wait in free_states */
	__u32 sweep_cursor;		/* where the next sweep goes on */
	__u32 first_enabled;		/* wall-clock second of the first enable: high half of state ids */
	__u32 capacity;			/* places in the states map */
	__u64 secret[2];		/* drawn by who makes the maps; what we choose for others hangs on it */
	__u32 translated;		/* states with two keys, current */
	__u32 sources;			/* current source nodes */
	__u32 sources_used;		/* places of the source_nodes map ever used */
	__u32 source_cursor;		/* where the next sweep of them goes on */
	__u32 source_capacity;		/* places in that map */
	__u32 table_entries;		/* in all tables of pf.conf, as far as userland knows, and overloaded ones */
	__u32 boot_time;		/* wall-clock second at second 0 of the boot clock */
	__u32 crossing;			/* states whose packets cross to the other family, current */
	__u32 limited_sources;		/* sources of limiters, current */
	__u32 leaving;			/* sources in the map of this name */
	struct pf_syncookies syncookies;
};

/* per CPU; one element */
struct pf_counters {
	__u64 reason[PF_REASON_MAX];
	__u64 state[PF_COUNT_MAX];
	__u64 limit[PF_LCOUNT_MAX];
	__u64 source[PF_SOURCE_COUNT_MAX];
	__u64 log_lost;			/* records that found the ring full */
	__u64 flow_lost;		/* reports of states that found their ring full */
	__u64 divert_lost;		/* packets for programs that did not come as far as skipstepd */
};

/* What tests drive instead of the kernel's clock and randomness; one element, zero in real life */
struct pf_test {
	__u32 enabled;
	__u32 now;			/* seconds */
	__u32 random;			/* what every draw with a bound returns */
	__u32 uid;			/* who owns the packet's socket; ~0 if there is none */
	__u32 gid;
	__u32 sequence;			/* initial sequence numbers */
	__u32 timestamp;		/* offsets of TCP timestamps */
	__u32 keeps_cookie_key;		/* the key of syncookies is this one for good: */
	__u64 cookie_key[2];
};

enum pf_decision {
	PF_DECISION_NONE = 0,		/* pf did not look: interface skipped, not IP, made by pf */
	PF_DECISION_DEFAULT = 1,	/* no rule matched, or dropped before rules were asked */
	PF_DECISION_RULE = 2,		/* a rule, or a state it made */
	PF_DECISION_ORPHAN = 3,		/* a state whose rule is gone since a reload */
};

/* What became of a packet, for tests and explain; first member of the per-CPU scratch value */
struct pf_outcome {
	__u64 state_id;			/* state used or made, ~0 for none */
	__s32 rule;			/* number of the deciding rule, -1 for the default rule */
	__s32 anchor_rule;		/* number of the anchor rule that led to it, -1 for none */
	__u32 anchor;			/* id of the anchor that the deciding rule is in */
	__u8 verdict;			/* pf_verdict */
	__u8 reason;			/* pf_reason: the one in the log */
	__u8 decision;			/* pf_decision */
	__u8 logged;			/* log records written */
	__u8 counted[PF_REASON_MAX];	/* how often the packet counted each reason */
	__u8 copies;			/* packets sent besides */
	__u16 rtable;			/* as pf_rule.rtable: of the packet that passed */
	__u32 ifindex;			/* the packet, or a copy of it, is routed: by this interface … */
	__u8 next_hop[16];		/* … to this neighbour */
	__u8 route;			/* pf_route_kind */
	__u8 divert;			/* pf_divert_kind: it goes to a socket or a program of this host */
	__be16 divert_port;		/* of the program */
	__u8 pad[4];
};

/* argument of the pf_kill program: remove this state, if it still is the one meant */
struct pf_kill {
	__u32 index;
	__u32 serial;
};

/* ---- log ----------------------------------------------------------------------------------- */

/* record of the log ring. skipstepd writes it to a pflog file in OpenBSD's layout */
struct pf_log_record {
	__u64 time;			/* boot clock, ns */
	char ifname[PF_IFNAMSIZ];
	__u8 source[16];
	__u8 destination[16];
	__be16 source_port;
	__be16 destination_port;
	__s32 rule;			/* number of the rule, -1 for the default rule */
	__s32 anchor_rule;		/* number of the anchor rule that led to it, -1 for none */
	__u32 anchor;			/* id of the anchor that was walked, 0 for none */
	__u32 uid;			/* owner of the socket if `log (user)` asks, else ~0 */
	__u8 family;
	__u8 action;			/* pf_action */
	__u8 reason;
	__u8 direction;
	__u8 log_to;
	__u8 rewritten;			/* source and destination are not those of data */
	__u16 caplen;			/* bytes in data */
	__u32 wirelen;
	__u8 data[PF_SNAPLEN];		/* from the IP header on */
};

/* ---- flows --------------------------------------------------------------------------------- */

/* record of the flow ring: a state with `pflow` that has ended. skipstepd reports it to collectors */
struct pf_flow_record {
	__u8 address[2][16];		/* of who made it, and of the other side, … */
	__u8 translated_address[2][16];	/* … and as the other side knows them */
	__be16 port[2];
	__be16 translated_port[2];
	__u32 ifindex_in;		/* as pf_state */
	__u32 ifindex_out;
	__u64 packets[2];		/* of who made it, of the other side */
	__u64 bytes[2];
	__u32 creation;			/* boot clock, seconds */
	__u32 last;			/* of the last packet */
	__u8 family;
	__u8 protocol;
	__u8 tos;			/* that its rule asks for */
	__u8 translated;		/* the other side knows other ends, in the same family */
	__u32 pad;
};

/* ---- fragments: what goes to skipstepd's device and comes back ------------------------------- */

/* value of the reassembler map, which skipstepd writes */
struct pf_reassembler {
	__u32 ifindex;			/* of its device, 0 if there never was one */
	__u32 pieces;			/* fragments it holds */
	__u64 searches;
	__u64 inserts;
	__u64 removals;
};

enum pf_handoff_order {
	PF_HANDOFF_FRAGMENT = 1,		/* to the daemon: put it to the others of its datagram */
	PF_HANDOFF_WHOLE = 2,		/* back: the datagram, to be filtered where its fragments were */
	PF_HANDOFF_REFUSED = 3,		/* back: the fragment, to be dropped */
	PF_HANDOFF_REFRAGMENT = 4,	/* to the daemon: make fragments of it */
	PF_HANDOFF_SEND = 5,		/* back: one of those */
};

#define PF_HANDOFF_MAGIC		0x70666672u
#define PF_HANDOFF_NO_REASON	255

/* stands behind the frame, link header and all, as its last bytes */
struct pf_handoff {
	__u32 magic;
	__u32 ifindex;			/* where the packet was */
	__u32 received;			/* outbound: where it had come in, 0 if it was made here */
	__u32 mark;
	__u32 priority;			/* skb->priority: of the way out, with the queue */
	__u16 largest;			/* bytes of data in the longest fragment, 0 if nobody knows */
	__u8 order;			/* pf_handoff_order */
	__u8 direction;			/* pf_direction */
	__u8 reason;			/* PF_HANDOFF_REFUSED: pf_reason, or PF_HANDOFF_NO_REASON */
	__u8 link_header;		/* bytes in front of the IP header; 0: a made-up Ethernet header is */
	__u8 pad[2];
	__u32 rdomain;			/* of the interface */
};

/* ---- diverted packets: what goes to skipstepd's other device, for programs, and comes back ---- */

/* value of the diverter map, which skipstepd writes */
struct pf_diverter {
	__u32 ifindex;			/* of its device, 0 if there never was one */
	__u32 pad;
	__u64 delivered;		/* packets that programs got … */
	__u64 returned;			/* … and that they wrote */
	__u64 no_program;		/* dropped, because no program is at the port … */
	__u64 full;			/* … or because it does not keep up */
	__u64 malformed;		/* what programs wrote and is no packet */
};

#define PF_DIVERTED_MAGIC		0x70666469u

/* stands in front of the frame on the way to the daemon, where each segment of a long packet gets it,
 * and behind the Ethernet header on the way back, where a program can cut it out */
struct pf_diverted {
	__u32 magic;
	__u32 ifindex;			/* where the packet was */
	__u32 mark;			/* the user's half of it */
	__be16 port;			/* of the program */
	__u8 direction;			/* pf_direction */
	__u8 link_header;		/* bytes between this and the IP header, 0 or an Ethernet header's */
	__be16 vlan_protocol;		/* of the tag that the packet has besides, 0 for none */
	__u16 vlan_tag;
};

/* ---- marks: what skb->mark carries between the hooks. The lower half is the user's --------- */

#define PF_MARK_MASK		0xffff0000u
#define PF_MARK_GENERATED	0x80000000u	/* made by the firewall: not filtered */
#define PF_MARK_PRIO_SHIFT	28		/* 3 bits: priority xor 3, so that no mark is the default */
#define PF_MARK_PRIO_MASK	0x70000000u
#define PF_MARK_REASSEMBLED	0x08000000u	/* a datagram that came in fragments */
#define PF_MARK_TAG_SHIFT	16		/* 11 bits */
#define PF_MARK_TAG_MASK	0x07ff0000u
#define PF_DEFAULT_PRIO		3
#define PF_MARK_DIVERTED	0x80030000u	/* the kernel delivers it here, by a policy rule … */
#define PF_MARK_DIVERTED_MASK	0x87ff0000u	/* … that looks at these bits … */
#define PF_DIVERT_TABLE		28774		/* … and leads to this routing table */
#define PF_MAX_TAG		2047

/* ---- queues: skb->priority names a class of the interface's HTB qdisc; its minor number is the
 * queue's. skb->tc_index carries that number past the forwarding code, which sets the priority --- */

#define PF_QUEUE_MAJOR		0x7066		/* "pf", of the qdisc's handle */

/* ---- names of the maps --------------------------------------------------------------------- *
 * rulesets         array of 2 maps   generation & 1 -> array of struct pf_rule
 * configs          array of 2        generation & 1 -> struct pf_config
 * status           array of 1        struct pf_status
 * counters         per-CPU array     struct pf_counters
 * rule_stats       per-CPU array     slot -> struct pf_rule_stats
 * rule_states      array             slot -> struct pf_rule_states
 * tables           array             slot -> struct pf_table
 * table_entries    LPM trie          struct pf_table_key -> struct pf_table_entry
 * table_stats      per-CPU array     slot -> struct pf_table_stats
 * entry_stats      hash              struct pf_table_key -> struct pf_entry_stats
 * pools            hash              struct pf_pool_key -> struct pf_pool
 * pool_blocks      hash              struct pf_pool_block_key -> struct pf_pool_block
 * pool_loads       hash              struct pf_pool_load_key -> __u32
 * interfaces       hash              ifindex -> struct pf_interface
 * interface_stats  per-CPU array     interface id -> struct pf_interface_stats
 * state_keys       hash              struct pf_state_key -> struct pf_state_ref
 * states           array             index -> struct pf_state
 * free_states      stack             index of a freed place
 * reassembler      array of 1        struct pf_reassembler
 * diverter         array of 1        struct pf_diverter
 * source_keys      hash              struct pf_source_key -> index
 * source_nodes     array             index -> struct pf_source_node
 * free_sources     stack             index of a freed place
 * fingerprints     array             generation & 1, order -> struct pf_fingerprint
 * limiters         array             generation & 1, kind, number -> struct pf_limiter
 * limiter_uses     array             kind, number -> struct pf_limiter_use
 * limited_sources  hash              struct pf_limited_key -> struct pf_limited_source
 * leaving          queue             struct pf_leaving
 * log_ring         ring buffer       struct pf_log_record
 * flow_ring        ring buffer       struct pf_flow_record
 * sweeper          array of 1        the bpf_timer that expires states
 * scratch          per-CPU array     struct pf_outcome, then what the data plane keeps to itself
 * test             array of 1        struct pf_test
 */

#endif /* SKIPSTEP_ABI_H */
