/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * `synproxy state`: we shake hands with the client before the server hears of it (pf-semantics
 * section 14).
 *
 * While the maker of the state is at PROXY_SRC, the client has to acknowledge our SYN|ACK; while it
 * is at PROXY_DST, the server has to answer our SYN. src.seqhi is where our numbers towards the
 * client begin, dst.seqhi those towards the server. Then the two handshakes are joined: from there
 * on the state modulates, and windows are not scaled.
 *
 * Every segment that we send is made of the one that made us send it. The client's acknowledgment
 * becomes the SYN and goes on to the server. Of the server's SYN|ACK, which is on its way to the
 * client, a copy becomes the client's window update, and it itself our acknowledgment.
 *
 * With af-to each handshake is in the family of its side. The SYN|ACK comes in then instead of
 * going out: so the copy is the acknowledgment, and the packet itself goes on to the client.
 * OpenBSD takes the server for the client there, and the connection never comes about.
 */
#ifndef PF_SYNPROXY_H
#define PF_SYNPROXY_H

#include "answer.h"
#include "cross.h"
#include "forward.h"
#include "kern.h"
#include "mark.h"
#include "packet.h"
#include "reply.h"
#include "scratch.h"
#include "secret.h"
#include "state.h"
#include "table.h"
#include "tcp.h"

#define DEFAULT_MSS	512		/* what every path can carry, BSD's idea */
#define LEAST_MSS	64

/* ---- how much fits into a segment ------------------------------------------------------------- */

static int find_mss(__unused __u32 i, void *arg)
{
	struct pf_scratch *s = ((struct pf_loop *)arg)->s;
	enum option_step step;
	__u32 at;

	step = step_over_option(s, TCPOPT_MAXSEG, TCPOLEN_MAXSEG, &at);
	if (step == OPTION_NONE)
		return 1;
	if (step == OPTION_FOUND)
		s->reply.mss = s->buffer[at + 2] << 8 | s->buffer[at + 3];
	return 0;
}

/* What the client's SYN offers, or its cookie. One without options offers nothing. */
__global int offered_mss(struct __sk_buff *skb, struct pf_scratch *s)
{
	struct pf_loop loop = { .s = s };

	if (!s)
		return 0;
	if (s->cookie_mss)
		return s->cookie_mss;
	if (!load_tcp_options(skb, s) || s->cursor_end < TCPOLEN_MAXSEG)
		return 0;
	s->reply.mss = DEFAULT_MSS;
	bpf_loop(TCP_MAX_OPTIONS, find_mss, &loop, 0);
	return s->reply.mss;
}

/* What fits into a packet on the way to the packet's source, or its destination. */
__global int way_mss(struct __sk_buff *skb, struct pf_scratch *s, __u32 to_source)
{
	struct bpf_fib_lookup params;
	struct pf_addr address;
	__u32 headers, out = 0, mtu = 0;
	__u8 family;

	if (!s)
		return DEFAULT_MSS;
	family = s->pd.family;
	address = to_source ? s->pd.original_source : s->pd.original_destination;
	if (!to_source && s->cross_to) {
		family = s->cross_to;
		address = s->pd.destination;
	}
	switch (find_route(skb, &params, family, &address, 0)) {
	case PF_ROUTE_NONE:
		return DEFAULT_MSS;
	case PF_ROUTE_FOUND:
		out = params.ifindex;
		break;
	default:	/* one of our own addresses: the packet's device stands for the one that has it */
		break;
	}
	bpf_check_mtu(skb, out, &mtu, 0, 0);
	headers = sizeof(struct tcp) + header_length(family);
	return mtu > headers + DEFAULT_MSS ? min(mtu - headers, 0xffff) : DEFAULT_MSS;
}

/* Sets s->reply.mss: what the client offers, as far as the ways to both ends can carry it. */
__inline void choose_mss(struct __sk_buff *skb, struct pf_scratch *s)
{
	__u32 mss = offered_mss(skb, s);

	mss = min(mss, (__u32)way_mss(skb, s, true));
	mss = min(max(mss, LEAST_MSS), (__u32)way_mss(skb, s, false));
	s->reply.mss = max(mss, LEAST_MSS);
}

/* ---- the handshakes --------------------------------------------------------------------------- */

/* Whether the rule wants to hear from the client before the server hears of it. Not on a bridge,
 * which cannot tell the station that has the client's address (answer.h). */
/* Differs from OpenBSD: linux.md, "Handshakes on a bridge" */
__inline bool wants_proxy(const struct __sk_buff *skb, const struct pf_scratch *s,
			  const struct pf_rule *rule)
{
	return rule->flags & PF_RULE_SYNPROXY && s->pd.virtual_protocol == IPPROTO_TCP &&
	       (s->pd.tcp.flags & (TH_SYN | TH_ACK)) == TH_SYN && s->pd.direction == PF_IN &&
	       !stays_on_bridge(skb, s);
}

/* Our SYN|ACK to the client. The window is closed until the server has answered. */
__inline void answer_client(struct pf_scratch *s, struct pf_reply *reply, __u32 seq, __u16 mss)
{
	reply->kind = PF_REPLY_TCP;
	reply->tcp_flags = TH_SYN | TH_ACK;
	reply->seq = seq;
	reply->ack = bpf_ntohl(s->pd.tcp.seq) + 1;
	reply->window = 0;
	reply->mss = mss;
}

/* Answers the SYN that made the state s->ref: it goes no further. */
__inline void proxy_first(struct pf_scratch *s)
{
	struct pf_state *state = bpf_map_lookup_elem(&states, &s->ref.index);

	if (state)
		answer_client(s, &s->reply, state->src.seqhi, s->reply.mss);
	restore_original(&s->pd);
	reason_count(s, PF_REASON_SYNPROXY);
}

/* Whether the client answers exactly what we sent it. */
__inline bool acknowledges_us(const struct pf_state *state, const struct tcp *tcp)
{
	return bpf_ntohl(tcp->ack) == state->src.seqhi + 1 &&
	       bpf_ntohl(tcp->seq) == state->src.seqlo + 1;
}

/* Makes one connection of the two. */
__inline void join(struct pf_state *state)
{
	struct pf_peer *src = &state->src, *dst = &state->dst;

	src->seqdiff = dst->seqhi - src->seqlo;
	dst->seqdiff = src->seqhi - dst->seqlo;
	src->seqhi = src->seqlo + dst->max_win;
	dst->seqhi = dst->seqlo + src->max_win;
	src->wscale = dst->wscale = 0;
	src->state = dst->state = PF_TCPS_ESTABLISHED;
}

/* The client's acknowledgment becomes our SYN to the server. */
__inline enum pf_track ask_server(struct pf_state *state, const struct pf_extension *extension,
				  struct pf_scratch *s)
{
	const struct tcp *tcp = &s->pd.tcp;
	struct pf_reply *reply = &s->reply;

	if ((tcp->flags & (TH_SYN | TH_ACK)) != TH_ACK || !acknowledges_us(state, tcp))
		return PF_TRACK_PROXY_MISMATCH;
	state->src.max_win = max(bpf_ntohs(tcp->window), 1);
	if (state->dst.seqhi == 1) {
		if (!s->has_sequence)
			return PF_TRACK_PROXY_MISMATCH;
		state->dst.seqhi = s->sequence;
	}
	s->key = state->key[PF_STACK];
	s->act.rtable = extension->rtable;
	if (crosses(state))
		s->cross_to = s->key.family;
	reply->kind = PF_REPLY_ONWARD;
	reply->tcp_flags = TH_SYN;
	reply->seq = state->dst.seqhi;
	reply->mss = extension->proxy_mss;
	s->act.tag = state->tag;
	return PF_TRACK_PROXY;
}

/* The server's SYN|ACK makes the connection. */
__inline enum pf_track hear_server(struct pf_state *state, struct pf_scratch *s)
{
	const struct tcp *tcp = &s->pd.tcp;
	struct pf_reply *to_server = &s->reply, *to_client = &s->copy;

	if ((tcp->flags & (TH_SYN | TH_ACK)) != (TH_SYN | TH_ACK) ||
	    bpf_ntohl(tcp->ack) != state->dst.seqhi + 1)
		return PF_TRACK_PROXY_MISMATCH;
	state->dst.max_win = max(bpf_ntohs(tcp->window), 1);
	state->dst.seqlo = bpf_ntohl(tcp->seq);
	s->key = state->key[PF_WIRE];
	if (crosses(state)) {
		s->cross_to = s->key.family;
		to_server = &s->copy;
		to_client = &s->reply;
	}
	to_server->tcp_flags = TH_ACK;
	to_server->seq = bpf_ntohl(tcp->ack);
	to_server->ack = state->dst.seqlo + 1;
	to_server->window = state->src.max_win;
	to_client->tcp_flags = TH_ACK;
	to_client->seq = state->src.seqhi + 1;
	to_client->ack = state->src.seqlo + 1;
	to_client->window = state->dst.max_win;
	s->reply.kind = PF_REPLY_JOIN;
	s->copy.kind = PF_REPLY_TCP;
	s->act.tag = state->tag;
	join(state);
	return PF_TRACK_PROXY;
}

/* What a state whose handshakes are not joined yet makes of a segment; PF_TRACK_PASS if they are.
 * Runs under the state's lock. */
__inline enum pf_track track_proxy(struct pf_state *state, const struct pf_extension *extension,
				   struct pf_scratch *s, bool forward)
{
	const struct tcp *tcp = &s->pd.tcp;

	if (state->src.state < PF_TCPS_PROXY_SRC)
		return PF_TRACK_PASS;
	if (!extension)
		return PF_TRACK_PROXY_MISMATCH;
	if (state->src.state == PF_TCPS_PROXY_SRC) {
		if (!forward)
			return PF_TRACK_PROXY;
		if (tcp->flags & TH_SYN) {
			if (bpf_ntohl(tcp->seq) != state->src.seqlo)
				return PF_TRACK_PROXY_MISMATCH;
			answer_client(s, &s->reply, state->src.seqhi, extension->proxy_mss);
			return PF_TRACK_PROXY;
		}
		if ((tcp->flags & (TH_ACK | TH_RST | TH_FIN)) != TH_ACK ||
		    !acknowledges_us(state, tcp))
			return PF_TRACK_PROXY_MISMATCH;
		state->src.state = PF_TCPS_PROXY_DST;
		connect(state, extension, s);
		if (s->connected)	/* the server hears of it if the limits allow it */
			return PF_TRACK_CONNECTED;
	}
	return forward ? ask_server(state, extension, s) : hear_server(state, s);
}

/* ---- sending ---------------------------------------------------------------------------------- */

/* Makes the answer one from end `from` of s->key to the other: it goes from the packet's
 * destination to its source. */
__inline void aim(struct pf_scratch *s, __u32 from)
{
	const struct pf_state_key *key = &s->key;

	__builtin_memcpy(&s->pd.destination, key->address[from & 1], 16);
	__builtin_memcpy(&s->pd.source, key->address[!from], 16);
	s->pd.destination_port = key->port[from & 1];
	s->pd.source_port = key->port[!from];
}

/* Sends what was written, which is for the packet's source, by the state's routing table. A test
 * has no ways. */
__inline int send_by_table(struct __sk_buff *skb, struct pf_scratch *s)
{
	if (driven_by_test())
		return PF_TCX_NEXT;
	switch (find_route_in(skb, &s->lookup, s->pd.family, &s->pd.source,
			      PF_FIB_LOOKUP_SKIP_NEIGH, table_of(s))) {
	case PF_ROUTE_FOUND:
		return send_to_neighbour(skb, &s->lookup);
	case PF_ROUTE_LOCAL:
		return PF_TCX_NEXT;
	default:
		reason_count(s, PF_REASON_NO_ROUTE);
		return PF_TCX_DROP;
	}
}

/* Sends s->reply between the ends of s->key, which are of the other family. It goes where it
 * belongs from here: nobody filters it any more. */
/* Differs from OpenBSD: linux.md, "Handshakes with af-to" */
__inline int send_across(struct __sk_buff *skb, struct pf_scratch *s)
{
	if (change_family(skb, s)) {
		reason_count(s, PF_REASON_TRANSLATE);
		return PF_TCX_DROP;
	}
	aim(s, 1);
	if (write_tcp_answer(skb, s))
		return PF_TCX_DROP;
	write_mark(skb, PF_MARK_GENERATED, 0, PF_DEFAULT_PRIO);
	return send_by_table(skb, s);
}

/* The SYN goes on where the client's acknowledgment was going. If that brought a cookie, the rule
 * may have wanted to answer its SYN: then the client gets that answer first. */
/* Differs from OpenBSD: linux.md, "Cookies and next hops" */
__inline int send_onward(struct __sk_buff *skb, struct pf_scratch *s)
{
	if (s->copy.kind && answer_besides(skb, s))
		return PF_TCX_DROP;
	if (s->cross_to)
		return send_across(skb, s);
	aim(s, 0);
	if (write_tcp_answer(skb, s))
		return PF_TCX_DROP;
	write_mark(skb, 0, s->act.tag, PF_DEFAULT_PRIO);
	return table_of(s) ? send_by_table(skb, s) : PF_TCX_NEXT;
}

/* Opens the client's window and acknowledges the server's SYN|ACK. A server elsewhere gets that as
 * a packet of the connection that goes out to it; one of our own where the client's packets come
 * in. */
__inline int send_joined(struct __sk_buff *skb, struct pf_scratch *s)
{
	if (s->cross_to)
		return answer_besides(skb, s) ? PF_TCX_DROP : send_across(skb, s);
	aim(s, 1);
	if (send_copy(skb, s))
		return PF_TCX_DROP;
	restore_original(&s->pd);
	if (write_tcp_answer(skb, s))
		return PF_TCX_DROP;
	if (s->came_in_by)
		write_mark(skb, 0, s->act.tag, PF_DEFAULT_PRIO);
	return send_answer(skb, s, find_answer_way(skb, s));
}

/* Sends what the handshakes want in the packet's place. Returns what the program returns. */
__global int send_proxied(struct __sk_buff *skb, struct pf_scratch *s)
{
	int result = PF_TCX_DROP;

	if (!s)
		return PF_TCX_DROP;
	switch (s->reply.kind) {
	case PF_REPLY_TCP:
		result = send_reply(skb, s);
		break;
	case PF_REPLY_ONWARD:
		result = send_onward(skb, s);
		break;
	case PF_REPLY_JOIN:
		result = send_joined(skb, s);
		break;
	}
	s->outcome.verdict = PF_VERDICT_CONSUMED;
	return result;
}

#endif /* PF_SYNPROXY_H */
