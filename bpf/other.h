/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * Tracking of UDP and of protocols about which nothing is known (pf-semantics section 9): each side
 * has sent nothing, one packet, or several.
 */
#ifndef PF_OTHER_H
#define PF_OTHER_H

#include "kern.h"
#include "scratch.h"
#include "tcp.h"

__inline enum pf_track track_other(struct pf_state *state, struct pf_scratch *s,
				   struct pf_peer *x, struct pf_peer *y)
{
	bool udp = s->pd.virtual_protocol == IPPROTO_UDP;

	if (x->state < PF_OTHERS_SINGLE)
		x->state = PF_OTHERS_SINGLE;
	if (y->state == PF_OTHERS_SINGLE)
		y->state = PF_OTHERS_MULTIPLE;
	state->expire = s->now;
	if (x->state == PF_OTHERS_MULTIPLE && y->state == PF_OTHERS_MULTIPLE)
		state->timeout = udp ? PF_TIMEOUT_UDP_MULTIPLE : PF_TIMEOUT_OTHER_MULTIPLE;
	else
		state->timeout = udp ? PF_TIMEOUT_UDP_SINGLE : PF_TIMEOUT_OTHER_SINGLE;
	return PF_TRACK_PASS;
}

__inline void create_other(struct pf_state *state, const struct pf_scratch *s)
{
	state->src.state = PF_OTHERS_SINGLE;
	state->dst.state = PF_OTHERS_NO_TRAFFIC;
	state->timeout = s->pd.protocol == IPPROTO_UDP ? PF_TIMEOUT_UDP_FIRST :
							 PF_TIMEOUT_OTHER_FIRST;
}

#endif /* PF_OTHER_H */
