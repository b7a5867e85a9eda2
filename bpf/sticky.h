/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * `sticky-address`: a source keeps the address that a pool gave it, as long as the pool has it and
 * its node lives (pf-semantics section 11).
 */
#ifndef PF_STICKY_H
#define PF_STICKY_H

#include "kern.h"
#include "pool.h"
#include "pool_list.h"
#include "scratch.h"
#include "source_node.h"
#include "table.h"

/* Nodes of pools are of the kind behind that of limits that their purpose has. */
__inline __u32 node_kind(__u32 purpose)
{
	return purpose - PF_POOL_NAT + PF_NODE_NAT;
}

__inline __u32 purpose_of(__u32 kind)
{
	return kind - PF_NODE_NAT + PF_POOL_NAT;
}

/* Whether the pool has s->choice.address; to OpenBSD a negated entry of a table is one too. */
__inline bool has_address(struct pf_scratch *s, const struct pf_pool *pool)
{
	const struct pf_addr *address = &s->choice.address;

	if (pool->members)
		return is_of_members(s, pool, s->source_key.rule_slot,
				     purpose_of(s->source_key.kind));
	if (pool->listed)
		return find_entry(pool_table(pool, s->generation), s->pd.family, address);
	return is_within(address->bytes, pool->address, pool->mask);
}

/* Counts a state more of s->choice.address, which the source had before: not if a network stands in
 * the table now where it stood. */
__inline bool count_again(struct pf_scratch *s, const struct pf_pool *pool)
{
	const struct pf_addr *address = &s->choice.address;
	__u32 slot = pool_table(pool, s->generation);
	const struct pf_table_entry *entry = find_entry(slot, s->pd.family, address);

	return entry && entry->prefix == (s->pd.family == AF_INET ? 32 : 128) &&
	       count_load(pool, s->pd.family, address, 1);
}

/* Finds the node of s->source_key and what it remembers; if the pool no longer has that, the node
 * goes, and nobody counts the states that it had. Returns 1 if the choice is made. */
__global int recall_address(struct pf_scratch *s, struct pf_pool *pool)
{
	struct pf_source_node *node;
	__u32 index, kind, *found;

	if (!s || !pool)
		return 0;
	kind = s->source_key.kind;
	count_source(PF_SOURCE_COUNT_SEARCHES);
	found = bpf_map_lookup_elem(&source_keys, &s->source_key);
	if (!found || kind >= PF_NODE_KINDS)
		return 0;
	index = *found;
	node = bpf_map_lookup_elem(&source_nodes, &index);
	if (!node || hold_found(s, index, 0) != PF_HOLD_YES)
		return 0;
	/* a node keeps what was chosen when it was made */
	__builtin_memcpy(&s->choice.address, node->chosen, sizeof(node->chosen));
	s->choice.interface = node->interface;
	s->pd.family = node->chosen_family;
	if (!has_address(s, pool)) {
		drop_source(index, &s->source_key);
		release_source(index + 1, 0, s->source_key.rule_slot, 0, 0);
		return 0;
	}
	s->test.source_nodes[kind] = index + 1;
	return pool->kind != PF_POOL_LEAST_STATES || count_again(s, pool);
}

/* Notes s->choice.address in the node of s->source_key, which takes the place of the one that an
 * earlier choice for this packet left. Returns 1, or 0 if a limit is reached. */
__global int remember_address(struct pf_scratch *s)
{
	__u32 kind, place;

	if (!s)
		return 0;
	kind = s->source_key.kind;
	if (kind >= PF_NODE_KINDS)
		return 0;
	place = s->test.source_nodes[kind];
	if (place) {
		s->test.source_nodes[kind] = 0;
		release_source(place, 0, s->source_key.rule_slot, 0, 0);
		remove_source(place - 1, s->now);
	}
	s->source_chosen = s->choice.address;
	s->source_interface = s->choice.interface;
	s->source_family = s->pd.family;
	return !hold_source(s);
}

/* As choose, which leaves the family of the address in the packet's place. */
__inline bool choose_any(struct pf_scratch *s, struct pf_pool *pool, __u32 slot, __u32 purpose,
			 bool begins)
{
	struct pf_choice *choice = &s->choice;
	bool found;

	if (pool->sticky) {
		set_source_key(s, slot, node_kind(purpose), &choice->source);
		if (pool->kind != PF_POOL_NONE && !s->test.source_nodes[node_kind(purpose)] &&
		    recall_address(s, pool)) {
			choice->recalled = 1;
			return true;
		}
	}
	if (pool->members)
		found = choose_from_members(s, pool, slot, purpose);
	else if (purpose == PF_POOL_ROUTE && pool->prefer_ipv6)
		found = choose_preferred(s, pool);
	else
		found = choose_address(s, pool, begins);
	if (!found)
		return false;
	if (pool->kind == PF_POOL_LEAST_STATES &&
	    !count_load(pool, s->pd.family, &choice->address, 1))
		return false;
	return !pool->sticky || remember_address(s);
}

/* Chooses an address of a rule's pool for s->choice.source, the one that it got before if the pool
 * is sticky. With `begins` it is the first of a search over several. False if there is none. */
__inline bool choose(struct pf_scratch *s, struct pf_pool *pool, __u32 slot, __u32 purpose,
		     bool begins)
{
	struct pf_choice *choice = &s->choice;
	bool found;

	choice->recalled = 0;
	choice->interface = pool->interface;
	choice->packet_family = s->pd.family;
	found = choose_any(s, pool, slot, purpose, begins);
	choice->family = s->pd.family;
	s->pd.family = choice->packet_family;
	return found;
}

/* Chooses as choose() does, for a packet as it will be in the other family. */
__inline bool choose_across(struct pf_scratch *s, struct pf_pool *pool, __u32 slot, __u32 purpose,
			    bool begins)
{
	__u8 family = s->pd.family;
	bool found;

	s->pd.family = s->cross_to;
	found = choose(s, pool, slot, purpose, begins);
	s->pd.family = family;
	return found;
}

#endif /* PF_STICKY_H */
