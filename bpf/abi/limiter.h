/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/* Of the ABI: state limiters and source limiters. */
#ifndef SKIPSTEP_ABI_LIMITER_H
#define SKIPSTEP_ABI_LIMITER_H

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
	__u32 last_source;		/* serial of the source made last */
};

/* A source limiter's sources have a place in a hash: */
struct pf_limited_key {
	__u32 serial;			/* of pf_limiter_use */
	__u8 id;
	__u8 family;
	__u8 pad[2];
	__u32 rdomain;			/* of the interface that its packets come in by */
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
	__u32 serial;			/* what states hold of another that had its key before is void */
	__u32 pad2;
};

/* A source of a limiter that waits for the sweep to look at it. */
struct pf_limited_turn {
	struct pf_limited_key key;
	__u32 source;			/* serial of pf_limited_source */
};

/* A source that is to leave its limiter's table. pfctl's programs and the timer may not touch
 * tables, so the next packet that asks rules sees to it. */
struct pf_leaving {
	struct pf_limited_key key;
	__u32 table;			/* slot */
	__u32 prefix;
	__u32 below;			/* it leaves unless it has as many states again */
};

/* What a state holds of a limiter */
struct pf_limited {
	__u32 serial;			/* of pf_limiter_use */
	__u8 id;			/* 0: nothing */
	__u8 prefix;			/* source limiter: length of the mask */
	__u8 pad[2];
	__u32 source;			/* source limiter: serial of pf_limited_source */
};

#endif /* SKIPSTEP_ABI_LIMITER_H */
