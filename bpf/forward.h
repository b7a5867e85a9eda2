/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Forwarding a packet that came in, where the kernel's own way would be the wrong one: by the
 * routing table that a rule names (`rtable`), and an IPv6 datagram that is longer than the next
 * link, although we make fragments of it there. And what a router tells the sender of a packet that
 * cannot go on.
 */
#ifndef PF_FORWARD_H
#define PF_FORWARD_H

#include "kern.h"
#include "mark.h"
#include "reply.h"
#include "scratch.h"
#include "table.h"
#include "time.h"

/* Takes `hops` off the TTL or hop limit; -1 gives one back. 0 if that was the last. */
/* Differs from OpenBSD: linux.md, "Quoted header checksum" */
__global int spend_hops(struct __sk_buff *skb, struct pf_scratch *s, __s32 hops)
{
	__u32 at;
	struct {
		__u8 ttl, protocol;	/* of IPv6 the second byte is the first of the source */
	} old, new;
	__be16 was, is;

	if (!s)
		return 0;
	at = s->pd.ip + (s->pd.family == AF_INET ? offsetof(struct ip, ttl) :
						   offsetof(struct ip6, hop_limit));
	if (bpf_skb_load_bytes(skb, at, &old, sizeof(old)) || old.ttl <= hops)
		return 0;
	new = old;
	new.ttl -= hops;
	if (s->pd.family == AF_INET6)
		return !bpf_skb_store_bytes(skb, at, &new, sizeof(new), BPF_F_RECOMPUTE_CSUM);
	__builtin_memcpy(&was, &old, sizeof(was));
	__builtin_memcpy(&is, &new, sizeof(is));
	/* the header's sum does not change, so neither does one that covers it */
	return !bpf_skb_store_bytes(skb, at, &new, sizeof(new), 0) &&
	       !bpf_l3_csum_replace(skb, s->pd.ip + offsetof(struct ip, checksum), was, is,
				    sizeof(is));
}

enum pf_undelivered {
	PF_UNDELIVERED_EXPIRED,		/* its time to live is over */
	PF_UNDELIVERED_NO_ROUTE,	/* nobody knows the way */
	PF_UNDELIVERED_TOO_BIG,		/* for the link, and it must not be fragmented */
};

/* Drops the packet and decides what its sender is told, if anything: that is sent when all else is
 * done. Returns what the program returns if it is nothing. */
__inline int tell_sender(struct pf_scratch *s, enum pf_undelivered why, __u32 mtu)
{
	bool inet = s->pd.family == AF_INET;

	if (inet ? s->pd.protocol == IPPROTO_ICMP && !icmp_informational(s->pd.icmp.type) :
		   s->pd.protocol == IPPROTO_ICMPV6 && !icmp6_informational(s->pd.icmp.type))
		return PF_TCX_DROP;
	s->reply.kind = PF_REPLY_ICMP;
	switch (why) {
	case PF_UNDELIVERED_EXPIRED:
		s->reply.icmp_type = inet ? ICMP_TIMXCEED : ICMP6_TIME_EXCEEDED;
		s->reply.icmp_code = 0;
		break;
	case PF_UNDELIVERED_NO_ROUTE:
		s->reply.icmp_type = inet ? ICMP_UNREACH : ICMP6_DST_UNREACH;
		s->reply.icmp_code = inet ? ICMP_UNREACH_HOST : ICMP6_DST_UNREACH_NOROUTE;
		break;
	case PF_UNDELIVERED_TOO_BIG:
		s->reply.icmp_type = inet ? ICMP_UNREACH : ICMP6_PACKET_TOO_BIG;
		s->reply.icmp_code = inet ? ICMP_UNREACH_NEEDFRAG : 0;
		s->reply.icmp_rest = mtu;
	}
	return PF_TCX_DROP;
}

/* bpf_redirect_neigh wants a link header, which not all packets have. */
__inline bool has_link_header(struct __sk_buff *skb)
{
	return has_ethernet_header(skb) || !bpf_skb_change_head(skb, sizeof(struct ethernet), 0);
}

/* bpf_redirect_neigh drops a frame that is for all or many, though it writes another
 * destination. */
__inline void address_to_one(struct __sk_buff *skb)
{
	static const __u8 nobody[6];
	const __u8 *frame = (const __u8 *)(long)skb->data;

	if (frame + sizeof(nobody) <= (const __u8 *)(long)skb->data_end && frame[0] & 1)
		bpf_skb_store_bytes(skb, 0, nobody, sizeof(nobody), 0);
}

/* Makes the packet forget the route that the kernel chose for it. A packet waits while the kernel
 * asks for its neighbour, and then goes to the neighbour of its route (neigh_update()), not to the
 * one that bpf_redirect_neigh named. A tunnel key takes the place of the route, and has no
 * neighbour of its own. A tunnel without a remote address reads the key: it sends to the next hop,
 * as it does by a route. */
__inline void forget_route(struct __sk_buff *skb, const struct bpf_redir_neigh *next)
{
	struct sk_buff *kern = bpf_cast_to_kern_ctx(skb);
	struct {
		__u32 id;
		__u32 remote;
	} key = { .remote = next->nh_family == AF_INET ? bpf_ntohl(next->ipv4_nh) : 0 };

	if (kern->_skb_refdst)
		bpf_skb_set_tunnel_key(skb, (struct bpf_tunnel_key *)&key, sizeof(key), 0);
}

/* Sends the packet to the neighbour that a lookup has found. Returns what the program returns. */
__inline int send_to_neighbour(struct __sk_buff *skb, const struct bpf_fib_lookup *params)
{
	struct bpf_redir_neigh next = { .nh_family = params->family };

	__builtin_memcpy(next.ipv6_nh, params->ipv6_dst, sizeof(next.ipv6_nh));
	if (!has_link_header(skb))
		return PF_TCX_DROP;
	address_to_one(skb);
	forget_route(skb, &next);
	return bpf_redirect_neigh(params->ifindex, &next, sizeof(next), 0);
}

/* The table that the kernel is asked for: `rtable 0` is what it looks at anyway. */
__inline __u32 table_of(const struct pf_scratch *s)
{
	return s->act.rtable ? s->act.rtable - 1 : 0;
}

/* Forwards the packet. Returns what the program returns, unless there is a reply: what stays here,
 * and what the kernel answers as we would, it gets. A test has no neighbours. */
/* Differs from OpenBSD: linux.md, "Routed packets and netfilter" */
/* Differs from OpenBSD: linux.md, "rtable and own addresses" */
__global int forward_packet(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct bpf_fib_lookup params;
	enum pf_route route;
	__u32 table;

	if (!s || driven_by_test())
		return PF_TCX_NEXT;
	table = table_of(s);
	/* our own addresses are in none of the tables that have numbers */
	if (table && find_entry(PF_SELF_TABLE, s->pd.family, &s->pd.destination))
		return PF_TCX_NEXT;
	route = find_route_in(skb, &params, s->pd.family, &s->pd.destination,
			      PF_FIB_LOOKUP_SKIP_NEIGH | FORWARDS, table);
	if (table && (route == PF_ROUTE_NONE || route == PF_ROUTE_REFUSED)) {
		reason_count(s, PF_REASON_NO_ROUTE);
		return tell_sender(s, PF_UNDELIVERED_NO_ROUTE, 0);
	}
	if (route != PF_ROUTE_FOUND)
		return PF_TCX_NEXT;
	if (!spend_hops(skb, s, 1))
		return table ? tell_sender(s, PF_UNDELIVERED_EXPIRED, 0) : PF_TCX_NEXT;
	skb->cb[1] = ROUTED_MAGIC;
	return send_to_neighbour(skb, &params);
}

#endif /* PF_FORWARD_H */
