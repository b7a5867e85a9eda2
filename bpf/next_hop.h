/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The next hop for packets of a state whose rule says `route-to`, `reply-to` or `dup-to`: chosen
 * when the state is made, and remembered with it. route.h sends them there.
 */
#ifndef PF_NEXT_HOP_H
#define PF_NEXT_HOP_H

#include "kern.h"
#include "pool.h"
#include "scratch.h"
#include "state.h"
#include "sticky.h"

/* Chooses the next hop of packets of the state in s->ref, by the source before rules translated it.
 * If packets cross to the other family, those that leave have a next hop of that family. Returns 1,
 * or 0 if the pool has no address left. */
__global int choose_next_hop(struct pf_scratch *s, __u32 slot)
{
	struct pf_pool *pool = pool_of(slot, PF_POOL_ROUTE);
	struct pf_extension *extension;
	bool chosen;

	if (!s || !pool)
		return 0;
	extension = bpf_map_lookup_elem(&extensions, &s->ref.index);
	if (!extension)
		return 0;
	s->choice.source = s->pd.original_source;
	if (s->cross_to && extension->route == PF_HOP_ROUTE_TO)
		chosen = choose_across(s, pool, slot, PF_POOL_ROUTE, false);
	else
		chosen = choose(s, pool, slot, PF_POOL_ROUTE, false);
	if (!chosen)
		return 0;
	__builtin_memcpy(extension->next_hop, &s->choice.address, sizeof(extension->next_hop));
	extension->hop_interface = s->choice.interface;
	extension->hop_family = s->choice.family;
	extension->source_nodes[PF_NODE_ROUTE] = s->test.source_nodes[PF_NODE_ROUTE];
	return 1;
}

/* Where the state of the extension sends packets that go along the state, or against it. */
__inline void route_by_extension(const struct pf_extension *extension, struct pf_scratch *s,
				 bool along)
{
	if (extension->route == PF_HOP_DUP_TO || (extension->route == PF_HOP_ROUTE_TO && along) ||
	    (extension->route == PF_HOP_REPLY_TO && !along)) {
		s->route = extension->route;
		s->hop_interface = extension->hop_interface;
		s->hop_family = extension->hop_family;
		__builtin_memcpy(&s->next_hop, extension->next_hop, sizeof(s->next_hop));
	}
}

#endif /* PF_NEXT_HOP_H */
