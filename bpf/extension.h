/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * State extensions: fields that few states have, such as match rules that count with the state, a
 * next hop, and the records of `reassemble tcp` and of limiters. They are stored in a map of their
 * own, under the state's index, so a state without such fields takes no memory for them. An
 * extension exists from before its state becomes active until the state's slot is free. A program
 * that finds a state, then its extension, and then sees under the state's lock that the state is
 * still the same one, has the extension of this state.
 */
#ifndef PF_EXTENSION_H
#define PF_EXTENSION_H

#include "kern.h"
#include "scratch.h"
#include "state_key.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, PF_DEFAULT_STATES);
	__type(key, __u32);
	__type(value, struct pf_extension);
} extensions SEC(".maps");

/* Returns the extension of the state at an index, or NULL if the state has none. */
__inline struct pf_extension *extension_of(const struct pf_state *state, const __u32 *index)
{
	return state->flags & PF_STATE_EXTENSION ? bpf_map_lookup_elem(&extensions, index) : NULL;
}

/* Gives the state in a place an extension, empty. Returns NULL if there is no memory for it. */
__inline struct pf_extension *add_extension(struct pf_state *state, const __u32 *index)
{
	static const struct pf_extension empty;

	if (bpf_map_update_elem(&extensions, index, &empty, BPF_ANY))
		return NULL;
	state->flags |= PF_STATE_EXTENSION;
	return bpf_map_lookup_elem(&extensions, index);
}

/* The state in a place is no more. */
__inline void drop_extension(const struct pf_state *state, const __u32 *index)
{
	if (state->flags & PF_STATE_EXTENSION)
		bpf_map_delete_elem(&extensions, index);
}

#endif /* PF_ANNEX_H */
