/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * `af-to`: the ends that a packet gets in the other family (pf-semantics section 11). The source
 * comes from a pool, as with nat-to; the destination carries the IPv4 address in IPv6 (RFC 6052).
 */
#ifndef PF_AF_TO_H
#define PF_AF_TO_H

#include "icmp_convert.h"
#include "kern.h"
#include "pool.h"
#include "scratch.h"
#include "state.h"
#include "sticky.h"
#include "translate.h"

/* draws of a port before one is taken that others have, too */
#define PORT_DRAWS		16

/* What a protocol is called in the other family. */
__inline __u8 other_protocol(__u8 protocol)
{
	switch (protocol) {
	case IPPROTO_ICMP:
		return IPPROTO_ICMPV6;
	case IPPROTO_ICMPV6:
		return IPPROTO_ICMP;
	}
	return protocol;
}

/* ---- RFC 6052 -------------------------------------------------------------------------------- */

/* Where the first byte of the IPv4 address is behind a prefix, 0 for none of RFC 6052's. */
__inline __u32 place_behind(__u8 prefix)
{
	switch (prefix) {
	case 32:
	case 40:
	case 48:
	case 56:
		return prefix / 8;
	case 64:
		return 9;	/* the ninth byte is left out */
	case 96:
		return 12;
	}
	return 0;
}

__inline __be32 leading_bits(__u32 count)
{
	return count ? bpf_htonl(~0u << (32 - min(count, 32))) : 0;
}

/* The IPv4 address in an IPv6 address. False if nobody can tell where it is. */
__inline bool extract(struct pf_addr *to, const struct pf_addr *from, __u8 prefix)
{
	/* longer prefixes than RFC 6052 knows keep their bits, which the address has already */
	__u32 place = place_behind(min(prefix, 96));
	struct pf_addr address = {};

	if (!place)
		return false;
	for (int i = 0; i < 4; i++) {
		if (place == 8)
			place++;
		address.bytes[i] = from->bytes[place & 15];
		place++;
	}
	*to = address;
	return true;
}

/* Puts an IPv4 address behind a prefix. */
__inline void embed(struct pf_addr *to, __u8 prefix, const struct pf_addr *address)
{
	__u32 place = place_behind(prefix);
	__be32 mask;

	if (!place) {
		/* behind a prefix that has no place for it everybody goes to the same
		 * destination */
		if (prefix <= 96)
			return;
		mask = leading_bits(prefix - 96);
		to->word[3] = (to->word[3] & mask) | (address->word[0] & ~mask);
		return;
	}
	to->bytes[8] = 0;
	for (int i = 0; i < 4; i++) {
		if (place == 8)
			place++;
		to->bytes[place & 15] = address->bytes[i];
		place++;
	}
}

/* ---- the ends -------------------------------------------------------------------------------- */

/* The destination's port on the other side. For ICMP that is the type of a query; OpenBSD converts
 * the id of an answer too if it looks like one. */
__inline __be16 crossed_port(const struct pf_pdesc *pd)
{
	if (pd->protocol == IPPROTO_ICMPV6) {
		if (pd->destination_port == bpf_htons(ICMP6_ECHO_REQUEST))
			return bpf_htons(ICMP_ECHO);
		if (pd->destination_port == bpf_htons(ICMP6_ECHO_REPLY))
			return bpf_htons(ICMP_ECHOREPLY);
	} else if (pd->protocol == IPPROTO_ICMP) {
		if (pd->destination_port == bpf_htons(ICMP_ECHO))
			return bpf_htons(ICMP6_ECHO_REQUEST);
		if (pd->destination_port == bpf_htons(ICMP_ECHOREPLY))
			return bpf_htons(ICMP6_ECHO_REPLY);
	}
	return pd->destination_port;
}

/* Sets s->key to that of the state's far side, where the packet goes out with its new ends. */
__inline void set_far_key(struct pf_scratch *s)
{
	set_key(&s->key, &s->pd, PF_OUT);
	s->key.family = s->cross_to;
	s->key.protocol = other_protocol(s->pd.protocol);
	s->key.made = PF_MADE_FAR;
}

/* Whether the packet has a port, or what OpenBSD looks for in its place: of ICMP only echo has an
 * id. */
__inline bool has_port(const struct pf_pdesc *pd)
{
	switch (pd->protocol) {
	case IPPROTO_ICMP:
		return pd->original_destination_port == bpf_htons(ICMP_ECHO);
	case IPPROTO_ICMPV6:
		return pd->original_destination_port == bpf_htons(ICMP6_ECHO_REQUEST);
	}
	return true;
}

/* Draws a source port. OpenBSD looks for the packet's own destination in the other family, so
 * every port is free to it. We draw again if the answers would be those of another state, or if it
 * is the packet's own port, with which OpenBSD would not let the first packet cross. */
/* Differs from OpenBSD: linux.md, "Source ports" */
__inline __be16 draw_port(struct pf_scratch *s, const struct pf_pool *pool)
{
	struct pf_pdesc *pd = &s->pd;
	__u16 low = min(pool->low, pool->high), high = max(pool->low, pool->high);
	__be16 own = pd->source_port;
	bool ports = false;
	int i;

	switch (pd->protocol) {
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		if (!has_port(pd))
			return 0;
		low = LOWEST_ID;
		high = HIGHEST_ID;
		break;
	case IPPROTO_TCP:
	case IPPROTO_UDP:
		ports = true;
		if (pool->low || pool->high)
			break;
		/* fallthrough */
	default:
		return own;
	}
	bpf_for(i, 0, PORT_DRAWS) {
		pd->source_port = bpf_htons(low + secret_draw(s, (__u32)(high - low) + 1));
		if (ports && pd->source_port == own)
			continue;
		set_far_key(s);
		if (!find_key(&s->key, &s->far))
			break;
	}
	return pd->source_port;
}

/* Gives the packet its ends in the other family. 0 if there are none. */
__global int translate_across(struct pf_scratch *s, const struct pf_rule *rule)
{
	struct pf_pool *from, *to = NULL;
	struct pf_addr packet;
	struct pf_pdesc *pd;
	__u32 slot;

	if (!s || !rule)
		return 0;
	pd = &s->pd;
	slot = rule->slot;
	from = pool_of(slot, PF_POOL_NAT);
	if (!from)
		return 0;
	if (rule->pools & 1 << PF_POOL_RDR) {
		to = pool_of(slot, PF_POOL_RDR);
		if (!to)
			return 0;
	}
	s->cross_to = rule->cross_to;
	packet = pd->destination;
	/* pools that look at the source take its first bytes for one of their family */
	s->choice.source = pd->source;
	if (s->cross_to == AF_INET)
		s->choice.source.word[1] = s->choice.source.word[2] = s->choice.source.word[3] = 0;
	if (!choose_across(s, from, slot, PF_POOL_NAT, true))
		return 0;
	pd->source = s->choice.address;
	if (has_port(pd))
		count_state(PF_COUNT_SEARCHES);	/* OpenBSD looks for a port now */
	if (to) {
		s->choice.source = pd->source;
		if (!choose_across(s, to, slot, PF_POOL_RDR, false)) {
			draw_port(s, from);	/* which OpenBSD has sought by then */
			return 0;
		}
		pd->destination = s->choice.address;
		if (s->cross_to == AF_INET6) {
			embed(&pd->destination, to->prefix, &packet);
		} else {
			__be32 mask = leading_bits(to->prefix);

			pd->destination.word[0] = (pd->destination.word[0] & mask) |
						  (packet.word[3] & ~mask);
		}
	} else if (s->cross_to == AF_INET6) {
		pd->destination = pd->source;
		embed(&pd->destination, from->prefix, &packet);
	} else if (!extract(&pd->destination, &packet, from->prefix)) {
		draw_port(s, from);
		return 0;
	}
	if (!keeps_ports(pd))
		pd->destination_port = to && to->low ? bpf_htons(to->low) : crossed_port(pd);
	pd->source_port = draw_port(s, from);
	s->nat_slot = slot;
	if (to)
		s->rdr_slot = slot;
	if (pd->protocol == IPPROTO_ICMP || pd->protocol == IPPROTO_ICMPV6)
		convert_messages(s, false);
	return 1;
}

#endif /* PF_AF_TO_H */
