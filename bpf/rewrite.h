/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Writing new ends to a packet (pf-semantics sections 10 and 11). Checksums are corrected by what
 * changes, so they stay right with those that the network card is to finish (CHECKSUM_PARTIAL),
 * with segments that are still together (GSO), and wrong where they were wrong.
 */
#ifndef PF_REWRITE_H
#define PF_REWRITE_H

#include "checksum.h"
#include "icmp.h"
#include "kern.h"
#include "packet.h"
#include "scratch.h"

/* Offset in the frame of the checksum that covers the ends, 0 if there is none. */
__inline __u32 checksum_of_ends(const struct pf_pdesc *pd)
{
	__u32 header = pd->ip + pd->offset;

	switch (pd->virtual_protocol) {
	case IPPROTO_TCP:
		return header + offsetof(struct tcp, checksum);
	case IPPROTO_UDP:
		return header + offsetof(struct udp, checksum);
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return header + offsetof(struct icmp, checksum);
	}
	return 0;
}

/* UDP has no checksum if it is 0 */
__inline __u64 checksum_flags(const struct pf_pdesc *pd)
{
	return pd->virtual_protocol == IPPROTO_UDP ? BPF_F_MARK_MANGLED_0 : CHECKSUM_OF_TCP;
}

/* Replaces two bytes that the transport checksum covers. */
__inline void rewrite_word(struct __sk_buff *skb, const struct pf_pdesc *pd, __u32 at, __be16 from,
			   __be16 to)
{
	if (from == to)
		return;
	bpf_skb_store_bytes(skb, at, &to, sizeof(to), 0);
	bpf_l4_csum_replace(skb, checksum_of_ends(pd), from, to, checksum_flags(pd) | sizeof(to));
}

/* Replaces an address in the IP header. */
__global int rewrite_address(struct __sk_buff *skb, struct pf_scratch *s, __u32 is_source,
			     const struct pf_addr *to)
{
	struct pf_addr from = {};
	struct pf_pdesc *pd;
	__u32 at, checksum;
	__u64 flags;
	__s64 change;

	if (!s || !to)
		return 0;
	pd = &s->pd;
	checksum = checksum_of_ends(pd);
	flags = checksum_flags(pd) | BPF_F_PSEUDO_HDR;
	if (pd->virtual_protocol == IPPROTO_ICMP)
		checksum = 0;		/* does not cover the addresses */
	if (pd->family == AF_INET) {
		at = pd->ip + (is_source ? offsetof(struct ip, source) :
					   offsetof(struct ip, destination));
		if (bpf_skb_load_bytes(skb, at, from.bytes, 4) || from.word[0] == to->word[0])
			return 0;
		bpf_skb_store_bytes(skb, at, to->bytes, 4, 0);
		bpf_l3_csum_replace(skb, pd->ip + offsetof(struct ip, checksum), from.word[0],
				    to->word[0], 4);
		if (checksum)
			bpf_l4_csum_replace(skb, checksum, from.word[0], to->word[0], flags | 4);
		return 0;
	}
	at = pd->ip + (is_source ? offsetof(struct ip6, source) : offsetof(struct ip6, destination));
	if (bpf_skb_load_bytes(skb, at, from.bytes, 16) ||
	    (from.half[0] == to->half[0] && from.half[1] == to->half[1]))
		return 0;
	/* no checksum of the header makes up for the change in what the card has summed up */
	bpf_skb_store_bytes(skb, at, to->bytes, 16, BPF_F_RECOMPUTE_CSUM);
	change = bpf_csum_diff((__be32 *)from.word, 16, (__be32 *)to->word, 16, 0);
	if (checksum && change >= 0)
		bpf_l4_csum_replace(skb, checksum, 0, change, flags);
	return 0;
}

/* Writes s->pd's ends. */
__global int rewrite_packet(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct pf_pdesc *pd;
	__u32 header;

	if (!s)
		return 0;
	pd = &s->pd;
	header = pd->ip + pd->offset;
	switch (pd->virtual_protocol) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
		rewrite_word(skb, pd, header + offsetof(struct tcp, source),
			     pd->original_source_port, pd->source_port);
		rewrite_word(skb, pd, header + offsetof(struct tcp, destination),
			     pd->original_destination_port, pd->destination_port);
		break;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		if (s->rewrite_id)
			rewrite_word(skb, pd, header + offsetof(struct icmp, id), pd->icmp.id,
				     s->icmp_answer ? pd->destination_port : pd->source_port);
	}
	rewrite_address(skb, s, true, &pd->source);
	rewrite_address(skb, s, false, &pd->destination);
	return 0;
}

/* ---- ICMP errors ----------------------------------------------------------------------------- */

/* Replaces an address in the quoted IP header, and the opposite end of the error with it. */
__global int rewrite_quoted(struct __sk_buff *skb, struct pf_scratch *s, __u32 is_source)
{
	const struct pf_pdesc *quoted;
	const struct pf_addr *from, *to;
	__u32 at, checksum;
	__s64 change;

	if (!s)
		return 0;
	quoted = &s->quoted;
	from = is_source ? &quoted->original_source : &quoted->original_destination;
	to = is_source ? &quoted->source : &quoted->destination;
	checksum = checksum_of_ends(&s->pd);
	at = s->pd.ip + s->pd.offset + ICMP_HEADER;
	if (quoted->family == AF_INET) {
		at += is_source ? offsetof(struct ip, source) : offsetof(struct ip, destination);
		bpf_skb_store_bytes(skb, at, to->bytes, 4, 0);
		bpf_l4_csum_replace(skb, checksum, from->word[0], to->word[0],
				    checksum_flags(&s->pd) | 4);
	} else {
		at += is_source ? offsetof(struct ip6, source) : offsetof(struct ip6, destination);
		bpf_skb_store_bytes(skb, at, to->bytes, 16, 0);
		change = bpf_csum_diff((__be32 *)from->word, 16, (__be32 *)to->word, 16, 0);
		if (change >= 0)
			bpf_l4_csum_replace(skb, checksum, 0, change, checksum_flags(&s->pd));
	}
	/* a way by an interface alone leads to where the error goes now */
	if (is_source)
		s->pd.destination = *to;
	else
		s->pd.source = *to;
	return rewrite_address(skb, s, !is_source, to);
}

__inline bool differs(const struct pf_addr *a, const struct pf_addr *b)
{
	return a->half[0] != b->half[0] || a->half[1] != b->half[1];
}

/* Writes s->quoted's ends to the packet that an error quotes, and to the error. Checksums that are
 * quoted stay as they are. */
__global int rewrite_error(struct __sk_buff *skb, struct pf_scratch *s)
{
	__be16 source_port, destination_port, checksum, id = 0;
	const struct pf_pdesc *quoted;
	bool ports = false, echo = false;
	__u32 header;

	if (!s)
		return 0;
	quoted = &s->quoted;
	header = quoted->ip + quoted->offset;
	source_port = quoted->source_port;
	destination_port = quoted->destination_port;
	switch (quoted->protocol) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
		ports = true;
		break;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		echo = s->rewrite_id;
		id = s->icmp_answer ? destination_port : source_port;
	}
	if (differs(&quoted->source, &quoted->original_source) ||
	    (ports && source_port != quoted->original_source_port) ||
	    (echo && id != quoted->icmp.id)) {
		if (ports)
			rewrite_word(skb, &s->pd, header + offsetof(struct udp, source),
				     quoted->original_source_port, source_port);
		if (echo)
			rewrite_word(skb, &s->pd, header + offsetof(struct icmp, id),
				     quoted->icmp.id, id);
		rewrite_quoted(skb, s, true);
	}
	if (differs(&quoted->destination, &quoted->original_destination) ||
	    (ports && destination_port != quoted->original_destination_port)) {
		if (ports)
			rewrite_word(skb, &s->pd, header + offsetof(struct udp, destination),
				     quoted->original_destination_port, destination_port);
		rewrite_quoted(skb, s, false);
	}
	/* nobody looks at the checksum of a quoted datagram, which may well be cut short */
	if (quoted->protocol == IPPROTO_UDP && !bpf_skb_load_bytes(skb, header +
			offsetof(struct udp, checksum), &checksum, sizeof(checksum)))
		rewrite_word(skb, &s->pd, header + offsetof(struct udp, checksum), checksum, 0);
	return 0;
}

#endif /* PF_REWRITE_H */
