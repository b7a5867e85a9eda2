/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Sending the packets that the filter makes: RST, challenge ACK, the SYN|ACK of a handshake that it
 * holds, ICMP errors.
 *
 * An answer goes to the address that it is for: by the route to that address and to the neighbour
 * on that route, as OpenBSD's ip_send does it. It never goes to the station that sent the packet
 * only because it sent it, for that station may have forged the source: it would read the sequence
 * numbers of other hosts' connections in a challenge ACK, and complete handshakes in their names.
 *
 * Three kinds of answers need no route: those to this host's own programs, those on loopback, and
 * those on a bridge. A bridge cannot tell the station that has an address, so an answer goes back
 * to the station that sent the packet. Where that would help a forger there is no answer: no
 * SYN|ACK (synproxy.h, syncookie.h), and a challenge ACK only for a station that the state knows.
 */
#ifndef PF_ANSWER_H
#define PF_ANSWER_H

#include "cross.h"
#include "forward.h"
#include "frame.h"
#include "kern.h"
#include "mark.h"
#include "queue.h"
#include "reply.h"
#include "route.h"
#include "scratch.h"
#include "state_key.h"
#include "table.h"
#include "time.h"

/* ICMP errors of each family in a second, as OpenBSD's icmp_ratelimit and icmp6_ratelimit */
#define ERRORS_PER_SECOND	100

struct pf_error_rate {
	__u32 second;
	__u32 errors;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);		/* IPv4, IPv6 */
	__type(key, __u32);
	__type(value, struct pf_error_rate);
} error_rates SEC(".maps");

/* Counts an ICMP error. True if there were too many in this second. Two CPUs that begin a second at
 * once may let a few more through. */
__inline bool exceeds_error_rate(__u8 family)
{
	__u32 place = family == AF_INET6, now = uptime();
	struct pf_error_rate *rate = bpf_map_lookup_elem(&error_rates, &place);

	if (!rate || driven_by_test())
		return false;
	if (rate->second != now) {
		rate->second = now;
		rate->errors = 0;
	}
	return __sync_fetch_and_add(&rate->errors, 1) >= ERRORS_PER_SECOND;
}

/* The ways by which an answer to the packet's source leaves */
enum pf_answer_way {
	PF_ANSWER_NOT,			/* no packet may be sent there */
	PF_ANSWER_BACK,			/* out by the packet's interface, link addresses swapped */
	PF_ANSWER_IN,			/* in by it, as if the other end had answered */
	PF_ANSWER_ROUTED,		/* by the route to the source */
};

/* True if no host can have the address: in_canforward of OpenBSD, and its like for IPv6. */
__inline bool is_nobodys(__u8 family, const struct pf_addr *address)
{
	__u32 first = bpf_ntohl(address->word[0]);

	if (family == AF_INET)
		return first >> 28 >= 0xe || first >> 24 == 0 || first >> 24 == 127;
	return first >> 24 == 0xff ||
	       (!address->half[0] && (!address->half[1] || address->half[1] == bpf_cpu_to_be64(1)));
}

/* True if the frame that came by a port of a bridge is from the station whose packets the state
 * knows, as its maker's or as those of the other end. */
__inline bool is_from_known_station(struct __sk_buff *skb, const struct pf_scratch *s)
{
	const struct ethernet *frame = (void *)(long)skb->data;
	const struct pf_state *state = state_in_hand(s);

	if (!state || (void *)(frame + 1) > (void *)(long)skb->data_end)
		return false;
	return same_link_address(frame->source,
				 state->stations[state->direction == s->pd.direction]);
}

/* Whether the answer tells about a connection: a challenge ACK, of all answers. */
__inline bool is_challenge(const struct pf_reply *reply)
{
	return reply->kind == PF_REPLY_TCP && reply->tcp_flags == TH_ACK;
}

/* A test has no wires: its answers go back. */
/* Differs from OpenBSD: linux.md, "Answers" */
/* Differs from OpenBSD: linux.md, "Rejections on a bridge" */
__inline enum pf_answer_way find_answer_way(struct __sk_buff *skb, const struct pf_scratch *s)
{
	bool in = s->pd.direction == PF_IN;

	if (in && (skb->pkt_type == PACKET_BROADCAST || skb->pkt_type == PACKET_MULTICAST))
		return PF_ANSWER_NOT;
	if (driven_by_test() || is_loopback(skb))
		return in ? PF_ANSWER_BACK : PF_ANSWER_IN;
	if (stays_between_ports(skb, s)) {
		if (is_challenge(&s->reply) && !is_from_known_station(skb, s))
			return PF_ANSWER_NOT;
		return in ? PF_ANSWER_BACK : PF_ANSWER_IN;
	}
	if (!in && !s->came_in_by)
		return PF_ANSWER_IN;
	if ((in && skb->pkt_type == PACKET_OTHERHOST) || is_nobodys(s->pd.family, &s->pd.source))
		return PF_ANSWER_NOT;
	return PF_ANSWER_ROUTED;
}

/* Finds in s->lookup the way to the address that the answer is for, which is the packet's
 * source. */
__inline bool find_answer_route(struct __sk_buff *skb, struct pf_scratch *s)
{
	const struct pf_pdesc *pd = &s->pd;
	struct bpf_fib_lookup *way = &s->lookup;

	if (!is_everywhere(pd->family, &pd->source))
		return find_route_in(skb, way, pd->family, &pd->source, PF_FIB_LOOKUP_SKIP_NEIGH,
				     pd->rdomain) == PF_ROUTE_FOUND;
	/* a link-local address is that of a neighbour on the packet's link */
	if (pd->direction != PF_IN)
		return false;
	__builtin_memset(way, 0, sizeof(*way));
	way->family = pd->family;
	way->ifindex = skb->ifindex;
	__builtin_memcpy(way->ipv6_dst, &pd->source, sizeof(way->ipv6_dst));
	return true;
}

/* Takes the VLAN tags off, because the route leads through interfaces that put on their own. */
__inline bool remove_tags(struct __sk_buff *skb, struct pf_scratch *s)
{
	if (!skb->vlan_present && !has_tags_in_frame(&s->pd))
		return true;
	for (int i = 0; i < MAX_VLAN_TAGS; i++) {
		if (bpf_skb_vlan_pop(skb))
			return false;
		if (!skb->vlan_present && is_ip(skb->protocol)) {
			s->pd.ip = sizeof(struct ethernet);
			return true;
		}
	}
	return false;
}

__inline void reverse_link_header(struct __sk_buff *skb)
{
	struct ethernet header;
	__u8 source[6];

	if (!has_ethernet_header(skb) || bpf_skb_load_bytes(skb, 0, &header, sizeof(header)))
		return;
	__builtin_memcpy(source, header.source, sizeof(source));
	__builtin_memcpy(header.source, header.destination, sizeof(source));
	__builtin_memcpy(header.destination, source, sizeof(source));
	bpf_skb_store_bytes(skb, 0, &header, sizeof(header), 0);
}

/* Sends the answer that stands in the packet's place. Returns what the program returns. */
__inline int send_answer(struct __sk_buff *skb, struct pf_scratch *s, enum pf_answer_way way)
{
	if (way == PF_ANSWER_NOT || (way == PF_ANSWER_ROUTED && !find_answer_route(skb, s)))
		return PF_TCX_DROP;
	if (way == PF_ANSWER_ROUTED)
		return send_to_neighbour(skb, &s->lookup);
	reverse_link_header(skb);
	return bpf_redirect(skb->ifindex, way == PF_ANSWER_BACK ? 0 : BPF_F_INGRESS);
}

/* Turns the packet into s->reply and sends it. Returns what the program returns. */
__global int send_reply(struct __sk_buff *skb, struct pf_scratch *s)
{
	enum pf_answer_way way;
	int failed;

	if (!s)
		return PF_TCX_DROP;
	way = find_answer_way(skb, s);
	if (way == PF_ANSWER_NOT || (way == PF_ANSWER_ROUTED && !remove_tags(skb, s)))
		return PF_TCX_DROP;
	if (s->reply.kind == PF_REPLY_ICMP && exceeds_error_rate(s->pd.family))
		return PF_TCX_DROP;
	failed = s->reply.kind == PF_REPLY_TCP ? write_tcp_answer(skb, s) :
						 write_icmp_answer(skb, s);
	if (failed)
		return PF_TCX_DROP;

	s->outcome.verdict = PF_VERDICT_REPLY;
	carry_delay(skb, 0);
	set_queue(skb, s->rule.queue);
	write_mark(skb, PF_MARK_GENERATED, 0,
		   s->rule.has_prio ? s->rule.set_prio : PF_DEFAULT_PRIO);
	return send_answer(skb, s, way);
}

/* ---- a second packet ------------------------------------------------------------------------- */

/* Writes s->copy in the packet's place. Not 0 if that cannot be done. */
__inline int write_copy(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct pf_reply reply = s->reply;
	int failed;

	s->reply = s->copy;
	failed = write_tcp_answer(skb, s);
	s->reply = reply;
	/* the segment has no IP options */
	s->pd.offset = header_length(s->pd.family);
	return failed;
}

/* Sends s->copy on the packet's interface, with the packet's link header, made of the packet, which
 * is lost over it. Not 0 if that cannot be done. */
__inline int send_copy(struct __sk_buff *skb, struct pf_scratch *s)
{
	if (write_copy(skb, s))
		return -1;
	write_mark(skb, PF_MARK_GENERATED, 0, PF_DEFAULT_PRIO);
	s->outcome.copies++;
	bpf_clone_redirect(skb, skb->ifindex, 0);
	return 0;
}

/* Sends s->copy to the packet's source, as any answer. Not 0 if that cannot be done. */
__global int answer_besides(struct __sk_buff *skb, struct pf_scratch *s)
{
	enum pf_answer_way way;
	int failed;

	if (!s)
		return -1;
	way = find_answer_way(skb, s);
	if (way == PF_ANSWER_NOT)
		return -1;
	if (way != PF_ANSWER_ROUTED) {
		reverse_link_header(skb);
		failed = send_copy(skb, s);
		reverse_link_header(skb);
		return failed;
	}
	/* the packet goes on with its tags, which the copy must not have */
	if (skb->vlan_present || has_tags_in_frame(&s->pd) || write_copy(skb, s) ||
	    !find_answer_route(skb, s))
		return -1;
	s->outcome.copies++;
	clone_to_neighbour(skb, s, &s->lookup);
	return 0;
}

#endif /* PF_ANSWER_H */
