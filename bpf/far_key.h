/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The far keys of states whose packets cross to the other family (af-to): several states may have
 * the same one. The key leads to the first of them, each to the next.
 */
#ifndef PF_FAR_KEY_H
#define PF_FAR_KEY_H

#include "extension.h"
#include "flush.h"
#include "kern.h"
#include "key_table.h"
#include "scratch.h"
#include "state_key.h"
#include "timeout.h"

/* states with the same far key: more are refused */
#define MAX_FAR_STATES	1024

/* Finds the first living state with this far key, or one that was ended and not swept yet, if that
 * will do; its place goes to s->far. */
__global int find_far(struct pf_scratch *s, __u32 ended)
{
	struct pf_status *status = pf_status();
	const struct pf_extension *extension;
	struct pf_state *state;
	__u8 timeout;
	int i;

	if (!s || !status || !find_key(&s->key, &s->far))
		return 0;
	bpf_for(i, 0, MAX_FAR_STATES) {
		state = bpf_map_lookup_elem(&states, &s->far.index);
		if (!state || state->serial != s->far.serial)
			return 0;
		is_flushed(status, s->far.index, s->far.serial);
		timeout = state->timeout;
		if ((ended && timeout == PF_TIMEOUT_PURGE) ||
		    (timeout < PF_TIMEOUT_PURGE &&
		    !expired(state->rule_slot, timeout, state->expire, s->generation, s->now)))
			return 1;
		extension = extension_of(state, &s->far.index);
		if (!extension || !extension->next_far.serial)
			return 0;
		s->far = extension->next_far;
	}
	return 0;
}

__inline struct pf_state *far_state(struct pf_scratch *s, struct pf_state_ref *found)
{
	if (!find_far(s, false))
		return NULL;
	*found = s->far;
	return bpf_map_lookup_elem(&states, &found->index);
}

/* Puts a state behind the last one that has its far key. */
__global int append_far(struct pf_state_ref *first, struct pf_state_ref *new)
{
	struct pf_state_ref ref;
	struct pf_extension *extension;
	struct pf_state *state;
	int i;

	if (!first || !new)
		return -1;
	ref = *first;
	bpf_for(i, 0, MAX_FAR_STATES) {
		state = bpf_map_lookup_elem(&states, &ref.index);
		if (!state)
			return -1;
		extension = extension_of(state, &ref.index);
		if (!extension)
			return -1;
		bpf_spin_lock(&state->lock);
		ref = extension->next_far;
		if (!ref.serial)
			extension->next_far = *new;
		bpf_spin_unlock(&state->lock);
		if (!ref.serial)
			return 0;
	}
	return -1;
}

/* Takes a state out of those that have its far key. */
__global int unlink_far_key(__u32 index, __u32 serial)
{
	struct pf_state *state = bpf_map_lookup_elem(&states, &index), *before;
	struct pf_state_ref ref, next = {};
	const struct pf_state_key *key;
	struct pf_extension *extension;
	int i;

	if (!state)
		return 0;
	key = &state->key[PF_STACK];
	if (!find_key(key, &ref))
		return 0;
	extension = extension_of(state, &index);
	if (extension)
		next = extension->next_far;
	if (ref.index == index && ref.serial == serial)
		return replace_key(key, index, next.serial ? next.index : PF_NO_PLACE);
	bpf_for(i, 0, MAX_FAR_STATES) {
		before = bpf_map_lookup_elem(&states, &ref.index);
		if (!before)
			return 0;
		extension = extension_of(before, &ref.index);
		if (!extension)
			return 0;
		bpf_spin_lock(&before->lock);
		ref = extension->next_far;
		if (ref.index == index && ref.serial == serial)
			extension->next_far = next;
		bpf_spin_unlock(&before->lock);
		if (!ref.serial || (ref.index == index && ref.serial == serial))
			return 0;
	}
	return 0;
}

#endif /* PF_FAR_KEY_H */
