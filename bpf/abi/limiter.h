/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/* Part of the ABI: state limiters and source limiters. */
#ifndef SKIPSTEP_ABI_LIMITER_H
#define SKIPSTEP_ABI_LIMITER_H

/* ---- limiters: limits that several rules share ------------------------------------------- */

enum pf_limiter_kind {
	PF_LIMITER_STATE = 0,
	PF_LIMITER_SOURCE = 1,
	PF_LIMITER_KINDS,
};

/* Flag of pf_rule.limiter: beyond the limit the rule does not match. Without it the packet is
 * dropped. */
#define PF_LIMITER_NO_MATCH	0x100

/* The settings of a limiter, by copy, kind and number. Times are in nanoseconds. */
struct pf_limiter {
	__u64 token;			/* rate: time until one more state is allowed */
	__u64 bucket;			/* rate: time whose states can be saved up; 0: no rate */
	__u32 limit;			/* states; 0: the limiter does not exist */
	/* maximum sources; this field and the next ones are of source limiters */
	__u32 entries;
	__u32 table;			/* slot of the table for busy sources */
	/* states with which a source enters the table; 0: no table */
	__u32 above;
	__u32 below;			/* states below which a source leaves the table */
	__u8 inet_mask;			/* prefix lengths */
	__u8 inet6_mask;
	__u8 pad[2];
};

/* The counters of a limiter, by kind and number; shared by all CPUs. */
struct pf_limiter_use {
	/* state limiter: signed time since which tokens have been saved up */
	__u64 saved_since;
	__u64 admitted;			/* states created */
	__u64 hard_limited;		/* packets refused by limit */
	__u64 rate_limited;		/* packets refused by rate */
	__u64 sources_made;
	__u64 sources_limited;		/* packets refused by entries */
	__u64 sources_lost;		/* packets refused because memory was short */
	/* rises when the limiter is removed: references of states become void */
	__u32 serial;
	__u32 states;			/* states now */
	__u32 sources;
	__u32 last_source;		/* serial of the newest source */
};

/* A source of a source limiter: key of limited_sources. */
struct pf_limited_key {
	__u32 serial;			/* pf_limiter_use.serial */
	__u8 id;
	__u8 family;
	__u8 pad[2];
	__u32 rdomain;			/* of the interface where the source's packets come in */
	__u8 address[16];		/* under the limiter's mask */
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
	__u32 stays_until;		/* second until which it is kept without states */
	__u8 in_table;
	__u8 gone;			/* it is being removed: no state may take a reference */
	__u8 pad[2];
	/* references to an earlier source of the same key are void */
	__u32 serial;
	__u32 pad2;
};

/* A source in the queue of the sweep. */
struct pf_limited_turn {
	struct pf_limited_key key;
	__u32 source;			/* pf_limited_source.serial */
};

/* A source that must leave its limiter's table. pfctl's programs and the timer cannot change
 * tables, so the next packet that is evaluated against rules removes it. */
struct pf_leaving {
	struct pf_limited_key key;
	__u32 table;			/* slot */
	__u32 prefix;
	__u32 below;			/* with this many states again it stays in the table */
};

/* A state's reference to a limiter. */
struct pf_limited {
	__u32 serial;			/* pf_limiter_use.serial */
	__u8 id;			/* 0: no reference */
	__u8 prefix;			/* source limiter: prefix length */
	__u8 pad[2];
	__u32 source;			/* source limiter: pf_limited_source.serial */
};

#endif /* SKIPSTEP_ABI_LIMITER_H */
