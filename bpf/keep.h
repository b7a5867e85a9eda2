/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The state that a plain rule makes of an ordinary UDP datagram: the work of create.h and
 * new_state.h where nothing is translated, limited or remembered but the connection, and no state
 * is in the way. A SYN and all other packets go to create.h, because is_plain() (plain.h) refuses
 * them.
 */
#ifndef PF_KEEP_H
#define PF_KEEP_H

#include "create.h"
#include "kern.h"
#include "new_state.h"
#include "other.h"
#include "plain.h"
#include "scratch.h"

/* Asks the memory for the place that will most likely be taken behind this one: those that were
 * never used are taken in their order, those that the sweep has given back in it the other way
 * round. */
__inline void fetch_next_place(const struct pf_status *status, __u32 index)
{
	__u32 next = index + 1 == status->states_used ? index + 1 : index - 1;
	const struct pf_state *state = bpf_map_lookup_elem(&states, &next);

	if (!state)
		return;
	fetch_state(state);
	fetch_line(&state->pad);
}

/* Writes the state to its place, where nobody else looks yet. It is a simple one: the rule wants
 * nothing of its packets. */
__inline void describe_plainly(struct pf_state *state, struct pf_scratch *s, const struct pf_rule *rule,
			       __u32 anchor_slot, bool has_path)
{
	__builtin_memset(&state->flags, 0, sizeof(*state) - offsetof(struct pf_state, flags));
	state->key[PF_WIRE] = state->key[PF_STACK] = s->key;
	state->flags = PF_STATE_SIMPLE | state_flags(rule);
	state->direction = s->pd.direction;
	state->rule_slot = rule->slot;
	state->anchor_slot = anchor_slot;
	state->log_to = rule->log_to;
	state->creation = state->expire = s->now;
	state->packets[0] = s->segments;
	state->bytes[0] = s->bytes;
	if (has_path)
		state->path = s->path;
	create_other(state, s);
}

/* Leads its key to the state. False if there is another with the same, among those of translated
 * states too: who of them makes way is known to link_key(). */
__inline bool lead_to_state(struct pf_scratch *s, const struct pf_status *status)
{
	/* nobody seeks one where there are no states, nor one that is of an interface alone */
	if ((!s->sought || s->key.interface) && !seek_key(&s->key, &s->spot))
		return false;
	if (insert_there(&s->key, &s->spot, s->ref.index, &s->entry))
		return false;
	if (!status->translated)
		return true;
	s->key.made = s->pd.direction;
	return !find_key(&s->key, &s->looked_at);
}

/* Makes the state that the rules want of the packet, whose walk came to PF_PLAINLY_KEEP, with
 * s->path if it has one: those behind it take that. Returns 0, or the reason why there can be none:
 * then nothing has happened to the packet, but a place may wait for the sweep. */
__global int keep_plainly(struct pf_scratch *s, __u32 has_path)
{
	struct pf_status *status = pf_status();
	const struct pf_plain_walk *walk;
	struct pf_state *state;
	struct pf_rule *rule;
	__u32 generation;
	void *rules;
	int reason;

	if (!s || !status)
		return PF_REASON_MEMORY;
	generation = pf_copy(s->generation);
	walk = &s->plain[s->pd.direction == PF_OUT];
	rules = bpf_map_lookup_elem(&rulesets, &generation);
	rule = rules ? bpf_map_lookup_elem(rules, &walk->decided) : NULL;
	if (!rule)
		return PF_REASON_MEMORY;
	reason = take_state(s);
	if (reason)
		return reason;
	state = bpf_map_lookup_elem(&states, &s->ref.index);
	if (!state)
		return PF_REASON_MEMORY;
	/* most packets make another state where they leave: the memory is waited for once */
	if (s->pd.direction == PF_IN)
		fetch_next_place(status, s->ref.index);
	s->cross_to = 0;
	set_state_key(s, rule);
	describe_plainly(state, s, rule, walk->decided_by.slot, has_path);
	begin_state(state, status, s);
	count_keys(status, state, 1);
	if (!lead_to_state(s, status)) {
		/* there is no stack to remove it: the sweep does */
		end_state(s->ref.index, s->ref.serial);
		uncount_state(state);
		return PF_REASON_STATE_INSERT;
	}
	count_state(PF_COUNT_INSERTS);
	__builtin_memset(s->source_nodes, 0, sizeof(s->source_nodes));
	s->has_state = s->made = 1;
	return 0;
}

#endif /* PF_KEEP_H */
