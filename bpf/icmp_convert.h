/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * ICMP messages as ICMPv6 ones and the other way round (pf-semantics section 11; RFC 7915 sections
 * 4.2 and 5.2, as far as OpenBSD follows it).
 */
#ifndef PF_ICMP_CONVERT_H
#define PF_ICMP_CONVERT_H

#include "kern.h"
#include "scratch.h"

/* how much longer an IPv6 header is than one of IPv4 */
#define HEADER_DIFFERENCE	20

#define NO_FIELD		0xff

/* The field of an IPv4 header that is that of an IPv6 header. */
__inline __u32 pointer_to_inet(__u32 pointer)
{
	switch (pointer) {
	case offsetof(struct ip6, flow):
	case offsetof(struct ip6, flow) + 1:
		return pointer;
	case offsetof(struct ip6, payload_length):
	case offsetof(struct ip6, payload_length) + 1:
		return offsetof(struct ip, length);
	case offsetof(struct ip6, next_header):
		return offsetof(struct ip, protocol);
	case offsetof(struct ip6, hop_limit):
		return offsetof(struct ip, ttl);
	}
	if (pointer >= offsetof(struct ip6, source) && pointer < offsetof(struct ip6, destination))
		return offsetof(struct ip, source);
	if (pointer >= offsetof(struct ip6, destination) && pointer < sizeof(struct ip6))
		return offsetof(struct ip, destination);
	return NO_FIELD;
}

__inline __u32 pointer_to_inet6(__u32 pointer)
{
	switch (pointer) {
	case offsetof(struct ip, version_ihl):
	case offsetof(struct ip, tos):
		return pointer;
	case offsetof(struct ip, length):
	case offsetof(struct ip, length) + 1:
		return offsetof(struct ip6, payload_length);
	case offsetof(struct ip, ttl):
		return offsetof(struct ip6, hop_limit);
	case offsetof(struct ip, protocol):
		return offsetof(struct ip6, next_header);
	}
	if (pointer >= offsetof(struct ip, source) && pointer < offsetof(struct ip, destination))
		return offsetof(struct ip6, source);
	if (pointer >= offsetof(struct ip, destination) && pointer < sizeof(struct ip))
		return offsetof(struct ip6, destination);
	return NO_FIELD;
}

/* False if ICMP has no such message. */
__inline bool convert_to_inet(struct pf_icmp_start *icmp)
{
	__u32 word = bpf_ntohl(icmp->word);

	switch (icmp->type) {
	case ICMP6_ECHO_REQUEST:
		icmp->type = ICMP_ECHO;
		return true;
	case ICMP6_ECHO_REPLY:
		icmp->type = ICMP_ECHOREPLY;
		return true;
	case ICMP6_DST_UNREACH:
		icmp->type = ICMP_UNREACH;
		switch (icmp->code) {
		case 0:		/* no route */
		case 2:		/* beyond the scope */
		case 3:		/* no such address */
			icmp->code = 1;		/* host */
			return true;
		case 1:
			icmp->code = 10;	/* host administratively prohibited */
			return true;
		case 4:
			icmp->code = 3;		/* port */
			return true;
		}
		return false;
	case ICMP6_PACKET_TOO_BIG:
		icmp->type = ICMP_UNREACH;
		icmp->code = 4;			/* fragmentation needed */
		icmp->word = bpf_htonl(word - HEADER_DIFFERENCE);
		return true;
	case ICMP6_TIME_EXCEEDED:
		icmp->type = ICMP_TIMXCEED;
		return true;
	case ICMP6_PARAM_PROB:
		if (icmp->code == 1) {		/* next header */
			icmp->type = ICMP_UNREACH;
			icmp->code = 2;		/* protocol */
			return true;
		}
		word = pointer_to_inet(word);
		if (icmp->code || word == NO_FIELD)
			return false;
		icmp->type = ICMP_PARAMPROB;
		icmp->word = bpf_htonl(word << 24);
		return true;
	}
	return false;
}

/* False if ICMPv6 has no such message. */
__inline bool convert_to_inet6(struct pf_icmp_start *icmp)
{
	__u32 word = bpf_ntohl(icmp->word);

	switch (icmp->type) {
	case ICMP_ECHO:
		icmp->type = ICMP6_ECHO_REQUEST;
		return true;
	case ICMP_ECHOREPLY:
		icmp->type = ICMP6_ECHO_REPLY;
		return true;
	case ICMP_UNREACH:
		icmp->type = ICMP6_DST_UNREACH;
		switch (icmp->code) {
		case 0:		/* net */
		case 1:		/* host */
		case 6:		/* net unknown */
		case 7:		/* host unknown */
		case 8:		/* isolated */
		case 11:	/* net for the type of service */
		case 12:	/* host for the type of service */
			icmp->code = 0;		/* no route */
			return true;
		case 2:		/* protocol: the next header field is wrong */
			icmp->type = ICMP6_PARAM_PROB;
			icmp->code = 1;
			icmp->word = bpf_htonl(offsetof(struct ip6, next_header));
			return true;
		case 3:		/* port */
			icmp->code = 4;
			return true;
		case 4:		/* fragmentation needed */
			icmp->type = ICMP6_PACKET_TOO_BIG;
			icmp->code = 0;
			icmp->word = bpf_htonl((word & 0xffff0000) |
					       ((word + HEADER_DIFFERENCE) & 0xffff));
			return true;
		case 9:		/* net prohibited */
		case 10:	/* host prohibited */
		case 13:	/* filtered */
		case 15:	/* precedence cutoff */
			icmp->code = 1;		/* administratively prohibited */
			return true;
		}
		return false;
	case ICMP_TIMXCEED:
		icmp->type = ICMP6_TIME_EXCEEDED;
		return true;
	case ICMP_PARAMPROB:
		word = pointer_to_inet6(word >> 24);
		if ((icmp->code != 0 && icmp->code != 2) || word == NO_FIELD)
			return false;
		icmp->type = ICMP6_PARAM_PROB;
		icmp->code = 0;
		icmp->word = bpf_htonl(word);
		return true;
	}
	return false;
}

/* What a message is in the other family. 0 if it is nothing there. */
__global int convert_icmp(const struct pf_pdesc *pd, struct pf_icmp_start *converted)
{
	if (!pd || !converted)
		return 0;
	converted->type = pd->icmp.type;
	converted->code = pd->icmp.code;
	converted->zero = 0;
	__builtin_memcpy(&converted->word, &pd->icmp.id, sizeof(converted->word));
	return pd->family == AF_INET ? convert_to_inet6(converted) : convert_to_inet(converted);
}

/* Converts the packet's message, and the one that it quotes if it does. */
__inline void convert_messages(struct pf_scratch *s, bool quotes)
{
	s->convertible = convert_icmp(&s->pd, &s->converted);
	/* a quote that ends before its headers do */
	if (quotes && s->quoted.offset > s->pd.limit)
		s->convertible = 0;
	s->quote_convertible = s->convertible;
	if (quotes && (s->quoted.protocol == IPPROTO_ICMP || s->quoted.protocol == IPPROTO_ICMPV6))
		s->convertible &= convert_icmp(&s->quoted, &s->converted_quoted);
}

#endif /* PF_ICMP_CONVERT_H */
