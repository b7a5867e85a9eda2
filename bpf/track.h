/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Does a state know this packet? Finding the state, letting it judge, and taking from it what is
 * to be done with the packet.
 */
#ifndef PF_TRACK_H
#define PF_TRACK_H

#include "connection.h"
#include "icmp.h"
#include "icmp_convert.h"
#include "kern.h"
#include "next_hop.h"
#include "other.h"
#include "overload.h"
#include "packet.h"
#include "state.h"
#include "synproxy.h"
#include "tcp.h"

enum pf_known {
	PF_KNOWN_NO,			/* no state: the rules decide */
	PF_KNOWN_PASS,
	PF_KNOWN_DROP,
};

/* what the packet is to the state */
enum pf_relation {
	PF_RELATION_PACKET,		/* one of its own */
	PF_RELATION_ICMP,		/* an ICMP query or answer */
	PF_RELATION_ERROR,		/* an ICMP error about one of its own */
};

/* OpenBSD counts and measures an error as long as it is when what it quotes has its header of the
 * other family. */
__inline void count_new_quote(struct pf_scratch *s)
{
	__s32 before = s->quoted.offset - s->pd.offset - ICMP_HEADER;
	__s32 after = s->pd.family == AF_INET ? sizeof(struct ip6) : sizeof(struct ip);

	s->length += after - before;
	s->bytes += after - before;
}

/* The state lets the packet cross to the other family. What an error quotes comes from there. */
__inline void cross_by_state(const struct pf_state *state, struct pf_scratch *s, __u32 relation)
{
	const struct pf_state_key *key = &state->key[s->crosses_back ? PF_WIRE : PF_STACK];
	__be32 sender = s->pd.source.word[0];

	s->cross_to = key->family;
	s->rewrite_id = 1;
	set_ends(&s->pd, key, PF_OUT);
	if (relation != PF_RELATION_ERROR)
		return;
	set_ends(&s->quoted, key, PF_IN);
	/* traceroute shows who sent the error, in the place of the one whom the packet was for */
	if (s->cross_to == AF_INET6)
		s->pd.source.word[3] = sender;
	count_new_quote(s);
}

/* A translated state passes the packet: it, or what it quotes, gets the ends that the side knows
 * where it goes to. Once there is a state every ICMP message has an id to OpenBSD. */
__inline void translate_by_state(const struct pf_state *state, struct pf_scratch *s, __u32 relation,
				 __u32 kind)
{
	__u8 opposite = s->pd.direction == PF_IN ? PF_OUT : PF_IN;
	const struct pf_state_key *key = &state->key[far_side(s->pd.direction)];
	__u8 type = s->quoted.icmp.type;

	s->translated = relation == PF_RELATION_ERROR ? PF_TRANSLATED_QUOTED : PF_TRANSLATED_PACKET;
	s->icmp_answer = kind == PF_ICMP_REPLY;
	if (key->made == PF_MADE_NEAR || key->made == PF_MADE_FAR) {
		cross_by_state(state, s, relation);
		if (relation != PF_RELATION_ERROR)
			return;
	}
	if (relation == PF_RELATION_ERROR) {
		if (!s->cross_to)
			set_ends(&s->quoted, key, opposite);
		s->rewrite_id = s->quoted.family == AF_INET ?
			type == ICMP_ECHO || type == ICMP_ECHOREPLY :
			type == ICMP6_ECHO_REQUEST || type == ICMP6_ECHO_REPLY;
	} else {
		set_ends(&s->pd, key, s->pd.direction);
		s->rewrite_id = 1;
	}
}

/* Takes over from the state's extension the actions on its packets; none without an extension. */
__inline void pass_by_extension(const struct pf_extension *extension, struct pf_scratch *s,
				bool forward, bool along)
{
	s->act.max_pkt_size = s->act.delay = s->match_count = 0;
	__builtin_memset(s->source_nodes, 0, sizeof(s->source_nodes));
	/* without one it is the main table's again, whatever rules said on the way in */
	if (forward)
		s->act.rtable = extension && extension->rtable ? extension->rtable : 1;
	if (!extension)
		return;
	s->act.max_pkt_size = extension->max_pkt_size;
	s->act.delay = extension->delay;
	route_by_extension(extension, s, along);
	s->match_count = extension->match_count;
	if (extension->match_count)
		__builtin_memcpy(s->match, extension->match, sizeof(s->match));
	__builtin_memcpy(s->source_nodes, extension->source_nodes, sizeof(s->source_nodes));
}

/* The state passes the packet: remember what it wants, and count. */
__inline void pass_by_state(struct pf_state *state, const struct pf_extension *extension,
			    struct pf_scratch *s, bool forward, __u32 relation, __u32 kind)
{
	if (has_two_keys(state))
		translate_by_state(state, s, relation, kind);
	s->act.flags = state->flags;
	s->act.min_ttl = state->min_ttl;
	s->act.set_tos = state->set_tos;
	s->act.max_mss = state->max_mss;
	s->act.tag = state->tag;
	s->act.set_prio[0] = state->set_prio[0];
	s->act.set_prio[1] = state->set_prio[1];
	pass_by_extension(extension, s, forward, goes_along(state, s, s->pd.direction));
	s->act.queue[0] = state->queue[0];
	s->act.queue[1] = state->queue[1];
	s->rule.slot = state->rule_slot;
	s->rule.anchor_slot = state->anchor_slot;
	s->rule.action = PF_ACTION_PASS;
	s->rule.log = state->log;
	s->rule.log_to = state->log_to;
	s->against_state = !forward;
	/* dropped in the end, for its options or its length: not counted */
	if ((s->pd.bad_options && !s->cross_to && !(state->flags & PF_STATE_ALLOW_OPTS)) ||
	    exceeds_pkt_size(s, s->act.max_pkt_size))
		return;
	count_in_state(state, s, forward);
}

/* Fetches what tracking the segment may need: under the state's lock there are no calls. */
__inline void prepare_tcp(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct pf_state *state = bpf_map_lookup_elem(&states, &s->ref.index);

	if (!state)
		return;
	if (state->src.state >= PF_TCPS_PROXY_SRC) {
		s->sequence = initial_sequence(s, PF_SECRET_PROXY);
		s->has_sequence = 1;
	}
	if ((state->src.seqdiff || state->dst.seqdiff) &&
	    (!state->src.seqlo || !state->dst.seqlo)) {
		s->sequence = initial_sequence(s, PF_SECRET_SEQUENCE);
		s->has_sequence = 1;
	}
	if (state->flags & PF_STATE_REASSEMBLE_TCP)
		read_timestamp(skb, s, state->rule_slot);
}

/* Lets the state of s->ref judge the packet. */
__global int track_state(struct pf_scratch *s, __u32 relation, __u32 kind)
{
	struct pf_status *status = pf_status();
	struct pf_state *state;
	struct pf_extension *extension;
	struct pf_peer *x, *y;		/* sender of the packet, or of the one quoted, and the other */
	enum pf_track track;
	bool forward, half = false;

	if (!s || !status)
		return PF_TRACK_GONE;
	state = bpf_map_lookup_elem(&states, &s->ref.index);
	if (!state)
		return PF_TRACK_GONE;
	extension = extension_of(state, &s->ref.index);

	bpf_spin_lock(&state->lock);
	if (state->serial != s->ref.serial || state->timeout >= PF_TIMEOUT_PURGE) {
		bpf_spin_unlock(&state->lock);
		return PF_TRACK_GONE;
	}
	forward = state->direction == s->pd.direction;
	s->crosses_back = crosses(state) && state->key[PF_WIRE].family != s->pd.family;
	x = forward == (relation != PF_RELATION_ERROR) ? &state->src : &state->dst;
	y = forward == (relation != PF_RELATION_ERROR) ? &state->dst : &state->src;
	s->outcome.state_id = state->id;
	if (relation == PF_RELATION_ERROR) {
		track = s->crosses_back ? track_icmp_error(state, s, y, x, kind) :
					  track_icmp_error(state, s, x, y, kind);
		if (track == PF_TRACK_PASS && crosses(state) && !s->convertible) {
			track = PF_TRACK_WRONG_WAY;
			/* it is dropped only for the message that is quoted */
			if (s->quote_convertible)
				count_new_quote(s);
		}
	} else if (relation == PF_RELATION_ICMP) {
		track = track_icmp(state, s, kind);
		if (track == PF_TRACK_PASS && crosses(state) && !s->convertible)
			track = PF_TRACK_WRONG_WAY;
	} else if (s->pd.virtual_protocol == IPPROTO_TCP) {
		half = half_open(&state->src);
		track = track_proxy(state, extension, s, goes_along(state, s, s->pd.direction));
		if (track == PF_TRACK_PASS)
			track = track_tcp(state, extension, s, x, y);
		half = half && !half_open(&state->src);
	} else {
		track = track_other(state, s, x, y);
	}
	if (track == PF_TRACK_PASS && !s->connected)
		pass_by_state(state, extension, s, forward, relation, kind);
	bpf_spin_unlock(&state->lock);

	if (half)
		__sync_fetch_and_sub(&status->half_open, 1);
	return s->connected ? PF_TRACK_CONNECTED : track;
}

/* By this packet the connection of s->ref is established. Limits are asked without its lock, as
 * they may end other states, and apart from track_state, whose stack they would not fit on. */
__global int connect_state(struct pf_scratch *s, __u32 relation, __u32 kind)
{
	struct pf_extension *extension;
	struct pf_state *state;
	int track = PF_TRACK_PASS;

	if (!s)
		return PF_TRACK_GONE;
	if (exceeds_connections(s))
		return PF_TRACK_LIMITED;
	state = bpf_map_lookup_elem(&states, &s->ref.index);
	if (!state)
		return PF_TRACK_GONE;
	/* it has the node of its source */
	extension = extension_of(state, &s->ref.index);
	if (!extension)
		return PF_TRACK_GONE;
	bpf_spin_lock(&state->lock);
	if (state->serial != s->ref.serial)
		track = PF_TRACK_GONE;
	else if (state->src.state == PF_TCPS_PROXY_DST)
		track = ask_server(state, extension, s);
	else
		pass_by_state(state, extension, s, state->direction == s->pd.direction, relation,
			      kind);
	bpf_spin_unlock(&state->lock);
	return track;
}

/* What becomes of the packet after its state was found. */
__inline enum pf_known judge(struct pf_scratch *s, enum pf_relation relation, __u32 kind)
{
	int track = track_state(s, relation, kind);

	if (track == PF_TRACK_CONNECTED)
		track = connect_state(s, relation, kind);
	switch (track) {
	case PF_TRACK_PASS:
		s->has_state = s->state_hit = 1;
		return PF_KNOWN_PASS;
	case PF_TRACK_MISMATCH:
		reason_set(s, PF_REASON_STATE_MISMATCH);
		return PF_KNOWN_DROP;
	case PF_TRACK_LIMITED:
		reason_set(s, PF_REASON_SRC_LIMIT);
		return PF_KNOWN_DROP;
	case PF_TRACK_PROXY:
		s->consumed = 1;
		reason_set(s, PF_REASON_SYNPROXY);
		return PF_KNOWN_DROP;
	case PF_TRACK_PROXY_MISMATCH:
		reason_set(s, PF_REASON_SYNPROXY);
		return PF_KNOWN_DROP;
	case PF_TRACK_BAD_TIMESTAMP:
		reason_set(s, PF_REASON_BAD_TIMESTAMP);
		return PF_KNOWN_DROP;
	case PF_TRACK_CHALLENGE:
	case PF_TRACK_WRONG_WAY:
		return PF_KNOWN_DROP;
	}
	s->outcome.state_id = ~0ull;
	return PF_KNOWN_NO;
}

__inline enum pf_known test_state_error(struct __sk_buff *skb, struct pf_scratch *s)
{
	__u8 opposite = s->pd.direction == PF_IN ? PF_OUT : PF_IN;
	enum pf_icmp_kind kind = PF_ICMP_QUERY;
	int reason = read_quoted(skb, s);
	bool found;

	/* an error about nothing we can look up is for the rules, but the reason is kept */
	if (reason) {
		reason_set(s, reason);
		return PF_KNOWN_NO;
	}
	if (s->quoted.protocol == IPPROTO_ICMP || s->quoted.protocol == IPPROTO_ICMPV6) {
		kind = set_icmp_ports(&s->quoted);
		keep_original(&s->quoted);
		found = find_icmp_state(s, &s->quoted, opposite, kind);
	} else {
		keep_original(&s->quoted);
		set_key(&s->key, &s->quoted, opposite);
		found = find_state(s);
	}
	if (found)
		convert_messages(s, true);
	return found ? judge(s, PF_RELATION_ERROR, kind) : PF_KNOWN_NO;
}

__inline enum pf_known test_state_icmp(struct __sk_buff *skb, struct pf_scratch *s)
{
	enum pf_icmp_kind kind = set_icmp_ports(&s->pd);

	keep_original(&s->pd);
	s->test.icmp_type = s->pd.icmp.type;
	s->test.icmp_code = s->pd.icmp.code;
	/* A neighbour's advertisement may come unasked, so it makes no state. OpenBSD looks for its
	 * state as for that of an error, in a packet it quotes, and finds none. */
	if (s->pd.family == AF_INET6 && s->pd.icmp.type == ND_NEIGHBOR_ADVERT)
		kind = PF_ICMP_ERROR;
	s->test.icmp_reply = kind == PF_ICMP_REPLY;
	s->test.icmp_error = kind == PF_ICMP_ERROR;
	if (kind == PF_ICMP_ERROR)
		return test_state_error(skb, s);
	if (!find_icmp_state(s, &s->pd, s->pd.direction, kind))
		return PF_KNOWN_NO;
	convert_messages(s, false);
	return judge(s, PF_RELATION_ICMP, kind);
}

/* Whether the short way has looked for the packet's state, in vain: only then has it asked the
 * rules, and the walk was not used yet. A state that another CPU has made since is found as the
 * packet's own is inserted. */
__inline bool was_sought(const struct pf_scratch *s)
{
	const struct pf_plain_walk *walk = &s->plain[s->pd.direction == PF_OUT];

	return walk->known && walk->generation == s->generation;
}

__global int test_state(struct __sk_buff *skb, struct pf_scratch *s)
{
	if (!s)
		return PF_KNOWN_DROP;
	switch (s->pd.virtual_protocol) {
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return test_state_icmp(skb, s);
	case IPPROTO_TCP:
		if (s->pd.tcp.flags & TH_SYN)
			read_window_scale(skb, s);
	}
	keep_original(&s->pd);
	set_key(&s->key, &s->pd, s->pd.direction);
	if (was_sought(s)) {
		count_state(PF_COUNT_SEARCHES);
		return PF_KNOWN_NO;
	}
	if (!find_state(s))
		return PF_KNOWN_NO;
	if (has_lost_socket(skb, s)) {
		remove_state(s->ref.index, s->ref.serial);
		return PF_KNOWN_NO;
	}
	if (s->pd.virtual_protocol == IPPROTO_TCP)
		prepare_tcp(skb, s);
	return judge(s, PF_RELATION_PACKET, 0);
}

#endif /* PF_TRACK_H */
