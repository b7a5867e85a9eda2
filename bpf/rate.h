/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * How often something happens: max-pkt-rate and max-src-conn-rate (pf-semantics section 5).
 *
 * A rate is one word: the second of the last event, and below it the thousandths of events counted,
 * which fade with the time that passes and are gone after the whole period of the limit.
 */
#ifndef PF_RATE_H
#define PF_RATE_H

#include "kern.h"

#define RATE_EVENT	1000		/* one event in thousandths */
#define RATE_TRIES	8

/* Counts an event. Whether there are more than `limit` in `seconds` now. */
__inline bool exceeds_rate(__u64 *rate, __u32 limit, __u32 seconds, __u32 now)
{
	__u64 before, count = 0;
	__u32 elapsed;

	for (int i = 0; i < RATE_TRIES; i++) {
		before = *(volatile __u64 *)rate;
		elapsed = now - (before >> 32);
		count = before & 0xffffffff;
		count = elapsed < seconds ? count - count * elapsed / seconds : 0;
		count = min(count + RATE_EVENT, 0xffffffff);
		if (__sync_bool_compare_and_swap(rate, before, (__u64)now << 32 | count))
			break;
		/* others count at the same time: after some tries theirs has to do */
	}
	return count > (__u64)limit * RATE_EVENT;
}

#endif /* PF_RATE_H */
