/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Answers to a source that was translated where its packets came in (`pass in … nat-to`). Their
 * destination becomes the client's only where they leave, as on OpenBSD. Linux asks for the link
 * address of the destination before that, and there may be no such host. So such a packet is
 * redirected, past the kernel, to the interface that its route names: the program there translates
 * it, and sends it to the client.
 */
#ifndef PF_WAY_BACK_H
#define PF_WAY_BACK_H

#include "forward.h"
#include "interface.h"
#include "kern.h"
#include "mark.h"
#include "scratch.h"
#include "state.h"
#include "table.h"

/* True if a state gives the packet, which has come in, another destination where it leaves. */
__inline bool changes_destination(struct pf_scratch *s)
{
	const struct pf_state_key *wire, *stack;
	struct pf_state *state;

	set_key(&s->key, &s->pd, PF_OUT);
	if (!key_is_taken(s, PF_MADE_IN))
		return false;
	state = bpf_map_lookup_elem(&states, &s->looked_at.index);
	if (!state)
		return false;
	wire = &state->key[PF_WIRE];
	stack = &state->key[PF_STACK];
	return __builtin_memcmp(wire->address[0], stack->address[0], sizeof(wire->address[0]));
}

/* True if the kernel knows a route for the packet's destination, and no link address: s->lookup
 * says by which interface. */
__inline bool has_unknown_neighbour(struct __sk_buff *skb, struct pf_scratch *s)
{
	const __u8 *link = s->lookup.dmac;

	return find_route_in(skb, &s->lookup, s->pd.family, &s->pd.destination, 0, table_of(s)) ==
		       PF_ROUTE_FOUND &&
	       !(link[0] | link[1] | link[2] | link[3] | link[4] | link[5]);
}

/* Redirects a packet that has come in and passed to the program that translates it where it leaves,
 * if the kernel would ask for its present destination in vain. Returns what the program returns. */
/* Differs from OpenBSD: linux.md, "nat-to on the way in" */
__global int lead_back(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct pf_status *status = pf_status();
	struct pf_interface *interface;

	if (!s || !status || !status->translated || driven_by_test())
		return PF_TCX_NEXT;
	interface = interface_at(skb->ifindex);
	if (!interface || is_port(interface))
		return PF_TCX_NEXT;
	s->pd.direction = PF_IN;
	if (!changes_destination(s) || !has_unknown_neighbour(skb, s) || !spend_hops(skb, s, 1))
		return PF_TCX_NEXT;
	if (!has_link_header(skb))
		return PF_TCX_DROP;
	skb->cb[1] = ROUTED_MAGIC;
	return bpf_redirect(s->lookup.ifindex, 0);
}

/* The same for a packet that the fast path has passed. */
__inline int lead_back_shortly(struct __sk_buff *skb)
{
	__u32 zero = 0;

	return lead_back(skb, bpf_map_lookup_elem(&scratch, &zero));
}

#endif /* PF_WAY_BACK_H */
