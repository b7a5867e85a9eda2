/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Answers to dropped packets: TCP segments (RST, challenge ACK) and ICMP errors (pf-semantics
 * section 11, block returns).
 *
 * The packet is dropped anyway, so it is turned into its own answer, which answer.h sends. The mark
 * tells our programs to let the answer through.
 */
#ifndef PF_REPLY_H
#define PF_REPLY_H

#include "checksum.h"
#include "interface.h"
#include "kern.h"
#include "mark.h"
#include "normalize.h"
#include "queue.h"
#include "scratch.h"
#include "table.h"

#define ICMP_TTL		255
#define ICMP6_QUOTE_MAX		1232	/* the IPv6 minimum MTU less two headers */

struct answer4_tcp {
	struct ip ip;
	struct tcp tcp;
	__be32 mss;			/* an option, which only SYNs have */
};

struct answer6_tcp {
	struct ip6 ip;
	struct tcp tcp;
	__be32 mss;
};

struct answer_icmp_header {		/* of both families; the last word is the MTU in some errors */
	__u8 type;
	__u8 code;
	__be16 checksum;
	__be32 rest;
};

struct answer4_icmp {
	struct ip ip;
	struct answer_icmp_header icmp;
};

struct answer6_icmp {
	struct ip6 ip;
	struct answer_icmp_header icmp;
};

__inline void set_ip(struct ip *ip, __be32 source, __be32 destination, __u8 protocol, __u16 length)
{
	ip->version_ihl = 0x45;
	ip->length = bpf_htons(length);
	ip->protocol = protocol;
	ip->source = source;
	ip->destination = destination;
}

__inline void set_ip6(struct ip6 *ip, const struct pf_addr *source,
		      const struct pf_addr *destination, __u8 protocol, __u16 length)
{
	ip->flow = bpf_htonl(6u << 28);
	ip->payload_length = bpf_htons(length);
	ip->next_header = protocol;
	ip->hop_limit = IP_DEFAULT_TTL;
	__builtin_memcpy(ip->source, source, sizeof(ip->source));
	__builtin_memcpy(ip->destination, destination, sizeof(ip->destination));
}

__inline __u32 sum_of(const void *bytes, __u32 length, __u32 sum)
{
	return bpf_csum_diff(NULL, 0, (__be32 *)bytes, length, sum);
}

__inline int shrink(struct __sk_buff *skb, __u32 length)
{
	return skb->len > length ? bpf_skb_change_tail(skb, length, 0) : 0;
}

/* A packet that came in before it goes out. */
__inline bool is_forwarded(const struct pf_scratch *s)
{
	return s->pd.direction == PF_OUT && s->came_in_by;
}

/*
 * Our own address for an answer: the one the packet was sent to if that is ours, else the one that
 * we have towards its sender. False if there is no way to the sender.
 *
 * Linux refuses IPv4 packets that come in with an address of its own, so what one of our own
 * programs sent over IPv4 is answered in the name of its destination.
 */
/* Differs from OpenBSD: linux.md, "Answers" */
__inline bool own_address(struct __sk_buff *skb, struct pf_scratch *s, struct pf_addr *own)
{
	const struct pf_pdesc *pd = &s->pd;
	struct pf_addr sender = pd->source;
	struct bpf_fib_lookup *params = &s->lookup;	/* the stack is deep here */
	const __be32 *of_link = s->interface.link_address;
	enum pf_route route;

	*own = pd->destination;
	if (find_route(skb, params, pd->family, &pd->destination, 0) == PF_ROUTE_LOCAL)
		return true;
	/* a bridge has no address but those it stands in front of, and shows no other one of this
	 * host */
	if (stays_between_ports(skb, s))
		return true;
	if (is_everywhere(pd->family, &sender)) {	/* a neighbour on the packet's link */
		if (of_link[0])
			__builtin_memcpy(own, of_link, sizeof(*own));
		return true;
	}
	route = find_route(skb, params, pd->family, &sender, PF_FIB_LOOKUP_SRC);
	if (route == PF_ROUTE_BROADCAST) {	/* all of a link are where any of them is */
		if (pd->family == AF_INET6)
			sender.word[3] ^= bpf_htonl(1);
		else
			sender.word[0] ^= bpf_htonl(1);
		route = find_route(skb, params, pd->family, &sender, PF_FIB_LOOKUP_SRC);
	}
	switch (route) {
	case PF_ROUTE_NONE:
	case PF_ROUTE_REFUSED:
		return false;
	case PF_ROUTE_LOCAL:
		if (pd->family == AF_INET6 || pd->direction == PF_IN || is_forwarded(s))
			*own = sender;
		break;
	case PF_ROUTE_FOUND:
		if (pd->family == AF_INET && params->ipv4_src)
			own->word[0] = params->ipv4_src;
		else if (pd->family == AF_INET6 && (params->ipv6_src[0] || params->ipv6_src[3]))
			__builtin_memcpy(own, params->ipv6_src, sizeof(*own));
		break;
	case PF_ROUTE_BROADCAST:
	case PF_ROUTE_WRAPPED:
	case PF_ROUTE_UNKNOWN:	/* a host that does not forward, or Linux 6.6: as above */
		break;
	}
	return true;
}

/* ---- TCP ------------------------------------------------------------------------------------- */

/* Length of the answer's header. */
__inline __u32 tcp_length(const struct pf_scratch *s)
{
	return sizeof(struct tcp) + (s->reply.mss ? TCPOLEN_MAXSEG : 0);
}

__inline void set_tcp(struct tcp *tcp, __be32 *mss, const struct pf_scratch *s)
{
	tcp->source = s->pd.destination_port;
	tcp->destination = s->pd.source_port;
	tcp->seq = bpf_htonl(s->reply.seq);
	tcp->ack = bpf_htonl(s->reply.ack);
	tcp->offset = tcp_length(s) / 4 << 4;
	tcp->flags = s->reply.tcp_flags;
	tcp->window = bpf_htons(s->reply.window);
	if (s->reply.mss)
		*mss = bpf_htonl(TCPOPT_MAXSEG << 24 | TCPOLEN_MAXSEG << 16 | s->reply.mss);
}

/* The segment's checksum, of an option that is not sent too: that is zero. Where the kernel is
 * still to sum up the segment (CHECKSUM_PARTIAL), that of the pseudo header: the sum of the
 * addresses is the same both ways. */
__inline __u16 tcp_checksum(const struct pf_scratch *s, const struct tcp *tcp, bool partial)
{
	__u32 sum = sum_pseudo(&s->pd, IPPROTO_TCP, tcp_length(s));

	return partial ? fold(sum) : ~fold(sum_of(tcp, sizeof(*tcp) + TCPOLEN_MAXSEG, sum));
}

/* Puts the segment in the packet's place: its last four bytes only if it has the option. */
__inline int store_segment(struct __sk_buff *skb, const struct pf_scratch *s, const void *answer,
			   __u32 length)
{
	__u64 flags = BPF_F_RECOMPUTE_CSUM | BPF_F_INVALIDATE_HASH;
	__u32 ip = s->pd.ip;

	if (!s->reply.mss)
		return shrink(skb, ip + length - TCPOLEN_MAXSEG) ?:
			bpf_skb_store_bytes(skb, ip, answer, length - TCPOLEN_MAXSEG, flags);
	return bpf_skb_change_tail(skb, ip + length, 0) ?:
		bpf_skb_store_bytes(skb, ip, answer, length, flags);
}

/* Turns the packet into the segment s->reply from its destination to its source. */
__global int write_tcp_answer(struct __sk_buff *skb, struct pf_scratch *s)
{
	bool partial = checksum_status(skb) == CHECKSUM_PARTIAL;
	struct pf_pdesc *pd;

	if (!s)
		return -1;
	pd = &s->pd;
	if (pd->family == AF_INET) {
		struct answer4_tcp answer = {};
		struct pf_addr own;

		/* nobody is at 0.0.0.0, so we answer for ourselves */
		if (!pd->destination.word[0] && own_address(skb, s, &own))
			pd->destination = own;
		/* the kernel will sum up from where the TCP header was */
		if (partial && pd->offset != sizeof(answer.ip))
			return -1;
		set_ip(&answer.ip, pd->destination.word[0], pd->source.word[0], IPPROTO_TCP,
		       sizeof(answer.ip) + tcp_length(s));
		answer.ip.tos = IPTOS_LOWDELAY;
		answer.ip.offset = bpf_htons(IP_DF);
		answer.ip.ttl = s->reply.ttl ? s->reply.ttl : IP_DEFAULT_TTL;
		answer.ip.checksum = ~fold(sum_of(&answer.ip, sizeof(answer.ip), 0));
		set_tcp(&answer.tcp, &answer.mss, s);
		answer.tcp.checksum = tcp_checksum(s, &answer.tcp, partial);
		return store_segment(skb, s, &answer, sizeof(answer));
	} else {
		struct answer6_tcp answer = {};

		if (partial && pd->offset != sizeof(answer.ip))
			return -1;
		set_ip6(&answer.ip, &pd->destination, &pd->source, IPPROTO_TCP, tcp_length(s));
		set_tcp(&answer.tcp, &answer.mss, s);
		answer.tcp.checksum = tcp_checksum(s, &answer.tcp, partial);
		return store_segment(skb, s, &answer, sizeof(answer));
	}
}

/* ---- ICMP ------------------------------------------------------------------------------------ */

__inline bool icmp_informational(__u8 type)
{
	switch (type) {
	case ICMP_ECHOREPLY:
	case ICMP_ECHO:
	case ICMP_ROUTERADVERT:
	case ICMP_ROUTERSOLICIT:
	case ICMP_TSTAMP:
	case ICMP_TSTAMPREPLY:
	case ICMP_IREQ:
	case ICMP_IREQREPLY:
	case ICMP_MASKREQ:
	case ICMP_MASKREPLY:
		return true;
	}
	return false;
}

__inline bool icmp6_informational(__u8 type)
{
	return type >= ICMP6_ECHO_REQUEST && type != ND_REDIRECT;
}

/* RFC 1122 3.2.2, RFC 4443 2.4: errors are not sent to or about groups or nobody. */
__inline bool may_send_error(const struct pf_pdesc *pd)
{
	__u32 source = bpf_ntohl(pd->source.word[0]);

	if (pd->family == AF_INET)
		return source >> 28 != 0xe && source >> 24 != 0;
	return pd->destination.bytes[0] != 0xff && pd->source.bytes[0] != 0xff &&
	       (pd->source.half[0] || pd->source.half[1]);
}

/*
 * Sum of the quoted bytes as they will be on the wire. If the kernel is still to write the quoted
 * packet's own checksum, it makes everything from the transport header on sum up to the complement
 * of what is in that field now, the sum of the pseudo header.
 */
__inline __u32 sum_quoted(struct __sk_buff *skb, struct pf_scratch *s, __u32 quote)
{
	const struct pf_pdesc *pd = &s->pd;

	if (checksum_status(skb) != CHECKSUM_PARTIAL)
		return sum_packet(skb, s, pd->ip, quote, 0);
	return sum_packet(skb, s, pd->ip, pd->offset,
			  (__u16)~(pd->protocol == IPPROTO_TCP ? pd->tcp.checksum :
								 pd->udp.checksum));
}

/* How much of the packet the error quotes. */
__inline __u32 quote_length(struct __sk_buff *skb, const struct pf_pdesc *pd)
{
	__u32 transport = 8;

	if (pd->family == AF_INET6)
		return min(pd->length, ICMP6_QUOTE_MAX);
	/* the field that the kernel is still to write must be there */
	if (checksum_status(skb) == CHECKSUM_PARTIAL && pd->protocol == IPPROTO_TCP)
		transport = sizeof(struct tcp);
	return min(pd->length, pd->ip_header + transport);
}

/* The bit beside DF and MF goes before anybody quotes the header, whose checksum stays as it is. */
__inline void clear_reserved_bit(struct __sk_buff *skb, const struct pf_pdesc *pd)
{
	__be16 offset = pd->ip_offset & ~bpf_htons(IP_RF);

	if (offset != pd->ip_offset)
		bpf_skb_store_bytes(skb, pd->ip + offsetof(struct ip, offset), &offset,
				    sizeof(offset), 0);
}

/* Turns the packet into the ICMP error s->reply about itself. */
__global int write_icmp_answer(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct pf_addr source;
	struct pf_pdesc *pd;
	__u32 quote, sum;

	if (!s)
		return -1;
	pd = &s->pd;
	if (!may_send_error(pd) || !own_address(skb, s, &source))
		return -1;
	if (checksum_status(skb) == CHECKSUM_PARTIAL && pd->protocol != IPPROTO_TCP &&
	    pd->protocol != IPPROTO_UDP)
		return -1;
	quote = quote_length(skb, pd);
	/* the error quotes the packet as it would have gone on */
	if (pd->virtual_protocol == IPPROTO_TCP)
		write_tcp_header(skb, s);
	if (pd->family == AF_INET)
		clear_reserved_bit(skb, pd);
	if (shrink(skb, pd->ip + quote))
		return -1;
	sum = sum_quoted(skb, s, quote);

	if (pd->family == AF_INET) {
		struct answer4_icmp answer = {};

		if (bpf_skb_adjust_room(skb, sizeof(answer), BPF_ADJ_ROOM_MAC, 0))
			return -1;
		set_ip(&answer.ip, source.word[0], pd->source.word[0], IPPROTO_ICMP,
		       sizeof(answer) + quote);
		answer.ip.ttl = ICMP_TTL;
		answer.ip.checksum = ~fold(sum_of(&answer.ip, sizeof(answer.ip), 0));
		answer.icmp.type = s->reply.icmp_type;
		answer.icmp.code = s->reply.icmp_code;
		answer.icmp.rest = bpf_htonl(s->reply.icmp_rest);
		answer.icmp.checksum = ~fold(sum_of(&answer.icmp, sizeof(answer.icmp), sum));
		return bpf_skb_store_bytes(skb, pd->ip, &answer, sizeof(answer),
					   BPF_F_RECOMPUTE_CSUM | BPF_F_INVALIDATE_HASH);
	} else {
		struct answer6_icmp answer = {};

		if (bpf_skb_adjust_room(skb, sizeof(answer), BPF_ADJ_ROOM_MAC, 0))
			return -1;
		set_ip6(&answer.ip, &source, &pd->source, IPPROTO_ICMPV6,
			sizeof(answer.icmp) + quote);
		answer.icmp.type = s->reply.icmp_type;
		answer.icmp.code = s->reply.icmp_code;
		answer.icmp.rest = bpf_htonl(s->reply.icmp_rest);
		pd->destination = source;	/* for the pseudo header */
		/* older kernels leave the carries of a sum in its upper half */
		sum = fold(sum) + fold(sum_pseudo(pd, IPPROTO_ICMPV6, sizeof(answer.icmp) + quote));
		answer.icmp.checksum = ~fold(sum_of(&answer.icmp, sizeof(answer.icmp), fold(sum)));
		return bpf_skb_store_bytes(skb, pd->ip, &answer, sizeof(answer),
					   BPF_F_RECOMPUTE_CSUM | BPF_F_INVALIDATE_HASH);
	}
}

#endif /* PF_REPLY_H */
