/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The state table (pf-semantics sections 6 and 7).
 *
 * state_keys leads from a key to a place in the pool `states` and the serial number that the place
 * had when it was taken. Whoever wants to use a state takes its lock and compares the serial:
 * places are used again, so nothing else says that a state is still the one meant.
 *
 * A place goes round: taken (from free_states, or the first never used one), filled by the one who
 * took it, serial made odd, key inserted; then, by exactly one of those who want it gone, marked unlinked, key deleted,
 * serial made even, and given back.
 */
#ifndef PF_STATE_H
#define PF_STATE_H

#include "kern.h"
#include "config.h"
#include "reason.h"
#include "scratch.h"
#include "timeout.h"
#include "usage.h"

/* userland makes these four to measure before it loads the programs */
#define PF_DEFAULT_STATES	100000

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PF_DEFAULT_STATES);
	__type(key, struct pf_state_key);
	__type(value, struct pf_state_ref);
} state_keys SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PF_DEFAULT_STATES);
	__type(key, __u32);
	__type(value, struct pf_state);
} states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, PF_DEFAULT_STATES);
	__type(value, __u32);
} free_states SEC(".maps");

#define established(peer)	((peer)->state >= PF_TCPS_ESTABLISHED)

/* ---- keys ------------------------------------------------------------------------------------ */

/* Index of the packet's source in a key: so that a reply has the key of what it answers. */
__inline int source_index(__u8 direction)
{
	return direction == PF_IN ? 0 : 1;
}

__inline void set_key(struct pf_state_key *key, const struct pf_pdesc *pd, __u8 direction)
{
	if (source_index(direction) == 0) {
		__builtin_memcpy(key->address[0], &pd->source, 16);
		__builtin_memcpy(key->address[1], &pd->destination, 16);
		key->port[0] = pd->source_port;
		key->port[1] = pd->destination_port;
	} else {
		__builtin_memcpy(key->address[1], &pd->source, 16);
		__builtin_memcpy(key->address[0], &pd->destination, 16);
		key->port[1] = pd->source_port;
		key->port[0] = pd->destination_port;
	}
	key->interface = 0;
	key->rdomain = 0;
	key->family = pd->family;
	key->protocol = pd->protocol;
}

/* ---- removal --------------------------------------------------------------------------------- */

/* A state of the rule is gone. */
__inline void release_rule(__u32 slot)
{
	struct pf_rule_states *rule = bpf_map_lookup_elem(&rule_states, &slot);

	if (rule)
		__sync_fetch_and_sub(&rule->current, 1);
}

static int release_match_rule(__u32 i, void *arg)
{
	struct pf_state *state = *(struct pf_state **)arg;

	if (i >= PF_MATCH_RULES || i >= state->match_count)
		return 1;
	release_rule(state->match[i].slot);
	return 0;
}

/* Takes a state out of the table. Returns 1, or 0 if somebody else did or it was used again. */
__global int remove_state(__u32 index, __u32 serial)
{
	struct pf_state *state = bpf_map_lookup_elem(&states, &index);
	struct pf_status *status = pf_status();
	struct pf_state_ref *ref;
	struct pf_state_key key;
	bool mine, half_open;

	if (!state || !status)
		return 0;
	bpf_spin_lock(&state->lock);
	mine = state->serial == serial && (serial & 1) && state->timeout != PF_TIMEOUT_UNLINKED;
	if (mine)
		state->timeout = PF_TIMEOUT_UNLINKED;
	bpf_spin_unlock(&state->lock);
	if (!mine)
		return 0;

	key = state->key[PF_WIRE];
	half_open = key.protocol == IPPROTO_TCP && !established(&state->src);
	ref = bpf_map_lookup_elem(&state_keys, &key);
	if (ref && ref->index == index && ref->serial == serial)
		bpf_map_delete_elem(&state_keys, &key);

	release_rule(state->rule_slot);
	if (state->anchor_slot != PF_IDLE_SLOT)
		release_rule(state->anchor_slot);
	if (state->match_count)
		bpf_loop(PF_MATCH_RULES, release_match_rule, &state, 0);
	if (half_open)
		__sync_fetch_and_sub(&status->half_open, 1);
	__sync_fetch_and_sub(&status->states, 1);
	count_state(PF_COUNT_REMOVALS);

	bpf_spin_lock(&state->lock);
	state->serial++;
	bpf_spin_unlock(&state->lock);
	bpf_map_push_elem(&free_states, &index, BPF_ANY);
	return 1;
}

/* ---- lookup ---------------------------------------------------------------------------------- */

/* The state with exactly this key. One whose time is up is removed and not found: the sweep comes
 * by only now and then. */
__inline struct pf_state *lookup_state(struct pf_scratch *s)
{
	struct pf_state_ref *ref = bpf_map_lookup_elem(&state_keys, &s->key);
	struct pf_state *state;
	__u32 index, serial;
	__u8 timeout;

	if (!ref)
		return NULL;
	index = ref->index;
	serial = ref->serial;
	state = bpf_map_lookup_elem(&states, &index);
	if (!state || state->serial != serial)
		return NULL;
	timeout = state->timeout;
	if (timeout >= PF_TIMEOUT_PURGE)
		return NULL;
	if (expired(state->rule_slot, timeout, state->expire, s->generation, s->now)) {
		remove_state(index, serial);
		return NULL;
	}
	s->ref.index = index;
	s->ref.serial = serial;
	return state;
}

/* max-pkt-rate holds for packets in the direction of the rule's states too: what exceeds it finds no
 * state and is for the rules. */
__inline bool exceeds_state_rate(struct pf_scratch *s, struct pf_state *state)
{
	return state->flags & PF_STATE_MAX_PKT_RATE && state->direction == s->pd.direction &&
	       exceeds_pkt_rate(state->rule_slot, s->now);
}

/* Finds the state of s->key; its place goes to s->ref. States bound to the packet's interface come
 * before those that float. */
__global int find_state(struct pf_scratch *s)
{
	struct pf_state *state = NULL;
	struct pf_config *config;

	if (!s)
		return 0;
	config = pf_config(s->generation);
	if (!config)
		return 0;
	count_state(PF_COUNT_SEARCHES);
	if (config->if_bound_states && s->interface.id) {
		s->key.interface = s->interface.id;
		state = lookup_state(s);
	}
	if (!state) {
		s->key.interface = 0;
		state = lookup_state(s);
	}
	return state && !exceeds_state_rate(s, state);
}

/* ---- creation -------------------------------------------------------------------------------- */

/* A place in the pool, or -1. */
__inline int take_place(struct pf_status *status, __u32 *index)
{
	if (!bpf_map_pop_elem(&free_states, index))
		return 0;
	if (status->states_used >= status->capacity)
		return -1;
	*index = __sync_fetch_and_add(&status->states_used, 1);
	if (*index < status->capacity)
		return 0;
	__sync_fetch_and_sub(&status->states_used, 1);
	return -1;
}

/* Takes a place for a state; its number goes to s->ref. Returns the reason why not, or 0. */
__global int take_state(struct pf_scratch *s)
{
	struct pf_status *status = pf_status();
	struct pf_config *config;
	__u32 index = 0;

	if (!s || !status)
		return PF_REASON_MEMORY;
	config = pf_config(s->generation);
	if (!config)
		return PF_REASON_MEMORY;
	/* the place in the count is reserved first, so that no two take the last one */
	if (__sync_fetch_and_add(&status->states, 1) < config->limit_states &&
	    !take_place(status, &index)) {
		s->ref.index = index;
		return 0;
	}
	__sync_fetch_and_sub(&status->states, 1);
	return PF_REASON_MEMORY;
}

static int hold_match_rule(__u32 i, void *arg)
{
	struct pf_state *state = *(struct pf_state **)arg;
	struct pf_rule_states *rule;
	__u32 slot;

	if (i >= PF_MATCH_RULES || i >= state->match_count)
		return 1;
	slot = state->match[i].slot;
	rule = bpf_map_lookup_elem(&rule_states, &slot);
	if (rule)
		__sync_fetch_and_add(&rule->current, 1);
	return 0;
}

/* A state was made by the rule. */
__inline void hold_rule(__u32 slot)
{
	struct pf_rule_states *rule = bpf_map_lookup_elem(&rule_states, &slot);

	if (rule) {
		__sync_fetch_and_add(&rule->current, 1);
		__sync_fetch_and_add(&rule->total, 1);
	}
}

/* Whether the key belongs to a connection that is over, so that the next one may have it. The old
 * state counts until it is swept, and can be seen if it was made in the other direction. */
__inline bool detach_purged(struct pf_state_key *key, __u8 direction)
{
	struct pf_state_ref *ref = bpf_map_lookup_elem(&state_keys, key);
	struct pf_state *state;
	__u32 index, serial;
	bool over;

	if (!ref)
		return false;
	index = ref->index;
	serial = ref->serial;
	state = bpf_map_lookup_elem(&states, &index);
	if (!state)
		return false;
	bpf_spin_lock(&state->lock);
	over = state->serial == serial && state->timeout == PF_TIMEOUT_PURGE;
	if (over && state->direction == direction)
		state->timeout = PF_TIMEOUT_DETACHED;
	bpf_spin_unlock(&state->lock);
	return over;
}

/* Brings the state that was written to the place s->ref to life. Returns the reason why not, or 0. */
__global int insert_state(struct pf_scratch *s)
{
	struct pf_status *status = pf_status();
	struct pf_state *state;

	if (!s || !status)
		return PF_REASON_MEMORY;
	state = bpf_map_lookup_elem(&states, &s->ref.index);
	if (!state)
		return PF_REASON_MEMORY;
	state->id = __sync_fetch_and_add(&status->next_state_id, 1);
	s->outcome.state_id = state->id;
	hold_rule(state->rule_slot);
	if (state->anchor_slot != PF_IDLE_SLOT)
		hold_rule(state->anchor_slot);
	if (state->match_count)
		bpf_loop(PF_MATCH_RULES, hold_match_rule, &state, 0);
	if (state->key[PF_WIRE].protocol == IPPROTO_TCP)
		__sync_fetch_and_add(&status->half_open, 1);
	count_state(PF_COUNT_INSERTS);

	bpf_spin_lock(&state->lock);
	state->serial++;
	s->ref.serial = state->serial;
	bpf_spin_unlock(&state->lock);

	s->key = state->key[PF_WIRE];
	if (!bpf_map_update_elem(&state_keys, &s->key, &s->ref,
				 detach_purged(&s->key, state->direction) ? BPF_EXIST :
									    BPF_NOEXIST))
		return 0;
	/* another CPU made the same state meanwhile */
	remove_state(s->ref.index, s->ref.serial);
	s->outcome.state_id = ~0ull;
	return PF_REASON_STATE_INSERT;
}

#endif /* PF_STATE_H */
