/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * An ordinary packet where it leaves, judged while it is still where it came in: by the state that knows it there, or
 * by the rules asked plainly.
 */
#ifndef PF_ONWARD_H
#define PF_ONWARD_H

#include "config.h"
#include "kern.h"
#include "ordinary.h"
#include "plain.h"
#include "scratch.h"
#include "state_key.h"

/* What becomes of the packet at s->interface: enum pf_plain_verdict. If a state passes it, s->has_state, that one has
 * counted it; nothing else is counted yet. Who can but forward the packet asks no state none of whose packets was: it
 * is likely for us. */
__inline int judge_shortly(struct pf_scratch *s, const struct pf_status *status, bool forwards)
{
	struct pf_state *state;

	set_key(&s->key, &s->pd, s->pd.direction);
	state = find_ordinary_state(status, s, s->interface.id);
	s->has_state = !!state;
	s->translated = PF_TRANSLATED_NOT;
	if (state)
		return (!forwards || state->onward.serial) && fits_state(s) ? PF_PLAINLY_PASS :
									      PF_PLAINLY_UNKNOWN;
	return s->known ? PF_PLAINLY_UNKNOWN : ask_plainly(s);
}

/* The same at s->leaving. */
__global int judge_leaving(struct pf_scratch *s)
{
	struct pf_status *status = pf_status();

	if (!s || !status)
		return PF_PLAINLY_UNKNOWN;
	s->pd.direction = PF_OUT;
	s->interface = s->leaving;
	keep_original(&s->pd);
	return judge_shortly(s, status, false);
}

/* Counts the packet that was judged, and gives it the ends that its state wants. */
__inline void count_judged(struct pf_scratch *s)
{
	if (!s->has_state) {
		count_plainly(s);
		return;
	}
	translate_ordinary(s);
	count_shortly(s);
}

#endif /* PF_ONWARD_H */
