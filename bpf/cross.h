/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Packets that cross from one family to the other (`af-to`, pf-semantics sections 10 and 11): their
 * headers, with those that an ICMP error quotes, are written anew, and they are forwarded from
 * here. The kernel would not do that: an IPv4 packet that comes in with one of our own addresses is
 * a lie to it.
 *
 * Checksums are corrected by what changes, as in rewrite.h.
 */
#ifndef PF_CROSS_H
#define PF_CROSS_H

#include "af_to.h"
#include "checksum.h"
#include "forward.h"
#include "fragment.h"
#include "frame.h"
#include "kern.h"
#include "mark.h"
#include "normalize.h"
#include "random.h"
#include "reason.h"
#include "reply.h"
#include "rewrite.h"
#include "route.h"
#include "scratch.h"

__inline __u32 header_length(__u8 family)
{
	return family == AF_INET ? sizeof(struct ip) : sizeof(struct ip6);
}

/* Returns the length that an IP header has room for: Linux writes 0 for that of a GSO packet over
 * 64 kB (BIG TCP). */
__inline __u16 written_length(const struct pf_scratch *s, __u32 length)
{
	return length > 0xffff && s->segments > 1 ? 0 : length;
}

/* Returns the hops that a packet has left on the other side: more than usual nobody needs there. */
__inline __u8 hops_across(const struct pf_scratch *s, __u8 ttl)
{
	return s->cross_to == AF_INET || (ttl && ttl < IP_DEFAULT_TTL) ? ttl : IP_DEFAULT_TTL;
}

/* Writes an IP header for `length` bytes behind it to s->buffer. */
__inline void build_header(struct pf_scratch *s, __u32 at, const struct pf_addr *source,
			   const struct pf_addr *destination, __u8 protocol, __u32 length, __u8 tos,
			   __u8 ttl)
{
	if (s->cross_to == AF_INET) {
		struct ip ip = {};

		set_ip(&ip, source->word[0], destination->word[0], protocol,
		       written_length(s, sizeof(ip) + length));
		ip.tos = tos;
		ip.id = bpf_htons(random_draw(0x10000));
		/* the packet's own header stands in front */
		ip.offset = s->leaves_in_fragments && !at ? 0 : bpf_htons(IP_DF);
		ip.ttl = ttl;
		ip.checksum = ~fold(sum_of(&ip, sizeof(ip), 0));
		__builtin_memcpy(s->buffer + at, &ip, sizeof(ip));
	} else {
		struct ip6 ip6 = {};

		set_ip6(&ip6, source, destination, protocol, written_length(s, length));
		ip6.flow |= bpf_htonl((__u32)tos << 20);
		ip6.hop_limit = ttl;
		__builtin_memcpy(s->buffer + at, &ip6, sizeof(ip6));
	}
}

/* ---- checksums ------------------------------------------------------------------------------- */

/* What an ICMPv6 checksum covers besides the message. */
__inline __u16 sum_ends(const struct pf_addr *source, const struct pf_addr *destination, __u32 length)
{
	__u32 sum = bpf_csum_diff(NULL, 0, (__be32 *)source, sizeof(*source), 0);

	sum = bpf_csum_diff(NULL, 0, (__be32 *)destination, sizeof(*destination), sum);
	return fold(fold(sum) + bpf_htons(length) + bpf_htons(IPPROTO_ICMPV6));
}

/* A sum with words taken off. */
__inline __u32 without(__u32 sum, __u16 words)
{
	return fold(sum) + (__u16)~words;
}

/* Replaces what the transport checksum covers of the IP header: of TCP and UDP, the addresses. */
__inline void move_checksum(struct __sk_buff *skb, struct pf_scratch *s)
{
	const struct pf_pdesc *pd = &s->pd;
	__s64 change;

	_Static_assert(offsetof(struct pf_pdesc, original_destination) ==
			       offsetof(struct pf_pdesc, original_source) + 16 &&
		       offsetof(struct pf_pdesc, destination) ==
			       offsetof(struct pf_pdesc, source) + 16, "ends are summed up at once");
	change = bpf_csum_diff((__be32 *)&pd->original_source, 32, (__be32 *)&pd->source, 32, 0);
	if (change >= 0)
		bpf_l4_csum_replace(skb, checksum_of_ends(pd), 0, change,
				    checksum_flags(pd) | BPF_F_PSEUDO_HDR);
}

/* ---- ICMP ------------------------------------------------------------------------------------ */

/* Writes the ends to what an error quotes behind the quoted IP header. Returns the checksum's sum
 * with what changes there. */
__global __u32 cross_quoted(struct __sk_buff *skb, struct pf_scratch *s, __u32 sum)
{
	const struct pf_pdesc *quoted;
	struct pf_icmp_start old, new;
	__be16 ports[2];
	__u32 at;

	if (!s)
		return sum;
	quoted = &s->quoted;
	at = quoted->ip + quoted->offset;
	switch (quoted->protocol) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
		ports[0] = quoted->source_port;
		ports[1] = quoted->destination_port;
		sum = without(sum, quoted->original_source_port);
		sum = without(sum, quoted->original_destination_port);
		sum += ports[0];
		sum += ports[1];
		bpf_skb_store_bytes(skb, at, ports, sizeof(ports), BPF_F_RECOMPUTE_CSUM);
		break;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		if (bpf_skb_load_bytes(skb, at, &old, sizeof(old)))
			break;
		new = s->converted_quoted;
		new.zero = old.zero;
		if (s->rewrite_id)
			new.id = s->icmp_answer ? quoted->destination_port : quoted->source_port;
		sum = without(sum, fold(sum_of(&old, sizeof(old), 0)));
		sum += fold(sum_of(&new, sizeof(new), 0));
		bpf_skb_store_bytes(skb, at, &new, sizeof(new), BPF_F_RECOMPUTE_CSUM);
	}
	return fold(sum);
}

/* Writes the message's first bytes, and behind those the IP header of the packet that it quotes, to
 * s->buffer. Returns their length, 0 if it fails. */
__global int build_message(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct pf_pdesc *pd, *quoted;
	struct pf_icmp_start old, new;
	__u32 at, length, grown = 0, sum;
	bool quotes;

	if (!s)
		return 0;
	pd = &s->pd;
	quoted = &s->quoted;
	quotes = s->translated == PF_TRANSLATED_QUOTED;
	if (bpf_skb_load_bytes(skb, pd->ip + pd->offset, &old, sizeof(old)))
		return 0;
	new = s->converted;
	new.zero = 0;
	if (!quotes && s->rewrite_id)
		new.id = s->icmp_answer ? pd->destination_port : pd->source_port;

	sum = (__u16)~old.zero;
	old.zero = 0;
	sum = without(sum, fold(sum_of(&old, sizeof(old), 0)));
	sum += fold(sum_of(&new, sizeof(new), 0));
	length = pd->length - pd->offset;
	at = header_length(s->cross_to);
	if (quotes) {
		__u32 header = quoted->offset - pd->offset - ICMP_HEADER;
		__u32 behind = quoted->length - header;

		sum = cross_quoted(skb, s, fold(sum));
		sum = without(sum, fold(sum_packet(skb, s, pd->ip + pd->offset + ICMP_HEADER, header,
						   0)));
		build_header(s, at + ICMP_HEADER, &quoted->source, &quoted->destination,
			     other_protocol(quoted->protocol), behind, 0,
			     hops_across(s, quoted->ttl));
		if (s->cross_to == AF_INET6)
			sum += fold(sum_of(s->buffer + sizeof(struct ip6) + ICMP_HEADER,
					   sizeof(struct ip6), 0));
		grown = header_length(s->cross_to) - header;
	}
	if (pd->family == AF_INET6)
		sum = without(sum, sum_ends(&pd->original_source, &pd->original_destination,
					    length));
	else
		sum = fold(sum) + sum_ends(&pd->source, &pd->destination, length + grown);
	new.zero = ~fold(sum);
	if (s->cross_to == AF_INET)
		__builtin_memcpy(s->buffer + sizeof(struct ip), &new, sizeof(new));
	else
		__builtin_memcpy(s->buffer + sizeof(struct ip6), &new, sizeof(new));
	return at + ICMP_HEADER + (quotes ? header_length(s->cross_to) : 0);
}

/* ---- the packet ------------------------------------------------------------------------------ */

/* Makes the packet's headers, `old` bytes, `new` bytes long and the packet one of the other
 * family. */
__inline bool make_room(struct __sk_buff *skb, struct pf_scratch *s, __s32 old, __s32 new)
{
	bool to_inet = s->cross_to == AF_INET;
	__be16 type = bpf_htons(to_inet ? ETHERTYPE_IP : ETHERTYPE_IPV6);
	__s32 rest = new - old - (to_inet ? -HEADER_DIFFERENCE : HEADER_DIFFERENCE);

	if (rest && bpf_skb_adjust_room(skb, rest, rest < 0 ? BPF_ADJ_ROOM_NET : BPF_ADJ_ROOM_MAC,
					BPF_F_ADJ_ROOM_FIXED_GSO))
		return false;
	if (bpf_skb_change_proto(skb, type, 0))
		return false;
	return s->pd.ip < sizeof(struct ethernet) ||
	       !bpf_skb_store_bytes(skb, s->pd.ip - sizeof(type), &type, sizeof(type), 0);
}

/* Makes the packet one of the other family, of which all is still to be written from its IP header
 * on. Not 0 if that cannot be done. */
__global int change_family(struct __sk_buff *skb, struct pf_scratch *s)
{
	__u32 header;

	/* the kernel moves the link header as it knows it, without tags that are in the frame */
	if (!s || has_tags_in_frame(&s->pd))
		return -1;
	header = header_length(s->cross_to);
	if (!make_room(skb, s, s->pd.offset, header))
		return -1;
	s->pd.family = s->cross_to;
	s->pd.offset = header;
	return 0;
}

/* IPv6 has no UDP without a checksum (RFC 8200 section 8.1). */
__inline void sum_up_datagram(struct __sk_buff *skb, struct pf_scratch *s, __u32 length)
{
	__u32 at = s->pd.ip + sizeof(struct ip6), sum;
	__u16 checksum;

	if (bpf_skb_load_bytes(skb, at + offsetof(struct udp, checksum), &checksum,
			       sizeof(checksum)) || checksum)
		return;
	sum = sum_packet(skb, s, at, length, sum_pseudo(&s->pd, IPPROTO_UDP, length));
	checksum = ~fold(sum);
	if (!checksum)
		checksum = 0xffff;
	bpf_skb_store_bytes(skb, at + offsetof(struct udp, checksum), &checksum, sizeof(checksum),
			    BPF_F_RECOMPUTE_CSUM);
}

/* Turns the packet into one of the other family; `hops` are taken off its time to live. Not 0 if
 * that cannot be done. */
__global int cross(struct __sk_buff *skb, struct pf_scratch *s, __u32 hops)
{
	__u32 old, new, length, header;
	struct pf_pdesc *pd;

	if (!s)
		return -1;
	pd = &s->pd;
	if (has_tags_in_frame(pd))
		return -1;
	/* the kernel cuts nothing off packets over 16 kB; the daemon does so by their length */
	if ((pd->family == AF_INET || s->reassembled) && shrink(skb, pd->ip + pd->length) &&
	    !s->leaves_in_fragments)
		return -1;
	length = pd->length - pd->offset;
	old = pd->offset;
	new = header = header_length(s->cross_to);
	switch (pd->virtual_protocol) {
	case IPPROTO_TCP:
		write_tcp(skb, s);
		/* fallthrough */
	case IPPROTO_UDP:
		rewrite_word(skb, pd, pd->ip + old + offsetof(struct tcp, source),
			     pd->original_source_port, pd->source_port);
		rewrite_word(skb, pd, pd->ip + old + offsetof(struct tcp, destination),
			     pd->original_destination_port, pd->destination_port);
		move_checksum(skb, s);
		break;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		if (s->quoted_difference)
			write_quoted_sequence(skb, s);
		old += ICMP_HEADER;
		new = build_message(skb, s);
		if (!new)
			return -1;
		if (s->translated == PF_TRANSLATED_QUOTED) {
			old = s->quoted.offset;
			length += header - (old - pd->offset - ICMP_HEADER);
		}
	}
	if (!make_room(skb, s, old, new))
		return -1;
	build_header(s, 0, &pd->source, &pd->destination, other_protocol(pd->protocol), length,
		     pd->tos, hops_across(s, pd->ttl) - hops);
	/* kept apart for the verifier of Linux 6.12, as in load_bytes */
	barrier_var(new);
	if (new < 1)
		return -1;
	barrier_var(new);
	if (new > 2 * sizeof(struct ip6) + ICMP_HEADER)
		return -1;
	if (bpf_skb_store_bytes(skb, pd->ip, s->buffer, new,
				BPF_F_RECOMPUTE_CSUM | BPF_F_INVALIDATE_HASH))
		return -1;
	pd->length = header + length;
	if (pd->virtual_protocol == IPPROTO_UDP && s->cross_to == AF_INET6)
		sum_up_datagram(skb, s, length);
	return 0;
}

/* ---- on its way ------------------------------------------------------------------------------ */

/* Returns the length of the packet in the other family. That of an error has in it already how much
 * longer its quote becomes. */
__inline __u32 length_across(const struct pf_scratch *s)
{
	return s->length - s->pd.offset + header_length(s->cross_to);
}

/* True if the packet may leave in fragments, although it crosses: it came in fragments, or RFC 7915
 * (sections 4.1 and 5.1) has the translator make them. An IPv6 packet of IPV6_MIN_MTU bytes or less
 * is not made shorter by its sender (RFC 8200 section 5). */
__inline bool is_divisible_across(const struct pf_scratch *s)
{
	if (s->reassembled)
		return true;
	if (s->cross_to == AF_INET)
		return s->pd.length <= IPV6_MIN_MTU;
	return !(s->pd.ip_offset & bpf_htons(IP_DF)) || s->act.flags & PF_STATE_NO_DF;
}

/* Returns how long fragments in the other family may be. Whoever sends IPv4 without DF hears of no
 * MTU on the way, so such packets leave in fragments that every IPv6 link takes. */
/* Differs from OpenBSD: linux.md, "Sizes in the other family" */
__inline __u32 fragment_length_across(struct __sk_buff *skb, const struct pf_scratch *s, __u32 mtu)
{
	__u32 longest;

	if (s->cross_to == AF_INET6)
		return IPV6_MIN_MTU;
	longest = longest_fragment(skb, s);
	longest = longest > IPV6_MIN_MTU ? longest - HEADER_DIFFERENCE -
						   sizeof(struct ip6_fragment) :
					   IPV6_MIN_MTU - HEADER_DIFFERENCE;
	return min(longest, mtu);
}

/* Looks whether the next link takes the packet. Notes in s->leaves_in_fragments how long fragments
 * may be, if the packet leaves in such, else 0. Returns the MTU as the sender counts if the packet
 * is too long and must not be fragmented, else 0. Of a GSO packet its segments count, which the
 * ends of a connection have agreed upon. */
__inline __u32 too_big_across(struct __sk_buff *skb, struct pf_scratch *s, __u32 ifindex)
{
	__u32 mtu = min(mtu_of(skb, ifindex), 0xffff), length = length_across(s);

	if (s->segments > 1)
		return 0;
	if (is_divisible_across(s)) {
		if (length > (s->reassembled && s->cross_to == AF_INET6 ? IPV6_MIN_MTU : mtu))
			s->leaves_in_fragments = fragment_length_across(skb, s, mtu);
		return 0;
	}
	if (length <= mtu)
		return 0;
	return s->cross_to == AF_INET ? mtu + HEADER_DIFFERENCE : mtu - HEADER_DIFFERENCE;
}

/* The packet, which is one of the other family now, is fragmented where it leaves: see fit(). */
__inline void ask_for_fragments(struct __sk_buff *skb, struct pf_scratch *s)
{
	sign_mark(skb, (skb->mark & ~PF_MARK_TAG_MASK) | PF_MARK_REASSEMBLED |
			       PF_GENERATED_ROUTED << PF_MARK_TAG_SHIFT);
	bpf_set_hash(skb, HASH_MAGIC | s->leaves_in_fragments);
}

/* The sender knows the packet as it was. */
/* Differs from OpenBSD: linux.md, "Forwarding by af-to" */
__inline int tell_own_sender(struct pf_scratch *s, enum pf_undelivered why, __u32 mtu)
{
	s->outcome.verdict = PF_VERDICT_DROP;
	restore_original(&s->pd);
	if (s->pd.virtual_protocol == IPPROTO_TCP)
		s->pd.tcp = s->tcp_received;
	return tell_sender(s, why, mtu);
}

/* What the packet carries on, and that nobody filters it any more. OpenBSD gives it no queue. */
__inline void carry_across(struct __sk_buff *skb, struct pf_scratch *s)
{
	bool urgent = s->empty_ack || s->pd.tos & IPTOS_LOWDELAY;
	__u32 prio = s->prio;

	if (s->act.flags & PF_STATE_SET_PRIO)
		skb->priority = prio = s->act.set_prio[urgent];
	write_mark(skb, PF_MARK_GENERATED, driven_by_test() ? s->act.tag ? s->act.tag : s->tag : 0,
		   prio);
}

/* The packet cannot be one of the other family: UDP segments that are still together, tags in front
 * of the IP header, or headers that end behind the packet. Returns what the program returns. */
/* Differs from OpenBSD: linux.md, "Sizes in the other family" */
__inline int give_up(struct pf_scratch *s)
{
	s->outcome.verdict = PF_VERDICT_DROP;
	reason_count(s, PF_REASON_TRANSLATE);
	return PF_TCX_DROP;
}

/* Redirects the packet, which is for this host, to lo. Returns what the program returns. */
__inline int loop_back(struct __sk_buff *skb, const struct pf_scratch *s)
{
	struct ethernet header = {
		.type = bpf_htons(s->cross_to == AF_INET ? ETHERTYPE_IP : ETHERTYPE_IPV6),
	};

	if (!has_link_header(skb) || bpf_skb_store_bytes(skb, 0, &header, sizeof(header), 0))
		return PF_TCX_DROP;
	return bpf_redirect(LOOPBACK_IFINDEX, BPF_F_INGRESS);
}

/* Delivers the packet to this host. If its source is the host's as well, it comes in by lo, as on
 * OpenBSD and as the answer will: from another interface Linux takes no IPv4 packet with a source
 * of its own. pfctl lets lo take such packets (crates/kernel's routing.rs). Returns what the
 * program returns. */
/* Differs from OpenBSD: linux.md, "Addresses of the host" */
__inline int deliver_across(struct __sk_buff *skb, struct pf_scratch *s)
{
	bool loops = find_route_in(skb, &s->lookup, s->cross_to, &s->pd.source,
				   PF_FIB_LOOKUP_SKIP_NEIGH, table_of(s)) != PF_ROUTE_FOUND;

	carry_across(skb, s);
	if (cross(skb, s, 0))
		return give_up(s);
	return loops ? loop_back(skb, s) : PF_TCX_NEXT;
}

/* Sends the packet on in the other family. Returns what the program returns, unless there is a
 * reply. A test has no neighbours. */
/* Differs from OpenBSD: linux.md, "Forwarding by af-to" */
__global int cross_over(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct bpf_fib_lookup *params;
	enum pf_route route;
	__u32 mtu;

	if (!s)
		return PF_TCX_DROP;
	/* authentication headers can be longer than the packet around them */
	if (s->pd.offset > s->pd.length ||
	    (s->segments == 1 && s->cross_to == AF_INET && length_across(s) > 0xffff))
		return give_up(s);
	s->leaves_in_fragments = 0;
	params = &s->lookup;
	s->outcome.verdict = PF_VERDICT_CROSSED;
	if (driven_by_test() && !s->route) {
		carry_across(skb, s);
		return cross(skb, s, 0) ? give_up(s) : PF_TCX_NEXT;
	}
	if (s->route)
		route = find_way(skb, s, params) == PF_ROUTE_FOUND ? PF_ROUTE_FOUND : PF_ROUTE_NONE;
	else
		route = find_route_in(skb, params, s->cross_to, &s->pd.destination,
				      PF_FIB_LOOKUP_SKIP_NEIGH | FORWARDS, table_of(s));
	switch (route) {
	case PF_ROUTE_FOUND:
		break;
	case PF_ROUTE_LOCAL:
		return deliver_across(skb, s);
	case PF_ROUTE_NONE:
	case PF_ROUTE_REFUSED:
		reason_count(s, PF_REASON_NO_ROUTE);
		return tell_own_sender(s, PF_UNDELIVERED_NO_ROUTE, 0);
	default:
		s->outcome.verdict = PF_VERDICT_DROP;
		reason_count(s, PF_REASON_NO_ROUTE);
		return PF_TCX_DROP;
	}
	if (s->pd.ttl <= 1)
		return tell_own_sender(s, PF_UNDELIVERED_EXPIRED, 0);
	mtu = too_big_across(skb, s, params->ifindex);
	if (mtu)
		return tell_own_sender(s, PF_UNDELIVERED_TOO_BIG, mtu);
	s->outcome.fragment_length = s->leaves_in_fragments;
	if (s->route)
		tell_way(s, params);
	carry_across(skb, s);
	if (cross(skb, s, 1))
		return give_up(s);
	if (driven_by_test())
		return PF_TCX_NEXT;
	if (s->leaves_in_fragments)
		ask_for_fragments(skb, s);
	return send_to_neighbour(skb, params);
}

#endif /* PF_CROSS_H */
