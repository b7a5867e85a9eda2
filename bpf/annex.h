/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * What few states have: match rules that count with them, a next hop, what `reassemble tcp` and
 * limiters know of them. It stands in a map of its own, so that a state without any of it takes no
 * memory for it, under the place of the state and from before that comes to life until its place is
 * given back. Who has found a state, then its annex, and then sees under the state's lock that it
 * still is the one found has its annex and no other's.
 */
#ifndef PF_ANNEX_H
#define PF_ANNEX_H

#include "kern.h"
#include "scratch.h"
#include "state_key.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, PF_DEFAULT_STATES);
	__type(key, __u32);
	__type(value, struct pf_annex);
} annexes SEC(".maps");

/* What the state in a place has beside itself; NULL if that is nothing. */
__inline struct pf_annex *annex_of(const struct pf_state *state, const __u32 *index)
{
	return state->flags & PF_STATE_ANNEX ? bpf_map_lookup_elem(&annexes, index) : NULL;
}

/* Gives the state in a place an annex, empty. Returns NULL if there is no memory for it. */
__inline struct pf_annex *add_annex(struct pf_state *state, const __u32 *index)
{
	static const struct pf_annex empty;

	if (bpf_map_update_elem(&annexes, index, &empty, BPF_ANY))
		return NULL;
	state->flags |= PF_STATE_ANNEX;
	return bpf_map_lookup_elem(&annexes, index);
}

/* The state in a place is no more. */
__inline void drop_annex(const struct pf_state *state, const __u32 *index)
{
	if (state->flags & PF_STATE_ANNEX)
		bpf_map_delete_elem(&annexes, index);
}

#endif /* PF_ANNEX_H */
