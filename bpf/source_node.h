/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Sources that are tracked: what a rule, or a pool of it, remembers of an address (pf-semantics
 * section 15).
 *
 * source_keys leads from a key to a place in the pool `source_nodes`. States hold nodes by their
 * places: a place that is held is not given back. Who finds a node by its key holds it under its
 * lock, if it still is the one meant.
 */
#ifndef PF_SOURCE_NODE_H
#define PF_SOURCE_NODE_H

#include "config.h"
#include "kern.h"
#include "reason.h"
#include "scratch.h"
#include "time.h"
#include "timeout.h"

/* userland makes these three to measure before it loads the programs */
#define PF_DEFAULT_SOURCES	10000

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PF_DEFAULT_SOURCES);
	__type(key, struct pf_source_key);
	__type(value, __u32);
} source_keys SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PF_DEFAULT_SOURCES);
	__type(key, __u32);
	__type(value, struct pf_source_node);
} source_nodes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, PF_DEFAULT_SOURCES);
	__type(value, __u32);
} free_sources SEC(".maps");

__inline bool same_source(const struct pf_source_key *a, const struct pf_source_key *b)
{
	const __u64 *x = (const __u64 *)a, *y = (const __u64 *)b;

	return x[0] == y[0] && x[1] == y[1] && x[2] == y[2];
}

/* Names a node: `source`'s, of a rule. */
__inline void set_source_key(struct pf_scratch *s, __u32 rule_slot, __u8 kind,
			     const struct pf_addr *source)
{
	__builtin_memset(&s->source_key, 0, sizeof(s->source_key));
	__builtin_memset(&s->source_chosen, 0, sizeof(s->source_chosen));
	s->source_interface = s->source_family = 0;
	s->source_key.rule_slot = rule_slot;
	s->source_key.kind = kind;
	s->source_key.family = s->pd.family;
	__builtin_memcpy(s->source_key.address, source, sizeof(s->source_key.address));
}

/* ---- making, holding ------------------------------------------------------------------------- */

enum pf_hold {
	PF_HOLD_YES,
	PF_HOLD_NO,			/* it is another node by now */
	PF_HOLD_REFUSED,		/* it has as many states as its rule allows */
};

/* The node in a place holds one state more. */
__inline enum pf_hold hold_found(struct pf_scratch *s, __u32 index, __u32 most)
{
	struct pf_source_node *node = bpf_map_lookup_elem(&source_nodes, &index);
	enum pf_hold hold = PF_HOLD_NO;

	if (!node)
		return hold;
	bpf_spin_lock(&node->lock);
	if (node->use == PF_NODE_USED && same_source(&node->key, &s->source_key)) {
		hold = most && node->states >= most ? PF_HOLD_REFUSED : PF_HOLD_YES;
		if (hold == PF_HOLD_YES)
			node->states++;
	}
	bpf_spin_unlock(&node->lock);
	return hold;
}

/* A place in the pool, or -1. */
__inline int take_source_place(struct pf_status *status, __u32 *index)
{
	if (!bpf_map_pop_elem(&free_sources, index))
		return 0;
	if (status->sources_used >= status->source_capacity)
		return -1;
	*index = __sync_fetch_and_add(&status->sources_used, 1);
	if (*index < status->source_capacity)
		return 0;
	__sync_fetch_and_sub(&status->sources_used, 1);
	return -1;
}

/* Writes the node of s->source_key to a place, with one state, and makes it known. False if another
 * CPU has made it meanwhile. */
__inline bool fill_source(struct pf_scratch *s, __u32 index)
{
	struct pf_source_node *node = bpf_map_lookup_elem(&source_nodes, &index);

	if (!node)
		return false;
	bpf_spin_lock(&node->lock);
	node->key = s->source_key;
	node->rate = 0;
	node->packets[0] = node->packets[1] = node->bytes[0] = node->bytes[1] = 0;
	node->states = 1;
	node->connections = 0;
	node->creation = s->now;
	node->expire = 0;
	node->swept = 0;
	node->oldest = ~0ULL;
	__builtin_memcpy(node->chosen, &s->source_chosen, sizeof(node->chosen));
	node->interface = s->source_interface;
	node->chosen_family = s->source_family;
	node->use = PF_NODE_USED;
	bpf_spin_unlock(&node->lock);
	if (!bpf_map_update_elem(&source_keys, &s->source_key, &index, BPF_NOEXIST))
		return true;
	bpf_spin_lock(&node->lock);
	node->use = PF_NODE_FREE;
	bpf_spin_unlock(&node->lock);
	return false;
}

/* Makes the node of s->source_key, if the limits allow it. Its place goes to `index`. */
__inline enum pf_hold make_source(struct pf_scratch *s, struct pf_rule_states *rule, __u32 *index)
{
	struct pf_config *config = pf_config(s->generation);
	struct pf_status *status = pf_status();
	enum pf_hold hold = PF_HOLD_REFUSED;

	if (!config || !status)
		return hold;
	/* places in the counts are reserved first, so that no two take the last one */
	if (__sync_fetch_and_add(&rule->source_nodes, 1) >= rule->max_src_nodes &&
	    rule->max_src_nodes) {
		__sync_fetch_and_sub(&rule->source_nodes, 1);
		count_limit(PF_LCOUNT_SRC_NODES);
		return hold;
	}
	if (__sync_fetch_and_add(&status->sources, 1) < config->limit_src_nodes &&
	    !take_source_place(status, index)) {
		if (fill_source(s, *index)) {
			count_source(PF_SOURCE_COUNT_INSERTS);
			return PF_HOLD_YES;
		}
		bpf_map_push_elem(&free_sources, index, BPF_ANY);
		hold = PF_HOLD_NO;
	}
	__sync_fetch_and_sub(&status->sources, 1);
	__sync_fetch_and_sub(&rule->source_nodes, 1);
	return hold;
}

/* Finds the node of s->source_key or makes it, with s->source_chosen, for one state more: its place
 * goes to s->test.source_nodes. Returns 0, or -1 if a limit is reached. */
__global int hold_source(struct pf_scratch *s)
{
	struct pf_rule_states *rule;
	enum pf_hold hold;
	__u32 slot, kind, index = 0, *found;

	if (!s)
		return -1;
	slot = s->source_key.rule_slot;
	kind = s->source_key.kind;
	rule = bpf_map_lookup_elem(&rule_states, &slot);
	if (!rule || kind >= PF_NODE_KINDS)
		return -1;
	count_source(PF_SOURCE_COUNT_SEARCHES);
	/* who loses a race for a new node finds that of the other */
	for (int i = 0; i < 2; i++) {
		found = bpf_map_lookup_elem(&source_keys, &s->source_key);
		if (found) {
			index = *found;
			hold = hold_found(s, index, rule->max_src_states);
			if (hold == PF_HOLD_REFUSED)
				count_limit(PF_LCOUNT_SRC_STATES);
		} else {
			hold = make_source(s, rule, &index);
		}
		if (hold == PF_HOLD_REFUSED)
			return -1;
		if (hold == PF_HOLD_YES) {
			s->test.source_nodes[kind] = index + 1;
			return 0;
		}
	}
	return -1;
}

/* ---- letting go ------------------------------------------------------------------------------ */

/* A state that held the node in a place does no more, or was never made (id 0). What nobody holds
 * stays for src.track if a state did: that of the last to go, and of those that one sweep takes the
 * oldest is the last, as in pf, whatever their places. */
__global int release_source(__u32 place, __u32 connected, __u32 rule_slot, __u64 id, __u32 sweep)
{
	struct pf_rule_states *rule = bpf_map_lookup_elem(&rule_states, &rule_slot);
	struct pf_status *status = pf_status();
	struct pf_source_node *node;
	struct pf_config *config;
	__u32 index = place - 1, now = uptime(), track;
	bool gone = false;

	if (!rule || !status)
		return 0;
	config = pf_config(status->generation);
	node = bpf_map_lookup_elem(&source_nodes, &index);
	if (!config || !node)
		return 0;
	track = rule->timeouts[PF_TIMEOUT_SRC_TRACK];
	if (!track)
		track = config->timeouts[PF_TIMEOUT_SRC_TRACK];
	bpf_spin_lock(&node->lock);
	node->states--;
	if (connected)
		node->connections--;
	if (id && (!sweep || node->swept != sweep || id < node->oldest))
		node->expire = now + track;
	if (sweep) {
		node->oldest = node->swept == sweep ? min(node->oldest, id) : id;
		node->swept = sweep;
	}
	if (!node->states && node->use == PF_NODE_DROPPED) {
		node->use = PF_NODE_FREE;
		gone = true;
	}
	bpf_spin_unlock(&node->lock);
	if (gone)
		bpf_map_push_elem(&free_sources, &index, BPF_ANY);
	return 0;
}

/* The node in a place is known no more: its key and its count are free. */
__inline void unlist_source(__u32 index, const struct pf_source_key *key)
{
	__u32 slot = key->rule_slot, *found = bpf_map_lookup_elem(&source_keys, key);
	struct pf_rule_states *rule = bpf_map_lookup_elem(&rule_states, &slot);
	struct pf_status *status = pf_status();

	if (found && *found == index)
		bpf_map_delete_elem(&source_keys, key);
	if (rule)
		__sync_fetch_and_sub(&rule->source_nodes, 1);
	if (status)
		__sync_fetch_and_sub(&status->sources, 1);
	count_source(PF_SOURCE_COUNT_REMOVALS);
}

/* Removes the node in a place if nobody holds it and its time is up. */
__global int remove_source(__u32 index, __u32 now)
{
	struct pf_source_node *node = bpf_map_lookup_elem(&source_nodes, &index);
	struct pf_source_key key;
	bool mine;

	if (!node || node->use != PF_NODE_USED)
		return 0;
	bpf_spin_lock(&node->lock);
	mine = node->use == PF_NODE_USED && !node->states && (__s32)(now - node->expire) >= 0;
	if (mine)
		node->use = PF_NODE_FREE;
	key = node->key;
	bpf_spin_unlock(&node->lock);
	if (!mine)
		return 0;
	unlist_source(index, &key);
	bpf_map_push_elem(&free_sources, &index, BPF_ANY);
	return 1;
}

/* Drops the node in a place, if it is the one of this key: who looks for it finds none. The states
 * that hold it go on. Returns 1, or 0 if it was gone. */
__global int drop_source(__u32 index, struct pf_source_key *key)
{
	struct pf_source_node *node = bpf_map_lookup_elem(&source_nodes, &index);
	bool mine, unused;

	if (!node || !key)
		return 0;
	bpf_spin_lock(&node->lock);
	mine = node->use == PF_NODE_USED && same_source(&node->key, key);
	unused = !node->states;
	if (mine)
		node->use = unused ? PF_NODE_FREE : PF_NODE_DROPPED;
	bpf_spin_unlock(&node->lock);
	if (!mine)
		return 0;
	unlist_source(index, key);
	if (unused)
		bpf_map_push_elem(&free_sources, &index, BPF_ANY);
	return 1;
}

/* The packet's walk held nodes, and no state came of it. Those that are new may stay until they are
 * swept, or not. */
__inline void forget_sources(struct pf_scratch *s, bool remove)
{
	for (int kind = 0; kind < PF_NODE_KINDS; kind++) {
		__u32 place = s->test.source_nodes[kind];

		if (!place)
			continue;
		s->test.source_nodes[kind] = 0;
		release_source(place, 0, s->source_key.rule_slot, 0, 0);
		if (remove)
			remove_source(place - 1, s->now);
	}
}

/* Lets go of the nodes that a state held, in the sweep of this number or, if 0, in none. Only that
 * of its rule counts connections. */
/* Differs from OpenBSD: linux.md, "Source nodes" */
__inline void release_sources(const __u32 *places, bool connected, __u32 rule_slot, __u64 id,
			      __u32 sweep)
{
	for (int kind = 0; kind < PF_NODE_KINDS; kind++)
		if (places[kind])
			release_source(places[kind], connected && kind == PF_NODE_TRACK, rule_slot, id,
				       sweep);
}

/* ---- counting -------------------------------------------------------------------------------- */

/* The nodes of the packet's state count it. */
__inline void count_sources(struct pf_scratch *s)
{
	for (int kind = 0; kind < PF_NODE_KINDS; kind++) {
		__u32 index = s->source_nodes[kind] - 1, way = s->against_state & 1;
		struct pf_source_node *node;

		if (!s->source_nodes[kind])
			continue;
		node = bpf_map_lookup_elem(&source_nodes, &index);
		if (!node)
			continue;
		__sync_fetch_and_add(&node->packets[way], s->segments);
		__sync_fetch_and_add(&node->bytes[way], s->bytes);
	}
}

#endif /* PF_SOURCE_NODE_H */
