/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Packets that hide another one. Linux unwraps some of them on the interface that they came in by,
 * behind pf's programs. Tunnels with an interface of their own are not among them: there the inner
 * packet meets pf's programs. `set unattached pass` lets by what nobody can judge.
 */
#ifndef PF_HIDDEN_H
#define PF_HIDDEN_H

#include "config.h"
#include "drop.h"
#include "frame.h"
#include "interface.h"
#include "kern.h"
#include "log.h"
#include "reason.h"
#include "scratch.h"
#include "table.h"

/* Drops a packet that is bad in itself. */
__inline bool bad_packet(struct pf_scratch *s, int reason)
{
	reason_set(s, reason);
	s->log_force = 1;
	return false;
}

/* Drops a frame whose packet stands behind link headers that are not parsed, and logs it from its
 * link header on, without a family. No interface counts it, because interfaces count by family. */
/* Differs from OpenBSD: linux.md, "VLAN tags" */
__global int drop_hidden(struct __sk_buff *skb, struct pf_scratch *s)
{
	__u8 direction;

	if (!s)
		return PF_TCX_DROP;
	direction = s->pd.direction;
	__builtin_memset(&s->pd, 0, sizeof(s->pd));	/* of the packet before */
	s->pd.direction = direction;
	s->outcome.decision = PF_DECISION_DEFAULT;
	s->outcome.verdict = PF_VERDICT_DROP;
	bad_packet(s, PF_REASON_LINK_HEADER);
	log_packet(skb, s);
	report_drop(skb, s, false);
	return PF_TCX_DROP;
}

/* True if packets that pf does not judge pass. */
__inline bool unjudged_pass(__u32 generation)
{
	const struct pf_config *config = pf_config(generation);

	return config && config->unattached == PF_UNATTACHED_PASS;
}

/* True if a packet with an MPLS label passes as it is: on its way out, or across a bridge. Others
 * may lose the label here (mpls_forward of Linux), and no hook sees the packet as one that came in
 * by this interface. */
/* Differs from OpenBSD: linux.md, "Packets inside of packets" */
__inline bool may_keep_label(const struct pf_scratch *s)
{
	return s->pd.direction == PF_OUT || is_port(&s->interface) || unjudged_pass(s->generation);
}

__inline bool is_tunnel(__u8 protocol)
{
	return protocol == IPPROTO_IPIP || protocol == IPPROTO_IPV6 || protocol == IPPROTO_ETHERNET;
}

/* Drops an IPv6 packet that came in and that a route unwraps: an endpoint of segment routing, for
 * example End.DT6, hands the inner packet on without another hook (seg6_local.c of Linux). The
 * kernel only says that the route has an encapsulation, so a tunnel's packet that a route wraps
 * once more is dropped too. */
/* Differs from OpenBSD: linux.md, "Packets inside of packets" */
__global int refuse_unwrapped(struct __sk_buff *skb, struct pf_scratch *s)
{
	if (!s || s->pd.direction != PF_IN || s->pd.family != AF_INET6 ||
	    !is_tunnel(s->pd.protocol) || unjudged_pass(s->generation) || driven_by_test() ||
	    find_route(skb, &s->lookup, AF_INET6, &s->pd.destination, PF_FIB_LOOKUP_SKIP_NEIGH) !=
		    PF_ROUTE_WRAPPED)
		return 0;
	return !bad_packet(s, PF_REASON_UNATTACHED);
}

#endif /* PF_HIDDEN_H */
