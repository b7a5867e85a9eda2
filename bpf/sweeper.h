/* SPDX-License-Identifier: (ISC OR GPL-2.0-only) */
/*
 * The timer that sweeps the tables: sweep.h says what it does. It is here for those who have work
 * for it, or find that it is overdue.
 */
#ifndef PF_SWEEPER_H
#define PF_SWEEPER_H

#include "config.h"
#include "kern.h"
#include "time.h"

#define SLICE_PAUSE	1000000		/* ns from one slice of work to the next */

struct pf_sweeper {
	struct bpf_timer timer;
	__u32 states_left;		/* slots of this second that no slice has looked at */
	__u32 sources_left;
	__u32 limited_left;		/* entries of limited_turns, in the same way */
	__u32 stations_due;		/* bridge stations wait */
	__u32 flush_until;		/* the flushes in hand have lower numbers */
	__u32 flush_cursor;		/* slot where the next slice goes on to end their states */
	__u32 flush_begun;
	__u32 ending;			/* the flush in hand ends the states of a trial, too */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pf_sweeper);
} sweeper SEC(".maps");

/* The kernel has not started the timer: `pfctl -s info` says so. */
__inline void note_timer_error(struct pf_status *status, long error)
{
	__sync_fetch_and_add(&status->timer_errors, 1);
	status->timer_error = -error;
}

/* Has the timer fire after `wait` ns. Returns 0, or an error of the kernel, which is noted. */
__inline long start_timer(struct pf_sweeper *sweeper, struct pf_status *status, __u64 wait)
{
	long error = bpf_timer_start(&sweeper->timer, wait, 0);

	if (error)
		note_timer_error(status, error);
	return error;
}

/* Has the timer fire soon. A test without a timer does the work itself. */
__global int wake_sweeper(void)
{
	__u32 zero = 0;
	struct pf_sweeper *one = bpf_map_lookup_elem(&sweeper, &zero);
	struct pf_status *status = pf_status();

	if (one && status && !driven_by_test())
		start_timer(one, status, SLICE_PAUSE);
	return 0;
}

/* Starts the timer again if it is overdue: who makes a state comes by. At most one attempt a
 * second. */
__inline void revive_sweeper(struct pf_status *status, __u32 now)
{
	if (!status->second || (__s32)(now - status->second) <= 2 || status->timer_tried == now)
		return;
	status->timer_tried = now;
	wake_sweeper();
}

#endif /* PF_SWEEPER_H */
