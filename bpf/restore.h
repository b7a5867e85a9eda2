/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * States that come back: pfctl -L puts those in place that pfctl -S has kept.
 */
#ifndef PF_RESTORE_H
#define PF_RESTORE_H

#include "config.h"
#include "kern.h"
#include "new_state.h"
#include "state.h"

/* Writes a state that was kept to a place, where nobody looks yet. Returns -1 if there is no memory
 * for its extension. */
__inline int write_kept(const struct pf_kept_state *given, struct pf_state *state,
			const __u32 *index)
{
	const __u32 kept = __builtin_offsetof(struct pf_state, flags);
	struct pf_extension *extension;
	bool has_extension;

	__builtin_memcpy((char *)state + kept, (char *)&given->state + kept, sizeof(*state) - kept);
	has_extension = state->flags & PF_STATE_EXTENSION;
	state->flags &= ~(PF_STATE_CONNECTED | PF_STATE_SIMPLE | PF_STATE_EXTENSION);
	/* other states are in the places that it knew, and neighbours have other numbers */
	__builtin_memset(&state->peer, 0, sizeof(state->peer));
	__builtin_memset(&state->path, 0, sizeof(state->path));
	if (!has_extension)
		return 0;
	extension = add_extension(state, index);
	if (!extension)
		return -1;
	*extension = given->extension;
	/* its sources are not tracked any more, nor does any limiter count it */
	__builtin_memset(extension->source_nodes, 0, sizeof(extension->source_nodes));
	__builtin_memset(extension->limited, 0, sizeof(extension->limited));
	return 0;
}

/* Brings a state to life as it is given, with its id and counters. Returns its place plus 1, or 0
 * if there is no room or its key is taken. */
SEC("syscall")
int pf_restore(struct pf_kept_state *given)
{
	struct pf_status *status = pf_status();
	struct pf_config *config;
	struct pf_state_ref ref;
	struct pf_linking linking = {};
	struct pf_extension *extension;
	struct pf_state *state;

	if (!status)
		return 0;
	config = pf_config(status->generation);
	if (!config)
		return 0;
	if (__sync_fetch_and_add(&status->states, 1) >= config->limit_states ||
	    take_place(status, &ref.index)) {
		__sync_fetch_and_sub(&status->states, 1);
		return 0;
	}
	state = bpf_map_lookup_elem(&states, &ref.index);
	if (!state)
		return 0;
	if (write_kept(given, state, &ref.index)) {
		__sync_fetch_and_sub(&status->states, 1);
		bpf_map_push_elem(&free_states, &ref.index, BPF_ANY);
		return 0;
	}
	extension = extension_of(state, &ref.index);
	if (is_simple(state, extension))
		state->flags |= PF_STATE_SIMPLE;
	hold_again(state->rule_slot);
	if (state->anchor_slot != PF_IDLE_SLOT)
		hold_again(state->anchor_slot);
	if (extension && extension->match_count)
		bpf_loop(PF_MATCH_RULES, hold_match_rule, &extension, 0);
	if (state->key[PF_WIRE].protocol == IPPROTO_TCP && half_open(&state->src))
		__sync_fetch_and_add(&status->half_open, 1);
	count_state(PF_COUNT_INSERTS);

	bpf_spin_lock(&state->lock);
	state->serial++;
	ref.serial = state->serial;
	bpf_spin_unlock(&state->lock);

	return link_keys(state, status, ref.index, ref.serial, &linking) ? 0 : ref.index + 1;
}

#endif /* PF_RESTORE_H */
