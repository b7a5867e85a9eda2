/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The state table (pf-semantics sections 6 and 7).
 *
 * A key leads to a place in the pool `states` (key_table.h), which has a serial number. Whoever
 * wants to use a state takes its lock and compares the serial: places are used again, so nothing
 * else says that a state is still the one meant.
 *
 * A place goes round: taken (from free_states, or the first never used one), filled by the one who
 * took it, serial made odd, key inserted; then, by exactly one of those who want it gone, marked
 * unlinked, key deleted, serial made even, and given back.
 *
 * A translated state has two keys: packets that come in find it by the wire's, those that go out by
 * the stack's.
 */
#ifndef PF_STATE_H
#define PF_STATE_H

#include "kern.h"
#include "extension.h"
#include "config.h"
#include "endpoint.h"
#include "far_key.h"
#include "flush.h"
#include "flow.h"
#include "key_table.h"
#include "limiter.h"
#include "pool.h"
#include "reason.h"
#include "scratch.h"
#include "source_node.h"
#include "state_key.h"
#include "timeout.h"
#include "usage.h"

/* Whether a state's packets cross to the other family. */
#define crosses(state)	((state)->key[PF_WIRE].made == PF_MADE_NEAR)

/* True if the packet goes as the one that made the state did. One from the far side of a state that
 * crosses goes against it, though it comes in. */
__inline bool goes_along(const struct pf_state *state, const struct pf_scratch *s, __u8 direction)
{
	return (state->direction == direction) != s->crosses_back;
}

/* Whether limiters count the state of an extension. */
#define has_limiters(extension)	((extension)->limited[PF_LIMITER_STATE].id || \
				 (extension)->limited[PF_LIMITER_SOURCE].id)

/* The state passes the packet. Its lock is held. */
__inline void count_in_state(struct pf_state *state, const struct pf_scratch *s, bool forward)
{
	if (forward) {
		state->packets[0] += s->segments;
		state->bytes[0] += s->bytes;
	} else {
		state->packets[1] += s->segments;
		state->bytes[1] += s->bytes;
	}
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
	struct pf_extension *extension = *(struct pf_extension **)arg;

	if (i >= PF_MATCH_RULES || i >= extension->match_count)
		return 1;
	release_rule(extension->match[i].slot);
	return 0;
}

/* The limiters that count a state lose it, once. `unmade`: it was not made after all, and gives
 * back what it took of their rates. */
__global int release_limiters(__u32 index, __u32 unmade)
{
	struct pf_state *state = bpf_map_lookup_elem(&states, &index);
	struct pf_limited of_states, of_sources;
	struct pf_status *status = pf_status();
	const struct pf_state_key *side;
	struct pf_limiter_use *use;
	struct pf_limiter *limiter;
	struct pf_limited_key key;
	struct pf_extension *extension;

	if (!state || !status)
		return 0;
	extension = extension_of(state, &index);
	if (!extension)
		return 0;
	bpf_spin_lock(&state->lock);
	of_states = extension->limited[PF_LIMITER_STATE];
	of_sources = extension->limited[PF_LIMITER_SOURCE];
	extension->limited[PF_LIMITER_STATE].id = extension->limited[PF_LIMITER_SOURCE].id = 0;
	bpf_spin_unlock(&state->lock);
	use = limiter_use(PF_LIMITER_STATE, of_states.id);
	if (of_states.id && use && use->serial == of_states.serial) {
		__sync_fetch_and_sub(&use->states, 1);
		limiter = find_limiter(status->generation, PF_LIMITER_STATE, of_states.id);
		if (unmade && limiter)
			__sync_fetch_and_sub(&use->saved_since, limiter->token);
	}
	if (of_sources.id) {
		side = state->direction == PF_IN ? &state->key[PF_WIRE] : &state->key[PF_STACK];
		set_limited_key(&key, of_sources.serial, of_sources.id, side->rdomain, side->family,
				state->direction == PF_IN ? side->address[0] : side->address[1],
				of_sources.prefix);
		release_limited(&key, of_sources.source, status->generation, unmade);
	}
	return 0;
}

/* A state that goes gives back what its extension tells of, but for limiters. `sweep`: the one that
 * found it, or 0. */
__global int release_extension(__u32 index, __u32 sweep)
{
	struct pf_state *state = bpf_map_lookup_elem(&states, &index);
	__u32 places[PF_NODE_KINDS];
	struct pf_extension *extension;

	extension = state ? extension_of(state, &index) : NULL;
	if (!extension)
		return 0;
	if (state->flags & PF_STATE_PFLOW)
		report_flow(state, extension);
	release_addresses(state, extension);
	if (extension->match_count)
		bpf_loop(PF_MATCH_RULES, release_match_rule, &extension, 0);
	__builtin_memcpy(places, extension->source_nodes, sizeof(places));
	release_sources(places, state->flags & PF_STATE_CONNECTED, state->rule_slot, state->id, sweep);
	return 0;
}

/* A state whose keys are not plain is made, or gone. */
__inline void count_translated(struct pf_status *status, const struct pf_state *state, int change)
{
	__sync_fetch_and_add(&status->translated, change);
	if (state->key[PF_WIRE].made == PF_MADE_NEAR)
		__sync_fetch_and_add(&status->crossing, change);
}

/* A state is made, or gone: which kinds of keys packets are looked up under. */
__inline void count_keys(struct pf_status *status, const struct pf_state *state, int change)
{
	if (state->key[PF_WIRE].interface)
		__sync_fetch_and_add(&status->bound, change);
	if (state->key[PF_WIRE].made)
		count_translated(status, state, change);
}

/* Takes a state out of the table. Returns 1, or 0 if somebody else did or it was used again. */
__global int remove_state(__u32 index, __u32 serial)
{
	struct pf_state *state = bpf_map_lookup_elem(&states, &index);
	struct pf_status *status = pf_status();
	__u32 sweep;
	bool mine, half;

	if (!state || !status)
		return 0;
	bpf_spin_lock(&state->lock);
	sweep = state->timeout == PF_TIMEOUT_PURGE ? status->sweeps : 0;
	mine = state->serial == serial && (serial & 1) && state->timeout != PF_TIMEOUT_UNLINKED;
	if (mine)
		state->timeout = PF_TIMEOUT_UNLINKED;
	bpf_spin_unlock(&state->lock);
	if (!mine)
		return 0;

	half = state->key[PF_WIRE].protocol == IPPROTO_TCP && half_open(&state->src);
	replace_key(&state->key[PF_WIRE], index, PF_NO_PLACE);
	if (state->key[PF_WIRE].made) {
		if (crosses(state))
			unlink_far_key(index, serial);
		else
			replace_key(&state->key[PF_STACK], index, PF_NO_PLACE);
	}
	count_keys(status, state, -1);
	release_rule(state->rule_slot);
	if (state->anchor_slot != PF_IDLE_SLOT)
		release_rule(state->anchor_slot);
	if (state->flags & PF_STATE_EXTENSION) {
		release_extension(index, sweep);
		release_limiters(index, 0);
	}
	if (state->flags & PF_STATE_MAPPED)
		release_mapped_state(index);
	if (half)
		__sync_fetch_and_sub(&status->half_open, 1);
	__sync_fetch_and_sub(&status->states, 1);
	count_state(PF_COUNT_REMOVALS);

	bpf_spin_lock(&state->lock);
	state->serial++;
	bpf_spin_unlock(&state->lock);
	drop_extension(state, &index);
	bpf_map_push_elem(&free_states, &index, BPF_ANY);
	return 1;
}

/* Ends a state before its time: nobody finds it, and the next sweep removes it. */
__global int end_state(__u32 index, __u32 serial)
{
	end_now(index, serial);
	return 0;
}

/* ---- lookup ---------------------------------------------------------------------------------- */

/* What was there when the packet came has won no race against it. */
__inline bool won_no_race(const struct pf_scratch *s, const struct pf_state *state)
{
	return s->raced && state->id < s->first_id;
}

/* The state that s->key leads to, with its place and serial number. One whose time is up is removed
 * and not found: the sweep comes by only now and then. One whose source was flushed is not found
 * either. */
/* Differs from OpenBSD: linux.md, "Expiry" */
__inline struct pf_state *state_of_key(struct pf_scratch *s, struct pf_state_ref *found)
{
	struct pf_status *status = pf_status();
	struct pf_state *state;
	__u8 timeout;

	if (!status || !find_key(&s->key, found))
		return NULL;
	state = bpf_map_lookup_elem(&states, &found->index);
	if (!state || state->serial != found->serial || won_no_race(s, state))
		return NULL;
	timeout = state->timeout;
	if (timeout >= PF_TIMEOUT_DETACHED || is_flushed(status, found->index, found->serial))
		return NULL;
	if (timeout < PF_TIMEOUT_PURGE &&
	    expired(state->rule_slot, timeout, state->expire, s->generation, s->now)) {
		remove_state(found->index, found->serial);
		return NULL;
	}
	return state;
}

/* The side of a state on which packets in this direction find it. */
__inline __u32 near_side(__u32 made, __u8 direction)
{
	if (made == PF_MADE_NEAR)
		return PF_WIRE;
	return made == PF_MADE_FAR || direction == PF_OUT ? PF_STACK : PF_WIRE;
}

/* Looks for a state with s->key on the side where packets in this direction look; of one that was
 * found earlier and this one the older floating and the younger bound state counts, as in OpenBSD's
 * lists. Translated states have keys apart from others, since theirs may be those of others on the
 * other side. */
__global int look_for_state(struct pf_scratch *s, __u32 made, __u32 found_before)
{
	struct pf_state *state, *before;
	struct pf_state_ref ref;

	if (!s)
		return found_before;
	s->key.made = made;
	state = made == PF_MADE_FAR ? far_state(s, &ref) : state_of_key(s, &ref);
	if (!state || state->timeout >= PF_TIMEOUT_PURGE || won_no_race(s, state))
		return found_before;
	if (made && !same_key(&s->key, &state->key[near_side(made, s->pd.direction)]))
		return found_before;
	if (found_before) {
		before = bpf_map_lookup_elem(&states, &s->ref.index);
		if (before && (before->id < state->id) == !s->key.interface)
			return 1;
	}
	s->ref = ref;
	return 1;
}

/* The same for bound states or floating ones of both kinds. */
__inline bool look_everywhere(struct pf_scratch *s, __u32 interface, bool translated, bool crossing)
{
	int found;

	s->key.interface = interface;
	found = look_for_state(s, PF_MADE_PLAIN, 0);
	if (translated) {
		found = look_for_state(s, PF_MADE_IN, found);
		found = look_for_state(s, PF_MADE_OUT, found);
	}
	if (crossing) {
		found = look_for_state(s, PF_MADE_NEAR, found);
		found = look_for_state(s, PF_MADE_FAR, found);
	}
	return found;
}

/* max-pkt-rate holds for packets in the direction of the rule's states too: what exceeds it finds
 * no state and is for the rules. Who lost a race and looks again is not counted again. */
__inline bool too_fast_for_state(struct pf_scratch *s)
{
	struct pf_state *state = bpf_map_lookup_elem(&states, &s->ref.index);

	if (!s->raced)
		s->too_fast = state && state->flags & PF_STATE_MAX_PKT_RATE &&
			      state->direction == s->pd.direction &&
			      exceeds_pkt_rate(state->rule_slot, s->now);
	return s->too_fast;
}

/* Finds the state of s->key; its place goes to s->ref. States bound to the packet's interface come
 * before those that float. */
__global int find_state(struct pf_scratch *s)
{
	struct pf_status *status = pf_status();
	bool translated, crossing;

	if (!s || !status)
		return 0;
	if (!s->raced)
		count_state(PF_COUNT_SEARCHES);
	translated = status->translated;
	crossing = status->crossing && s->pd.direction == PF_IN;
	if ((status->bound && s->interface.id &&
	     look_everywhere(s, s->interface.id, translated, crossing)) ||
	    look_everywhere(s, 0, translated, crossing))
		return !too_fast_for_state(s);
	return 0;
}

/* Whether a state has s->key on the side that the packet goes to: then an answer would be taken for
 * that state's. */
__global int key_is_taken(struct pf_scratch *s, __u32 made)
{
	struct pf_state *state;
	__u8 timeout;

	if (!s)
		return true;
	s->key.made = made;
	if (!find_key(&s->key, &s->looked_at))
		return false;
	state = bpf_map_lookup_elem(&states, &s->looked_at.index);
	if (!state)
		return false;
	timeout = state->timeout;
	if (timeout >= PF_TIMEOUT_DETACHED ||
	    (timeout < PF_TIMEOUT_PURGE &&
	     expired(state->rule_slot, timeout, state->expire, s->generation, s->now)))
		return false;
	return !made || same_key(&s->key, &state->key[far_side(s->pd.direction)]);
}

#endif /* PF_STATE_H */
