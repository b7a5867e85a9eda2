/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The maps of the state table, and the keys by which states are found (pf-semantics section 6).
 */
#ifndef PF_STATE_KEY_H
#define PF_STATE_KEY_H

#include "kern.h"
#include "scratch.h"

/* userland makes these to measure before it loads the programs */
#define PF_DEFAULT_STATES	100000

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pf_key_hash);
} key_hash SEC(".maps");

/* Values of arrays that may be mapped begin at a page, so each of these lines is one of the
 * cache's. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, PF_DEFAULT_STATES);
	__type(key, __u32);
	__type(value, struct pf_key_line);
} state_keys SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, PF_DEFAULT_STATES);
	__type(key, __u32);
	__type(value, struct pf_state);
} states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, PF_DEFAULT_STATES);
	__type(value, __u32);
} free_states SEC(".maps");

/* Returns the state of s->ref; NULL if its place has gone to another one. */
__inline struct pf_state *state_in_hand(const struct pf_scratch *s)
{
	struct pf_state *state = bpf_map_lookup_elem(&states, &s->ref.index);

	return state && state->serial == s->ref.serial ? state : NULL;
}

/* Index of the packet's source in a key: so that a reply has the key of what it answers. */
__inline int source_index(__u8 direction)
{
	return direction == PF_IN ? 0 : 1;
}

/* Says how the key has come about, in one word with what stands beside it. */
__inline void set_made(struct pf_state_key *key, __u8 made)
{
	*(word_of_parts *)&key->made = word_of_bytes(made, key->family, key->protocol, 0);
}

__inline void set_key(struct pf_state_key *key, const struct pf_pdesc *pd, __u8 direction)
{
	if (source_index(direction) == 0) {
		__builtin_memcpy(key->address[0], &pd->source, 16);
		__builtin_memcpy(key->address[1], &pd->destination, 16);
		*(word_of_parts *)key->port = word_of_ports(pd->source_port, pd->destination_port);
	} else {
		__builtin_memcpy(key->address[1], &pd->source, 16);
		__builtin_memcpy(key->address[0], &pd->destination, 16);
		*(word_of_parts *)key->port = word_of_ports(pd->destination_port, pd->source_port);
	}
	key->interface = 0;
	key->rdomain = pd->rdomain;
	*(word_of_parts *)&key->made = word_of_bytes(PF_MADE_PLAIN, pd->family, pd->protocol, 0);
}

/* The ends of a packet have not been translated yet. */
__inline void keep_original(struct pf_pdesc *pd)
{
	pd->original_source = pd->source;
	pd->original_destination = pd->destination;
	pd->original_source_port = pd->source_port;
	pd->original_destination_port = pd->destination_port;
}

/* Takes back what rules made of the ends. */
__inline void restore_original(struct pf_pdesc *pd)
{
	pd->source = pd->original_source;
	pd->destination = pd->original_destination;
	pd->source_port = pd->original_source_port;
	pd->destination_port = pd->original_destination_port;
}

/* What was received becomes what is translated, and the other way round. */
__inline void swap_ends(struct pf_pdesc *pd)
{
	struct pf_addr source = pd->source, destination = pd->destination;
	__be16 source_port = pd->source_port, destination_port = pd->destination_port;

	restore_original(pd);
	pd->original_source = source;
	pd->original_destination = destination;
	pd->original_source_port = source_port;
	pd->original_destination_port = destination_port;
}

/* Gives a packet the ends that a key has for one in `direction`. */
__inline void set_ends(struct pf_pdesc *pd, const struct pf_state_key *key, __u8 direction)
{
	if (source_index(direction) == 0) {
		__builtin_memcpy(&pd->source, key->address[0], 16);
		__builtin_memcpy(&pd->destination, key->address[1], 16);
		pd->source_port = key->port[0];
		pd->destination_port = key->port[1];
	} else {
		__builtin_memcpy(&pd->source, key->address[1], 16);
		__builtin_memcpy(&pd->destination, key->address[0], 16);
		pd->source_port = key->port[1];
		pd->destination_port = key->port[0];
	}
}

__inline bool same_key(const struct pf_state_key *a, const struct pf_state_key *b)
{
	const __u32 *x = (const __u32 *)a, *y = (const __u32 *)b;

	_Static_assert(sizeof(*a) == 48, "a key has no holes");
	for (int i = 0; i < 12; i++)
		if (x[i] != y[i])
			return false;
	return true;
}

/* Whether the sides of a state know it by different keys. */
__inline bool has_two_keys(const struct pf_state *state)
{
	return state->key[PF_WIRE].made &&
	       !same_key(&state->key[PF_WIRE], &state->key[PF_STACK]);
}

/* The key on the side that a packet in `direction` goes to. */
__inline __u32 far_side(__u8 direction)
{
	return direction == PF_IN ? PF_STACK : PF_WIRE;
}

#endif /* PF_STATE_KEY_H */
