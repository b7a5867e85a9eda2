/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * `endpoint-independent`: UDP packets from one address and port inside have the same ones outside,
 * whoever they are for, as long as one of their states lives. As FreeBSD has it.
 */
#ifndef PF_ENDPOINT_H
#define PF_ENDPOINT_H

#include "kern.h"
#include "scratch.h"
#include "state_key.h"

#include <linux/errno.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, PF_DEFAULT_STATES);
	__type(key, struct pf_endpoint);
	__type(value, struct pf_mapping);
} mappings SEC(".maps");

__inline void set_endpoint(struct pf_endpoint *endpoint, __u32 rdomain, __u8 family, bool outside,
			   const void *address, __be16 port)
{
	endpoint->rdomain = rdomain;
	endpoint->family = family;
	endpoint->outside = outside;
	endpoint->port = port;
	__builtin_memcpy(endpoint->address, address, 16);
}

/* Lets go of the mapping of an endpoint inside; it goes with its last state. */
__inline void release_mapping(const struct pf_endpoint *inside)
{
	struct pf_mapping *mapping = bpf_map_lookup_elem(&mappings, inside);
	struct pf_endpoint outside;

	if (!mapping || __sync_fetch_and_sub(&mapping->uses, 1) != 1)
		return;
	outside = mapping->other;
	bpf_map_delete_elem(&mappings, inside);
	bpf_map_delete_elem(&mappings, &outside);
}

/* Finds what is outside of the packet's endpoint, and holds it. Returns 1 if there is such a
 * mapping. */
__global int hold_mapping(struct pf_scratch *s)
{
	struct pf_endpoint inside;
	struct pf_mapping *mapping;

	if (!s)
		return 0;
	set_endpoint(&inside, s->pd.rdomain, s->pd.family, false, &s->pd.original_source,
		     s->pd.original_source_port);
	mapping = bpf_map_lookup_elem(&mappings, &inside);
	if (!mapping)
		return 0;
	/* one that nobody uses is about to go */
	if (!s->mapped && !__sync_fetch_and_add(&mapping->uses, 1)) {
		__sync_fetch_and_sub(&mapping->uses, 1);
		return 0;
	}
	s->mapped = 1;
	__builtin_memcpy(&s->choice.address, mapping->other.address, 16);
	s->choice.port = mapping->other.port;
	return 1;
}

/* Maps the packet's endpoint to s->choice.address with the port, and holds it. Returns 1, or 0 if
 * that is another's, or if there is no room: then no other port is tried. */
__global int map_endpoint(struct pf_scratch *s, __u32 port)
{
	struct pf_mapping to_outside = { .uses = 1 }, to_inside = {};
	long error;

	if (!s)
		return 0;
	set_endpoint(&to_inside.other, s->pd.rdomain, s->pd.family, false, &s->pd.original_source,
		     s->pd.original_source_port);
	set_endpoint(&to_outside.other, s->pd.rdomain, s->pd.family, true, &s->choice.address,
		     port);
	error = bpf_map_update_elem(&mappings, &to_outside.other, &to_inside, BPF_NOEXIST);
	if (!error) {
		error = bpf_map_update_elem(&mappings, &to_inside.other, &to_outside, BPF_NOEXIST);
		if (error)
			bpf_map_delete_elem(&mappings, &to_outside.other);
	}
	if (error && error != -EEXIST)
		s->choice.probes = 0;	/* the search ends */
	if (error)
		return 0;
	s->mapped = 1;
	return 1;
}

/* No state holds what was held for the packet. */
__global int let_go_of_mapping(struct pf_scratch *s)
{
	struct pf_endpoint inside;

	if (!s || !s->mapped)
		return 0;
	s->mapped = 0;
	set_endpoint(&inside, s->pd.rdomain, s->pd.family, false, &s->pd.original_source,
		     s->pd.original_source_port);
	release_mapping(&inside);
	return 0;
}

/* A state that held its mapping is gone. */
__global int release_mapped_state(__u32 index)
{
	struct pf_state *state = bpf_map_lookup_elem(&states, &index);
	const struct pf_state_key *key;
	struct pf_endpoint inside;
	int source;

	if (!state)
		return 0;
	key = &state->key[state->direction == PF_IN ? PF_WIRE : PF_STACK];
	source = source_index(state->direction);
	set_endpoint(&inside, key->rdomain, key->family, false, key->address[source & 1],
		     key->port[source & 1]);
	release_mapping(&inside);
	return 0;
}

#endif /* PF_ENDPOINT_H */
