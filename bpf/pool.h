/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Pools: which of several addresses a translated packet gets (pf-semantics section 11). What is odd
 * here is so in OpenBSD.
 */
#ifndef PF_POOL_H
#define PF_POOL_H

#include "kern.h"
#include "random.h"
#include "scratch.h"
#include "siphash.h"
#include "table.h"
#include "time.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct pf_pool_key);
	__type(value, struct pf_pool);
} pools SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1000000);
	__type(key, struct pf_pool_block_key);
	__type(value, struct pf_pool_block);
} pool_blocks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct pf_pool_load_key);
	__type(value, __u32);
} pool_loads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct pf_pool_member_key);
	__type(value, struct pf_pool_member);
} pool_members SEC(".maps");

/* addresses looked at for one choice; OpenBSD knows no bound */
/* Differs from OpenBSD: linux.md, "Long searches" */
#define MAX_POOL_STEPS	1024

__inline struct pf_pool *pool_of(__u32 slot, __u32 purpose)
{
	struct pf_pool_key key = { .slot = slot, .purpose = purpose };

	return bpf_map_lookup_elem(&pools, &key);
}

/* The slot of the pool's table for packets that a generation judges. */
__inline __u32 pool_table(const struct pf_pool *pool, __u32 generation)
{
	return pool->trial && pool->trial == generation ? pool->trial_table : pool->table;
}

/* ---- addresses as numbers: bytes in network order, IPv4 in the first four -------------------- */

__inline bool is_zero(const __u8 *address)
{
	const __u32 *word = (const __u32 *)address;

	return !(word[0] | word[1] | word[2] | word[3]);
}

__inline bool is_within(const __u8 *address, const __u8 *base, const __u8 *mask)
{
	const __u32 *a = (const __u32 *)address, *b = (const __u32 *)base,
		    *m = (const __u32 *)mask;

	return (a[0] & m[0]) == (b[0] & m[0]) && (a[1] & m[1]) == (b[1] & m[1]) &&
	       (a[2] & m[2]) == (b[2] & m[2]) && (a[3] & m[3]) == (b[3] & m[3]);
}

__inline bool is_before(const __u8 *a, const __u8 *b)
{
	const __u32 *x = (const __u32 *)a, *y = (const __u32 *)b;

	for (int i = 0; i < 4; i++)
		if (x[i] != y[i])
			return bpf_ntohl(x[i]) < bpf_ntohl(y[i]);
	return false;
}

__inline void go_to_next(__u8 *address, __u8 family)
{
	__u32 *word = (__u32 *)address;
	int i = family == AF_INET ? 0 : 3;

	if (family == AF_INET) {
		word[0] = bpf_htonl(bpf_ntohl(word[0]) + 1);
		return;
	}
	for (i = 3; i >= 0; i--) {
		word[i] = bpf_htonl(bpf_ntohl(word[i]) + 1);
		if (word[i])
			return;
	}
}

/* The network's bits under the mask, and others behind it. */
__inline void put_host_bits(__u8 *to, const __u8 *net, const __u8 *mask, const __u8 *bits,
			    __u8 family)
{
	const __u32 *n = (const __u32 *)net, *m = (const __u32 *)mask, *b = (const __u32 *)bits;
	__u32 *t = (__u32 *)to;

	for (int i = 0; i < 4; i++)
		t[i] = family == AF_INET && i ? 0 : (n[i] & m[i]) | (b[i] & ~m[i]);
}

/* ---- tables ---------------------------------------------------------------------------------- */

__inline struct pf_pool_block *find_block(const struct pf_table *table, __u8 family, __u32 index,
					  __u16 part)
{
	struct pf_pool_block_key key = {
		.list = table->list,
		.family = family,
		.part = part,
		.index = index,
	};

	return bpf_map_lookup_elem(&pool_blocks, &key);
}

/* Whether the block is a single address. */
__inline bool is_host(const struct pf_pool_block *block, __u8 family)
{
	return ((const __u32 *)block->mask)[family == AF_INET ? 0 : 3] == ~0u;
}

__inline __u32 *find_load(const struct pf_table *table, __u8 family, const __u8 *address)
{
	struct pf_pool_load_key key = { .table = table->stats, .family = family };

	__builtin_memcpy(key.address, address, 16);
	return bpf_map_lookup_elem(&pool_loads, &key);
}

/* Moves `at` to the first address that is not before it and that smaller blocks leave of this
 * one. */
/* Differs from OpenBSD: linux.md, "End of the address space" */
__inline bool find_part(const struct pf_choice *choice, const struct pf_table *table,
			const struct pf_pool_block *block, __u8 family, struct pf_addr *at)
{
	const struct pf_pool_block *part = block;
	int i;

	bpf_for(i, 0, block->parts) {
		if (i)
			part = find_block(table, family, choice->index, i);
		if (!part)
			return false;
		if (is_before(part->high, at->bytes))
			continue;
		if (is_before(at->bytes, part->low)) {
			/* OpenBSD leaves an IPv6 block where it meets a smaller one */
			if (family == AF_INET6)
				return false;
			__builtin_memcpy(at->bytes, part->low, 16);
		}
		return true;
	}
	return false;
}

/* Moves the pool's cursor to the next address that is in its table, where it is if that is. Returns
 * 1, or 0 if there is none. */
__global int step_pool(struct pf_scratch *s, struct pf_pool *pool)
{
	struct pf_choice *choice;
	struct pf_pool_block *block;
	struct pf_table *table;
	struct pf_addr at;
	__u32 *load, slot;
	__u8 family;
	int i;

	if (!s || !pool)
		return 0;
	slot = pool_table(pool, s->generation);
	table = bpf_map_lookup_elem(&tables, &slot);
	if (!table || !table->list)
		return 0;
	family = s->pd.family;
	choice = &s->choice;
	choice->use_counter = pool->index < table->total;
	choice->index = choice->start = choice->use_counter ? pool->index : 0;
	choice->wrapped = 0;
	bpf_for(i, 0, (int)table->total + 2) {
		if (choice->wrapped && choice->index == choice->start)
			return 0;
		block = find_block(table, family, choice->index, 0);
		if (!block) {
			/* behind the last address of a list's member comes the next member, or the
			 * other family */
			if (choice->wrapped || pool->members ||
			    (pool->prefer_ipv6 && pool->kind == PF_POOL_ROUND_ROBIN))
				return 0;
			choice->index = 0;
			choice->wrapped = 1;
			block = find_block(table, family, 0, 0);
			if (!block)
				return 0;
		}
		if (!choice->index && choice->use_counter && table->weighted) {
			pool->turn -= table->gcd;
			if (pool->turn < 1)
				pool->turn = table->heaviest;
		}
		choice->found = 1;
		if (!choice->use_counter || is_zero(pool->counter))
			__builtin_memcpy(at.bytes, block->base, 16);
		else if (is_within(pool->counter, block->base, block->mask))
			__builtin_memcpy(at.bytes, pool->counter, 16);
		else
			choice->found = 0;
		if (!choice->found || !find_part(choice, table, block, family, &at)) {
			choice->index++;
			choice->use_counter = 0;
			continue;
		}
		__builtin_memcpy(pool->counter, at.bytes, 16);
		pool->index = choice->index;
		choice->weight = max(block->weight, 1);
		choice->host = is_host(block, family);
		__builtin_memcpy(choice->mask.bytes, block->mask, 16);
		load = find_load(table, family, at.bytes);
		choice->load = load ? *load : 0;
		return 1;
	}
	return 0;
}

/* The same, from the beginning if the address where it stood is gone. */
__inline bool step_or_restart(struct pf_scratch *s, struct pf_pool *pool)
{
	if (step_pool(s, pool))
		return true;
	__builtin_memset(pool->counter, 0, 16);
	return step_pool(s, pool);
}

/* Leaves out the rest of the block that the cursor is in. */
__inline void go_to_end(struct pf_pool *pool, const struct pf_addr *mask, __u8 family)
{
	__u32 *word = (__u32 *)pool->counter;
	int i;

	for (i = 0; i < (family == AF_INET ? 1 : 4); i++)
		word[i] |= ~mask->word[i];
}

/* Weighted round-robin: goes on to an address that is heavy enough for this turn. PF tries each
 * one; but all of a block are as light, and the turn changes in the first block only. */
__global int step_by_weight(struct pf_scratch *s, struct pf_pool *pool)
{
	int i;

	if (!s || !pool)
		return 0;
	bpf_for(i, 0, MAX_POOL_STEPS) {
		if (!step_pool(s, pool))
			return 0;
		if ((__s32)s->choice.weight >= pool->turn)
			return 1;
		if (pool->index)
			go_to_end(pool, &s->choice.mask, s->pd.family);
		go_to_next(pool->counter, s->pd.family);
	}
	return 0;
}

__inline __u64 load_of(const struct pf_scratch *s, const struct pf_table *table)
{
	return table->weighted ? (__u64)s->choice.load * 0xffff / max(s->choice.weight, 1) :
				 s->choice.load;
}

/* Goes once round the table; an address without states ends the search. In a table with more than
 * MAX_POOL_STEPS addresses the next choice goes on where this one has stopped. Entries that are
 * networks have no counters, so they cannot be chosen. */
__global int choose_least_states(struct pf_scratch *s, struct pf_pool *pool)
{
	struct pf_choice *choice;
	struct pf_table *table;
	__u32 slot;
	int i;

	if (!s || !pool)
		return 0;
	slot = pool_table(pool, s->generation);
	table = bpf_map_lookup_elem(&tables, &slot);
	if (!table || !step_or_restart(s, pool))
		return 0;
	choice = &s->choice;
	__builtin_memcpy(choice->begin_at.bytes, pool->counter, 16);
	__builtin_memcpy(choice->address.bytes, pool->counter, 16);
	choice->least = load_of(s, table);
	choice->least_states = choice->load;
	choice->least_host = choice->host;
	bpf_for(i, 0, MAX_POOL_STEPS) {
		go_to_next(pool->counter, s->pd.family);
		if (!step_pool(s, pool))
			return 0;
		if (load_of(s, table) < choice->least) {
			choice->least = load_of(s, table);
			choice->least_states = choice->load;
			choice->least_host = choice->host;
			__builtin_memcpy(choice->address.bytes, pool->counter, 16);
		}
		if (is_within(choice->begin_at.bytes, pool->counter, choice->mask.bytes) ||
		    !choice->least_states)
			return choice->least_host;
	}
	return choice->least_host;
}

/* ---- choosing -------------------------------------------------------------------------------- */

/* The hash of the source, read as one of the family, as a number; as an address it goes to
 * `bits`. */
__inline __u64 hash_source(const struct pf_scratch *s, const struct pf_pool *pool, __u8 family,
			   __u32 *bits)
{
	const struct pf_addr *source = &s->choice.source;
	struct siphash h;
	__u64 key[2], hash;

	__builtin_memcpy(key, pool->key, sizeof(key));
	siphash_begin(&h, key[0], key[1]);
	if (family == AF_INET) {
		hash = siphash_end(&h, source->word[0], 4);
	} else {
		siphash_word(&h, source->half[0]);
		siphash_word(&h, source->half[1]);
		hash = siphash_end(&h, 0, 16);
	}
	/* one hash is not enough for an IPv6 address */
	bits[0] = hash;
	bits[1] = hash >> 32;
	bits[2] = ~bits[1];
	bits[3] = ~bits[0];
	return hash;
}

__global int choose_listed(struct pf_scratch *s, struct pf_pool *pool)
{
	struct pf_pool_block *block;
	struct pf_table *table;
	__u32 slot, bits[4];

	if (!s || !pool)
		return 0;
	slot = pool_table(pool, s->generation);
	table = bpf_map_lookup_elem(&tables, &slot);
	if (!table || !table->list)
		return 0;
	switch (pool->kind) {
	case PF_POOL_NONE:
	case PF_POOL_BITMASK:
		block = find_block(table, s->pd.family, 0, 0);
		if (!block)
			return 0;
		__builtin_memcpy(s->choice.address.bytes, block->base, 16);
		if (pool->kind == PF_POOL_BITMASK)
			put_host_bits(s->choice.address.bytes, block->base, block->mask,
				      s->choice.source.bytes, s->pd.family);
		return 1;
	case PF_POOL_RANDOM:
		pool->index = table->total ? random_draw(table->total) : 0;
		break;
	case PF_POOL_SOURCE_HASH:
		pool->index = table->total ?
			hash_source(s, pool, s->choice.packet_family, bits) % table->total : 0;
		break;
	case PF_POOL_ROUND_ROBIN:
		if (!step_or_restart(s, pool) || (table->weighted && !step_by_weight(s, pool)))
			return 0;
		__builtin_memcpy(s->choice.address.bytes, pool->counter, 16);
		go_to_next(pool->counter, s->pd.family);
		return 1;
	default:
		return choose_least_states(s, pool);
	}
	__builtin_memset(pool->counter, 0, 16);
	if (!step_pool(s, pool))
		return 0;
	__builtin_memcpy(s->choice.address.bytes, pool->counter, 16);
	return 1;
}

/* Random bits for the part of an address that the mask leaves open: 32 of them at a time, from the
 * right, until the mask fills a word. */
__inline void draw_host_bits(struct pf_pool *pool, __u8 family)
{
	const __u32 *mask = (const __u32 *)pool->mask;
	__u32 *counter = (__u32 *)pool->counter;
	__u32 open;

	__builtin_memset(pool->counter, 0, 16);
	for (int i = 3; i >= 0; i--) {
		if (family == AF_INET && i)
			continue;
		open = ~bpf_ntohl(mask[i]);
		if (!open)
			break;
		/* of 2^32 OpenBSD draws nothing */
		counter[i] = open == ~0u ? 0 : bpf_htonl(random_draw(open + 1));
	}
}

/* Chooses an address for s->choice.source; with `begins` it is the first of a search. Returns 1, or
 * 0 if there is none. */
__global int choose_address(struct pf_scratch *s, struct pf_pool *pool, __u32 begins)
{
	__u8 *chosen;
	__u32 bits[4];
	__u8 family;

	if (!s || !pool)
		return 0;
	if (pool->listed)
		return choose_listed(s, pool);
	chosen = s->choice.address.bytes;
	family = s->pd.family;
	switch (pool->kind) {
	case PF_POOL_NONE:
		__builtin_memcpy(chosen, pool->address, 16);
		return 1;
	case PF_POOL_BITMASK:
		put_host_bits(chosen, pool->address, pool->mask, s->choice.source.bytes, family);
		return 1;
	case PF_POOL_RANDOM:
		if (begins)
			draw_host_bits(pool, family);
		else
			go_to_next(pool->counter, family);
		put_host_bits(chosen, pool->address, pool->mask, pool->counter, family);
		return 1;
	case PF_POOL_SOURCE_HASH:
		hash_source(s, pool, family, bits);
		put_host_bits(chosen, pool->address, pool->mask, (__u8 *)bits, family);
		return 1;
	case PF_POOL_ROUND_ROBIN:
		if (is_zero(pool->counter)) {
			if (pool->single) {
				__builtin_memcpy(chosen, pool->address, 16);
				return 1;
			}
		} else if (is_within(pool->counter, pool->address, pool->mask)) {
			/* OpenBSD counts host bits alone, and ends when they look like the whole */
			return 0;
		}
		put_host_bits(chosen, pool->address, pool->mask, pool->counter, family);
		go_to_next(pool->counter, family);
		return 1;
	}
	return 0;
}

/* ---- states of addresses, for least-states --------------------------------------------------- */

/* A state got the address, or lost it. Only single addresses of tables have counters. */
__inline bool count_load(const struct pf_pool *pool, __u8 family, const struct pf_addr *address,
			 int change)
{
	/* a table of this name on trial has the same counters */
	const struct pf_table *table = bpf_map_lookup_elem(&tables, &pool->table);
	struct pf_pool_load_key key = { .family = family };
	__u32 *load, first = change;

	if (!pool->listed || !table)
		return true;
	key.table = table->stats;
	__builtin_memcpy(key.address, address, 16);
	load = bpf_map_lookup_elem(&pool_loads, &key);
	if (!load)
		return change < 0 || !bpf_map_update_elem(&pool_loads, &key, &first, BPF_NOEXIST);
	if (change > 0)
		__sync_fetch_and_add(load, 1);
	else if (*load)
		__sync_fetch_and_sub(load, 1);
	return true;
}

/* An address left a table: if it comes back it begins anew. */
__inline void forget_load(__u32 slot, __u8 family, const void *address)
{
	const struct pf_table *table = bpf_map_lookup_elem(&tables, &slot);
	struct pf_pool_load_key key = { .family = family };

	if (!table)
		return;
	key.table = table->stats;
	__builtin_memcpy(key.address, address, sizeof(key.address));
	bpf_map_delete_elem(&pool_loads, &key);
}

/* The slot of a rule whose pool has chosen an address, if only that which the packet had, and
 * counts the states of each: PF_IDLE_SLOT if it does not. */
__inline __u32 counting_slot(__u32 slot, __u32 purpose)
{
	const struct pf_pool *pool = slot == PF_IDLE_SLOT ? NULL : pool_of(slot, purpose);

	return pool && pool->kind == PF_POOL_LEAST_STATES ? slot : PF_IDLE_SLOT;
}

/* A state is gone that pools count. */
__inline void release_addresses(const struct pf_state *state, const struct pf_extension *extension)
{
	const struct pf_state_key *key = &state->key[state->direction == PF_IN ? PF_STACK : PF_WIRE];
	/* on the side that a packet crosses to it goes out */
	int source = state->direction == PF_IN && key->made != PF_MADE_FAR ? 0 : 1;
	struct pf_addr address;
	struct pf_pool *pool;

	if (extension->nat_slot != PF_IDLE_SLOT) {
		pool = pool_of(extension->nat_slot, PF_POOL_NAT);
		__builtin_memcpy(&address, key->address[source & 1], 16);
		if (pool)
			count_load(pool, key->family, &address, -1);
	}
	if (extension->route != PF_HOP_NO) {
		pool = pool_of(state->rule_slot, PF_POOL_ROUTE);
		__builtin_memcpy(&address, extension->next_hop, 16);
		if (pool && pool->kind == PF_POOL_LEAST_STATES)
			count_load(pool, extension->hop_family, &address, -1);
	}
	if (extension->rdr_slot != PF_IDLE_SLOT) {
		pool = pool_of(extension->rdr_slot, PF_POOL_RDR);
		__builtin_memcpy(&address, key->address[!source], 16);
		if (pool)
			count_load(pool, key->family, &address, -1);
	}
}

#endif /* PF_POOL_H */
