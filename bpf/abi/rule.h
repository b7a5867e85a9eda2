/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/* Part of the ABI: interfaces, rules and fingerprints. */
#ifndef SKIPSTEP_ABI_RULE_H
#define SKIPSTEP_ABI_RULE_H

/* ---- interfaces ---------------------------------------------------------------------------- */

enum pf_interface_match {
	PF_IFMATCH_NONE = 0,	/* the rule has no `on` */
	PF_IFMATCH_NAME = 1,	/* id is that of an interface name */
	PF_IFMATCH_GROUP = 2,	/* id is a bit of pf_interface.groups */
	PF_IFMATCH_ANY = 3,	/* `on any`: all interfaces but loopback */
	PF_IFMATCH_RDOMAIN = 4,	/* `on rdomain`: id is the number of the routing domain */
};

enum pf_interface_flags {
	PF_INTERFACE_LOOPBACK = 1 << 0,
	/* frames begin with the IP header; for userland, the data plane reads the kernel's
	 * device */
	PF_INTERFACE_NO_LINK = 1 << 1,
	PF_INTERFACE_PORT = 1 << 2,	/* of a bridge, ours or the kernel's */
	/* `set skip on` in copy 0; the bits of the other copies follow */
	PF_INTERFACE_SKIP = 1 << 3,
};

/* Value of the interfaces map, whose key is the ifindex. An interface without an entry is not yet
 * known: only rules without `on`, or with `on any`, match its packets. */
struct pf_interface {
	/* number of the interface, which never changes; 0 is no interface */
	__u32 id;
	__u32 flags;			/* pf_interface_flags */
	__u64 groups;			/* one bit per group */
	char name[PF_IFNAMSIZ];
	__u32 rdomain;			/* table of the interface's VRF, 0 without a VRF */
	__u32 pad;
	__be32 link_address[4];		/* link-local IPv6 address of the interface; 0: none */
};

/* Two copies of an interface: packets read one while the other is written. */
struct pf_near_interface {
	/* number of the valid copy, 1 or 2; 0: the interface is not known */
	__u32 known;
	__u32 pad;
	struct pf_interface one[2];
};

/* Per CPU, indexed by pf_interface.id: [inet, inet6][in, out][pass, block]. */
struct pf_interface_stats {
	__u64 packets[2][2][2];
	__u64 bytes[2][2][2];
};

/* ---- rules --------------------------------------------------------------------------------- */

/* Skip steps: rule r and the rules before r.skip[k] have the same parameter k. */
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
	/* an interface without such an address: matches no packet, negated or not */
	PF_ADDRESS_NEVER = 6,
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

/* owner of a socket; ids in host order, ~0 is a packet without a socket */
struct pf_owner {
	__u32 low;
	__u32 high;
	__u8 op;			/* pf_port_op */
	__u8 pad[3];
};

enum pf_rule_flags {
	PF_RULE_QUICK = 1 << 0,		/* `nat pass` and its like have it, too */
	PF_RULE_LOG = 1 << 1,
	PF_RULE_LOG_ALL = 1 << 2,
	PF_RULE_LOG_MATCHES = 1 << 3,
	PF_RULE_FRAGMENT = 1 << 4,	/* matches fragments only */
	PF_RULE_ALLOW_OPTS = 1 << 5,
	PF_RULE_KEEP_STATE = 1 << 6,
	PF_RULE_IF_BOUND = 1 << 7,
	PF_RULE_SLOPPY = 1 << 8,
	PF_RULE_NO_SYNC = 1 << 9,
	/* block return: RST for TCP, ICMP error for other packets */
	PF_RULE_RETURN = 1 << 10,
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
	/* calls other rules; `quick` ends the evaluation if they decided */
	PF_RULE_ANCHOR = 1 << 26,
	PF_RULE_ONCE = 1 << 27,		/* matches a single packet: see pf_rule_states */
	/* does not match packets above a rate: see pf_rule_states */
	PF_RULE_MAX_PKT_RATE = 1 << 28,
	PF_RULE_MODULATE = 1 << 29,	/* modulate state */
	PF_RULE_REASSEMBLE_TCP = 1 << 30, /* scrub (reassemble tcp) */
	PF_RULE_SYNPROXY = 1u << 31,	/* synproxy state */
};

/* The parts of a rule that plain.h can evaluate, from header fields only. */
enum pf_fast_path {
	PF_FAST_PATH_TEST = 1 << 0,		/* the criteria are header fields and interfaces */
	/* passes the packet unchanged, or drops it without an answer, and counts it */
	PF_FAST_PATH_VERDICT = 1 << 1,
	/* passes the packet unchanged, and creates a state without side effects */
	PF_FAST_PATH_STATE = 1 << 2,
};

struct pf_rule {
	/* per parameter, index of the next rule that differs; number of rules at the end */
	__u32 skip[PF_SKIP_MAX];
	__u32 flags;			/* pf_rule_flags */

	/* criteria */
	__u32 interface;		/* interface id or group bit */
	__u32 received_on;
	__u8 interface_match;		/* pf_interface_match */
	__u8 received_match;
	__u8 direction;			/* pf_direction */
	__u8 family;			/* 0 (both), 2 (AF_INET) or 10 (AF_INET6) */
	__u8 protocol;			/* 0 is any */
	__u8 tcp_flags;			/* flags that must be set, of those in tcp_mask */
	__u8 tcp_mask;			/* 0: no criterion */
	__u8 icmp_type;
	__u8 icmp_code;
	__u8 tos;
	__u8 prio;
	__u8 action;			/* pf_action */
	__u16 tag;			/* 0: none */
	__u16 tagged;			/* 0: no criterion */
	__u32 probability;		/* in units of 1 / (2^32 - 1) */
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
	__u8 set_prio[2];		/* ordinary packets; lowdelay and empty ACKs */
	__u8 min_ttl;
	__u8 log_to;			/* n of pflogN */
	__u16 max_mss;
	__u16 max_pkt_size;		/* longer packets are dropped; 0: no limit */
	/* bits 1 << pf_purpose of its pools: see struct pf_pool_key */
	__u8 pools;
	__u8 route;			/* pf_route_kind */
	/* ordinary packets; lowdelay and empty ACKs; 0: no change */
	__u16 queue[2];
	__u32 slot;			/* index in rule_stats and rule_states */
	__u32 number;			/* position in its rule set */
	__u32 anchor;			/* id of its anchor, 0 for the main rule set */
	__u32 call_first;		/* PF_RULE_ANCHOR: index of the first called rule */
	__u32 call_end;			/* PF_RULE_ANCHOR: index of the last called rule plus 1 */
	__u16 rtable;			/* number of the routing table plus 1; 0: no change */
	__u8 cross_to;			/* af-to: new family of the packets, else 0 */
	/* bit of the `os` name in pf_fingerprint.systems plus 1; 0: no criterion */
	__u8 os;
	/* numbers by pf_limiter_kind, with PF_LIMITER_NO_MATCH; 0: none */
	__u16 limiter[2];
	__u32 set_end;			/* index of the last rule of its rule set plus 1 */
	/* node of the superblock's trees: in its first rule, or in all its rules if each matching
	 * rule takes effect; else 0 */
	__u32 superblock;
	__u16 delay;			/* ms until the packets may leave; 0: no change */
	__u8 leave_fragments;		/* legacy `scrub` rule: `fragment no reassemble` */
	__u8 fast_path;		/* pf_fast_path */
};

/* Lists of legacy rules, evaluated before the filter rules. `binat` makes two rules, for packets
 * that leave and that arrive. A rule in both lists differs in its criteria only. */
enum pf_old_list {
	PF_OLD_NAT = 0,
	PF_OLD_RDR,
	PF_OLD_BINAT_OUT,
	PF_OLD_BINAT_IN,
	PF_OLD_SCRUB,
	PF_OLD_LISTS,
};

struct pf_rule_range {			/* a range of the array of rules */
	__u32 first;
	__u32 end;			/* index of the last rule plus 1 */
};

/* Per CPU, indexed by slot. */
struct pf_rule_stats {
	__u64 evaluations;
	__u64 packets[2];		/* in, out */
	__u64 bytes[2];
};

/* A table that a rule compares an address with; its counters rise with the rule's. */
struct pf_rule_table {
	__u32 slot;
	__u8 used;
	__u8 negated;
	__u8 pad[2];
	__u32 trial_slot;		/* in pf_rule_states.trial_generation */
};

enum pf_source_flags {			/* the options of source-track */
	PF_SOURCE_TRACK = 1 << 0,
	PF_SOURCE_OVERLOAD = 1 << 1,	/* a source with too many connections is added to a table */
	PF_SOURCE_FLUSH = 1 << 2,	/* and its states of this rule end */
	PF_SOURCE_FLUSH_GLOBAL = 1 << 3,	/* and its states of all rules end */
};

/* Shared by all CPUs, indexed by slot. Lives until the last state of the rule has ended. */
struct pf_rule_states {
	__u64 total;			/* states ever created */
	__u64 pkt_rate;			/* rate of matching packets, in the format of rate.h */
	__u32 current;			/* states now */
	__u32 max;			/* keep state (max n); 0: no limit */
	__s32 number;			/* of the rule; -1 since its rule set was replaced */
	__u32 timeouts[PF_TIMEOUT_MAX];	/* 0: the global value */
	struct pf_rule_table tables[2];	/* source, destination */
	__u32 anchor;			/* id of the rule's anchor */
	__u32 expired;			/* `once`: 1 if it has matched its packet */
	__u32 max_packets;		/* max-pkt-rate: packets in max_packets_seconds */
	__u32 max_packets_seconds;
	__u32 source_flags;		/* pf_source_flags */
	__u32 source_nodes;		/* nodes now, of all kinds */
	__u32 max_src_nodes;		/* 0 is no limit, as in the next three fields */
	__u32 max_src_states;
	__u32 max_src_conn;
	__u32 max_src_conn_rate;	/* connections in max_src_conn_seconds */
	__u32 max_src_conn_seconds;
	__u32 overload_table;		/* slot */
	__u8 divert;			/* pf_divert_kind */
	__u8 pflow;			/* its states are reported when they end */
	__be16 divert_port;		/* port of `divert-to` or `divert-packet` */
	__u8 divert_address[16];
	__u32 flow_tos;			/* `tos` criterion of the rule, for the report */
	__u32 old;			/* pf_action of a legacy rule, else 0 */
	__u32 trial;			/* 1: only the load on trial has the rule */
	/* Of a rule that a trial keeps: the generation on trial, and the values for it. The other
	 * values are for the rule set before the trial, which comes back by a single store. */
	__u32 trial_generation;
	__s32 trial_number;
	__u32 trial_overload;
};

enum pf_divert_kind {
	PF_DIVERT_NO = 0,
	PF_DIVERT_TO = 1,
	PF_DIVERT_REPLY = 2,
	PF_DIVERT_PACKET = 3,
};

/* ---- fingerprints of systems' SYNs, by copy and order ---------------------------------------- */

enum pf_measure {
	PF_MEASURE_ANY = 0,
	PF_MEASURE_EXACTLY,
	PF_MEASURE_MULTIPLE,
	PF_MEASURE_SEGMENTS,		/* window only: multiple of the MSS */
	PF_MEASURE_PACKETS,		/* window only: multiple of the MTU */
};

enum pf_syn_flags {
	PF_SYN_DF = 1 << 0,		/* always set for IPv6 */
	PF_SYN_ZERO_TIMESTAMP = 1 << 1,
};

struct pf_fingerprint {
	/* bits of the `os` names in rules that match these systems */
	__u64 systems;
	/* kinds of TCP options, 3 bits each, the first one highest */
	__u64 options;
	__u16 window;
	__u16 size;			/* bytes of the IP packet */
	__u16 mss;
	__u8 scale;
	__u8 ttl;
	__u8 option_count;
	__u8 flags;			/* pf_syn_flags */
	__u8 window_kind;		/* pf_measure, as in the next three fields */
	__u8 size_kind;
	__u8 mss_kind;
	__u8 scale_kind;
	__u8 pad[2];
};

#endif /* SKIPSTEP_ABI_RULE_H */
