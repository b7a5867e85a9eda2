/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * ICMP and ICMPv6: which messages ask, which answer, and which report an error about another packet
 * (pf-semantics sections 6, 9 and 10).
 */
#ifndef PF_ICMP_H
#define PF_ICMP_H

#include "kern.h"
#include "packet.h"
#include "scratch.h"
#include "state.h"
#include "tcp.h"

enum pf_icmp_kind {
	PF_ICMP_QUERY,
	PF_ICMP_REPLY,			/* matches the state of the query, in the other direction */
	PF_ICMP_ERROR,			/* matches the state of the packet it quotes */
};

/* Folds an IPv6 address into an id, for messages that have none. */
__inline __u16 folded(const __u8 *address)
{
	__u32 word[4], all;

	__builtin_memcpy(word, address, sizeof(word));
	all = word[0] ^ word[1] ^ word[2] ^ word[3];
	return (all >> 16) ^ (all & 0xffff);
}

/* What the message is, which query's type it has, and its id if there is one. */
__inline enum pf_icmp_kind classify4(const struct icmp *icmp, __u8 *query, __u16 *id)
{
	*query = icmp->type;
	*id = 0;
	switch (icmp->type) {
	case ICMP_ECHO:
	case ICMP_TSTAMP:
	case ICMP_IREQ:
	case ICMP_MASKREQ:
		*id = icmp->id;
		return PF_ICMP_QUERY;
	case ICMP_ECHOREPLY:
		*id = icmp->id;
		*query = ICMP_ECHO;
		return PF_ICMP_REPLY;
	case ICMP_TSTAMPREPLY:
	case ICMP_IREQREPLY:
	case ICMP_MASKREPLY:
		*id = icmp->id;
		*query = icmp->type - 1;
		return PF_ICMP_REPLY;
	case ICMP_IAMHERE:
	case ICMP_MOBILE_REPLY:
		*query = icmp->type - 1;
		return PF_ICMP_REPLY;
	case ICMP_ROUTERADVERT:
		*query = ICMP_ROUTERSOLICIT;
		return PF_ICMP_REPLY;
	case ICMP_UNREACH:
	case ICMP_SOURCEQUENCH:
	case ICMP_REDIRECT:
	case ICMP_TIMXCEED:
	case ICMP_PARAMPROB:
		return PF_ICMP_ERROR;
	}
	return PF_ICMP_QUERY;
}

__inline enum pf_icmp_kind classify6(const struct icmp *icmp, __u8 *query, __u16 *id)
{
	*query = icmp->type;
	*id = 0;
	switch (icmp->type) {
	case ICMP6_ECHO_REQUEST:
		*id = icmp->id;
		return PF_ICMP_QUERY;
	case ICMP6_ECHO_REPLY:
		*id = icmp->id;
		*query = ICMP6_ECHO_REQUEST;
		return PF_ICMP_REPLY;
	case MLD_LISTENER_QUERY:
	case MLD_LISTENER_REPORT:
		/* reports come unasked too, so they count as queries */
		*id = folded(icmp->target);
		*query = MLD_LISTENER_QUERY;
		return PF_ICMP_QUERY;
	case ND_NEIGHBOR_SOLICIT:
		*id = folded(icmp->target);
		return PF_ICMP_QUERY;
	case ND_NEIGHBOR_ADVERT:
		*id = folded(icmp->target);
		*query = ND_NEIGHBOR_SOLICIT;
		return PF_ICMP_REPLY;
	case ICMP6_WRUREPLY:
		*query = ICMP6_WRUREQUEST;
		return PF_ICMP_REPLY;
	case MLD_MTRACE_RESP:
		*query = MLD_MTRACE;
		return PF_ICMP_REPLY;
	case ICMP6_DST_UNREACH:
	case ICMP6_PACKET_TOO_BIG:
	case ICMP6_TIME_EXCEEDED:
	case ICMP6_PARAM_PROB:
		return PF_ICMP_ERROR;
	}
	return PF_ICMP_QUERY;
}

/* Gives a message the two ports of its state's key: id and type of the query, in the order in
 * which the query has them. */
__inline enum pf_icmp_kind set_icmp_ports(struct pf_pdesc *pd)
{
	enum pf_icmp_kind kind;
	__u8 query;
	__u16 id;

	kind = pd->family == AF_INET ? classify4(&pd->icmp, &query, &id) :
				       classify6(&pd->icmp, &query, &id);
	if (kind == PF_ICMP_REPLY) {
		pd->source_port = bpf_htons(query);
		pd->destination_port = id;
	} else {
		pd->source_port = id;
		pd->destination_port = bpf_htons(query);
	}
	return kind;
}

/* The key of a message's state. Neighbours are asked at a multicast address and answer for the
 * address they were asked about; with `multicast`, the question went to all hosts. */
__inline bool set_icmp_key(struct pf_state_key *key, const struct pf_pdesc *pd, __u8 direction,
			   bool multicast)
{
	bool first = source_index(direction) == 0;
	__u8 *source = first ? key->address[0] : key->address[1];
	__u8 *destination = first ? key->address[1] : key->address[0];

	set_key(key, pd, direction);
	if (pd->family == AF_INET)
		return !multicast;
	switch (pd->icmp.type) {
	case ND_NEIGHBOR_SOLICIT:
		__builtin_memcpy(destination, pd->icmp.target, 16);
		return !multicast;
	case ND_NEIGHBOR_ADVERT:
		__builtin_memcpy(source, pd->icmp.target, 16);
		if (pd->destination.bytes[0] == 0xff)
			__builtin_memset(destination, 0, 16);
		return !multicast;
	}
	if (multicast) {
		__builtin_memset(source, 0, 16);
		source[0] = 0xff;
		source[1] = 0x02;
		source[15] = 0x01;
	}
	return true;
}

/* A query must come from the side that asked first, an answer from the other. */
__inline bool right_way(const struct pf_state *state, const struct pf_scratch *s, __u8 direction,
			enum pf_icmp_kind kind)
{
	return state->flags & PF_STATE_SLOPPY ||
	       goes_along(state, s, direction) == (kind != PF_ICMP_REPLY);
}

/* Whether the state of s->ref is the answer's. One that an answer made, as those of old rules may
 * be, has it the wrong way round. */
__inline bool is_answered(struct pf_scratch *s, __u8 direction)
{
	struct pf_state *state = bpf_map_lookup_elem(&states, &s->ref.index);

	return !state || crosses(state) || right_way(state, s, direction, PF_ICMP_REPLY);
}

__inline bool find_icmp_state(struct pf_scratch *s, const struct pf_pdesc *pd, __u8 direction,
			      enum pf_icmp_kind kind)
{
	struct pf_state_ref first;
	bool found;

	set_icmp_key(&s->key, pd, direction, false);
	found = find_state(s);
	if (kind != PF_ICMP_REPLY || (found && is_answered(s, direction)))
		return found;
	first = s->ref;
	if (!set_icmp_key(&s->key, pd, direction, true))
		return found;
	if (find_state(s))
		return true;
	s->ref = first;
	return found;
}

/* Reads the packet that the error in s->pd quotes into s->quoted. Returns the reason why that
 * packet cannot be looked up, or 0. */
__global int read_quoted(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct pf_pdesc *quoted;
	int reason;

	if (!s)
		return PF_REASON_SHORT;
	quoted = &s->quoted;
	__builtin_memset(quoted, 0, sizeof(*quoted));
	quoted->ip = s->pd.ip;
	quoted->limit = s->pd.limit;
	quoted->family = s->pd.family;
	quoted->rdomain = s->pd.rdomain;
	quoted->offset = s->pd.offset + ICMP_HEADER;
	if (quoted->family == AF_INET) {
		reason = read_ip(skb, s, quoted, true);
		if (reason)
			return reason;
	} else {
		reason = read_ip6(skb, s, quoted, true);
		if (reason)
			return reason;
	}
	if (quoted->source.half[0] != s->pd.destination.half[0] ||
	    quoted->source.half[1] != s->pd.destination.half[1])
		return PF_REASON_STATE_MISMATCH;

	switch (quoted->protocol) {
	case IPPROTO_TCP:
		/* that is all RFC 792 promises: ports and sequence number */
		reason = pull(skb, quoted, quoted->offset, &quoted->tcp, 8);
		break;
	case IPPROTO_UDP:
		reason = pull(skb, quoted, quoted->offset, &quoted->udp, sizeof(quoted->udp));
		break;
	case IPPROTO_SCTP:
		if (!reads_sctp_ports(s))
			return 0;
		reason = pull(skb, quoted, quoted->offset, &quoted->sctp, 8);
		break;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		if ((quoted->protocol == IPPROTO_ICMP) != (quoted->family == AF_INET))
			return PF_REASON_NORMALIZE;
		return pull(skb, quoted, quoted->offset, &quoted->icmp, ICMP_HEADER);
	default:
		return 0;
	}
	quoted->source_port = quoted->tcp.source;
	quoted->destination_port = quoted->tcp.destination;
	return reason;
}

/* ---- tracking, under the state's lock -------------------------------------------------------- */

__inline enum pf_track track_icmp(struct pf_state *state, struct pf_scratch *s,
				  enum pf_icmp_kind kind)
{
	if (!right_way(state, s, s->pd.direction, kind))
		return PF_TRACK_WRONG_WAY;
	state->expire = s->now;
	state->timeout = PF_TIMEOUT_ICMP_ERROR;
	return PF_TRACK_PASS;
}

/* An error must be about something that was sent. X is who sent the quoted packet. The timeout is
 * not renewed. */
__inline enum pf_track track_icmp_error(const struct pf_state *state, struct pf_scratch *s,
					const struct pf_peer *x, const struct pf_peer *y,
					enum pf_icmp_kind quoted_kind)
{
	__u8 shift = x->wscale && y->wscale ? y->wscale & PF_WSCALE_MASK : 0;
	__u8 opposite = s->pd.direction == PF_IN ? PF_OUT : PF_IN;
	__u32 seq;

	switch (s->quoted.protocol) {
	case IPPROTO_TCP:
		seq = bpf_ntohl(s->quoted.tcp.seq) - x->seqdiff;
		if (!(state->flags & PF_STATE_SLOPPY) &&
		    (!SEQ_GEQ(x->seqhi, seq) ||
		     !SEQ_GEQ(seq, x->seqlo - ((__u32)y->max_win << shift))))
			return PF_TRACK_MISMATCH;
		s->quoted_difference = x->seqdiff;
		break;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		if (!right_way(state, s, opposite, quoted_kind))
			return PF_TRACK_WRONG_WAY;
	}
	return PF_TRACK_PASS;
}

#endif /* PF_ICMP_H */
