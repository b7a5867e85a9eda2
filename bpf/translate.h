/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Translation by rules (pf-semantics section 11): what a rule that matches makes of the ends of a
 * packet. The descriptor is changed at once, so that later rules see it; the packet at the end, by
 * rewrite.h.
 */
#ifndef PF_TRANSLATE_H
#define PF_TRANSLATE_H

#include "endpoint.h"
#include "kern.h"
#include "pool.h"
#include "scratch.h"
#include "secret.h"
#include "state.h"
#include "sticky.h"

/* where ports of ICMP echo come from: its ids */
#define LOWEST_ID	1
#define HIGHEST_ID	65535

/*
 * Ports tried for one packet. OpenBSD tries all ports of an address in order, so a packet costs
 * milliseconds when the ports are used up. Here the search has two parts:
 *
 * - In order, as in OpenBSD: the first PROBES_IN_ORDER ports of the only address, or PROBES_OF_EACH
 *   ports of each of several. Ranges that have no more ports are searched completely.
 * - At random, with the rest of the probes. Each draw is uniform and independent of the others, so
 *   it does not matter which ports are free: where 1 in 64 is free, 1024 draws miss all free ports
 *   with a probability of (63/64)^1024, which is 10^-7. Several addresses share the draws, at
 *   RANDOM_OF_EACH draws a visit, so this holds for pools of up to 64 addresses.
 */
/* Differs from OpenBSD: linux.md, "Ports" */
#define MAX_PROBES	1536
#define PROBES_IN_ORDER	512
#define PROBES_OF_EACH	128
#define RANDOM_OF_EACH	16

/* ---- ports ----------------------------------------------------------------------------------- */

/* Whether a state has s->key where answers will be looked up, in whichever way it was made. */
__inline bool is_taken(struct pf_scratch *s, const struct pf_status *status)
{
	const bool crossing = status->translated && status->crossing;
	const __u32 last = !status->translated ? PF_MADE_PLAIN :
			   crossing && s->pd.direction == PF_OUT ? PF_MADE_NEAR : PF_MADE_OUT;

	for (__u32 made = PF_MADE_PLAIN; made <= PF_MADE_NEAR && made <= last; made++)
		if (key_is_taken(s, made))
			return true;
	if (!crossing || s->pd.direction == PF_OUT)
		return false;
	s->key.made = PF_MADE_FAR;
	return find_far(s, true);
}

/* Whether no state has the flow's key with this source port where answers will be looked up. */
__global int is_port_free(struct pf_scratch *s, __u32 port)
{
	struct pf_status *status = pf_status();
	__u32 source;

	if (!s || !status)
		return 0;
	source = source_index(s->pd.direction);
	if (source)
		s->key.port[1] = port;
	else
		s->key.port[0] = port;
	count_state(PF_COUNT_SEARCHES);
	s->key.interface = 0;
	/* among floating states, then among bound ones */
	for (int i = 0; i < 2; i++) {
		if (is_taken(s, status))
			return 0;
		if (!status->bound || !s->interface.id)
			break;
		s->key.interface = s->interface.id;
	}
	return 1;
}

/* Whether the packet's endpoint is to look the same to all. */
__inline bool maps_endpoint(const struct pf_scratch *s, const struct pf_pool *pool)
{
	return pool->endpoint_independent && s->pd.protocol == IPPROTO_UDP;
}

/* Whether the packet can have the port outside. This is a probe. */
__inline bool take_port(struct pf_scratch *s, const struct pf_pool *pool, __be16 port)
{
	if (!s->choice.probes)
		return false;
	s->choice.probes--;
	return is_port_free(s, port) && (!maps_endpoint(s, pool) || map_endpoint(s, port));
}

/* Begins the sequence of random ports, once for each packet. */
__inline void begin_draws(struct pf_scratch *s)
{
	if (!s->choice.draws)
		s->choice.draws = 1 + (__u64)secret_draw(s, ~0u);
}

/* The next port of the range at random: SplitMix64 (Steele, Lea and Flood, "Fast splittable
 * pseudorandom number generators", 2014) under a seed of SipHash, which is new for each packet. */
__inline __u32 random_port(struct pf_choice *choice)
{
	__u64 bits = choice->draws += 0x9e3779b97f4a7c15ull;

	bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9ull;
	bits = (bits ^ bits >> 27) * 0x94d049bb133111ebull;
	return choice->low + ((bits >> 32) * (choice->high - choice->low + 1) >> 32);
}

/* The port with which try `i` of a range is made: upward from where the search begins, then
 * downward; then at random. */
__inline __u32 port_of_try(struct pf_scratch *s, __u32 i)
{
	struct pf_choice *choice = &s->choice;
	__u32 up = choice->high - choice->begin;

	if (i < choice->in_order)
		return i <= up ? choice->begin + i : choice->begin - (i - up);
	begin_draws(s);
	return random_port(choice);
}

/* Tries the ports of the range: all of them in order, or some and then others at random. */
__inline bool try_ports(struct pf_scratch *s, const struct pf_pool *pool)
{
	struct pf_choice *choice = &s->choice;
	__u32 tries = choice->high - choice->low + 1, port;
	int i;

	if (tries > choice->in_order) {
		choice->cut_short = 1;
		tries = choice->in_order + choice->at_random;
	}
	choice->has_port = 0;
	bpf_for(i, 0, (int)tries) {
		if (!choice->probes)
			break;
		port = port_of_try(s, i);
		if (!take_port(s, pool, bpf_htons(port)))
			continue;
		choice->port = bpf_htons(port);
		choice->has_port = 1;
		break;
	}
	return choice->has_port;
}

/* Looks for a free source port with s->choice.address; 1 if there is one. */
__global int search_port(struct pf_scratch *s, struct pf_pool *pool)
{
	struct pf_pdesc *pd;
	struct pf_choice *choice;
	__be16 port;
	bool echo = false;

	if (!s || !pool)
		return 0;
	pd = &s->pd;
	choice = &s->choice;
	set_key(&s->key, pd, pd->direction);
	if (source_index(pd->direction) == 0)
		__builtin_memcpy(s->key.address[0], &choice->address, 16);
	else
		__builtin_memcpy(s->key.address[1], &choice->address, 16);
	port = pd->source_port;
	choice->port = port;
	switch (pd->protocol) {
	case IPPROTO_ICMP:
		echo = pd->family == AF_INET && pd->destination_port == bpf_htons(ICMP_ECHO);
		break;
	case IPPROTO_ICMPV6:
		echo = pd->family == AF_INET6 &&
			pd->destination_port == bpf_htons(ICMP6_ECHO_REQUEST);
		break;
	case IPPROTO_TCP:
	case IPPROTO_UDP:
		if (choice->lowest || choice->highest)
			break;
		/* fallthrough */
	default:
		return take_port(s, pool, port);
	}
	choice->low = choice->lowest;
	choice->high = choice->highest;
	if (pd->protocol == IPPROTO_ICMP || pd->protocol == IPPROTO_ICMPV6) {
		/* OpenBSD gives other messages the id 0, in the key alone */
		if (!pool->old)
			choice->port = 0;
		if (!echo)
			return 1;
		/* FreeBSD searches an id for IPv4 only */
		if (pool->old && pd->protocol == IPPROTO_ICMPV6)
			return take_port(s, pool, port);
		choice->low = LOWEST_ID;
		choice->high = HIGHEST_ID;
	}
	if (choice->low > choice->high) {
		choice->low = choice->highest;
		choice->high = choice->lowest;
	}
	choice->begin = choice->low + secret_draw(s, (__u32)(choice->high - choice->low) + 1);
	return try_ports(s, pool);
}

/* ---- the source ------------------------------------------------------------------------------ */

/* An earlier rule's address is not used after all. OpenBSD remembers only the last rule that
 * translated, and forgets only what that one chose. */
__inline void forget_choice(struct pf_scratch *s, __u32 purpose, const struct pf_addr *address)
{
	struct pf_pool *pool;

	if (s->last_slot == PF_IDLE_SLOT)
		return;
	pool = pool_of(s->last_slot, purpose);
	if (pool && pool->kind == PF_POOL_LEAST_STATES)
		count_load(pool, s->pd.family, address, -1);
}

/* The ports of the rule; of a MAP-E set those of its range in turn. */
__inline void set_range(struct pf_choice *choice, const struct pf_pool *pool)
{
	__u32 behind = (16 - pool->set_offset - pool->set_length) & 15;
	__u32 id = pool->port_set & ((1u << (pool->set_length & 15)) - 1);

	choice->lowest = pool->low;
	choice->highest = pool->high;
	if (!pool->set_offset)
		return;
	choice->lowest = (__u32)choice->range << ((16 - pool->set_offset) & 15) | id << behind;
	choice->highest = choice->lowest | ((1u << behind) - 1);
}

/* The first range of a MAP-E set is a random one; that with the well-known ports is nobody's. */
__inline void begin_ranges(struct pf_scratch *s, const struct pf_pool *pool)
{
	if (pool->set_offset)
		s->choice.first_range = max(secret_draw(s, 1u << (pool->set_offset & 15)), 1);
	s->choice.range = s->choice.first_range;
	set_range(&s->choice, pool);
}

/* The next one: upward, then downward from the first. False if there is none. */
__inline bool go_to_next_range(struct pf_choice *choice, const struct pf_pool *pool)
{
	if (!pool->set_offset)
		return false;
	if (choice->range < choice->first_range)
		choice->range--;
	else if (choice->range < (1 << (pool->set_offset & 15)) - 1)
		choice->range++;
	else
		choice->range = choice->first_range - 1;
	if (!choice->range)
		return false;
	set_range(choice, pool);
	return true;
}

/* Any range of a MAP-E set, at random. */
__inline void draw_range(struct pf_choice *choice, const struct pf_pool *pool)
{
	choice->low = 1;
	choice->high = (1 << (pool->set_offset & 15)) - 1;
	choice->range = random_port(choice);
	set_range(choice, pool);
}

enum pf_search {
	PF_SEARCH_OVER = 0,
	PF_SEARCH_FOUND,
	PF_SEARCH_GOES_ON,
};

/* Whether a search tries another address of the pool when the ports of one are taken. */
__inline bool has_several(const struct pf_pool *pool)
{
	return pool->kind == PF_POOL_RANDOM || pool->kind == PF_POOL_ROUND_ROBIN ||
	       pool->kind == PF_POOL_LEAST_STATES;
}

/* The number of ports to try of an address. The only one gets all probes. */
__inline void set_probes(struct pf_choice *choice, const struct pf_pool *pool)
{
	bool several = pool->set_offset || (has_several(pool) && !choice->recalled);

	choice->in_order = several ? PROBES_OF_EACH : PROBES_IN_ORDER;
	choice->at_random = several ? 0 : MAX_PROBES - PROBES_IN_ORDER;
}

/* Chooses an address, and looks for a free port with it. A search that began with what the source
 * had before ends, as in OpenBSD, with the next one unseen. */
__inline enum pf_search search_address(struct pf_scratch *s, struct pf_pool *pool, __u32 slot)
{
	struct pf_choice *choice = &s->choice;

	if (!choose(s, pool, slot, PF_POOL_NAT, !choice->has_first))
		return PF_SEARCH_OVER;
	if (choice->begun && (!choice->has_first ||
			      (choice->address.half[0] == choice->first.half[0] &&
			       choice->address.half[1] == choice->first.half[1])))
		return PF_SEARCH_OVER;
	if (!choice->begun && !choice->recalled) {
		choice->first = choice->address;
		choice->has_first = 1;
	}
	choice->begun = 1;
	set_probes(choice, pool);
	if (search_port(s, pool))
		return PF_SEARCH_FOUND;
	return has_several(pool) ? PF_SEARCH_GOES_ON : PF_SEARCH_OVER;
}

/* Chooses an address with a free port, and another address as long as there is none; for each range
 * of ports anew. Of several addresses or ranges it leaves the other probes. */
__inline bool search_in_order(struct pf_scratch *s, struct pf_pool *pool, __u32 slot)
{
	struct pf_choice *choice = &s->choice;
	int i;

	begin_ranges(s, pool);
	choice->has_first = choice->begun = 0;
	bpf_for(i, 0, MAX_PROBES) {
		switch (search_address(s, pool, slot)) {
		case PF_SEARCH_FOUND:
			return true;
		case PF_SEARCH_OVER:
			if (!go_to_next_range(choice, pool))
				return false;
			choice->has_first = choice->begun = 0;
			break;
		case PF_SEARCH_GOES_ON:
			break;
		}
		if (choice->probes <= MAX_PROBES - PROBES_IN_ORDER) {
			choice->cut_short = 1;
			return false;
		}
	}
	return false;
}

/* Tries ports at random, of addresses that the pool gives and of any range. */
__inline bool search_at_random(struct pf_scratch *s, struct pf_pool *pool, __u32 slot)
{
	struct pf_choice *choice = &s->choice;
	int i;

	choice->in_order = 0;
	choice->at_random = pool->set_offset ? 1 : RANDOM_OF_EACH;
	begin_draws(s);
	bpf_for(i, 0, MAX_PROBES) {
		if (!choice->probes)
			return false;
		if (pool->set_offset)
			draw_range(choice, pool);
		if (has_several(pool) && !choose(s, pool, slot, PF_POOL_NAT, true))
			return false;
		if (search_port(s, pool))
			return true;
	}
	return false;
}

/* Looks for an address with a free port. */
__inline bool search_addresses(struct pf_scratch *s, struct pf_pool *pool, __u32 slot)
{
	struct pf_choice *choice = &s->choice;

	choice->probes = MAX_PROBES;
	choice->draws = 0;
	choice->cut_short = 0;
	return search_in_order(s, pool, slot) ||
	       (choice->cut_short && search_at_random(s, pool, slot));
}

/* Whether the packet's endpoint has its address and port outside already. */
__inline bool recall_mapping(struct pf_scratch *s, const struct pf_pool *pool)
{
	if (!maps_endpoint(s, pool) || !hold_mapping(s))
		return false;
	if (pool->kind == PF_POOL_LEAST_STATES)
		count_load(pool, s->pd.family, &s->choice.address, 1);
	return true;
}

__global int translate_source(struct pf_scratch *s, __u32 slot)
{
	struct pf_pool *pool = pool_of(slot, PF_POOL_NAT);

	if (!s || !pool)
		return 0;
	s->choice.source = s->pd.source;
	if (!recall_mapping(s, pool) && !search_addresses(s, pool, slot))
		return 0;
	forget_choice(s, PF_POOL_NAT, &s->pd.source);
	s->nat_slot = s->last_slot = slot;
	s->pd.source = s->choice.address;
	s->pd.source_port = s->choice.port;
	return 1;
}

/* ---- the destination ------------------------------------------------------------------------- */

/* Its place in the range that the rule looks for is the port's place in the new range. */
__inline __be16 redirected(const struct pf_pool *pool, __be16 port)
{
	__u16 span = pool->high - pool->low + 1;
	__s32 place = (__s32)bpf_ntohs(port) - pool->first;
	__u32 new;

	if (!pool->low && !pool->high)
		return port;
	if (!span)
		span = 1;
	/* BPF divides unsigned numbers only */
	place = place < 0 ? -(__s32)((__u32)-place % span) : (__s32)((__u32)place % span);
	new = place + pool->low;
	if (new > 65535)
		new -= 65535;
	new &= 0xffff;
	return new ? bpf_htons(new) : port;
}

__global int translate_destination(struct pf_scratch *s, __u32 slot)
{
	struct pf_pool *pool = pool_of(slot, PF_POOL_RDR);
	struct pf_choice *choice;
	struct pf_addr address;

	if (!s || !pool)
		return 0;
	choice = &s->choice;
	choice->source = pool->binat ? s->pd.destination : s->pd.source;
	if (!choose(s, pool, slot, PF_POOL_RDR, false))
		return 0;
	/* the pool has put in the host bits of the source; those of the destination are meant */
	if (pool->kind == PF_POOL_BITMASK && !pool->listed) {
		address = choice->address;
		put_host_bits(choice->address.bytes, address.bytes, pool->mask,
			      s->pd.destination.bytes, s->pd.family);
	}
	forget_choice(s, PF_POOL_RDR, &s->pd.destination);
	s->rdr_slot = s->last_slot = slot;
	s->pd.destination = choice->address;
	if (!keeps_ports(&s->pd))
		s->pd.destination_port = redirected(pool, s->pd.destination_port);
	return 1;
}

/* Does what a rule that matches says. False if no address or no port is left. */
__inline bool translate(struct pf_scratch *s, const struct pf_rule *rule)
{
	if (rule->pools & 1 << PF_POOL_NAT && !translate_source(s, rule->slot))
		return false;
	return !(rule->pools & 1 << PF_POOL_RDR) || translate_destination(s, rule->slot);
}

#endif /* PF_TRANSLATE_H */
