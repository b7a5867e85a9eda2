/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * An ordinary packet where it leaves, judged while it is still where it came in: by the state that
 * knows it there, or by the rules asked plainly.
 */
#ifndef PF_ONWARD_H
#define PF_ONWARD_H

#include "config.h"
#include "hop.h"
#include "keep.h"
#include "kern.h"
#include "ordinary.h"
#include "plain.h"
#include "scratch.h"
#include "state_key.h"

/* Returns the verdict about the packet at the interface: enum pf_plain_verdict. If a state passes
 * it, s->has_state, that one has counted it; nothing else is counted yet. Who can but forward the
 * packet asks no state none of whose packets was: it is likely for us. */
__inline int judge_shortly(struct pf_scratch *s, const struct pf_status *status,
			   const struct pf_interface *interface, bool forwards)
{
	struct pf_state *state;

	s->interface.id = interface->id;
	s->made = s->refused = 0;
	state = find_ordinary_state(status, s, s->interface.id);
	s->has_state = !!state;
	s->translated = PF_TRANSLATED_NOT;
	if (state)
		return (!forwards || state->peer.serial) && fits_state(s, state) ?
			       PF_PLAINLY_PASS : PF_PLAINLY_UNKNOWN;
	if (s->known)
		return PF_PLAINLY_UNKNOWN;
	s->interface = *interface;
	return ask_plainly(s);
}

/* The same at s->leaving. */
__global int judge_leaving(struct pf_scratch *s)
{
	struct pf_status *status = pf_status();

	if (!s || !status)
		return PF_PLAINLY_UNKNOWN;
	s->pd.direction = PF_OUT;
	keep_original(&s->pd);
	seek_state(status, s);
	return judge_shortly(s, status, &s->leaving, false);
}

/* Counts the packet for what judged it: its state, or the rules. */
__inline void count_verdict(struct pf_scratch *s)
{
	if (s->has_state && !s->made)
		count_shortly(s);
	else
		count_plainly(s);
}

/* The same, and gives it the ends that its state wants. */
__inline void count_judged(struct pf_scratch *s)
{
	translate_ordinary(s);
	count_verdict(s);
}

/* ---- the way past the kernel --------------------------------------------------------------------------- */

/* Whether the driver of the device that frames to the neighbour leave by takes this one from
 * here. */
__inline bool takes_frame(const struct pf_scratch *s, const struct pf_hop *hop)
{
	return hop->express == PF_EXPRESS_ANY ||
	       (hop->express == PF_EXPRESS_SHORT && s->in_one_piece);
}

/* Whether the state of s->onward, which knows the packet where it leaves, has a path for it that it
 * can take from this hook, and passes it too. */
__inline bool fits_onward(struct pf_scratch *s, __u32 ifindex, __u32 routes,
			  const enum pf_forwarded hook)
{
	struct pf_state *state = bpf_map_lookup_elem(&states, &s->peer.index);
	struct pf_status *status = pf_status();

	if (!state || !status ||
	    expired(state->rule_slot, state->timeout, state->expire, s->generation, s->now) ||
	    is_flushed(status, s->peer.index, s->peer.serial))
		return false;
	s->path = state->path;
	if (!take_hop(s, ifindex, routes, hook) ||
	    (hook == PF_FORWARDED_XDP && !takes_frame(s, &s->hop)))
		return false;
	s->pd.direction = PF_OUT;
	return s->pd.protocol == IPPROTO_TCP ? passes_segment_onward(s) :
					       passes_onward(state, s, IPPROTO_UDP);
}

/* Looks for a way past the kernel of a packet that has passed where it came in, with the ends that
 * it goes on with: the path of its state, or where the kernel would send it. `hook` is the one that
 * asks, `ctx` its packet. Returns what becomes of the packet where it leaves, enum
 * pf_plain_verdict; s->hop says where that is. States that the rules want of it are made, but in
 * XDP, where there may be one to be made where it came in as well. */
__inline int find_way_past(void *ctx, struct pf_scratch *s, const struct net_device *device,
			   const struct net *net, __u32 ifindex, const enum pf_forwarded hook)
{
	__u32 routes = number_of_routes(net, s->pd.family);
	const bool express = hook == PF_FORWARDED_XDP;
	bool was_known = s->has_state && !s->made, had_state = s->has_state;
	int verdict;

	s->far = s->ref;
	if (was_known && fits_onward(s, ifindex, routes, hook)) {
		s->ref = s->peer;
		s->interface.id = s->hop.interface;
		keep_original(&s->pd);
		return PF_PLAINLY_PASS;
	}
	if ((was_known && goes_astray(s)) || !find_hop(ctx, s, device, net, ifindex, hook) ||
	    (express && !takes_frame(s, &s->hop)))
		return PF_PLAINLY_UNKNOWN;
	s->far_entry = s->entry;
	s->far_made = s->made;
	verdict = judge_leaving(s);
	if (!express && verdict == PF_PLAINLY_KEEP)
		verdict = keep_plainly(s, had_state) ? PF_PLAINLY_UNKNOWN : PF_PLAINLY_PASS;
	if (verdict == PF_PLAINLY_PASS && had_state && s->has_state)
		keep_path(s);
	return verdict;
}

#endif /* PF_ONWARD_H */
