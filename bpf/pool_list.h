/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * A list of several addresses, tables and interfaces behind `->` of an old rule, or of next hops by
 * way of interfaces: its members have their turn as they are written, each to its end. What is odd
 * here is so in FreeBSD.
 */
#ifndef PF_POOL_LIST_H
#define PF_POOL_LIST_H

#include "kern.h"
#include "pool.h"
#include "scratch.h"
#include "table.h"

__inline struct pf_pool_member *find_member(__u32 slot, __u32 purpose, __u32 index)
{
	struct pf_pool_member_key key = { .slot = slot, .purpose = purpose, .index = index };

	return bpf_map_lookup_elem(&pool_members, &key);
}

/* The slot of a member's table in a generation, as pool_table(). */
__inline __u32 member_table(const struct pf_pool_member *member, __u32 generation)
{
	return member->trial && member->trial == generation ? member->trial_table : member->table;
}

/* Moves the cursor to the next address of the member, to the first one if it comes anew. */
__inline bool step_member(struct pf_scratch *s, struct pf_pool *pool,
			  const struct pf_pool_member *member, bool anew)
{
	if (member->listed) {
		pool->table = member_table(member, s->generation);
		if (anew)
			pool->index = ~0u;
		return step_pool(s, pool);
	}
	if (member->family && member->family != s->pd.family)
		return false;
	if (anew)
		__builtin_memcpy(pool->counter, member->address, 16);
	return anew || is_within(pool->counter, member->address, member->mask);
}

/* Whether the rule prefers IPv6, and the packet may have an IPv4 next hop after all. */
__inline bool may_turn(const struct pf_scratch *s, const struct pf_pool *pool)
{
	return pool->prefer_ipv6 && s->choice.packet_family == AF_INET && !pool->turned;
}

/* `prefer-ipv6-nexthop`: IPv6 addresses have their turn, or those of IPv4, which IPv6 packets
 * cannot use. */
__inline void turn_to(struct pf_scratch *s, struct pf_pool *pool, bool inet)
{
	if (pool->turned != inet)
		pool->index = ~0u;
	pool->turned = inet;
	s->pd.family = inet ? AF_INET : AF_INET6;
}

/* Moves the cursor to the next address of the member: of a pool that prefers IPv6 to those
 * first. */
__inline bool step_families(struct pf_scratch *s, struct pf_pool *pool,
			    const struct pf_pool_member *member, bool anew)
{
	if (pool->prefer_ipv6)
		turn_to(s, pool, !anew && pool->turned && s->choice.packet_family == AF_INET);
	if (step_member(s, pool, member, anew))
		return true;
	if (!may_turn(s, pool))
		return false;
	turn_to(s, pool, true);
	return step_member(s, pool, member, anew);
}

/* Chooses from the list of a rule's pool; at the very beginning from its second member. Returns 1,
 * or 0 if there is no address. */
__global int choose_from_members(struct pf_scratch *s, struct pf_pool *pool, __u32 slot,
				 __u32 purpose)
{
	struct pf_pool_member *member;
	bool found;
	int i;

	if (!s || !pool)
		return 0;
	member = find_member(slot, purpose, pool->member);
	found = member && step_families(s, pool, member, false);
	bpf_for(i, 0, pool->members) {
		if (found)
			break;
		pool->member = pool->member + 1 < pool->members ? pool->member + 1 : 0;
		member = find_member(slot, purpose, pool->member);
		found = member && step_families(s, pool, member, true);
	}
	if (!found)
		return 0;
	if (!member->listed && !member->family)
		s->pd.family = s->choice.packet_family;
	s->choice.interface = member->interface;
	__builtin_memcpy(s->choice.address.bytes, pool->counter, 16);
	go_to_next(pool->counter, s->pd.family);
	return 1;
}

/* `prefer-ipv6-nexthop` and a table: first through its IPv6 addresses, then through its IPv4
 * ones. */
__inline bool choose_of_both(struct pf_scratch *s, struct pf_pool *pool)
{
	turn_to(s, pool, pool->turned && s->choice.packet_family == AF_INET);
	for (int i = 0; i < 4; i++) {
		if (step_pool(s, pool)) {
			__builtin_memcpy(s->choice.address.bytes, pool->counter, 16);
			go_to_next(pool->counter, s->pd.family);
			return true;
		}
		pool->index = ~0u;
		turn_to(s, pool, may_turn(s, pool));
	}
	return false;
}

/* `prefer-ipv6-nexthop`: chooses an IPv6 address if there is one; else, for an IPv4 packet, one of
 * its own family. False if there is none. */
__inline bool choose_preferred(struct pf_scratch *s, struct pf_pool *pool)
{
	bool inet = s->choice.packet_family == AF_INET;

	if (!pool->listed) {
		if (pool->family == AF_INET && !inet)
			return false;
		if (pool->family)
			s->pd.family = pool->family;
		return choose_address(s, pool, false);
	}
	if (pool->kind == PF_POOL_ROUND_ROBIN)
		return choose_of_both(s, pool);
	s->pd.family = AF_INET6;
	if (choose_listed(s, pool))
		return true;
	if (!inet)
		return false;
	s->pd.family = AF_INET;
	return choose_listed(s, pool);
}

/* Whether a member has s->choice.address. */
__global int is_of_members(struct pf_scratch *s, const struct pf_pool *pool, __u32 slot,
			   __u32 purpose)
{
	const struct pf_pool_member *member;
	const struct pf_addr *address;
	__u32 table;
	int i;

	if (!s || !pool)
		return 0;
	address = &s->choice.address;
	bpf_for(i, 0, pool->members) {
		member = find_member(slot, purpose, i);
		if (!member)
			return 0;
		table = member_table(member, s->generation);
		if (member->listed ? !!find_entry(table, s->pd.family, address) :
				     (!member->family || member->family == s->pd.family) &&
					     is_within(address->bytes, member->address,
						       member->mask))
			return 1;
	}
	return 0;
}

#endif /* PF_POOL_LIST_H */
