/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The IPv6 header and the chain of extension headers behind it (pf-semantics section 4). Functions
 * return the reason to drop the packet, 0 for none.
 */
#ifndef PF_IP6_H
#define PF_IP6_H

#include "frame.h"
#include "kern.h"
#include "scratch.h"

struct pf_loop6 {
	struct __sk_buff *skb;
	struct pf_scratch *s;
	struct pf_pdesc *pd;
	__u32 first;			/* offset of the first header behind the IPv6 header */
	__u32 end;			/* of the packet, as its header says */
	__u32 payload_length;
	__u32 ttl;
	__u32 link_local;		/* the source is */
	__u32 fragment_headers;
	__u32 routing_headers;
	__u32 option_end;
	int result;			/* reason, or WALK_DONE or WALK_ON */
};

#define WALK_ON		(-1)
#define WALK_DONE	0

/* One hop-by-hop option, at s->cursor of the packet. */
static int walk_option6(__unused __u32 i, void *arg)
{
	struct pf_loop6 *loop = arg;
	struct pf_pdesc *pd = loop->pd;
	struct ip6_extension option;	/* type and length have its shape */
	__be32 jumbo;
	__u32 offset = loop->s->cursor;

	if (offset >= loop->option_end)
		return 1;
	loop->result = pull(loop->skb, pd, offset, &option.next_header, 1);
	if (loop->result)
		return 1;
	if (option.next_header == IP6OPT_PAD1) {
		loop->s->cursor++;
		return 0;
	}
	loop->result = pull(loop->skb, pd, offset, &option, sizeof(option));
	if (loop->result)
		return 1;
	if (offset + sizeof(option) + option.length > loop->option_end)
		goto bad;
	switch (option.next_header) {
	case IP6OPT_PADN:
		break;
	case IP6OPT_JUMBO:
		pd->bad_options |= PF_OPT_JUMBO;
		if (pd->jumbo || loop->payload_length)
			goto bad;
		loop->result = pull(loop->skb, pd, offset, loop->s->buffer, 6);
		if (loop->result)
			return 1;
		__builtin_memcpy(&jumbo, loop->s->buffer + 2, sizeof(jumbo));
		pd->jumbo = bpf_ntohl(jumbo);
		if (pd->jumbo < 65535)
			goto bad;
		break;
	case IP6OPT_ROUTER_ALERT:
		pd->bad_options |= PF_OPT_ROUTER_ALERT;
		break;
	default:
		pd->bad_options |= PF_OPT_OTHER;
	}
	loop->s->cursor += sizeof(option) + option.length;
	return 0;

bad:
	loop->result = PF_REASON_IP_OPTION;
	return 1;
}

__inline int walk_fragment_header(struct pf_loop6 *loop)
{
	struct pf_pdesc *pd = loop->pd;
	struct ip6_fragment header;
	int reason;

	if (loop->fragment_headers++)
		return PF_REASON_FRAGMENT;
	reason = pull(loop->skb, pd, pd->offset, &header, sizeof(header));
	if (reason)
		return reason;
	if (header.offset & bpf_htons(IP6_OFFSET_MASK)) {
		pd->fragment = pd->offset;
		return WALK_DONE;
	}
	/* RFC 6946: offset 0 and nothing to follow is a whole packet */
	if (header.offset & bpf_htons(IP6_MORE_FRAGMENTS))
		pd->fragment = pd->offset;
	pd->offset += sizeof(header);
	pd->protocol = header.next_header;
	return WALK_ON;
}

/* A first fragment may end before the header it should have: then all we know is that it is one. */
__inline int fragment_without_header(struct pf_pdesc *pd)
{
	pd->offset = pd->fragment;
	pd->protocol = IPPROTO_FRAGMENT;
	return WALK_DONE;
}

__inline int walk_extension(struct pf_loop6 *loop, __u32 i)
{
	struct pf_pdesc *pd = loop->pd;
	struct ip6_extension header;
	struct ip6_routing routing;
	int reason;

	if (pd->protocol == IPPROTO_ROUTING || pd->protocol == IPPROTO_DSTOPTS)
		pd->bad_options |= PF_OPT_OTHER;
	if (pd->protocol == IPPROTO_HOPOPTS) {
		reason = pull(loop->skb, pd, pd->offset, &header, sizeof(header));
		if (reason)
			return reason;
		loop->s->cursor = pd->offset + sizeof(header);
		loop->option_end = pd->offset + (header.length + 1) * 8;
		loop->result = 0;
		bpf_loop(2048, walk_option6, loop, 0);
		if (loop->result)
			return loop->result;
		if (!pd->bad_options)
			pd->bad_options |= PF_OPT_OTHER;
		if (i > 0)	/* RFC 8200 4.1: only directly behind the IPv6 header */
			return PF_REASON_IP_OPTION;
		if (pd->jumbo)	/* not supported, as in OpenBSD */
			return PF_REASON_IP_OPTION;
	}
	if (pd->protocol == IPPROTO_ROUTING) {
		if (loop->routing_headers++)
			return PF_REASON_IP_OPTION;
		if (pd->fragment && loop->end < pd->offset + sizeof(routing))
			return fragment_without_header(pd);
		reason = pull(loop->skb, pd, pd->offset, &routing, sizeof(routing));
		if (reason)
			return reason;
		if (routing.type == 0)	/* RFC 5095 */
			return PF_REASON_IP_OPTION;
	}
	if (pd->fragment && loop->end < pd->offset + sizeof(header))
		return fragment_without_header(pd);
	reason = pull(loop->skb, pd, pd->offset, &header, sizeof(header));
	if (reason)
		return reason;
	pd->offset += pd->protocol == IPPROTO_AH ? (header.length + 2) * 4 : (header.length + 1) * 8;
	pd->protocol = header.next_header;
	return WALK_ON;
}

__inline int walk_icmp6(struct pf_loop6 *loop)
{
	struct pf_pdesc *pd = loop->pd;
	int reason;

	if (pd->fragment && loop->end < pd->offset + ICMP_HEADER)
		return fragment_without_header(pd);
	reason = pull(loop->skb, pd, pd->offset, loop->s->buffer, ICMP_HEADER);
	if (reason)
		return reason;
	switch (loop->s->buffer[0]) {
	case MLD_LISTENER_QUERY:
	case MLD_LISTENER_REPORT:
	case MLD_LISTENER_DONE:
	case MLDV2_LISTENER_REPORT:
		/* RFC 2710: hop limit 1, link-local source and a router alert */
		if (loop->ttl != 1 || !loop->link_local)
			return PF_REASON_IP_OPTION;
		pd->bad_options &= ~PF_OPT_ROUTER_ALERT;
	}
	return WALK_DONE;
}

/* One header of the chain. */
static int walk_next6(__u32 i, void *arg)
{
	struct pf_loop6 *loop = arg;
	struct pf_pdesc *pd = loop->pd;

	switch (pd->protocol) {
	case IPPROTO_FRAGMENT:
		loop->result = walk_fragment_header(loop);
		break;
	case IPPROTO_HOPOPTS:
	case IPPROTO_ROUTING:
	case IPPROTO_DSTOPTS:
	case IPPROTO_AH:
		loop->result = walk_extension(loop, i);
		break;
	case IPPROTO_ICMPV6:
		loop->result = walk_icmp6(loop);
		break;
	case IPPROTO_TCP:
	case IPPROTO_UDP:
		loop->result = WALK_DONE;
		if (pd->fragment && loop->end < pd->offset + (pd->protocol == IPPROTO_TCP ?
			    sizeof(struct tcp) : sizeof(struct udp)))
			loop->result = fragment_without_header(pd);
		break;
	default:
		loop->result = WALK_DONE;
	}
	return loop->result != WALK_ON;
}

__global int walk_header6(struct __sk_buff *skb, struct pf_scratch *s, struct pf_pdesc *pd,
			  __u32 payload_length)
{
	struct pf_loop6 loop = {
		.skb = skb,
		.s = s,
		.pd = pd,
		.payload_length = payload_length,
		.result = WALK_ON,
	};

	if (!s || !pd)
		return PF_REASON_SHORT;
	loop.ttl = pd->ttl;
	loop.link_local = (pd->source.word[0] & bpf_htonl(0xffc00000)) == bpf_htonl(0xfe800000);
	pd->offset += sizeof(struct ip6);
	loop.end = pd->offset + payload_length;
	pd->fragment = pd->jumbo = 0;
	if (pd->protocol == IPPROTO_TCP || pd->protocol == IPPROTO_UDP)
		return 0;
	bpf_loop(MAX_HEADERS, walk_next6, &loop, 0);
	return loop.result == WALK_ON ? PF_REASON_IP_OPTION : loop.result;
}

/* BIG TCP: the length of a GSO packet over 64 kB stands in a hop-by-hop header that Linux takes off
 * when it cuts the packet (ipv6_hopopt_jumbo_remove). Steps over that header; later kernels write
 * none. Whatever else stands there is read as any extension header. */
__inline void step_over_jumbo(struct __sk_buff *skb, struct pf_pdesc *pd)
{
	struct ip6_jumbo header;

	if (pd->protocol != IPPROTO_HOPOPTS ||
	    pull(skb, pd, pd->offset + sizeof(struct ip6), &header, sizeof(header)) ||
	    header.next_header != IPPROTO_TCP || header.header_length ||
	    header.option != IP6OPT_JUMBO || header.option_length != sizeof(header.length) ||
	    bpf_ntohl(header.length) != pd->length - sizeof(struct ip6))
		return;
	pd->offset += sizeof(header);
	pd->protocol = header.next_header;
	pd->kernel_header = sizeof(header);
}

/* Reads the header of s->pd, or with `quoted` of the packet that an ICMP error quotes, at
 * pd->offset. */
__inline int read_ip6(struct __sk_buff *skb, struct pf_scratch *s, struct pf_pdesc *pd, bool quoted)
{
	struct ip6 ip6;
	int reason = pull(skb, pd, pd->offset, &ip6, sizeof(ip6));
	bool is_big;

	if (reason)
		return reason;
	pd->length = bpf_ntohs(ip6.payload_length) + sizeof(ip6);
	is_big = !quoted && !ip6.payload_length && skb->gso_size;
	if (is_big)
		pd->length = skb->len - pd->ip;
	if (!quoted) {
		if (pd->length > pd->limit || bpf_ntohl(ip6.flow) >> 28 != 6)
			return PF_REASON_SHORT;
		pd->limit = pd->length;
	}
	__builtin_memcpy(&pd->source, ip6.source, sizeof(pd->source));
	__builtin_memcpy(&pd->destination, ip6.destination, sizeof(pd->destination));
	pd->tos = (bpf_ntohl(ip6.flow) & 0x0fc00000) >> 20;
	pd->ttl = ip6.hop_limit;
	pd->protocol = ip6.next_header;
	if (is_big)
		step_over_jumbo(skb, pd);
	reason = walk_header6(skb, s, pd, bpf_ntohs(ip6.payload_length));
	if (reason)
		return reason;
	pd->virtual_protocol = pd->fragment ? PF_VPROTO_FRAGMENT : pd->protocol;
	return 0;
}

#endif /* PF_IP6_H */
