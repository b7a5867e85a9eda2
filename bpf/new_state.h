/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * How a state comes to be: a place, its rules, and its keys, on the way to which connections that
 * are over make way (pf-semantics section 6).
 */
#ifndef PF_NEW_STATE_H
#define PF_NEW_STATE_H

#include "extension.h"
#include "far_key.h"
#include "kern.h"
#include "scratch.h"
#include "state.h"
#include "sweeper.h"

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
__inline int take_state(struct pf_scratch *s)
{
	struct pf_status *status = pf_status();
	struct pf_config *config;
	__u32 index = 0;

	if (!status)
		return PF_REASON_MEMORY;
	config = pf_config(s->generation);
	if (!config)
		return PF_REASON_MEMORY;
	/* the place in the count is reserved first, so that no two take the last one */
	revive_sweeper(status, s->now);
	if (__sync_fetch_and_add(&status->states, 1) < config->limit_states &&
	    !take_place(status, &index)) {
		s->ref.index = index;
		return 0;
	}
	__sync_fetch_and_sub(&status->states, 1);
	return PF_REASON_MEMORY;
}

/* Gives the place of take_state back: there will be no state after all. */
__inline void give_back_state(struct pf_scratch *s)
{
	struct pf_state *state = bpf_map_lookup_elem(&states, &s->ref.index);
	struct pf_status *status = pf_status();

	if (!state || !status)
		return;
	drop_extension(state, &s->ref.index);
	__sync_fetch_and_sub(&status->states, 1);
	bpf_map_push_elem(&free_states, &s->ref.index, BPF_ANY);
}

/* The rule has one more state, which it did not make now. */
__inline void hold_again(__u32 slot)
{
	struct pf_rule_states *rule = bpf_map_lookup_elem(&rule_states, &slot);

	if (rule)
		__sync_fetch_and_add(&rule->current, 1);
}

static int hold_match_rule(__u32 i, void *arg)
{
	struct pf_extension *extension = *(struct pf_extension **)arg;

	if (i >= PF_MATCH_RULES || i >= extension->match_count)
		return 1;
	hold_again(extension->match[i].slot);
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

/* A state that was held for the rule was not made after all. */
__inline void unmake_state(__u32 slot)
{
	struct pf_rule_states *rule = bpf_map_lookup_elem(&rule_states, &slot);

	if (rule)
		__sync_fetch_and_sub(&rule->total, 1);
}

/* Whether a connection is over, so that another may begin between the same ends. */
__inline bool is_over(const struct pf_state *state)
{
	return state->key[PF_WIRE].protocol == IPPROTO_TCP &&
	       state->src.state >= PF_TCPS_FIN_WAIT_2 && state->dst.state >= PF_TCPS_FIN_WAIT_2;
}

/* Nobody finds the state any more, which counts until it is swept. */
__inline void detach_state(const struct pf_state_ref *ref)
{
	struct pf_state *state = bpf_map_lookup_elem(&states, &ref->index);
	__u32 places[PF_NODE_KINDS] = {};
	__u32 connected = 0, rule_slot = 0;
	struct pf_extension *extension;
	bool limited = false;
	__u64 id = 0;

	if (!state)
		return;
	extension = extension_of(state, &ref->index);
	bpf_spin_lock(&state->lock);
	if (state->serial == ref->serial && state->timeout < PF_TIMEOUT_DETACHED) {
		state->timeout = PF_TIMEOUT_DETACHED;
		/* its sources and limiters do not count it any more */
		if (extension) {
			limited = has_limiters(extension);
			__builtin_memcpy(places, extension->source_nodes, sizeof(places));
			__builtin_memset(extension->source_nodes, 0, sizeof(places));
		}
		connected = state->flags & PF_STATE_CONNECTED;
		rule_slot = state->rule_slot;
		id = state->id;
	}
	bpf_spin_unlock(&state->lock);
	release_sources(places, connected, rule_slot, id, false);
	if (limited)
		release_limiters(ref->index, 0);
}

/* What stands in the way of a key for a new state made in `direction`: 0 nothing, 1 something that
 * it may replace, in the place `known`, 2 a state made in the other direction, there too, -1
 * another state. A connection that is over makes way: it counts until it is swept, and can be seen
 * if it was made in the other direction. One that was ended before its time does not, nor, as in
 * OpenBSD, one whose time is up and that nobody has swept yet. */
__global int make_way(const struct pf_state_key *key, __u32 direction, struct pf_state_ref *known)
{
	struct pf_status *status = pf_status();
	struct pf_state *state;
	bool over = false;
	int way = 1;

	if (!key || !known || !status)
		return -1;
	if (!find_key(key, known))
		return 0;
	is_flushed(status, known->index, known->serial);
	state = bpf_map_lookup_elem(&states, &known->index);
	if (!state)
		return 1;
	bpf_spin_lock(&state->lock);
	if (state->serial != known->serial || state->timeout >= PF_TIMEOUT_DETACHED) {
		/* nobody finds it */
	} else if (state->direction != direction) {
		way = state->timeout == PF_TIMEOUT_PURGE ? 1 : 2;
	} else if (is_over(state)) {
		state->src.state = state->dst.state = PF_TCPS_CLOSED;
		over = true;
	} else {
		way = -1;
	}
	bpf_spin_unlock(&state->lock);
	if (over)
		detach_state(known);
	return way;
}

/* Closes a connection that is over, for good; false if it is not. */
__inline bool close_if_over(const struct pf_state_ref *ref)
{
	struct pf_state *state = bpf_map_lookup_elem(&states, &ref->index);
	bool over = false;

	if (!state)
		return false;
	bpf_spin_lock(&state->lock);
	if (state->serial == ref->serial && is_over(state)) {
		state->src.state = state->dst.state = PF_TCPS_CLOSED;
		over = true;
	}
	bpf_spin_unlock(&state->lock);
	return over;
}

/* The same as make_way for a new state made outbound, as far as states whose packets cross families
 * have its key on their far side, beside a plain one that may have it: all are in one list in
 * OpenBSD, of which the last one goes. Returns -1 if one does not make way. */
/* Differs from OpenBSD: linux.md, "Reuse of a closed connection's key" */
__global int make_way_out(struct pf_state_key *key)
{
	struct pf_state_ref ref, plain = {}, over = {};
	struct pf_status *status = pf_status();
	const struct pf_extension *extension;
	struct pf_state *state;
	bool is_plain = false, before = false;
	__u64 id = 0;
	int i;

	if (!key || !status)
		return -1;
	for (int made = PF_MADE_PLAIN; made <= PF_MADE_OUT && !is_plain; made++) {
		if (made == PF_MADE_IN)
			continue;
		key->made = made;
		if (!find_key(key, &plain))
			continue;
		is_flushed(status, plain.index, plain.serial);
		state = bpf_map_lookup_elem(&states, &plain.index);
		is_plain = state && state->serial == plain.serial &&
			   state->direction == PF_OUT && state->timeout < PF_TIMEOUT_DETACHED;
		if (is_plain)
			id = state->id;
	}
	key->made = PF_MADE_FAR;
	if (!find_key(key, &ref))
		return 0;
	bpf_for(i, 0, MAX_FAR_STATES) {
		state = bpf_map_lookup_elem(&states, &ref.index);
		if (!state || state->serial != ref.serial)
			break;
		is_flushed(status, ref.index, ref.serial);
		if (state->timeout < PF_TIMEOUT_DETACHED) {
			/* bound states stand there with the youngest first */
			if (is_plain && (key->interface ? state->id < id : state->id > id)) {
				is_plain = false;
				before = close_if_over(&plain);
				if (!before)
					return -1;
			}
			if (!close_if_over(&ref))
				return -1;
			over = ref;
		}
		extension = extension_of(state, &ref.index);
		if (!extension || !extension->next_far.serial)
			break;
		ref = extension->next_far;
	}
	/* make_way sees to a plain one that is the last; before another it goes, too, for there
	 * cannot be two with one key here */
	if (before)
		detach_state(&plain);
	if (!is_plain && over.serial)
		detach_state(&over);
	return 0;
}

/* Leads the far key of a state whose packets cross families to it. Others may have it, too: then
 * the answers are those of the oldest floating or the youngest bound state, as in OpenBSD's
 * lists. */
__global int link_far_key(struct pf_state_key *key, struct pf_state_ref *ref)
{
	struct pf_state_ref first;
	struct pf_extension *extension;
	struct pf_state *state;

	if (!key || !ref)
		return -1;
	for (int made = PF_MADE_PLAIN; made <= PF_MADE_NEAR; made++) {
		if (made == PF_MADE_OUT)
			continue;
		key->made = made;
		if (make_way(key, PF_IN, &first) < 0)
			return -1;
	}
	key->made = PF_MADE_FAR;
	if (!find_key(key, &first))
		return insert_key(key, ref->index);
	if (!key->interface)
		return append_far(&first, ref);
	state = bpf_map_lookup_elem(&states, &ref->index);
	if (!state)
		return -1;
	extension = extension_of(state, &ref->index);
	if (!extension)
		return -1;
	bpf_spin_lock(&state->lock);
	extension->next_far = first;
	bpf_spin_unlock(&state->lock);
	return replace_key(key, first.index, ref->index);
}

/* Leads one key of a living state to it, with memory of the caller's to work in. Not 0 if another
 * state made in the same direction has that key. */
__global int link_key(__u32 index, __u32 serial, __u32 side, struct pf_linking *linking)
{
	struct pf_state *state = bpf_map_lookup_elem(&states, &index);
	struct pf_state_ref ref = { .index = index, .serial = serial };
	struct pf_status *status = pf_status();
	struct pf_state_key *key;
	bool is_in;
	__u8 made;
	int way;

	if (!linking || !state || !status)
		return -1;
	key = &linking->key;
	*key = state->key[side & 1];
	if (key->made == PF_MADE_FAR)
		return link_far_key(key, &ref);
	made = key->made;
	if (status->crossing && state->direction == PF_OUT && make_way_out(key) < 0)
		return -1;
	key->made = made;
	/* most keys nobody has: that is seen by whoever claims an entry, too */
	is_in = !insert_key(key, index);
	way = is_in ? 0 : make_way(key, state->direction, &linking->known);
	if (way > 1 && !key->made) {
		/* one that was made in the other direction has it: both stand there, as in OpenBSD,
		 * this one among the keys that tell directions apart */
		key->made = state->direction;
		state->key[PF_WIRE].made = state->key[PF_STACK].made = key->made;
		count_translated(status, state, 1);
		way = make_way(key, state->direction, &linking->known);
	}
	if (way < 0 || way > 1 ||
	    (!is_in && (way ? replace_key(key, linking->known.index, index) :
			      insert_key(key, index))))
		return -1;
	if (!key->made && !status->translated)
		return 0;
	/* the same key among those of the other kinds */
	made = key->made;
	key->made = made ? PF_MADE_PLAIN : state->direction;
	if (make_way(key, state->direction, &linking->known) < 0)
		return -1;
	if (!status->crossing || state->direction == PF_OUT)
		return 0;
	/* on the far side of a state that crosses families only those made outbound are in the
	 * way */
	key->made = made == PF_MADE_NEAR ? PF_MADE_IN : PF_MADE_NEAR;
	return make_way(key, PF_IN, &linking->known) < 0;
}

/* Leads the keys of a living state to it; both or none. */
__inline int link_keys(struct pf_state *state, struct pf_status *status, __u32 index, __u32 serial,
		       struct pf_linking *linking)
{
	bool two = state->key[PF_WIRE].made;
	struct pf_extension *extension;

	count_keys(status, state, 1);
	if (link_key(index, serial, PF_WIRE, linking) ||
	    (two && link_key(index, serial, PF_STACK, linking))) {
		/* OpenBSD does not give back to pools what never was a state */
		extension = extension_of(state, &index);
		if (extension) {
			extension->nat_slot = extension->rdr_slot = PF_IDLE_SLOT;
			extension->route = PF_HOP_NO;
			release_limiters(index, 1);
		}
		remove_state(index, serial);
		return -1;
	}
	return 0;
}

/* Whether the state gives packets that leave a destination to which there may be another way. */
__inline bool leads_elsewhere(const struct pf_state *state)
{
	const struct pf_state_key *wire = &state->key[PF_WIRE], *stack = &state->key[PF_STACK];

	return wire->made && __builtin_memcmp(wire->address[0], stack->address[0], 16);
}

/* Whether a match rule of a state logs all its packets. */
__inline bool logs_matches(const struct pf_extension *extension)
{
	__u8 log = 0;

	for (__u32 i = 0; i < PF_MATCH_RULES; i++)
		if (i < extension->match_count)
			log |= extension->match[i].log;
	return log & PF_LOG_ALL;
}

/* Whether what a state has in its extension wants nothing of its packets but to count them. */
__inline bool only_counts(const struct pf_extension *extension)
{
	const __u32 *node = extension->source_nodes;

	return !logs_matches(extension) &&
	       !(extension->max_pkt_size | extension->rtable | extension->delay |
		 extension->route) &&
	       !(node[PF_NODE_TRACK] | node[PF_NODE_NAT] | node[PF_NODE_RDR] | node[PF_NODE_ROUTE]);
}

/* Whether packets of the state can take the short way: nothing is done with them but to count and
 * to translate them. */
__inline bool is_simple(const struct pf_state *state, const struct pf_extension *extension)
{
	const __u32 harmless = PF_STATE_ALLOW_OPTS | PF_STATE_SLOPPY | PF_STATE_NO_SYNC |
			       PF_STATE_EXTENSION;
	__u32 slot = state->rule_slot;
	struct pf_rule_states *rule = bpf_map_lookup_elem(&rule_states, &slot);

	return rule && !rule->divert && !(state->flags & ~harmless) &&
	       !(state->log & PF_LOG_ALL) && !leads_elsewhere(state) && !state->min_ttl &&
	       !state->tag && !state->queue[0] && (!extension || only_counts(extension));
}

/* The state that was written to the place s->ref gets its number, its rules count it, and it lives:
 * only its keys do not lead to it yet. */
__inline void begin_state(struct pf_state *state, struct pf_status *status, struct pf_scratch *s)
{
	state->id = __sync_fetch_and_add(&status->next_state_id, 1);
	s->outcome.state_id = state->id;
	hold_rule(state->rule_slot);
	if (state->anchor_slot != PF_IDLE_SLOT)
		hold_rule(state->anchor_slot);
	/* nobody else writes it before that: no lock is needed, but that all else is written
	 * first */
	s->ref.serial = __sync_fetch_and_add(&state->serial, 1) + 1;
}

/* A state that ends before anybody could find it, for there can be no such, counts as if it had
 * never been. */
__inline void uncount_state(const struct pf_state *state)
{
	uncount_removal();
	unmake_state(state->rule_slot);
	if (state->anchor_slot != PF_IDLE_SLOT)
		unmake_state(state->anchor_slot);
}

/* Brings the state that was written to the place s->ref to life. Returns the reason why not, or
 * 0. */
__global int insert_state(struct pf_scratch *s)
{
	struct pf_status *status = pf_status();
	struct pf_extension *extension;
	struct pf_state *state;

	if (!s || !status)
		return PF_REASON_MEMORY;
	state = bpf_map_lookup_elem(&states, &s->ref.index);
	if (!state)
		return PF_REASON_MEMORY;
	extension = extension_of(state, &s->ref.index);
	if (is_simple(state, extension))
		state->flags |= PF_STATE_SIMPLE;
	if (extension && extension->match_count)
		bpf_loop(PF_MATCH_RULES, hold_match_rule, &extension, 0);
	if (state->key[PF_WIRE].protocol == IPPROTO_TCP && half_open(&state->src))
		__sync_fetch_and_add(&status->half_open, 1);
	begin_state(state, status, s);
	if (!link_keys(state, status, s->ref.index, s->ref.serial, &s->linking)) {
		count_state(PF_COUNT_INSERTS);
		return 0;
	}
	/* another CPU made the same state meanwhile, or translation made two of one */
	uncount_state(state);
	__sync_val_compare_and_swap(&status->next_state_id, s->outcome.state_id + 1,
				    s->outcome.state_id);
	s->outcome.state_id = ~0ull;
	return PF_REASON_STATE_INSERT;
}

#endif /* PF_NEW_STATE_H */
