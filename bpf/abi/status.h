/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/* Part of the ABI: settings, counters, and inputs and results of tests. */
#ifndef SKIPSTEP_ABI_STATUS_H
#define SKIPSTEP_ABI_STATUS_H

/* ---- generations ---------------------------------------------------------------------------- */

/* The maps have room for several rule sets with their settings, because packets read one while
 * another is written. The lowest bits of the number of a generation select its copy. */
#define PF_COPIES		4	/* a power of two */
#define pf_copy(generation)	((generation) & (PF_COPIES - 1))

/* ---- configuration, one for each copy ------------------------------------------------------- */

enum pf_reassemble {			/* without a bit, each fragment is filtered alone */
	PF_REASSEMBLE_YES = 1 << 0,	/* needs skipstepd: without it fragments are dropped */
	/* `no-df`: fragments with DF are accepted, and DF is cleared */
	PF_REASSEMBLE_NO_DF = 1 << 1,
	/* exempts fragments that match a `scrub` rule with `fragment no reassemble` */
	PF_REASSEMBLE_BY_RULE = 1 << 2,
};

enum pf_syncookie_mode {
	PF_SYNCOOKIES_NEVER = 0,
	PF_SYNCOOKIES_ALWAYS,
	PF_SYNCOOKIES_ADAPTIVE,
};

enum pf_fast_forward {
	PF_FAST_FORWARD_NO = 0,		/* all packets take the slow path */
	/* fast path; forwards packets that the kernel would only forward */
	PF_FAST_FORWARD_AUTO,
	PF_FAST_FORWARD_YES,		/* the same, and it bypasses netfilter's rules, too */
};

enum pf_unattached {			/* packets of devices that pf is not attached to */
	PF_UNATTACHED_BLOCK = 0,
	PF_UNATTACHED_PASS,
};

struct pf_config {
	/* number of rules in the main rule set, where an evaluation begins */
	__u32 rules;
	__u32 steps;			/* maximum number of rules evaluated for one packet */
	__u32 evaluator;		/* pf_evaluator */
	__u32 limit_states;
	__u32 reassemble;		/* pf_reassemble */
	__u32 loginterface;		/* interface id, 0 for none */
	__u32 hostid;
	__u32 limit_src_nodes;
	__u32 limit_table_entries;
	__u32 syncookies;		/* pf_syncookie_mode */
	/* adaptive: half-open states above which cookies are sent */
	__u32 syncookies_start;
	__u32 syncookies_end;		/* adaptive: half-open states below which they end */
	__u32 default_rule;		/* index of the rule that decides if no other rule does */
	struct pf_rule_range old[PF_OLD_LISTS];	/* legacy rules of the main rule set */
	__u32 timeouts[PF_TIMEOUT_MAX];
	__u32 fingerprints;		/* number of fingerprints */
	__u32 sctp_ports;		/* 1 if a rule has ports of SCTP: read them */
	__u32 fast_forward;		/* pf_fast_forward */
	__u32 fast_path;		/* 1 if plain.h may evaluate the rules */
	__u32 superblock;			/* pf_rule.superblock of the first rule of the main rule set */
	__u32 unattached;		/* pf_unattached */
	/* most rules that one packet may be evaluated against; for pfctl */
	__u32 longest_walk;
	/* pf_fingerprint.systems for packets that no fingerprint matches */
	__u64 unknown_systems;
};

/* ---- status -------------------------------------------------------------------------------- */

enum pf_cookies_active {
	PF_COOKIES_OFF = 0,
	PF_COOKIES_ON,
	PF_COOKIES_BEGIN,		/* a CPU is making the first key */
};

struct pf_syncookies {
	__u64 key[2][2];
	__u32 in_flight[2];		/* cookies sent with each key that did not come back */
	__u32 keys_made;		/* the lowest bit is the index of the key in use */
	__u32 next_key_at;		/* second at which the key ends; 0: no key */
	__u32 active;			/* pf_cookies_active */
	__u32 pad;
};

/* Shared by all CPUs; one element. */
struct pf_status {
	__u32 abi_version;
	/* of rules and settings in force; its lowest bits select the copy (pf_copy) */
	__u32 generation;
	__u32 running;
	__u32 since;			/* boot-clock second of the last enable or disable */
	__u32 states;			/* now */
	__u32 half_open;		/* TCP states whose maker is not established */
	__u64 next_state_id;
	/* indexes of the states map ever used; freed ones are in free_states */
	__u32 states_used;
	__u32 sweep_cursor;		/* index where the next sweep continues */
	/* wall-clock second of the first enable: upper half of state ids */
	__u32 first_enabled;
	__u32 capacity;			/* entries of the states map */
	/* random, drawn with the maps; ports and sequence numbers derive from it */
	__u64 secret[2];
	__u32 translated;		/* states with two keys now */
	__u32 sources;			/* source nodes now */
	__u32 sources_used;		/* indexes of the source_nodes map ever used */
	__u32 source_cursor;		/* index where the next sweep of source nodes continues */
	__u32 source_capacity;		/* entries of the source_nodes map */
	/* in all tables of pf.conf, as far as userland knows, and added by overload */
	__u32 table_entries;
	__u32 boot_time;		/* wall-clock second at second 0 of the boot clock */
	__u32 crossing;			/* states that cross to the other family now */
	__u32 limited_sources;		/* sources of limiters now */
	__u32 leaving;			/* entries of the leaving queue */
	/* if-bound states now; they are looked up before floating ones */
	__u32 bound;
	__u32 sweeps;			/* number of sweeps begun */
	/* second of the boot clock, as the sweep's timer keeps it */
	__u32 second;
	__u32 stamp;			/* secret of the stamps of judged packets */
	__u64 beat;			/* jiffy in which `second` was noted */
	__u64 second_until;		/* jiffy from which `second` is too old to use */
	struct pf_syncookies syncookies;
	__u32 ingress_id;		/* kernel id of the program pf_ingress */
	__u32 egress_id;
	/* kernel address of pf_egress, 0 until the guard has seen it */
	__u64 egress_address;
	__u32 guard_id;			/* of pf_guard; 0 if the kernel lacks such programs */
	__u32 timer_errors;		/* failed starts of the sweep's timer */
	__u32 timer_error;		/* errno of the last failed start */
	__u32 timer_tried;		/* second of the last attempt by a packet */
	__u32 flushing;			/* entries of the flushes map */
	__u32 flush_kinds;		/* bits of the kinds of these entries: flush.h */
	__u32 flush_number;		/* of the next flush */
	/* entries of the limited_turns queue, and those about to be added */
	__u32 limited_turns;
	__u32 limited_capacity;		/* maximum number of entries of that queue */
	/* the rules in force are on trial until this second of the boot clock; 0: they are not */
	__u32 confirm_by;
	__u32 back;			/* generation that is in force after a trial that failed */
	__u32 back_running;		/* value of `running` after a trial that failed */
	/* 1: a trial has failed, and states of its rules may be left */
	__u32 ending;
	/* 1: states of rules that only the load on trial has end if the trial fails */
	__u32 ends_states;
	__u32 drop_readers;		/* bit mask of programs that read dropped packets */
	/* those of them that have read since the timer last looked at this word */
	__u32 drop_readers_alive;
};

enum pf_forwarded {		/* hooks of the fast path */
	PF_FORWARDED_TC = 0,
	PF_FORWARDED_XDP,
	PF_FORWARDED_MAX,
};

enum pf_left_to {		/* fast-path bypass reasons */
	PF_LEFT_TO_UPPER = 0,	/* a device on top of the ingress device: bridge, bond, macvlan */
	PF_LEFT_TO_PROGRAM,	/* on tcx, not part of the filter */
	PF_LEFT_TO_IPSEC,
	PF_LEFT_TO_NETFILTER,
	PF_LEFT_TO_MAX,
	PF_LEFT_TO_NOBODY = PF_LEFT_TO_MAX,
};

/* Per CPU; one element. */
struct pf_counters {
	__u64 reason[PF_REASON_MAX];
	__u64 state[PF_COUNT_MAX];
	__u64 limit[PF_LCOUNT_MAX];
	__u64 source[PF_SOURCE_COUNT_MAX];
	__u64 log_lost;			/* records lost because the ring was full */
	__u64 flow_lost;		/* reports of states lost because the ring was full */
	__u64 forwarded[PF_FORWARDED_MAX];
	__u64 left_to[PF_LEFT_TO_MAX];
	__u64 divert_lost;		/* diverted packets that did not reach skipstepd */
	/* records of dropped packets lost because the ring of a reader was full, by reader */
	__u64 drops_lost[PF_DROP_READERS];
	/* dropped packets without a record, because there were too many in a second */
	__u64 drops_unreported;
};

/* Clock and random numbers of a test, in place of the kernel's; one element, zero outside of
 * tests. */
struct pf_test {
	__u32 enabled;
	__u32 now;			/* seconds */
	__u32 random;			/* result of each bounded random number */
	__u32 uid;			/* owner of the packet's socket; ~0 without a socket */
	__u32 gid;
	__u32 sequence;			/* initial sequence numbers */
	__u32 timestamp;		/* offsets of TCP timestamps */
	/* 1: cookie_key is the key of syncookies and never changes */
	__u32 keeps_cookie_key;
	__u64 cookie_key[2];
	__u32 longest_fragment;		/* of the datagram under test, 0 for an unfragmented one */
	__u32 pad;
};

enum pf_decision {
	/* the packet was not judged: skipped interface, not IP, or made by pf */
	PF_DECISION_NONE = 0,
	/* no rule matched, or the packet was dropped before rule evaluation */
	PF_DECISION_DEFAULT = 1,
	PF_DECISION_RULE = 2,		/* a rule, or a state that a rule created */
	PF_DECISION_ORPHAN = 3,		/* a state whose rule a reload has removed */
};

/* The result for a packet, for tests and explain; first member of the per-CPU scratch value. */
struct pf_outcome {
	__u64 state_id;			/* state that was found or created, ~0 for none */
	__s32 rule;			/* number of the deciding rule, -1 for the default rule */
	__s32 anchor_rule;		/* number of the anchor rule that called it, -1 for none */
	__u32 anchor;			/* id of the deciding rule's anchor */
	__u8 verdict;			/* pf_verdict */
	__u8 reason;			/* pf_reason in the log */
	__u8 decision;			/* pf_decision */
	__u8 logged;			/* log records written */
	__u8 copies;			/* additional packets sent */
	__u8 next_hop_family;
	__u16 rtable;			/* as pf_rule.rtable, of a packet that passed */
	__u32 ifindex;			/* interface where the packet, or its copy, is routed */
	__u8 next_hop[16];		/* next hop of the packet, or of its copy */
	/* maximum fragment length in bytes after a change of family; 0: not fragmented */
	__u32 fragment_length;
	__u8 route;			/* pf_route_kind */
	/* pf_divert_kind: the packet goes to a socket or a program of this host */
	__u8 divert;
	__be16 divert_port;		/* of the program */
	__u8 counted[PF_REASON_MAX];	/* increments of each reason's counter by this packet */
	__u8 pad[5];
};

/* Argument of the pf_kill program, which removes the state with this index and serial. */
struct pf_kill {
	__u32 index;
	__u32 serial;
};

#endif /* SKIPSTEP_ABI_STATUS_H */
