/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Forwarding a packet that came in, where the kernel's own way would be the wrong one: it would not
 * forward an IPv6 datagram that is longer than the next link, although we make fragments of it there.
 */
#ifndef PF_FORWARD_H
#define PF_FORWARD_H

#include "kern.h"
#include "scratch.h"
#include "table.h"
#include "time.h"

/* Takes one off the hop limit. False if that was the last. */
__inline bool spend_hop(struct __sk_buff *skb, const struct pf_pdesc *pd)
{
	__u32 at = pd->ip + offsetof(struct ip6, hop_limit);
	__u8 hops;

	if (bpf_skb_load_bytes(skb, at, &hops, sizeof(hops)) || hops <= 1)
		return false;
	hops--;
	return !bpf_skb_store_bytes(skb, at, &hops, sizeof(hops), BPF_F_RECOMPUTE_CSUM);
}

/* Sends the packet on its way. Returns what the program returns: what is not to be forwarded, or not
 * so simply, the kernel may answer. A test has no neighbours. */
__global int forward_datagram(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct bpf_fib_lookup params;
	struct bpf_redir_neigh next = {};

	if (!s || driven_by_test())
		return PF_TCX_NEXT;
	if (find_route(skb, &params, s->pd.family, &s->pd.destination, 0) != PF_ROUTE_FOUND ||
	    !spend_hop(skb, &s->pd))
		return PF_TCX_NEXT;
	next.nh_family = params.family;
	__builtin_memcpy(next.ipv6_nh, params.ipv6_dst, sizeof(next.ipv6_nh));
	return bpf_redirect_neigh(params.ifindex, &next, sizeof(next), 0);
}

#endif /* PF_FORWARD_H */
