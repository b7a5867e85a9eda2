/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Tracking of TCP connections (pf-semantics section 8). Sequence tracking follows Guido van Rooij,
 * "Real Stateful TCP Packet Filtering in IP Filter".
 *
 * Everything here runs under the state's lock: no helpers, no calls.
 */
#ifndef PF_TCP_H
#define PF_TCP_H

#include "kern.h"
#include "scratch.h"
#include "secret.h"
#include "timestamp.h"

/* how far an acknowledgement may be off; 1500 is pf's fudge factor */
#define MAX_ACK_WINDOW	(0xffff + 1500)

enum pf_track {
	PF_TRACK_PASS,			/* accepted */
	PF_TRACK_CONNECTED,		/* accepted, if the limits of its source allow the connection */
	PF_TRACK_MISMATCH,		/* does not fit: drop */
	PF_TRACK_BAD_TIMESTAMP,		/* its place fits, its timestamp does not */
	PF_TRACK_PROXY,			/* of our own handshake: for us, not for the other side */
	PF_TRACK_PROXY_MISMATCH,	/* not what our handshake waits for: drop */
	PF_TRACK_CHALLENGE,		/* drop and ask the sender what it thinks */
	PF_TRACK_WRONG_WAY,		/* an ICMP answer from the side that asked, or the reverse */
	PF_TRACK_GONE,			/* the state is over, and this may be a new connection */
	PF_TRACK_LIMITED,		/* one connection too many: drop */
};

__inline void set_tcp_timeout(struct pf_state *state, __u32 now)
{
	__u8 src = state->src.state, dst = state->dst.state;

	state->expire = now;
	if (src >= PF_TCPS_FIN_WAIT_2 && dst >= PF_TCPS_FIN_WAIT_2)
		state->timeout = PF_TIMEOUT_TCP_CLOSED;
	else if (src >= PF_TCPS_CLOSING && dst >= PF_TCPS_CLOSING)
		state->timeout = PF_TIMEOUT_TCP_FINWAIT;
	else if (src < PF_TCPS_ESTABLISHED || dst < PF_TCPS_ESTABLISHED)
		state->timeout = PF_TIMEOUT_TCP_OPENING;
	else if (src >= PF_TCPS_CLOSING || dst >= PF_TCPS_CLOSING)
		state->timeout = PF_TIMEOUT_TCP_CLOSING;
	else
		state->timeout = PF_TIMEOUT_TCP_ESTABLISHED;
}

/* What a segment tells about the connection: X sent it, Y is the other side. True if it is
 * established by it. */
__inline bool advance(struct pf_peer *x, struct pf_peer *y, __u8 flags)
{
	bool connected = false;

	if (flags & TH_SYN && x->state < PF_TCPS_SYN_SENT)
		x->state = PF_TCPS_SYN_SENT;
	if (flags & TH_FIN && x->state < PF_TCPS_CLOSING)
		x->state = PF_TCPS_CLOSING;
	if (flags & TH_ACK) {
		if (y->state == PF_TCPS_SYN_SENT) {
			y->state = PF_TCPS_ESTABLISHED;
			connected = x->state == PF_TCPS_ESTABLISHED;
		} else if (y->state == PF_TCPS_CLOSING) {
			y->state = PF_TCPS_FIN_WAIT_2;
		}
	}
	if (flags & TH_RST)
		x->state = y->state = PF_TCPS_TIME_WAIT;
	return connected;
}

/* The connection is established: its source's node is to count it. */
__inline void connect(struct pf_state *state, const struct pf_extension *extension,
		      struct pf_scratch *s)
{
	if (!extension || !extension->source_nodes[PF_NODE_TRACK])
		return;
	state->flags |= PF_STATE_CONNECTED;
	s->connected = extension->source_nodes[PF_NODE_TRACK];
}

/* One accepted segment moves the windows. */
__inline void slide(struct pf_peer *x, struct pf_peer *y, __u32 end, __u32 ack, __u32 window,
		    __u8 shift)
{
	__u32 offered = window << shift;

	if (x->max_win < window)
		x->max_win = window;
	if (SEQ_GT(end, x->seqlo))
		x->seqlo = end;
	if (SEQ_GEQ(ack + offered, y->seqhi))
		y->seqhi = ack + max(offered, 1);
}

__inline enum pf_track track_full(struct pf_state *state, struct pf_extension *extension,
				  struct pf_scratch *s, struct pf_peer *x, struct pf_peer *y)
{
	struct tcp *tcp = &s->pd.tcp;
	__u8 flags = tcp->flags;
	__u32 window = bpf_ntohs(tcp->window);
	__u32 seq = bpf_ntohl(tcp->seq), first = seq;
	__u32 ack = bpf_ntohl(tcp->ack);
	bool modulated = x->seqdiff;
	bool by_maker = x == &state->src;
	__u32 end = seq + s->pd.payload + !!(flags & TH_SYN);
	__u32 data_end = end;
	__u32 reach;
	__u8 x_shift = 0, y_shift = 0;
	__s32 skew;
	bool exact_reset;

	if (flags & TH_FIN)
		end++;
	if (x->wscale && y->wscale && !(flags & TH_SYN)) {
		x_shift = x->wscale & PF_WSCALE_MASK;
		y_shift = y->wscale & PF_WSCALE_MASK;
	}

	if (extension && !x->seqlo)
		meet_other_timestamp(state, extension, s, by_maker);
	if (x->seqlo) {
		ack -= y->seqdiff;
	} else if (y->seqdiff && !x->seqdiff) {
		/* its numbers are chosen now that we see them */
		if (!s->has_sequence)
			return PF_TRACK_MISMATCH;
		x->seqdiff = sequence_difference(s->sequence, seq);
		ack -= y->seqdiff;
		modulated = true;
	} else {
		modulated = false;	/* OpenBSD does not when it meets a side for the second time */
	}
	if (modulated) {
		tcp->seq = bpf_htonl(seq + x->seqdiff);
		tcp->ack = bpf_htonl(ack);
	}
	s->sack_difference = y->seqdiff;

	if (x->seqlo == 0) {
		/* first packet from this side */
		if (flags & TH_SYN && y->wscale & PF_WSCALE_FLAG) {
			x->wscale = s->pd.window_scale;
			if (x->wscale & PF_WSCALE_FLAG) {
				/* the window of a SYN is never scaled, ours always are */
				x_shift = x->wscale & PF_WSCALE_MASK;
				window = (window + (1u << x_shift) - 1) >> x_shift;
				y_shift = y->wscale & PF_WSCALE_MASK;
			} else {
				/* no scaling then: undo it on the other side */
				y->max_win = min(TCP_MAX_WINDOW, (__u32)y->max_win <<
						 (y->wscale & PF_WSCALE_MASK));
				y->wscale = 0;
			}
		}
		x->seqlo = seq;
		if (x->state < PF_TCPS_SYN_SENT)
			x->state = PF_TCPS_SYN_SENT;
		/* The connection may have been picked up in the middle. A repeated SYN of the other
		 * side sets a limit, too, and such a limit must not exclude the reply. */
		/* Differs from OpenBSD: linux.md, "Repeated SYNs" */
		reach = end + max((__u32)y->max_win << y_shift, 1);
		if (x->seqhi == 1 || SEQ_GEQ(reach, x->seqhi) ||
		    ((flags & (TH_SYN | TH_ACK)) == (TH_SYN | TH_ACK) &&
		     !SEQ_GEQ(x->seqhi, data_end)))
			x->seqhi = reach;
		if (window > x->max_win)
			x->max_win = window;
	}

	/* nothing acknowledged, or by a stack that acknowledges nothing in a RST, or before we have
	 * seen what could be acknowledged: no skew */
	if (!(flags & TH_ACK) ||
	    (ack == 0 && (flags & (TH_ACK | TH_RST)) == (TH_ACK | TH_RST)) ||
	    y->state < PF_TCPS_SYN_SENT)
		ack = y->seqlo;
	/* a segment without sequence space may be anywhere */
	if (seq == end) {
		seq = x->seqlo;
		data_end = end = seq;
	}
	skew = y->seqlo - ack;
	reach = x->seqlo - ((__u32)y->max_win << y_shift);

	/* resets must hit the sequence number, or be in the window and acknowledge exactly */
	exact_reset = first == x->seqlo || first == x->seqlo + 1 || first + 1 == x->seqlo ||
		(SEQ_GEQ(first, reach) && SEQ_LEQ(first, x->seqlo + 1) && skew == 0 &&
		 flags & TH_ACK);

	if (SEQ_GEQ(x->seqhi, data_end) && SEQ_GEQ(seq, reach) && skew >= -MAX_ACK_WINDOW &&
	    skew <= (MAX_ACK_WINDOW << x_shift) && (!(flags & TH_RST) || exact_reset)) {
		if (extension && !track_timestamp(state, extension, s, x, y, by_maker))
			return PF_TRACK_BAD_TIMESTAMP;
		slide(x, y, end, ack, window, x_shift);
		if (advance(x, y, flags))
			connect(state, extension, s);
		set_tcp_timeout(state, s->now);
		return PF_TRACK_PASS;
	}

	/*
	 * Loosely, for stacks that send several SYNs at once, connections picked up in the middle,
	 * and stragglers after the close. The timeout is not renewed: a flood must not keep the
	 * state alive, and a right answer from the other side will.
	 */
	if ((y->state < PF_TCPS_SYN_SENT || y->state >= PF_TCPS_FIN_WAIT_2 ||
	     x->state >= PF_TCPS_FIN_WAIT_2) &&
	    SEQ_GEQ(x->seqhi + MAX_ACK_WINDOW, data_end) &&
	    SEQ_GEQ(seq, x->seqlo - MAX_ACK_WINDOW)) {
		if (extension && !track_timestamp(state, extension, s, x, y, by_maker))
			return PF_TRACK_BAD_TIMESTAMP;
		slide(x, y, end, ack, window, x_shift);
		advance(x, y, flags & (TH_FIN | TH_RST));
		return PF_TRACK_PASS;
	}

	if (state->src.state == PF_TCPS_SYN_SENT && state->dst.state == PF_TCPS_SYN_SENT) {
		/* a handshake that went wrong: let both begin again */
		if (!(flags & TH_RST)) {
			s->reply.kind = PF_REPLY_TCP;
			s->reply.tcp_flags = TH_RST;
			s->reply.seq = bpf_ntohl(tcp->ack);
			s->reply.ack = 0;
		}
		x->seqlo = 0;
		x->seqhi = 1;
		x->max_win = 1;
	}
	return PF_TRACK_MISMATCH;
}

/* For connections of which we may see one direction only: flags, no sequence numbers. */
__inline enum pf_track track_sloppy(struct pf_state *state, const struct pf_extension *extension,
				    struct pf_scratch *s, struct pf_peer *x, struct pf_peer *y)
{
	__u8 flags = s->pd.tcp.flags;
	/* whether the acknowledgement is for something that we saw the other side send */
	bool seen = y->state == PF_TCPS_SYN_SENT || y->state == PF_TCPS_CLOSING;

	if (advance(x, y, flags & ~TH_RST))
		connect(state, extension, s);
	if (flags & TH_ACK && !seen) {
		if (x->state == PF_TCPS_SYN_SENT && y->state < PF_TCPS_SYN_SENT) {
			x->state = y->state = PF_TCPS_ESTABLISHED;
			connect(state, extension, s);
		} else if (x->state == PF_TCPS_CLOSING && y->state == PF_TCPS_ESTABLISHED &&
			   y->seqlo == 0) {
			y->state = PF_TCPS_CLOSING;
		}
	}
	if (flags & TH_RST)
		x->state = y->state = PF_TCPS_TIME_WAIT;
	set_tcp_timeout(state, s->now);
	return PF_TRACK_PASS;
}

__inline enum pf_track track_tcp(struct pf_state *state, struct pf_extension *extension,
				 struct pf_scratch *s, struct pf_peer *x, struct pf_peer *y)
{
	if ((s->pd.tcp.flags & (TH_SYN | TH_ACK)) == TH_SYN) {
		if (x->state >= PF_TCPS_FIN_WAIT_2 && y->state >= PF_TCPS_FIN_WAIT_2) {
			state->timeout = PF_TIMEOUT_PURGE;
			return PF_TRACK_GONE;
		}
		if (x->state >= PF_TCPS_ESTABLISHED && y->state >= PF_TCPS_ESTABLISHED) {
			/*
			 * A host that came back from a crash and does not know the connection will
			 * answer this with a RST, and everybody is in step again.
			 */
			s->reply.kind = PF_REPLY_TCP;
			s->reply.tcp_flags = TH_ACK;
			s->reply.seq = y->seqlo;
			s->reply.ack = x->seqlo;
			return PF_TRACK_CHALLENGE;
		}
	}
	if (state->flags & PF_STATE_SLOPPY)
		return track_sloppy(state, extension, s, x, y);
	/* all but this takes what comes from the far side of a state for its maker's, as in
	 * OpenBSD */
	return s->crosses_back ? track_full(state, extension, s, y, x) :
				 track_full(state, extension, s, x, y);
}

/* The first packet of a connection, before there is a state. */
__inline void create_tcp(struct pf_state *state, struct pf_extension *extension,
			 struct pf_scratch *s, const struct pf_rule *rule)
{
	const struct tcp *tcp = &s->pd.tcp;
	struct pf_peer *src = &state->src, *dst = &state->dst;
	__u32 window = max(bpf_ntohs(tcp->window), 1);
	__u8 shift;

	src->seqlo = bpf_ntohl(tcp->seq);
	src->seqhi = src->seqlo + s->pd.payload + 1;
	if (tcp->flags & TH_SYN) {
		src->seqhi++;
		src->wscale = s->pd.window_scale;
	}
	if (tcp->flags & TH_FIN)
		src->seqhi++;
	shift = src->wscale & PF_WSCALE_MASK;
	src->max_win = (window + (1u << shift) - 1) >> shift;
	if (rule->flags & PF_RULE_MODULATE && (tcp->flags & (TH_SYN | TH_ACK)) == TH_SYN)
		src->seqdiff = sequence_difference(initial_sequence(s, PF_SECRET_SEQUENCE),
						   src->seqlo);
	src->state = PF_TCPS_SYN_SENT;
	dst->seqhi = 1;
	dst->max_win = 1;
	dst->state = PF_TCPS_CLOSED;
	state->timeout = PF_TIMEOUT_TCP_FIRST;
	if (extension && s->consumed) {	/* by synproxy: what does not pass is not counted */
		src->state = PF_TCPS_PROXY_SRC;
		src->seqhi = initial_sequence(s, PF_SECRET_SEQUENCE);
		extension->proxy_mss = s->reply.mss;
		state->packets[0] = state->bytes[0] = 0;
	}
}

#endif /* PF_TCP_H */
