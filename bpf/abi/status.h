/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/* Of the ABI: settings, counters, and what a test says and learns. */
#ifndef SKIPSTEP_ABI_STATUS_H
#define SKIPSTEP_ABI_STATUS_H

/* ---- configuration, one for each of the two generations ------------------------------------ */

enum pf_reassemble {			/* none of them: fragments are matched one by one */
	PF_REASSEMBLE_YES = 1 << 0,	/* needs skipstepd: without it fragments are dropped */
	PF_REASSEMBLE_NO_DF = 1 << 1,	/* `no-df`: fragments with DF are not bad, DF is cleared */
	PF_REASSEMBLE_BY_RULE = 1 << 2,	/* but not those that a `scrub` rule wants left alone */
};

enum pf_syncookie_mode {
	PF_SYNCOOKIES_NEVER = 0,
	PF_SYNCOOKIES_ALWAYS,
	PF_SYNCOOKIES_ADAPTIVE,
};

enum pf_fast_forward {
	PF_FAST_FORWARD_NO = 0,		/* every packet goes the long way */
	PF_FAST_FORWARD_AUTO,		/* the short way, past the kernel's where that has nothing more to do */
	PF_FAST_FORWARD_YES,		/* past netfilter too */
};

enum pf_unattached {			/* packets of devices that pf is not attached to */
	PF_UNATTACHED_BLOCK = 0,
	PF_UNATTACHED_PASS,
};

struct pf_config {
	__u32 rules;			/* how many there are in the main rule set, with which a walk begins */
	__u32 steps;			/* most rules to look at for one packet */
	__u32 evaluator;		/* pf_evaluator */
	__u32 limit_states;
	__u32 reassemble;		/* pf_reassemble */
	__u32 loginterface;		/* interface id, 0 for none */
	__u32 hostid;
	__u32 limit_src_nodes;
	__u32 limit_table_entries;
	__u32 syncookies;		/* pf_syncookie_mode */
	__u32 syncookies_start;		/* adaptive: with more half-open states than these … */
	__u32 syncookies_end;		/* … until there are fewer than these */
	__u32 default_rule;		/* index of what decides if no rule does */
	struct pf_stretch old[PF_OLD_LISTS];	/* those of the main rule set */
	__u32 timeouts[PF_TIMEOUT_MAX];
	__u32 fingerprints;		/* how many there are */
	__u32 sctp_ports;		/* some rule names ports of SCTP: read them */
	__u32 fast_forward;		/* pf_fast_forward */
	__u32 plain;			/* plain.h may ask the rules */
	__u32 segment;			/* of the first rule of the main rule set */
	__u32 unattached;		/* pf_unattached */
	__u32 longest_walk;		/* rules that a packet may be tested against; for pfctl */
	__u64 unknown_systems;		/* as pf_fingerprint.systems, if none fits */
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
	__u32 bound;			/* states bound to an interface, current: they come before floating ones */
	__u32 sweeps;			/* begun so far */
	__u32 second;			/* of the boot clock, as the timer keeps it */
	__u32 stamp;			/* secret of the stamps of judged packets */
	__u64 beat;			/* jiffy in which `second` was noted */
	__u64 second_until;		/* jiffy from which `second` is too old to be believed */
	struct pf_syncookies syncookies;
	__u32 ingress_id;		/* number of pf_ingress in the kernel */
	__u32 egress_id;
	__u64 egress_address;		/* of pf_egress, once the guard has seen it; 0 before */
	__u32 guard_id;			/* 0 where the kernel has no such programs */
	__u32 timer_errors;		/* failed starts of the timer that sweeps */
	__u32 timer_error;		/* the latest of these, an errno */
	__u32 timer_tried;		/* second of the last attempt by a packet */
	__u32 flushing;			/* entries of the flushes map */
	__u32 flush_kinds;		/* which kinds they are of: flush.h */
	__u32 flush_number;		/* of the next one */
	__u32 limited_turns;		/* entries of the queue of this name, or about to be */
	__u32 limited_capacity;		/* places in that queue */
	__u32 pad;
};

enum pf_forwarded {		/* who sent packets on past the kernel's forwarding */
	PF_FORWARDED_TC = 0,
	PF_FORWARDED_XDP,
	PF_FORWARDED_MAX,
};

enum pf_left_to {		/* for whom packets that could go past the kernel's forwarding go by it */
	PF_LEFT_TO_UPPER = 0,	/* a device on top of the one they came in by: bridge, bond, macvlan */
	PF_LEFT_TO_PROGRAM,	/* of somebody else, on tcx */
	PF_LEFT_TO_IPSEC,
	PF_LEFT_TO_NETFILTER,
	PF_LEFT_TO_MAX,
	PF_LEFT_TO_NOBODY = PF_LEFT_TO_MAX,
};

/* per CPU; one element */
struct pf_counters {
	__u64 reason[PF_REASON_MAX];
	__u64 state[PF_COUNT_MAX];
	__u64 limit[PF_LCOUNT_MAX];
	__u64 source[PF_SOURCE_COUNT_MAX];
	__u64 log_lost;			/* records that found the ring full */
	__u64 flow_lost;		/* reports of states that found their ring full */
	__u64 forwarded[PF_FORWARDED_MAX];
	__u64 left_to[PF_LEFT_TO_MAX];
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
	__u32 longest_fragment;		/* of the datagram in hand, 0 if it came whole */
	__u32 pad;
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
	__u8 copies;			/* packets sent besides */
	__u8 next_hop_family;
	__u16 rtable;			/* as pf_rule.rtable: of the packet that passed */
	__u32 ifindex;			/* the packet, or a copy of it, is routed: by this interface … */
	__u8 next_hop[16];		/* … to this neighbour */
	__u32 fragment_length;		/* in fragments of at most so many bytes, if it has crossed
					 * to the other family; 0: whole */
	__u8 route;			/* pf_route_kind */
	__u8 divert;			/* pf_divert_kind: it goes to a socket or a program of this host */
	__be16 divert_port;		/* of the program */
	__u8 counted[PF_REASON_MAX];	/* how often the packet counted each reason */
	__u8 pad[5];
};

/* argument of the pf_kill program: remove this state, if it still is the one meant */
struct pf_kill {
	__u32 index;
	__u32 serial;
};

#endif /* SKIPSTEP_ABI_STATUS_H */
