/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The IPv4 header, its options, and authentication headers behind it (pf-semantics section 4).
 * Functions return the reason to drop the packet, 0 for none.
 */
#ifndef PF_IP_H
#define PF_IP_H

#include "frame.h"
#include "kern.h"
#include "scratch.h"

/* One option of those in s->buffer. */
static int walk_option(__unused __u32 i, void *arg)
{
	struct pf_loop *loop = arg;
	struct pf_scratch *s = loop->s;
	__u32 offset = s->cursor;
	__u8 type, length;

	if (offset >= s->cursor_end || offset >= IP_MAX_OPTIONS)
		return 1;
	type = s->buffer[offset];
	if (type == IPOPT_EOL)
		return 1;
	if (type == IPOPT_NOP) {
		s->cursor++;
		return 0;
	}
	if (offset + 2 > s->cursor_end)
		goto malformed;
	length = s->buffer[offset + 1];
	if (length < 2 || offset + length > s->cursor_end)
		goto malformed;
	loop->pd->bad_options |= type == IPOPT_ROUTER_ALERT ? PF_OPT_ROUTER_ALERT : PF_OPT_OTHER;
	s->cursor += length;
	return 0;

malformed:
	s->sum = PF_REASON_IP_OPTION;
	return 1;
}

__global int walk_options(struct __sk_buff *skb, struct pf_scratch *s, struct pf_pdesc *pd,
			  __u32 offset, __u32 length)
{
	struct pf_loop loop = { .skb = skb, .s = s, .pd = pd };

	/* a quoted packet ends where the one around it does, whatever follows that in the frame */
	if (!s || !pd || offset + length > pd->limit ||
	    load_bytes(skb, pd->ip + offset, s->buffer, length, IP_MAX_OPTIONS))
		return PF_REASON_SHORT;
	s->cursor = 0;
	s->cursor_end = length;
	s->sum = 0;
	bpf_loop(IP_MAX_OPTIONS, walk_option, &loop, 0);
	return s->sum;
}

__inline int walk_header(struct __sk_buff *skb, struct pf_scratch *s, struct pf_pdesc *pd,
			 struct ip *ip)
{
	__u32 header_length = (ip->version_ihl & 0x0f) * 4;
	__u32 end;
	int reason;

	if (header_length < sizeof(*ip) || header_length > pd->length)
		return PF_REASON_SHORT;
	if (header_length != sizeof(*ip)) {
		reason = walk_options(skb, s, pd, pd->offset + sizeof(*ip),
				      header_length - sizeof(*ip));
		if (reason)
			return reason;
		/* options that are nothing but padding are fishy */
		if (!pd->bad_options)
			pd->bad_options |= PF_OPT_OTHER;
	}
	end = pd->offset + pd->length;
	pd->offset += header_length;
	pd->ip_header = header_length;
	pd->protocol = ip->protocol;
	pd->ip_offset = ip->offset;

	if (pd->protocol == IPPROTO_IGMP) {
		/* RFC 1112: what is sent to all hosts must not be forwarded */
		if (ip->ttl != 1 && ip->destination == bpf_htonl(0xe0000001))
			return PF_REASON_IP_OPTION;
		pd->bad_options &= ~PF_OPT_ROUTER_ALERT;
	}
	/* no headers in later fragments */
	if (ip->offset & bpf_htons(IP_OFFMASK))
		return 0;

	for (int i = 0; i < MAX_HEADERS; i++) {
		struct ip6_extension header;

		if (pd->protocol != IPPROTO_AH)
			return 0;
		if (ip->offset & bpf_htons(IP_MF) && end < pd->offset + sizeof(header))
			return 0;
		reason = pull(skb, pd, pd->offset, &header, sizeof(header));
		if (reason)
			return reason;
		pd->offset += (header.length + 2) * 4;
		pd->protocol = header.next_header;
	}
	return PF_REASON_IP_OPTION;
}

/* Reads the header of s->pd, or with `quoted` of the packet that an ICMP error quotes, at
 * pd->offset. */
__inline int read_ip(struct __sk_buff *skb, struct pf_scratch *s, struct pf_pdesc *pd, bool quoted)
{
	struct ip ip;
	int reason = pull(skb, pd, pd->offset, &ip, sizeof(ip));

	if (reason)
		return reason;
	pd->length = bpf_ntohs(ip.length);
	/* BIG TCP: Linux writes 0 for the length of GSO packets over 64k */
	if (pd->length == 0 && skb->gso_size)
		pd->length = skb->len - pd->ip;
	if (!quoted) {
		/* a host's IP input drops that before pf sees it; we come before the host's */
		if (pd->length > pd->limit || ip.version_ihl >> 4 != 4)
			return PF_REASON_SHORT;
		pd->limit = pd->length;
		pd->non_initial = (ip.offset & bpf_htons(IP_OFFMASK)) != 0;
	} else if (ip.offset & bpf_htons(IP_OFFMASK)) {
		return PF_REASON_FRAGMENT;	/* errors quote first fragments only */
	}
	set_inet_ends(pd, ip.source, ip.destination);
	pd->tos = ip.tos & ~IPTOS_ECN_MASK;
	pd->ttl = ip.ttl;
	reason = walk_header(skb, s, pd, &ip);
	pd->virtual_protocol = ip.offset & bpf_htons(IP_MF | IP_OFFMASK) ? PF_VPROTO_FRAGMENT :
									  pd->protocol;
	return reason;
}

#endif /* PF_IP_H */
