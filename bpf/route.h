/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * `route-to`, `reply-to`, `dup-to`: packets of a state that go another way than the routing table
 * says, to the next hop that was chosen when the state was made (pf-semantics section 11).
 *
 * A packet that came in is filtered once more by the program of the interface that it leaves by,
 * where its length is looked at too. One that was on its way out is not: it has its mark of our own
 * packets. A copy takes a way of its own: cloned to the interface it meets the program there while
 * the one that made it is still at work, and only there it can be sent to a neighbour.
 */
#ifndef PF_ROUTE_H
#define PF_ROUTE_H

#include "drop.h"
#include "fragment.h"
#include "forward.h"
#include "frame.h"
#include "interface.h"
#include "kern.h"
#include "mark.h"
#include "packet.h"
#include "scratch.h"
#include "stamp.h"
#include "table.h"

/* Clones the packet to the interface, with the neighbour noted beside it. */
/* Differs from OpenBSD: linux.md, "Copies without Ethernet" */
__inline void clone_to_neighbour(struct __sk_buff *skb, struct pf_scratch *s,
				 const struct bpf_fib_lookup *params)
{
	__u16 index = skb->tc_index;
	__u32 mark = skb->mark;

	skb->cb[0] = params->ipv6_dst[0];
	skb->cb[1] = params->ipv6_dst[1];
	skb->cb[2] = params->ipv6_dst[2];
	skb->cb[3] = params->ipv6_dst[3];
	skb->cb[4] = params->family;
	write_mark(skb, PF_MARK_GENERATED | (s->reassembled ? PF_MARK_REASSEMBLED : 0),
		   PF_GENERATED_COPY, PF_DEFAULT_PRIO);
	bpf_clone_redirect(skb, params->ifindex, 0);
	skb->mark = mark;
	skb->tc_index = index;
}

/* The way to s->next_hop by the interface that the rule names: no routing table is asked. */
__inline enum pf_route find_named_way(struct __sk_buff *skb, struct pf_scratch *s,
				      struct bpf_fib_lookup *params)
{
	__u32 *ifindex = bpf_map_lookup_elem(&interface_indexes, &s->hop_interface), mtu = 0;

	__builtin_memset(params, 0, sizeof(*params));
	if (!ifindex || !*ifindex || bpf_check_mtu(skb, *ifindex, &mtu, 0, 0) < 0)
		return PF_ROUTE_NONE;
	if (!(s->next_hop.half[0] | s->next_hop.half[1])) {
		s->next_hop = s->pd.destination;
		/* not every packet of a state that crosses does so */
		s->hop_family = s->cross_to && s->translated ? s->cross_to : s->pd.family;
	}
	params->family = s->hop_family;
	params->ifindex = *ifindex;
	params->mtu_result = min(mtu, 0xffff);
	__builtin_memcpy(params->ipv6_dst, &s->next_hop, sizeof(params->ipv6_dst));
	return PF_ROUTE_FOUND;
}

/* The way to s->next_hop. */
__inline enum pf_route find_way(struct __sk_buff *skb, struct pf_scratch *s,
				struct bpf_fib_lookup *params)
{
	if (s->hop_interface)
		return find_named_way(skb, s, params);
	return find_route_in(skb, params, s->hop_family, &s->next_hop, PF_FIB_LOOKUP_SKIP_NEIGH,
			     table_of(s));
}

/* Tells tests where the packet is sent. */
__inline void tell_way(struct pf_scratch *s, const struct bpf_fib_lookup *params)
{
	s->outcome.route = s->route;
	s->outcome.ifindex = params->ifindex;
	s->outcome.next_hop_family = s->hop_family;
	__builtin_memcpy(s->outcome.next_hop, &s->next_hop, sizeof(s->outcome.next_hop));
}

/* Returns how many bytes must stay in one piece: the packet, or the longest fragment of an IPv6
 * datagram, which only its sender may fragment otherwise. 0 if all may be fragmented. */
__inline __u32 indivisible(struct __sk_buff *skb, const struct pf_scratch *s)
{
	if (s->pd.family == AF_INET6)
		return s->reassembled ? longest_fragment(skb, s) : s->length;
	return s->pd.ip_offset & bpf_htons(IP_DF) && !(s->act.flags & PF_STATE_NO_DF) ? s->length :
											0;
}

/* True if the packet got another destination on its way out, so that the route of the old one does
 * not count. A test has no routes. */
__inline bool has_new_way(const struct pf_scratch *s)
{
	const struct pf_pdesc *pd = &s->pd;

	return pd->direction == PF_OUT && s->translated == PF_TRANSLATED_PACKET &&
	       (pd->destination.half[0] != pd->original_destination.half[0] ||
		pd->destination.half[1] != pd->original_destination.half[1]) &&
	       !is_bridged(s) && !driven_by_test();
}

/* Returns the interface that a packet on its way out leaves by: its own is 0. Negative if nobody
 * measures it: the kernel has done so, or there is no other way. */
__inline int leaves_by(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct bpf_fib_lookup *way = &s->lookup;

	if (s->pd.direction != PF_OUT)
		return -1;
	if (s->route && s->route != PF_HOP_DUP_TO)
		return find_way(skb, s, way) == PF_ROUTE_FOUND ? (int)way->ifindex : -1;
	if (has_new_way(s))
		return find_route_in(skb, way, s->pd.family, &s->pd.destination,
				     PF_FIB_LOOKUP_SKIP_NEIGH, table_of(s)) == PF_ROUTE_FOUND ?
			       (int)way->ifindex : -1;
	return s->routed_here || (s->reassembled && is_forwarded(s) && !is_bridged(s)) ? 0 : -1;
}

/* Returns the MTU of the link if the packet is too long for it and must not be fragmented, else 0.
 * Asked before the packet is translated, because its sender knows it as it was. */
/* Differs from OpenBSD: linux.md, "Too long for the route" */
__global __u32 too_big(struct __sk_buff *skb, struct pf_scratch *s)
{
	__u32 length, mtu;
	int ifindex;

	if (!s)
		return 0;
	length = indivisible(skb, s);
	if (!length)
		return 0;
	ifindex = leaves_by(skb, s);
	if (ifindex < 0)
		return 0;
	mtu = mtu_of(skb, ifindex);
	return length > mtu ? mtu : 0;
}

/* Sends the packet, or a copy, to s->next_hop. Returns what the program returns, unless there is a
 * reply. */
/* Differs from OpenBSD: linux.md, "Routed packets and netfilter" */
__global int route_packet(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct bpf_fib_lookup params;
	bool in, copies;

	if (!s)
		return PF_TCX_DROP;
	in = s->pd.direction == PF_IN;
	copies = s->route == PF_HOP_DUP_TO;
	if (!copies) {
		s->outcome.verdict = PF_VERDICT_ROUTED;
		s->outcome.route = s->route;
	}
	if (in && !spend_hops(skb, s, 1))
		return copies ? PF_TCX_NEXT : tell_sender(s, PF_UNDELIVERED_EXPIRED, 0);
	if (find_way(skb, s, &params) != PF_ROUTE_FOUND) {
		if (!copies) {
			reason_count(s, PF_REASON_NO_ROUTE);
			return tell_sender(s, PF_UNDELIVERED_NO_ROUTE, 0);
		}
		goto restore;
	}
	/* where the packet itself leaves is its length looked at; without one of its own the lookup
	 * tells the link's */
	if (copies && indivisible(skb, s) > params.mtu_result)
		goto restore;
	tell_way(s, &params);
	if (driven_by_test())
		goto restore;
	if (copies) {
		clone_to_neighbour(skb, s, &params);
		goto restore;
	}
	if (in)
		skb->cb[1] = ROUTED_MAGIC;
	else
		write_mark(skb, PF_MARK_GENERATED | (s->reassembled ? PF_MARK_REASSEMBLED : 0),
			   PF_GENERATED_ROUTED, s->prio);
	return send_to_neighbour(skb, &params);
restore:
	if (in && copies)
		spend_hops(skb, s, -1);
	return PF_TCX_NEXT;
}

/* The packet got another destination on its way out: that may be elsewhere. Returns what the
 * program returns, unless there is a reply. Where the kernel tells nothing, and to ourselves, it
 * goes on as it was going. */
/* Differs from OpenBSD: linux.md, "Translation" */
__global int reroute_packet(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct bpf_fib_lookup *params;
	enum pf_route route;

	if (!s)
		return PF_TCX_DROP;
	params = &s->lookup;
	route = find_route_in(skb, params, s->pd.family, &s->pd.destination,
			      PF_FIB_LOOKUP_SKIP_NEIGH, table_of(s));
	if (route == PF_ROUTE_NONE || route == PF_ROUTE_REFUSED) {
		reason_count(s, PF_REASON_NO_ROUTE);
		return tell_sender(s, PF_UNDELIVERED_NO_ROUTE, 0);
	}
	if (route != PF_ROUTE_FOUND)
		return PF_TCX_NEXT;
	write_mark(skb, PF_MARK_GENERATED | (s->reassembled ? PF_MARK_REASSEMBLED : 0),
		   PF_GENERATED_ROUTED, s->prio);
	return send_to_neighbour(skb, params);
}

/* ---- where they leave ------------------------------------------------------------------------ */

/* A copy has come to the interface: on to the neighbour. */
__inline int pass_on_copy(struct __sk_buff *skb)
{
	struct bpf_redir_neigh next = { .nh_family = skb->cb[4] };

	next.ipv6_nh[0] = skb->cb[0];
	next.ipv6_nh[1] = skb->cb[1];
	next.ipv6_nh[2] = skb->cb[2];
	next.ipv6_nh[3] = skb->cb[3];
	sign_mark(skb, (skb->mark & ~PF_MARK_TAG_MASK) | PF_GENERATED_ROUTED << PF_MARK_TAG_SHIFT);
	if (has_ethernet_header(skb))
		address_to_one(skb);
	forget_route(skb, &next);
	return bpf_redirect_neigh(skb->ifindex, &next, sizeof(next), 0);
}

/* A packet that leaves where we have sent it, and is not filtered: only its length is looked at.
 * The scratch of the packet in hand may be that of the one it is a copy of, so this has one of its
 * own. */
__inline int fit(struct __sk_buff *skb)
{
	__u32 nested = 1;
	struct pf_scratch *s = bpf_map_lookup_elem(&scratch, &nested);
	int result;

	if (!s)
		return PF_TCX_DROP;
	s->pd.direction = PF_OUT;
	s->came_in_by = 0;
	s->reassembled = !!(skb->mark & PF_MARK_REASSEMBLED);
	s->routed_here = 1;
	if (find_ip(skb, &s->pd) != PF_PAYLOAD_IP || setup_pdesc(skb, s))
		return PF_TCX_DROP;
	if (!must_fragment(skb, s)) {
		shrink(skb, s->pd.ip + s->pd.length);
		return PF_TCX_NEXT;
	}
	result = hand_over(skb, s, PF_HANDOFF_REFRAGMENT);
	return result < 0 ? refuse_leaving(skb, PF_REASON_FRAGMENT) : result;
}

/* Whether a program had the packet, which is one like any other from here on. */
__inline bool was_given_back(struct __sk_buff *skb)
{
	if (generated_for(skb) != PF_GENERATED_GIVEN_BACK)
		return false;
	clear_mark(skb);
	return true;
}

/* A packet of ours comes in: nobody has looked for its IP header. Returns the program's result. */
__inline int let_in_generated(struct __sk_buff *skb)
{
	__u32 tags = 0;
	__be16 type;

	was_given_back(skb);
	stamp(skb, has_ethernet_header(skb) ? skip_tags(skb, &type, &tags) : 0);
	return PF_TCX_NEXT;
}

/* A packet of ours leaves. Returns the program's result. */
__inline int let_out_generated(struct __sk_buff *skb)
{
	if (was_given_back(skb))
		return PF_TCX_NEXT;
	switch (generated_for(skb)) {
	case PF_GENERATED_COPY:
		return pass_on_copy(skb);
	case PF_GENERATED_ROUTED:
		return fit(skb);
	default:
		return PF_TCX_NEXT;
	}
}

#endif /* PF_ROUTE_H */
